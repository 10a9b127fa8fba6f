"""Exact top-k over packed codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import InputError


def top_k(
    codes: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    k: int,
    threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The k rows of `codes` nearest to each query by Hamming distance.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        queries: One packed code of shape (width,), or several, (q, width).
        k: How many rows to return; more than n returns n.
        threads: The most threads to use; None takes every core this process may run on. Small
            searches run on the caller's thread whatever is asked for.

    Returns:
        distances (q, k) int32 and rows (q, k) int64, nearest first, ties in row order;
        both of shape (k,) for a single query. They do not depend on the number of threads.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, k or threads.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> distances, rows = top_k(codes, np.array([0b1100_0000], dtype=np.uint8), k=2)
        >>> distances.tolist(), rows.tolist()
        ([1, 2], [2, 0])
    """
    codes, queries, batch = packed_pair(codes, queries)
    k = wanted_rows(k, len(codes))
    distances = np.empty((len(batch), k), dtype=np.int32)
    rows = np.empty((len(batch), k), dtype=np.int64)
    try:
        _core.top_k(codes, batch, k, wanted_threads(threads), distances, rows)
    except ValueError as error:  # EMBITS_SIMD names what this processor cannot run
        raise InputError(str(error)) from None
    return (distances, rows) if batch is queries else (distances[0], rows[0])


def packed_pair(
    codes: Any, queries: Any
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Checks codes and queries: the codes, the queries, and the queries as a batch, contiguous."""
    codes = packed("codes", codes)
    queries = packed("queries", queries)
    if codes.ndim != 2:
        raise InputError(f"codes have {codes.ndim} dimension(s), expected 2: (rows, bytes)")
    if queries.ndim not in (1, 2):
        raise InputError(f"queries have {queries.ndim} dimensions, expected 1 or 2")
    if queries.shape[-1] != codes.shape[1]:
        raise InputError(f"queries are {queries.shape[-1]} bytes wide, the codes {codes.shape[1]}")
    return codes, queries, queries if queries.ndim == 2 else queries[np.newaxis]


def packed(name: str, array: Any) -> NDArray[np.uint8]:
    """`array` as contiguous packed bits, or an InputError that calls it `name`."""
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    if array.dtype != np.uint8:
        raise InputError(f"{name} are {array.dtype}, expected packed bits: uint8 (see np.packbits)")
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array  # type: ignore[no-any-return]


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
    return int(threads)
