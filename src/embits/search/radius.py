"""All rows within a distance of each query, or of at least a score."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.checks import (
    distance_of,
    packed_queries,
    wanted_distance,
    wanted_results,
    wanted_similarity,
    wanted_threads,
)
from embits.errors import InputError, TooManyResultsError
from embits.search.filters import Filters, Selection, are_few, mask_filter
from embits.search.metrics import Metric, Prepared
from embits.search.pieces import CodePieces
from embits.search.results import WithinResult, WithinScoreResult
from embits.search.scan import prepared_top_k, simd_errors

_ROW_BITS = 40  # of a key of the native search, which holds a distance above a row
# The results of some queries, with a filter of the stored rows and a limit of the results.
_Search: TypeAlias = Callable[[NDArray[np.uint8], Selection | None, int], WithinResult]
_FIRST_K = 64
_GROWTH = 8
_Best: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]
_TopK: TypeAlias = Callable[[NDArray[np.intp], int], _Best]


def within(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    where: Any = None,
    exclude: Any = None,
    max_results: int | None = None,
) -> WithinResult:
    """All rows of `codes` within a Hamming distance of each query.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `CodePieces`.
        queries: One packed code of shape (width,), or several, (q, width).
        distance: The largest number of bits that may differ.
        threads: As in `top_k`.
        where: The rows that may be found, as in `top_k`.
        exclude: The rows that may not be found, as in `top_k`.
        max_results: Rows of all queries together at which the search stops with an error; None
            means 100 million. The search needs about 50 bytes of memory for each
            row that it finds, and none for the others.

    Returns:
        A named tuple `offsets` (q + 1,), `rows` and `distances`. The rows of query i are
        `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order. The result does not
        depend on the number of threads.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, distance, max_results or threads;
            or a filter that does not fit.
        TooManyResultsError: There are more rows than `max_results`.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> found = within(codes, codes[:2], distance=1)
        >>> found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()
        ([0, 2, 3], [0, 2, 1], [0, 1, 0])
    """
    most, pieces = wanted_results(max_results), CodePieces.of(codes)
    queries = packed_queries(queries, pieces.shape[1])
    distance = wanted_distance(distance, 8 * pieces.shape[1])
    filters = pieces.filters(queries.shape[:-1], where, exclude)
    search = partial(_search, pieces, distance, wanted_threads(threads))
    try:
        with simd_errors():
            if isinstance(filters, list):
                return _each(search, queries, filters, most)
            return search(queries, filters, most)
    except OverflowError:
        raise too_many(most, f"distance {distance}") from None


def _search(
    pieces: CodePieces,
    distance: int,
    threads: int,
    queries: NDArray[np.uint8],
    selection: Selection | None,
    most: int,
) -> WithinResult:
    if selection is not None and are_few(selection, len(np.atleast_2d(queries)), pieces.shape[1]):
        few = pieces.rows.live(selection.rows)
        offsets, keys = _core.within(pieces[few], queries, distance, most, threads)
        places, distances = split_keys(keys)
        return WithinResult(offsets, few[places], distances)
    native = None if selection is None else mask_filter(selection)
    offsets, keys = _core.within(pieces.native, queries, distance, most, threads, native)
    rows, distances = split_keys(keys)
    return WithinResult(offsets, pieces.rows.live(rows), distances)


def _each(
    search: _Search, queries: NDArray[np.uint8], filters: list[Selection], most: int
) -> WithinResult:
    """Queries with filters of their own, one after the other."""
    found = []
    for query, selection in zip(queries, filters, strict=True):
        found.append(search(query, selection, most))
        most -= len(found[-1].rows)
    rows = np.concatenate([np.empty(0, np.int64), *(each.rows for each in found)])
    distances = np.concatenate([np.empty(0, np.int32), *(each.distances for each in found)])
    offsets = np.cumsum([0, *(len(each.rows) for each in found)], dtype=np.int64)
    return WithinResult(offsets, rows, distances)


def split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows and distances of the keys of the native search; the keys are changed."""
    distances = (keys >> _ROW_BITS).astype(np.int32)
    keys &= (1 << _ROW_BITS) - 1
    return keys, distances


def too_many(most: int, bound: str) -> TooManyResultsError:
    """The error for more results than `most`."""
    return TooManyResultsError(
        f"more than {most:,} rows are within {bound}: choose a narrower bound, search fewer "
        "queries at a time, or pass a larger max_results"
    )


def wanted_bound(
    metric: Metric, distance: int | None, similarity: float | None, n_bits: int
) -> float:
    """The largest distance, or the lowest score, of a search without a k.

    Raises:
        InputError: Not exactly one of them is given, the metric has no distance, or a value is out
            of range.
    """
    if (distance is None) == (similarity is None):
        raise InputError("within needs a distance or a similarity, one of them")
    if metric.is_distance:
        if distance is None:
            return distance_of(wanted_similarity(similarity, 0), n_bits)
        return wanted_distance(distance, n_bits)
    if similarity is None:
        raise InputError(f"metric={metric.name!r} has no distance: pass similarity")
    least, most = (-np.inf, np.inf) if metric.needs_lengths else (-1, 1)
    return wanted_similarity(similarity, least, most)


def prepared_within(
    codes: NDArray[np.uint8] | CodePieces,
    prepared: Prepared,
    bound: float,
    threads: int | None = None,
    *,
    where: Filters = None,
    max_results: int | None = None,
    lengths: NDArray[np.float32] | None = None,
) -> WithinResult | WithinScoreResult:
    """All rows up to a bound for a batch of queries that a metric prepared.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `CodePieces`.
        prepared: The queries.
        bound: What `wanted_bound` gave.
        threads: None takes every core.
        where: The rows that may be found.
        max_results: As in `within`.
        lengths: The lengths of stored rows, for a metric that needs them.
    """
    queries = prepared.queries
    if prepared.offsets is None:
        return within(codes, queries, int(bound), threads, where=where, max_results=max_results)

    def best(of: NDArray[np.intp], k: int) -> _Best:
        some = [where[q] for q in of] if isinstance(where, list) else where
        values, rows = prepared_top_k(
            codes, prepared.take(of), k, threads, where=some, lengths=lengths
        )
        return cast("NDArray[np.float32]", values), rows

    return _scores_from(best, len(queries), len(codes), bound, max_results)


def _scores_from(
    best: _TopK, n_queries: int, n: int, similarity: float, max_results: int | None
) -> WithinScoreResult:
    """All rows that score `similarity` or more, by top-k searches of a growing k.

    A query is done when its last row scores less. The scores are compared as they are returned.

    Args:
        best: Gives scores and rows, each (q, k), of some queries and a k; fewer columns, or scores
            of -inf, where fewer rows pass a filter.
        n_queries: How many queries there are.
        n: How many rows there are.
        similarity: The lowest score.
        max_results: As in `within`.
    """
    most = wanted_results(max_results)
    found: dict[int, _Best] = {}
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
    return _joined([found[q] for q in range(n_queries)])


def _joined(of_queries: list[_Best]) -> WithinScoreResult:
    offsets = np.cumsum([0, *(len(rows) for _, rows in of_queries)], dtype=np.int64)
    rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in of_queries)])
    scores = np.concatenate([np.empty(0, np.float32), *(scores for scores, _ in of_queries)])
    return WithinScoreResult(offsets, rows, scores)
