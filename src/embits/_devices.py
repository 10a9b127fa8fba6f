"""PyTorch's devices, for training, encoding and searching there; PyTorch is imported only here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from embits.errors import InputError, MissingExtraError


def torch_device(device: Any, purpose: str) -> tuple[Any, Any]:
    """PyTorch, and the device of that name.

    Args:
        device: A PyTorch device such as "cuda" or "cuda:1".
        purpose: What it is wanted for, in an error's words.

    Raises:
        InputError: There is no such device here.
        MissingExtraError: The extra `gpu` is not installed.
    """
    if not isinstance(device, str) or not device:
        raise InputError(f'device is {device!r}, expected "cpu" or a GPU such as "cuda"')
    try:
        torch = import_module("torch")
    except ImportError:
        raise MissingExtraError(f"{purpose} on device={device!r}", "gpu") from None
    try:
        return torch, torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {device!r} cannot be used: {reason}") from None
