"""Checks of the arguments of every search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

_MAX_THREADS = 1024
MAX_RESULTS = 100_000_000
"""Rows that a search without a k returns unless `max_results` says otherwise: 1.2 GB."""


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


def wanted_distance(distance: Any, n_bits: int) -> int:
    """`distance` as a number of bits from 0 to `n_bits`."""
    if isinstance(distance, bool) or not isinstance(distance, (int, np.integer)):
        raise InputError(f"distance is {distance!r}, expected a whole number of bits")
    if not 0 <= distance <= n_bits:
        raise InputError(f"distance is {distance}, expected 0 to {n_bits}, the bits of a code")
    return int(distance)


def wanted_similarity(similarity: Any, lowest: int) -> float:
    """`similarity` as a number from `lowest` to 1."""
    if isinstance(similarity, bool) or not isinstance(
        similarity, (int, float, np.integer, np.floating)
    ):
        raise InputError(f"similarity is {similarity!r}, expected a number")
    if not lowest <= similarity <= 1:  # NaN as well
        raise InputError(f"similarity is {similarity}, expected {lowest} to 1")
    return float(similarity)


def distance_of(similarity: float, n_bits: int) -> int:
    """The largest distance whose share of equal bits is at least `similarity`.

    Example:
        >>> distance_of(0.9, 10), distance_of(0.91, 10), distance_of(1, 10)
        (1, 0, 0)
    """
    # In floats 1 - 56 / 100 is below 0.44, but 44 / 100 is not; with other numbers it is the other
    # way round, and `similarity` returns 1 - distance / n_bits. Both reach the bound.
    equal = max(round(similarity * n_bits) - 1, 0)
    while max(equal / n_bits, 1 - (n_bits - equal) / n_bits) < similarity:
        equal += 1
    return n_bits - equal


def wanted_results(max_results: Any) -> int:
    """How many results may be returned."""
    if max_results is None:
        return MAX_RESULTS
    if isinstance(max_results, bool) or not isinstance(max_results, (int, np.integer)):
        raise InputError(f"max_results is {max_results!r}, expected a whole number")
    if max_results < 0:
        raise InputError(f"max_results is {max_results}, expected 0 or more")
    return min(int(max_results), 2**62)
