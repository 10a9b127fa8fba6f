"""Which native code the searches run."""

from __future__ import annotations

from typing import NamedTuple

from embits import _core
from embits.errors import InputError


class Kernel(NamedTuple):
    """The native code of a search."""

    simd: str
    """The instruction set: "portable", "avx2", "avx512" or "neon"."""
    path: str
    """"rows" compares code by code, "planes" searches a batch by bit planes; "" before any
    search."""


def kernel() -> Kernel:
    """The instruction set in use, and the path that the last search of this process took.

    The environment variables EMBITS_SIMD and EMBITS_PATH, read once, choose others.

    Raises:
        InputError: EMBITS_SIMD names an instruction set that this processor does not have.

    Example:
        >>> import numpy as np
        >>> from embits.search import top_k
        >>> codes = np.zeros((3, 8), np.uint8)
        >>> _ = top_k(codes, codes[0], k=1)
        >>> kernel().path
        'rows'
    """
    return Kernel(simd(), _core.path())


def simd() -> str:
    """The instruction set that searches run on: "portable", "avx2", "avx512" or "neon".

    Raises:
        InputError: EMBITS_SIMD names one that this processor does not have.

    Example:
        >>> simd() in ("portable", "avx2", "avx512", "neon")
        True
    """
    try:
        return _core.simd()
    except ValueError as error:
        raise InputError(str(error)) from None
