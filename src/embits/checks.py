"""Checks of arguments: numbers, choices, packed codes and queries, each with one message."""

from __future__ import annotations

import math
from collections.abc import Iterable
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

_MAX_THREADS = 1024
MAX_RESULTS = 100_000_000
"""Rows that a search without a k returns unless `max_results` says otherwise: 1.2 GB."""


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` to `most`.

    Raises:
        InputError: It is something else; the message calls it `name`.

    Example:
        >>> whole("k", np.int64(3)), whole("threads", 2, least=1, most=8)
        (3, 2)
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{name} is {shortened(value)}, expected a whole number {bounds}")
    return int(value)


def number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A number from `least` to `most`.

    Raises:
        InputError: It is something else; the message calls it `name`.

    Example:
        >>> number("similarity", 1, least=-1, most=1)
        1.0
    """
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or math.isnan(value):
        raise InputError(f"{name} is {shortened(value)}, expected a number")
    if not least <= value <= most:
        bounds = f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"
        raise InputError(f"{name} is {value:g}, expected {bounds}")
    return float(value)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """One of several names.

    Raises:
        InputError: It is none of them; the message calls it `name`.

    Example:
        >>> choice("metric", "hamming", ["hamming", "decoded"])
        'hamming'
    """
    known = list(options)
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        expected = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{name} is {shortened(value)}, expected {expected}")
    return value


# -- of searches -----------------------------------------------------------------------------------


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
    return min(whole("k", k), n)


def wanted_threads(threads: Any) -> int:
    """`threads` as the core counts them: 0 stands for every core."""
    return 0 if threads is None else min(whole("threads", threads, least=1), _MAX_THREADS)


def wanted_distance(distance: Any, n_bits: int) -> int:
    """`distance` as a number of bits from 0 to `n_bits`."""
    return whole("distance", distance, most=n_bits)


def wanted_similarity(similarity: Any, least: float, most: float = 1) -> float:
    """`similarity` as a number from `least` to `most`."""
    return number("similarity", similarity, least, most)


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
    return MAX_RESULTS if max_results is None else min(whole("max_results", max_results), 2**62)
