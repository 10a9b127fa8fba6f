"""Checks of what a file stores of a coder: its parameters and its learned arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from reprlib import repr as shortened
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

if TYPE_CHECKING:
    from embits.coders.base import Coder

Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]

SYMBOLS = ("bits", "dims", "dims+1", "any")  # sizes of `state_shapes` that are not numbers
FLOATS = tuple(map(np.dtype, ("<f2", "<f4", "<f8")))  # of learned arrays in a file


def check_params(coder: type[Coder], params: Mapping[str, Any]) -> None:
    """Refuse parameters that the coder does not have, or of a type it does not take."""
    hints = _param_types(coder)
    for name, value in params.items():
        if name not in hints:
            raise InputError(f"method {coder.method!r} has no parameter {shortened(name)}")
        if not _fits(value, hints[name]):
            raise InputError(f"the parameter {name} is {shortened(value)}")


@functools.cache
def _param_types(coder: type[Coder]) -> dict[str, Any]:
    try:
        hints = get_type_hints(coder.__init__)
    except NameError:  # a type that is imported for the type checker alone
        hints = {}
    return {name: hints.get(name, Any) for name in coder.param_names()}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value out of JSON is of the type that a parameter is declared with."""
    kinds = {kind for part in get_args(hint) or (hint,) for kind in get_args(part) or (part,)}
    if Any in kinds:
        return True
    if isinstance(value, int):  # also for floats, and a flag may be a number
        return not {int, float, bool}.isdisjoint(kinds)
    if isinstance(value, float):
        return float in kinds and bool(np.isfinite(value))
    if value is None:
        return NoneType in kinds
    return isinstance(value, str) and (str in kinds or value in kinds)


def checked_arrays(
    coder: type[Coder], state: Mapping[str, NDArray[Any]], dims: int, n_bits: int
) -> dict[str, NDArray[Any]]:
    """The learned arrays by the attribute they become; their numbers are not read.

    An array that `state_defaults` names may be missing.

    Raises:
        InputError: An array is missing, or its shape or type is not what the coder needs.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name, wanted in _wanted_shapes(coder, dims, n_bits).items():
        array = state.get(name)
        if array is None and name in coder.state_defaults:
            array = np.full(wanted, coder.state_defaults[name], dtype=np.float32)
        arrays[name + "_"] = _checked(name, array, wanted)
    return arrays


def learned_arrays(coder: Coder) -> dict[str, NDArray[Any]]:
    """The learned arrays of a fitted coder by name, in the shapes that a file needs.

    Raises:
        InputError: An array is missing, or its shape or type is not that of `state_shapes`.
    """
    shapes = _wanted_shapes(type(coder), coder.n_features_in_, coder.n_bits_)
    return {
        name: _checked(f"{name}_", getattr(coder, f"{name}_", None), wanted)
        for name, wanted in shapes.items()
    }


def _wanted_shapes(coder: type[Coder], dims: int, n_bits: int) -> dict[str, tuple[Any, ...]]:
    sizes = {"bits": n_bits, "dims": dims, "dims+1": dims + 1}
    return {
        name: tuple(sizes.get(str(size), size) for size in shape)
        for name, shape in coder.state_shapes.items()
    }


def _checked(name: str, value: Any, wanted: tuple[Any, ...]) -> NDArray[Any]:
    """A learned array of the coder, if it is one of floats and has the shape."""
    array = None if value is None else np.asarray(value)
    if (
        array is None
        or array.dtype not in FLOATS
        or array.ndim != len(wanted)
        or any(w not in ("any", got) for w, got in zip(wanted, array.shape, strict=True))
    ):
        found = "missing" if array is None else f"{array.dtype} {array.shape}"
        raise InputError(f"the coder's {name} is {found}, expected floats {wanted}")
    return array
