"""All rows within a distance of each query, or of at least a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.checks import (
    distance_of,
    number,
    packed_queries,
    wanted_distance,
    wanted_results,
    wanted_threads,
)
from embits.errors import InputError, TooManyResultsError
from embits.search.filters import Filters, Selection, are_few, mask_filter
from embits.search.metrics import Metric, Prepared
from embits.search.pieces import CodePieces
from embits.search.results import WithinResult, WithinScoreResult
from embits.search.scan import prepared_top_k, simd_errors

_ROW_BITS = 40  # of a key of the native search, which holds a distance above a row
_FIRST_K, _GROWTH = 64, 8


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
    """All rows of `codes` within a Hamming distance of each query: see `top_k` for other arguments.

    Args:
        distance: The largest number of bits that may differ.
        max_results: Rows of all queries together at which the search stops with an error; None
            means 100 million. The search needs about 50 bytes of memory for each row that it finds.

    Returns:
        A named tuple `offsets` (q + 1,), `rows` and `distances`. The rows of query i are
        `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order. The result does not
        depend on the number of threads.

    Raises:
        InputError: As in `top_k`, or a wrong distance or max_results.
        TooManyResultsError: There are more rows than `max_results`.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> found = within(codes, codes[:2], distance=1)
        >>> found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()
        ([0, 2, 3], [0, 2, 1], [0, 1, 0])
    """
    most, pieces = wanted_results(max_results), CodePieces.of(codes)
    width = pieces.shape[1]
    queries = packed_queries(queries, width)
    distance = wanted_distance(distance, 8 * width)
    filters = pieces.filters(queries.shape[:-1], where, exclude)
    n_threads, left, found = wanted_threads(threads), most, []

    def search(queries: NDArray[np.uint8], selection: Selection | None) -> WithinResult:
        searched, few, native = pieces.native, None, None
        if selection is not None and are_few(selection, len(np.atleast_2d(queries)), width):
            few = pieces.rows.live(selection.rows)
            searched = pieces[few]
        elif selection is not None:
            native = mask_filter(selection)
        offsets, keys = _core.within(searched, queries, distance, left, n_threads, native)
        rows, distances = split_keys(keys)
        return WithinResult(
            offsets, pieces.rows.live(rows) if few is None else few[rows], distances
        )

    try:
        with simd_errors:
            if not isinstance(filters, list):
                return search(queries, filters)
            for query, selection in zip(queries, filters, strict=True):
                found.append(search(query, selection))
                left -= len(found[-1].rows)
    except OverflowError:
        raise too_many(most, f"distance {distance}") from None
    return WithinResult(*_joined([each[1:] for each in found], np.int32))


def _joined(found: list[Any], dtype: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
    """Offsets, rows and values of the rows and values of each query."""
    offsets = np.cumsum([0, *(len(rows) for rows, _ in found)], dtype=np.int64)
    rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in found)])
    return offsets, rows, np.concatenate([np.empty(0, dtype), *(values for _, values in found)])


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
    """The largest distance, or the lowest score, of a search without a k; InputError if wrong."""
    if (distance is None) == (similarity is None):
        raise InputError("within needs a distance or a similarity, one of them")
    if metric.is_distance:
        if distance is None:
            return distance_of(number("similarity", similarity, 0, 1), n_bits)
        return wanted_distance(distance, n_bits)
    if similarity is None:
        raise InputError(f"metric={metric.name!r} has no distance: pass similarity")
    least, most = (-np.inf, np.inf) if metric.needs_lengths else (-1, 1)
    return number("similarity", similarity, least, most)


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
    """All rows up to what `wanted_bound` gave, for a batch that a metric prepared; see `within`."""
    if prepared.offsets is None:
        return within(
            codes, prepared.queries, int(bound), threads, where=where, max_results=max_results
        )
    # By top-k searches of a growing k: a query is done when its last row scores less.
    n, most = len(codes), wanted_results(max_results)
    found: dict[int, Any] = {}
    left, k = np.arange(len(prepared.queries)), min(_FIRST_K, n)
    while len(left):
        unfinished = []
        # All rows of one query may be needed, but never those of many queries at a time.
        for batch in np.array_split(left, -(-len(left) * k // max(n, most // 8, 1)) or 1):
            some = [where[q] for q in batch] if isinstance(where, list) else where
            scores, rows = prepared_top_k(
                codes, prepared.take(batch), k, threads, where=some, lengths=lengths
            )
            counts = (scores >= bound).sum(axis=1)
            for q, count, of_scores, of_rows in zip(batch, counts, scores, rows, strict=True):
                if count == k < n:
                    unfinished.append(q)
                else:
                    found[int(q)] = of_rows[:count].copy(), of_scores[:count].copy()
            if sum(len(of_rows) for of_rows, _ in found.values()) > most:
                raise too_many(most, f"similarity {bound}")
        left, k = np.array(unfinished, dtype=np.intp), min(k * _GROWTH, n)
    return WithinScoreResult(*_joined([found[q] for q in sorted(found)], np.float32))
