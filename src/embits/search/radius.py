"""All rows within a distance of each query, or above a score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import InputError, TooManyResultsError
from embits.search.arguments import packed_queries, wanted_threads
from embits.search.pieces import CodePieces
from embits.search.results import WithinResult, WithinScoreResult
from embits.search.scanned import Scanned

MAX_RESULTS = 100_000_000
"""Rows that a search returns unless `max_results` says otherwise: 1.2 GB."""

_ROW_BITS = 40  # of a key of the native search, which holds a distance above a row
_FIRST_K = 64
_GROWTH = 8
_TopK: TypeAlias = Callable[[NDArray[np.intp], int], tuple[NDArray[np.float32], NDArray[np.int64]]]


def within(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    max_results: int | None = None,
) -> WithinResult:
    """All rows of `codes` within a Hamming distance of each query.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `CodePieces`.
        queries: One packed code of shape (width,), or several, (q, width).
        distance: The largest number of bits that may differ.
        threads: As in `top_k`.
        max_results: Rows of all queries together at which the search stops with an error; None
            means `MAX_RESULTS`, 100 million. The search needs about 50 bytes of memory for each
            row that it finds, and none for the others.

    Returns:
        A named tuple `offsets` (q + 1,), `rows` and `distances`. The rows of query i are
        `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order. The result does not
        depend on the number of threads.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, distance, max_results or threads.
        TooManyResultsError: There are more rows than `max_results`.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> found = within(codes, codes[:2], distance=1)
        >>> found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()
        ([0, 2, 3], [0, 2, 1], [0, 1, 0])
    """
    scanned = Scanned.of(codes)
    queries = packed_queries(queries, scanned.width)
    distance = wanted_distance(distance, 8 * scanned.width)
    most, at_once = wanted_results(max_results), wanted_threads(threads)
    try:
        offsets, keys = _core.within(
            scanned.native, queries, distance, most, at_once, scanned.left()
        )
    except OverflowError:
        raise too_many(most, f"distance {distance}") from None
    except ValueError as error:  # EMBITS_SIMD or EMBITS_PATH is wrong
        raise InputError(str(error)) from None
    rows, distances = split_keys(keys)
    return WithinResult(offsets, scanned.rows(rows), distances)


def split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows and distances of the keys of the native search; the keys are changed."""
    distances = (keys >> _ROW_BITS).astype(np.int32)
    keys &= (1 << _ROW_BITS) - 1
    return keys, distances


def scores_from(
    best: _TopK, n_queries: int, n: int, similarity: float, max_results: int | None
) -> WithinScoreResult:
    """All rows that score `similarity` or more, by top-k searches of a growing k.

    A query is done when its last row scores less. The scores are compared as they are returned.

    Args:
        best: Gives scores and rows, each (q, k), of some queries and a k.
        n_queries: How many queries there are.
        n: How many rows there are.
        similarity: The lowest score.
        max_results: As in `within`.
    """
    most = wanted_results(max_results)
    found: dict[int, tuple[NDArray[np.float32], NDArray[np.int64]]] = {}
    left, k = np.arange(n_queries), min(_FIRST_K, n)
    while len(left):
        unfinished = []
        # All rows of one query may be needed, but never those of many queries at a time.
        for batch in np.array_split(left, -(-len(left) * k // max(n, most // 8, 1)) or 1):
            scores, rows = best(batch, k)
            counts = (scores >= similarity).sum(axis=1)
            for q, count, of_scores, of_rows in zip(batch, counts, scores, rows, strict=True):
                if count == k < n:
                    unfinished.append(q)
                else:
                    found[int(q)] = of_scores[:count].copy(), of_rows[:count].copy()
            if sum(len(of_rows) for _, of_rows in found.values()) > most:
                raise too_many(most, f"similarity {similarity}")
        left, k = np.array(unfinished, dtype=np.intp), min(k * _GROWTH, n)
    pairs = [found[q] for q in range(n_queries)]
    offsets = np.cumsum([0, *(len(rows) for _, rows in pairs)], dtype=np.int64)
    rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in pairs)])
    scores = np.concatenate([np.empty(0, np.float32), *(scores for scores, _ in pairs)])
    return WithinScoreResult(offsets, rows, scores)


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
    """The largest distance whose similarity, 1 - distance / n_bits, is at least `similarity`.

    Example:
        >>> distance_of(0.9, 10), distance_of(0.91, 10), distance_of(1, 10)
        (1, 0, 0)
    """
    distance = min(round((1 - similarity) * n_bits) + 1, n_bits)
    while 1 - distance / n_bits < similarity:
        distance -= 1
    return distance


def wanted_results(max_results: Any) -> int:
    """How many results may be returned."""
    if max_results is None:
        return MAX_RESULTS
    if isinstance(max_results, bool) or not isinstance(max_results, (int, np.integer)):
        raise InputError(f"max_results is {max_results!r}, expected a whole number")
    if max_results < 0:
        raise InputError(f"max_results is {max_results}, expected 0 or more")
    return min(int(max_results), 2**62)


def too_many(most: int, bound: str) -> TooManyResultsError:
    """The error for more results than `most`."""
    return TooManyResultsError(
        f"more than {most:,} rows are within {bound}: choose a narrower bound, search fewer "
        "queries at a time, or pass a larger max_results"
    )
