"""The arrays that coders compute with: NumPy on the CPU, PyTorch on a GPU, by the array API.

Training and projecting use only functions of the array API standard that have one name in NumPy,
`array_api_compat.torch` and `array_api_strict`. NumPy alone needs no extra package.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import torch_device
from embits.errors import MissingExtraError


@dataclass(frozen=True)
class Backend:
    """A namespace of the array API, and the device its arrays live on (None: the default one)."""

    xp: Any
    device: Any = None

    def put(self, array: Any) -> Any:
        """The array, NumPy's or of the namespace, on the device."""
        if self.xp is np:
            return np.ascontiguousarray(array)
        return self.xp.asarray(array, device=self.device)

    def get(self, array: Any) -> NDArray[Any]:
        """The array back in host memory."""
        return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def backend(device: str, purpose: str = "training") -> Backend:
    """The backend of `device`: "cpu", or a PyTorch device such as "cuda" or "cuda:1".

    Raises:
        InputError: There is no such device here.
        MissingExtraError: The extra `gpu` is not installed.

    Example:
        >>> backend("cpu").xp.__name__
        'numpy'
    """
    if device == "cpu":
        return Backend(np)
    _, place = torch_device(device, purpose)
    try:
        return Backend(import_module("array_api_compat.torch"), place)
    except ImportError:
        raise MissingExtraError(f"{purpose} on device={device!r}", "gpu") from None
