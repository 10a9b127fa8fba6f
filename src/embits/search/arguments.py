"""Checks of the arguments of every search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

_MAX_THREADS = 1024


def packed(name: str, array: Any) -> NDArray[np.uint8]:
    """`array` as contiguous packed bits, or an InputError that calls it `name`."""
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    if array.dtype != np.uint8:
        raise InputError(f"{name} are {array.dtype}, expected packed bits: uint8 (see np.packbits)")
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array  # type: ignore[no-any-return]


def packed_codes(codes: Any) -> NDArray[np.uint8]:
    """`codes` as contiguous packed bits of shape (n, width)."""
    checked = packed("codes", codes)
    if checked.ndim != 2:
        raise InputError(f"codes have {checked.ndim} dimension(s), expected 2: (rows, bytes)")
    return checked


def packed_queries(queries: Any, width: int) -> NDArray[np.uint8]:
    """`queries` as contiguous packed bits of shape (width,) or (q, width)."""
    checked = packed("queries", queries)
    if checked.ndim not in (1, 2):
        raise InputError(f"queries have {checked.ndim} dimensions, expected 1 or 2")
    if checked.shape[-1] != width:
        raise InputError(f"queries are {checked.shape[-1]} bytes wide, the codes {width}")
    return checked


def float_queries(name: str, queries: Any) -> NDArray[np.float32]:
    """`queries` as contiguous, finite float32 of shape (dims,) or (q, dims)."""
    queries = np.asarray(queries)
    if queries.dtype.kind not in "fiu":
        raise InputError(f"{name} are {queries.dtype}, expected numbers")
    if queries.ndim not in (1, 2):
        raise InputError(f"{name} have {queries.ndim} dimensions, expected 1 or 2")
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        checked = np.ascontiguousarray(queries, dtype=np.float32)
    if not np.isfinite(checked).all():
        raise InputError(f"{name} hold NaN, infinity or a number beyond float32")
    return checked


def wanted_rows(k: Any, n: int) -> int:
    """How many rows to return when `k` of `n` are asked for."""
    if not isinstance(k, (int, np.integer)) or k < 0:
        raise InputError(f"k is {k!r}, expected a whole number of 0 or more")
    return min(int(k), n)


def wanted_threads(threads: Any) -> int:
    """`threads` as the core counts them: 0 stands for every core."""
    if threads is None:
        return 0
    if not isinstance(threads, (int, np.integer)) or threads < 1:
        raise InputError(f"threads is {threads!r}, expected 1 or more, or None for all cores")
    return min(int(threads), _MAX_THREADS)
