"""Exact search by Hamming distance or by score: the k best rows, or all near ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits import _core, checks
from embits.arrays import packed_width
from embits.errors import InputError, TooManyResultsError
from embits.search import results
from embits.search.cells import CellBudget, Probes
from embits.search.filters import Filters, Selection, Value, are_few, mask_filter, row_filter
from embits.search.metrics import Metric, Prepared
from embits.search.results import DistanceResult, ScoreResult, WithinResult, WithinScoreResult
from embits.search.stored import StoredCodes

Codes: TypeAlias = NDArray[np.uint8] | StoredCodes
_ROW_BITS = 40  # of a key of the native search, which holds a distance above a row
_FIRST_K, _GROWTH = 64, 8


def top_k(
    codes: NDArray[np.uint8] | StoredCodes,
    queries: NDArray[np.uint8],
    k: int,
    threads: int | None = None,
    *,
    where: Any = None,
    exclude: Any = None,
    recall: float | Probes | None = None,
) -> DistanceResult:
    """The k rows of `codes` nearest to each query by Hamming distance.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `StoredCodes`.
        queries: One packed code of shape (width,), or several, (q, width).
        k: How many rows to return; more than n returns n.
        threads: The most threads to use; None takes every core this process may run on.
        where: The rows that may be found: a boolean mask of shape (n,), row numbers in any order,
            or a `Selection`; or a filter for each query: a mask of shape (q, n), or a list of q
            filters, where None is all rows.
        exclude: The rows that may not be found, in the same forms.
        recall: Of `StoredCodes` with cells, read as many cells as find this share of the rows, or
            `Probes`.

    Returns:
        A named pair that unpacks: `distances` (q, k) int32 and `rows` (q, k) int64, nearest
        first, ties in row order; both of shape (k,) for a single query. It does not depend on the
        number of threads. If fewer than k rows pass the filter, there are fewer columns; queries
        that pass fewer rows than others end with row -1 at distance 2^31 - 1.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, k or threads; a filter that does not
            fit; or EMBITS_SIMD names instructions that this processor does not have.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> distances, rows = top_k(codes, np.array([0b1100_0000], dtype=np.uint8), k=2)
        >>> distances.tolist(), rows.tolist()
        ([1, 2], [2, 0])
    """
    stored = StoredCodes.of(codes)
    queries = checks.packed_queries(queries, stored.width)
    filters = stored.filters(queries.shape[:-1], where, exclude)
    most = checks.wanted_threads(threads)
    reading = _reading(stored, queries, recall)

    def search(part: Any, distances: Any, rows: Any, native: Any, cells: Any) -> None:
        asked = queries[part], rows.shape[-1], most
        _core.top_k(stored.native, *asked, distances, rows, native, cells)

    values, rows = _run_batches(search, queries, k, stored, filters, results.NO_DISTANCE, reading)
    found = DistanceResult(values, rows)
    found.rows_read, found.n_bits = reading.rows_read, 8 * stored.width
    return found


def asymmetric_top_k(
    codes: NDArray[np.uint8] | StoredCodes,
    projections: ArrayLike,
    k: int,
    threads: int | None = None,
    *,
    where: Any = None,
    exclude: Any = None,
    lengths: NDArray[np.float32] | None = None,
    offsets: NDArray[np.float32] | None = None,
    recall: float | Probes | None = None,
) -> ScoreResult:
    """The k rows of `codes` that score highest against float queries.

    The score of bits b is <z, 2b - 1>, where z = Wx is the query before it is cut to bits. Scores
    are added up in float64, always in the same order: the rows are exactly the k best by that sum,
    on every processor. Other arguments are as in `top_k`.

    Args:
        projections: Floats of shape (n_bits,) or (q, n_bits), with ceil(n_bits / 8) == width.
        lengths: A number of 0 or more for each stored code, float32 of shape (n,). Scores are then
            length * (<z, 2b - 1> + offset).
        offsets: What is added for each query, float32 of shape (q,).

    Returns:
        A named pair that unpacks: `scores` (float32) and `rows`, the largest score first. Shapes
        and ties are as in `top_k`; the score beside row -1 is -inf.

    Raises:
        InputError: As in `top_k`, or a projection is not finite.

    Example:
        >>> import numpy as np
        >>> codes = np.packbits([[1, 1, 0], [1, 0, 1], [0, 0, 1]], axis=1)
        >>> scores, rows = asymmetric_top_k(codes, [2.0, -1.0, 0.5], k=2)
        >>> scores.tolist(), rows.tolist()
        ([3.5, 0.5], [1, 0])
    """
    stored = StoredCodes.of(codes)
    queries = checks.float_queries("projections", projections)
    n_bits = queries.shape[-1]
    if packed_width(n_bits) != stored.width:
        raise InputError(f"projections have {n_bits} bits, the codes hold {stored.width} bytes")
    filters = stored.filters(queries.shape[:-1], where, exclude)
    most = checks.wanted_threads(threads)
    added = None
    if offsets is not None or lengths is not None:
        added = np.zeros(queries.shape[:-1]) if offsets is None else np.asarray(offsets)
        added = added.reshape(-1).astype(np.float32)
    reading = _reading(stored, queries, recall, lengths)

    def search(part: Any, scores: Any, rows: Any, native: Any, cells: Any) -> None:
        asked = queries[part], rows.shape[-1], most
        own = None if lengths is None or added is None else added[part]
        _core.asymmetric_top_k(stored.native, *asked, scores, rows, native, lengths, own, cells)

    values, rows = _run_batches(search, queries, k, stored, filters, results.NO_SCORE, reading)
    if added is not None and lengths is None:
        values += added[0] if queries.ndim == 1 else added[:, None]
    found = ScoreResult(values, rows)
    found.rows_read = reading.rows_read
    return found


def prepared_top_k(
    codes: Codes, prepared: Prepared, k: int, threads: int | None = None, **asked: Any
) -> DistanceResult | ScoreResult:
    """The k best rows for prepared queries. Arguments are as in `asymmetric_top_k`."""
    queries, offsets = prepared
    if offsets is not None:
        return asymmetric_top_k(codes, queries, k, threads, offsets=offsets, **asked)
    asked.pop("lengths", None)
    return top_k(codes, queries, k, threads, **asked)


def _reading(
    stored: StoredCodes, queries: NDArray[Any], recall: float | Probes | None, lengths: Any = None
) -> CellBudget:
    """What a search reads. InputError if it names cells and there are none."""
    if isinstance(recall, Probes) and stored.centers is None:
        hint = "make them with `embits cells FILE -o FILE2`, or binarize with cells="
        raise InputError(f"probes={recall.n} needs cells, and these codes have none: {hint}")
    return CellBudget(stored, queries, recall, lengths)


def _run_batches(
    search: Callable[[Any, NDArray[Value], NDArray[np.int64], _core.Filter | None, Any], None],
    queries: NDArray[Any],
    k: int,
    stored: StoredCodes,
    filters: Filters,
    no_value: Value,
    reading: CellBudget,
) -> tuple[NDArray[Value], NDArray[np.int64]]:
    """Values and live rows that `search` fills in; its first argument is an index of the queries.

    There are min(k, rows that pass) columns; if filters differ, the most that pass one of them, and
    other queries end with `no_value` and row -1. What is read is counted in `reading`.
    """
    n, width = stored.rows.n_stored, stored.width
    n_queries = len(queries) if queries.ndim == 2 else 1
    parts: list[tuple[Any, Any, bool]]  # an index of queries, their filters, and whether to copy
    if isinstance(filters, list):
        most = max(map(len, filters), default=0)
        k = checks.wanted_rows(k, most)
        # In a batch, comparing a code with one more query takes down to a fifth of the time.
        gain = 1 + min(len(filters), 16) / 4
        few = [reading.are_few(each, 1 / gain, width, k) for each in filters]
        places = [(np.flatnonzero(np.equal(few, kind)), kind) for kind in (True, False)]
        parts = [(part, [filters[q] for q in part], kind) for part, kind in places if len(part)]
    else:
        most = n if filters is None else len(filters)
        k = checks.wanted_rows(k, most)
        is_few = filters is not None and reading.are_few(filters, n_queries, width, k)
        parts = [(..., filters, is_few)]
    shape = (*queries.shape[:-1], k)
    values, rows = np.empty(shape, no_value.dtype), np.empty(shape, np.int64)
    if isinstance(filters, list):
        values[:], rows[:] = no_value, results.NO_ROW
    for part, own, is_few in parts:
        some_values, some_rows = values[part], rows[part]  # of some queries, copies
        passed = native = None
        if own is not None:
            counts = len(own) if isinstance(own, Selection) else [*map(len, own)]
            passed = np.broadcast_to(counts, some_rows.shape[:-1]).ravel()
            native = row_filter(own, stored.places) if is_few else mask_filter(own)
        cells = None if is_few else reading.native(part, passed, n, k, width)
        with simd_errors:
            search(part, some_values, some_rows, native, cells)
        n_passed = most * n_queries if passed is None else int(passed.sum())
        reading.rows_read += n_passed if cells is None else cells.rows_read
        values[part], rows[part] = some_values, some_rows
        if cells is not None and reading.gave_up.any():  # these scan the rows that pass
            rest = np.flatnonzero(reading.gave_up)
            if isinstance(own, list):
                parts.append((part[rest], [own[q] for q in rest], True))
            else:
                parts.append((part if queries.ndim == 1 else rest, own, True))
    return values, stored.rows.live(rows)


class _SimdErrors:
    """Raise InputError where the native code says that EMBITS_SIMD or EMBITS_PATH is wrong."""

    def __enter__(self) -> None:  # a generator takes half a microsecond more
        pass

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, ValueError):
            raise InputError(str(error)) from None


simd_errors = _SimdErrors()


class Kernel(NamedTuple):
    """The native code of a search."""

    simd: str
    """The instruction set: "portable", "avx2", "avx512" or "neon"."""
    path: str
    """"rows" compares code by code, "planes" a batch by bit planes; "" before any search."""


def kernel() -> Kernel:
    """The instruction set in use, and the path that the last search of this process took.

    The environment variables EMBITS_SIMD and EMBITS_PATH, read once, choose others. InputError as
    in `simd`.
    """
    return Kernel(simd(), _core.path())


def simd() -> str:
    """The instruction set that searches run on: "portable", "avx2", "avx512" or "neon".

    InputError if EMBITS_SIMD names one that this processor does not have.
    """
    with simd_errors:
        return _core.simd()


def within(
    codes: NDArray[np.uint8] | StoredCodes,
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
        `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order.

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
    most, stored = checks.wanted_results(max_results), StoredCodes.of(codes)
    width = stored.width
    queries = checks.packed_queries(queries, width)
    distance = checks.wanted_distance(distance, 8 * width)
    filters = stored.filters(queries.shape[:-1], where, exclude)
    n_threads, left, found = checks.wanted_threads(threads), most, []

    def search(queries: NDArray[np.uint8], selection: Selection | None) -> WithinResult:
        searched, few, native = stored.native, None, None
        if selection is not None and are_few(selection, len(np.atleast_2d(queries)), width):
            few = stored.rows.live(selection.rows)
            searched = stored.take(few)
        elif selection is not None:
            native = mask_filter(selection)
        offsets, keys = _core.within(searched, queries, distance, left, n_threads, native)
        rows, distances = split_keys(keys)
        return WithinResult(
            offsets, stored.rows.live(rows) if few is None else few[rows], distances
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
    return TooManyResultsError(
        f"more than {most:,} rows are within {bound}: choose a narrower bound, search fewer "
        "queries at a time, or pass a larger max_results"
    )


def parse_bound(
    metric: Metric, distance: int | None, similarity: float | None, n_bits: int
) -> float:
    """The largest distance, or the lowest score, of a search without a k; InputError if wrong."""
    if (distance is None) == (similarity is None):
        raise InputError("within needs a distance or a similarity, one of them")
    if metric.is_distance:
        if distance is None:
            return checks.distance_of(checks.number("similarity", similarity, 0, 1), n_bits)
        return checks.wanted_distance(distance, n_bits)
    if similarity is None:
        raise InputError(f"metric={metric.name!r} has no distance: pass similarity")
    least, most = (-np.inf, np.inf) if metric.needs_lengths else (-1, 1)
    return checks.number("similarity", similarity, least, most)


def prepared_within(
    codes: Codes,
    prepared: Prepared,
    bound: float,
    threads: int | None = None,
    *,
    where: Filters = None,
    max_results: int | None = None,
    lengths: NDArray[np.float32] | None = None,
) -> WithinResult | WithinScoreResult:
    """All rows up to what `parse_bound` gave, for a batch that a metric prepared; see `within`."""
    if prepared.offsets is None:
        return within(
            codes, prepared.queries, int(bound), threads, where=where, max_results=max_results
        )
    # By top-k searches of a growing k: a query is done when its last row scores less.
    n, most = len(codes), checks.wanted_results(max_results)
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
