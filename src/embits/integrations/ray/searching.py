"""Batch search over a collection whose pieces are spread over workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from embits.arrays import Progress
from embits.errors import InputError
from embits.integrations import Facts
from embits.integrations.ray.answers import Nearest, WithinDistance, WithinScore
from embits.integrations.ray.job import Merged, SpreadJob, Window
from embits.integrations.ray.merging import Ragged, TopK
from embits.integrations.ray.queries import Queries, QueryBlock, QuerySource
from embits.integrations.ray.results import ResultFile
from embits.search import (
    DistanceResult,
    ScoreResult,
    WithinResult,
    WithinScoreResult,
)
from embits.search.arguments import (
    distance_of,
    wanted_distance,
    wanted_results,
    wanted_rows,
    wanted_similarity,
)
from embits.search.filters import Filters
from embits.search.results import NO_DISTANCE, NO_ROW, NO_SCORE

Metric: TypeAlias = Literal["hamming", "asymmetric", "decoded"]
Address: TypeAlias = str | os.PathLike[str]


def search(
    collection: Address,
    queries: QuerySource,
    k: int = 10,
    *,
    metric: Metric = "hamming",
    where: Any = None,
    exclude: Any = None,
    column: str | None = None,
    ids: str | None = None,
    target: Address | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> DistanceResult | ScoreResult | Facts:
    """The k nearest rows of each query, found by the workers of a cluster.

    Each worker opens a part of the collection. The result is that of `Collection.search`.

    Args:
        collection: The folder of a collection that all workers can read, or the address of one in
            an object store whose pieces are Parquet files.
        queries: A Parquet file or a folder of them with a column of float lists, local or in an
            object store; or an array of floats (q, dims) or packed codes (q, width).
        k: As in `Collection.search`.
        metric: As in `Collection.search`.
        where: As in `Collection.search`.
        exclude: As in `Collection.search`.
        column: The column of vectors in the Parquet files; None takes the only column of floats.
        ids: The column that names the queries in `target`; None numbers them.
        target: A Parquet file to write in place of arrays, local or in an object store, with a row
            for each result: query, row, distance or score, and id. It appears when it is complete.
        overwrite: Replace the file.
        workers: Concurrent tasks; None is one per processor.
        progress: Called with (done, total) comparisons of a query with a row.

    Returns:
        The named pair of arrays of `Collection.search`; with `target`, what was written: target,
        queries, rows, bytes.

    Raises:
        InputError: An argument is wrong, the target exists, or the collection was changed while
            the job ran.
        ReadError: The Parquet files have no vectors, or a bad one: names the file and the row.
        FormatError: The collection is damaged.
        ClusterError: The job failed for another reason.
    """
    output = _output(target, overwrite, ids)
    job = SpreadJob(collection, workers, progress)
    with job.errors():
        asked = Queries(queries, job.collection.coder, metric, column, ids)
        filters = job.filters(asked, where, exclude)
        n_columns = wanted_rows(k, _most_rows(filters, len(job.collection)))
        dtype = np.int32 if metric == "hamming" else np.float64
        merger = partial(TopK, k=n_columns, dtype=dtype)
        windows = job.windows(asked, metric, Nearest(n_columns), filters, merger)
        if output is not None:
            return _write(job, windows, output, asked.n)
        return _top_k(windows, n_columns, metric)


def within(
    collection: Address,
    queries: QuerySource,
    distance: int | None = None,
    *,
    similarity: float | None = None,
    metric: Metric = "hamming",
    where: Any = None,
    exclude: Any = None,
    max_results: int | None = None,
    column: str | None = None,
    ids: str | None = None,
    target: Address | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> WithinResult | WithinScoreResult | Facts:
    """All rows within a distance of each query, found by the workers of a cluster.

    Args:
        collection: As for `search`.
        queries: As for `search`.
        distance: As in `Collection.within`.
        similarity: As in `Collection.within`.
        metric: As in `Collection.within`.
        where: As in `Collection.within`.
        exclude: As in `Collection.within`.
        max_results: As in `Collection.within`; with `target`, of 8,192 queries.
        column: As for `search`.
        ids: As for `search`.
        target: As for `search`.
        overwrite: As for `search`.
        workers: As for `search`.
        progress: As for `search`.

    Returns:
        The named tuple of `Collection.within`; with `target`, what was written: target, queries,
        rows, bytes.

    Raises:
        TooManyResultsError: There are more rows than `max_results`.
        InputError: As for `search`.
        ReadError: As for `search`.
        FormatError: The collection is damaged.
        ClusterError: The job failed for another reason.
    """
    output = _output(target, overwrite, ids)
    job = SpreadJob(collection, workers, progress)
    most = wanted_results(max_results)
    question, bound = _question(distance, similarity, metric, job.collection.coder.n_bits_, most)
    with job.errors():
        asked = Queries(queries, job.collection.coder, metric, column, ids)
        filters = job.filters(asked, where, exclude)
        dtype = np.int32 if metric == "hamming" else np.float64
        merger = partial(Ragged, dtype=dtype, bound=bound, most=most)
        windows = job.windows(asked, metric, question, filters, merger)
        if output is not None:
            return _write(job, windows, output, asked.n)
        return _ragged(windows, metric, bound, most)


def _question(
    distance: int | None, similarity: float | None, metric: str, n_bits: int, most: int
) -> tuple[WithinDistance | WithinScore, str]:
    """What is asked of the workers, and how errors call the bound."""
    if (distance is None) == (similarity is None):
        raise InputError("within needs a distance or a similarity, one of them")
    if distance is not None:
        if metric != "hamming":
            raise InputError(f"metric={metric!r} has no distance: pass similarity")
        bits = wanted_distance(distance, n_bits)
    elif metric == "hamming":
        bits = distance_of(wanted_similarity(similarity, 0), n_bits)
    else:
        lowest = wanted_similarity(similarity, -1)
        return WithinScore(lowest, most), f"similarity {lowest}"
    return WithinDistance(bits, most), f"distance {bits}"


def _output(target: Address | None, overwrite: bool, ids: str | None) -> ResultFile | None:
    if target is not None:
        return ResultFile(target, overwrite=overwrite)
    if ids is not None:
        raise InputError("ids names the queries in a Parquet file: pass target")
    return None


def _most_rows(filters: Filters, n: int) -> int:
    if filters is None:
        return n
    return max(map(len, filters), default=0) if isinstance(filters, list) else len(filters)


def _top_k(windows: Iterable[Window], k: int, metric: str) -> DistanceResult | ScoreResult:
    merged = [each for window in windows for _, each in window]
    worst = NO_DISTANCE if metric == "hamming" else NO_SCORE
    values = [np.empty((0, k), worst.dtype), *(_padded(each.values, k, worst) for each in merged)]
    rows = [np.empty((0, k), np.int64), *(_padded(each.rows, k, NO_ROW) for each in merged)]
    kind: Any = DistanceResult if metric == "hamming" else ScoreResult
    return kind(np.concatenate(values), np.concatenate(rows))  # type: ignore[no-any-return]


def _padded(array: Any, k: int, value: Any) -> Any:
    """A result with k columns: queries may have filters of their own."""
    return np.pad(array, ((0, 0), (0, k - array.shape[1])), constant_values=value)


def _ragged(
    windows: Iterable[Window], metric: str, bound: str, most: int
) -> WithinResult | WithinScoreResult:
    blocks: list[Merged] = []
    for _, merged in (pair for window in windows for pair in window):
        blocks.append(merged)
        _check_total(blocks, bound, most)
    counts = [np.empty(0, np.int64), *(each.counts for each in blocks)]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    dtype = np.int32 if metric == "hamming" else np.float32
    rows = np.concatenate([np.empty(0, np.int64), *(each.rows for each in blocks)])
    values = np.concatenate([np.empty(0, dtype), *(each.values for each in blocks)])
    kind: Any = WithinResult if metric == "hamming" else WithinScoreResult
    return kind(offsets, rows, values)  # type: ignore[no-any-return]


def _check_total(blocks: list[Merged], bound: str, most: int) -> None:
    from embits.search.radius import too_many

    if sum(len(each.rows) for each in blocks) > most:
        raise too_many(most, bound)


def _write(job: SpreadJob, windows: Iterator[Window], output: ResultFile, n: int) -> Facts:
    with output.written():
        for window in windows:
            flat = [merged.flat for _, merged in window]
            names = job.names(np.concatenate([rows for _, rows in flat]))
            cuts = np.cumsum([len(rows) for _, rows in flat])[:-1]
            for pair, found, of_rows in zip(window, flat, np.split(names, cuts), strict=True):
                output.write(_columns(*pair, *found) | {"id": of_rows})
    return {**output.facts(), "queries": n}


def _columns(block: QueryBlock, merged: Merged, values: Any, rows: Any) -> dict[str, Any]:
    import pyarrow as pa

    places = np.repeat(np.arange(len(block.vectors)), merged.counts)
    name = "distance" if values.dtype.kind == "i" else "score"
    return {"query": block.names.take(pa.array(places)), "row": rows, name: values}
