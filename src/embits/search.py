"""Exact top-k over packed codes."""

from __future__ import annotations

import os
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
        threads: How many threads to use; None takes every core this process may run on.

    Returns:
        distances (q, k) int32 and rows (q, k) int64, nearest first, ties in row order;
        both of shape (k,) for a single query.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, k or threads.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> distances, rows = top_k(codes, np.array([0b1100_0000], dtype=np.uint8), k=2)
        >>> distances.tolist(), rows.tolist()
        ([1, 2], [2, 0])
    """
    codes = _packed("codes", codes)
    queries = _packed("queries", queries)
    if codes.ndim != 2:
        raise InputError(f"codes have {codes.ndim} dimension(s), expected 2: (rows, bytes)")
    if queries.ndim not in (1, 2):
        raise InputError(f"queries have {queries.ndim} dimensions, expected 1 or 2")
    if queries.shape[-1] != codes.shape[1]:
        raise InputError(f"queries are {queries.shape[-1]} bytes wide, the codes {codes.shape[1]}")
    if not isinstance(k, int | np.integer) or k < 0:
        raise InputError(f"k is {k!r}, expected a whole number of 0 or more")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads!r}, expected 1 or more, or None for all cores")
    batch = np.ascontiguousarray(queries if queries.ndim == 2 else queries[np.newaxis])
    k = min(int(k), codes.shape[0])
    distances = np.empty((len(batch), k), dtype=np.int32)
    rows = np.empty((len(batch), k), dtype=np.int64)
    _core.top_k(np.ascontiguousarray(codes), batch, k, threads or _cores(), distances, rows)
    return (distances, rows) if queries.ndim == 2 else (distances[0], rows[0])


def _packed(name: str, given: Any) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = np.asarray(given)
    if array.dtype != np.uint8:
        raise InputError(f"{name} are {array.dtype}, expected packed bits: uint8 (see np.packbits)")
    return array


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
