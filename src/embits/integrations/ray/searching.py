"""Batch search over a collection: blocks of queries are searched in all spans, and merged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import ray
from numpy.typing import NDArray

from embits.arrays import Progress, to_numpy
from embits.checks import wanted_results, wanted_rows
from embits.errors import InputError
from embits.integrations import Facts
from embits.integrations.ray.spans import Span, Spread, open_span
from embits.integrations.ray.tasks import ResultFile, run_tasks
from embits.integrations.ray.vectors import Vectors
from embits.search import DistanceResult, ScoreResult, WithinResult, WithinScoreResult
from embits.search.filters import Filters, check_state, found_rows, parse_filters
from embits.search.metrics import Metric, Prepared, metric_of
from embits.search.radius import prepared_within, too_many, wanted_bound
from embits.search.rescoring import exact_scores
from embits.search.results import NO_DISTANCE, NO_ROW, NO_SCORE
from embits.search.scan import prepared_top_k

QUERIES_AT_ONCE = 1 << 13  # of a task
MAX_BLOCKS = 8  # of queries; a Parquet piece is read once for all of them

Address: TypeAlias = str | os.PathLike[str]


def search(
    collection: Address,
    queries: Any,
    k: int = 10,
    *,
    metric: str = "hamming",
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
    spread = Spread(collection, workers, progress)
    with spread.errors():
        asked = _Queries(spread, metric_of(metric), queries, column, ids)
        filters = asked.filters(where, exclude)
        limits = filters if isinstance(filters, list) else [spread if filters is None else filters]
        n_columns = wanted_rows(k, max(map(len, limits), default=0))
        found = _run(asked, filters, _Question(n_columns), output)
    if not isinstance(found, _Answers):
        return found
    there = np.arange(n_columns) < found.counts[:, None]
    rows = np.full(there.shape, NO_ROW, np.int64)
    values: Any = np.full(there.shape, NO_DISTANCE if asked.metric.is_distance else NO_SCORE)
    values[there], rows[there] = found.values, found.rows
    kind: Any = DistanceResult if asked.metric.is_distance else ScoreResult
    result: DistanceResult | ScoreResult = kind(values, rows)
    result.names = spread
    return result


def within(
    collection: Address,
    queries: Any,
    distance: int | None = None,
    *,
    similarity: float | None = None,
    metric: str = "hamming",
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
    spread = Spread(collection, workers, progress)
    compared = metric_of(metric)
    bound = wanted_bound(compared, distance, similarity, spread.coder.n_bits_)
    question = _Question(None, bound, wanted_results(max_results))
    with spread.errors():
        asked = _Queries(spread, compared, queries, column, ids)
        found = _run(asked, asked.filters(where, exclude), question, output)
    if not isinstance(found, _Answers):
        return found
    offsets = np.concatenate([[0], np.cumsum(found.counts)])
    kind: Any = WithinResult if compared.is_distance else WithinScoreResult
    result: WithinResult | WithinScoreResult = kind(offsets, found.rows, found.values)
    result.names = spread
    return result


class _Question(NamedTuple):
    """What is asked: the k best rows of each query, or all up to a bound, `most` of them."""

    k: int | None
    bound: float = 0
    most: int = 0
    least: float | None = None  # length of a row; None ignores lengths

    def check(self, found: list[Any]) -> None:
        if self.k is None and sum(len(each.rows) for each in found) > self.most:
            raise too_many(self.most, f"the bound of {self.bound:g}")


class _Found(NamedTuple):
    """What a span has for a block of queries: arrays of shape (q, k), or (n,)."""

    keys: NDArray[Any]  # the smallest is the best: distances, or exact scores, negative
    values: NDArray[Any]  # distances or scores, as users get them
    rows: NDArray[np.int64]  # of the collection; -1 where there is none
    queries: NDArray[np.int64]


class _Answers(NamedTuple):
    """The results of queries, one after the other, best first: how many each query has."""

    names: NDArray[Any]
    counts: NDArray[np.int64]
    values: NDArray[Any]
    rows: NDArray[np.int64]


class _Queries:
    """The queries of a job: an array, or Parquet files, which are read in blocks."""

    def __init__(
        self, spread: Spread, metric: Metric, source: Any, column: str | None, ids: str | None
    ) -> None:
        self.spread, self.metric, self._name_type = spread, metric, pa.int64()
        if isinstance(source, str | os.PathLike):
            files = Vectors(source, column, ids)
            self.n, self._batches = files.n_rows, self._read(files, ids)
            if ids is not None:
                self._name_type = files.schema.field(ids).type
            return
        if column is not None or ids is not None:
            raise InputError("column and ids name columns of Parquet files, not of an array")
        array, coder = to_numpy(source), spread.coder
        array = coder.check_codes(array) if array.dtype == np.uint8 else coder.check_vectors(array)
        self.n, self._batches = len(array), iter([(array, np.arange(len(array)))])
        metric.prepare(coder, array[:1])  # refuses codes that must be floats

    def filters(self, where: Any, exclude: Any) -> Filters:
        """Filters of the whole collection; workers look up ids."""
        check_state(self.spread.manifest, where=where, exclude=exclude)

        def rows_of_ids(name: str, ids: list[str]) -> NDArray[np.int64]:
            return found_rows(name, ids, self.spread.rows_of_ids(ids))

        return parse_filters(len(self.spread), (self.n,), where, exclude, rows_of_ids)

    def blocks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """The queries and their names, in blocks of nearly equal size.

        Matrix libraries round products of a few rows differently, so no block is much smaller than
        the others.
        """
        cuts = np.linspace(0, self.n, max(-(-self.n // QUERIES_AT_ONCE), 1) + 1).astype(np.int64)
        vectors, names = next(self._batches)
        for size in np.diff(cuts).tolist():
            while len(vectors) < size:
                more = next(self._batches)
                vectors, names = np.concatenate([vectors, more[0]]), np.append(names, more[1])
            yield vectors[:size], names[:size]
            vectors, names = vectors[size:], names[size:]

    def _read(self, files: Vectors, ids: str | None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        done = 0
        for batch in files.batches([] if ids is None else [ids]):
            vectors, _ = batch.read(self.spread.coder.n_features_in_, "raise")
            names = np.arange(done, done + len(vectors))
            if ids is not None:
                names = np.array(batch.table.column(ids).to_pylist(), dtype=object)
            done += len(vectors)
            yield vectors, names

    def columns(self, answers: Iterator[_Answers]) -> Iterator[dict[str, Any]]:
        """Results as columns of Parquet."""
        for names, counts, values, rows in answers:
            query = pa.array(np.repeat(names, counts), self._name_type)
            found = {"query": query, "row": rows, self.metric.values[:-1]: values}
            yield found | {"id": self.spread.names(rows, by_workers=True)}


def _run(
    asked: _Queries, filters: Filters, question: _Question, output: ResultFile | None
) -> _Answers | Facts:
    """All results, or what was written of them."""
    if asked.metric.needs_lengths:
        question = question._replace(least=asked.spread.least_length())
    answers = _answers(asked, filters, question)
    if output is not None:
        return {**output.write(asked.columns(answers)), "queries": asked.n}
    found: list[_Answers] = []
    for each in answers:
        found.append(each)
        question.check(found)
    return _Answers(*map(np.concatenate, zip(*found, strict=True)))


def _answers(asked: _Queries, filters: Filters, question: _Question) -> Iterator[_Answers]:
    """The results of blocks of queries, in order; some blocks are searched at a time."""
    spread, blocks, first = asked.spread, asked.blocks(), 0
    total, done = max(asked.n * len(spread), 1), 0
    prepare = ray.remote(num_cpus=1, max_retries=-1)(asked.metric.prepare)
    coder = ray.put(spread.coder)
    while window := list(islice(blocks, MAX_BLOCKS)):
        ends = np.cumsum([first, *(len(vectors) for vectors, _ in window)])
        prepared = [prepare.remote(coder, vectors) for vectors, _ in window]
        calls = (
            (number, question, span, prepared[number], where)
            for span in spread.spans
            for number, where in _filters_of(span, filters, ends)
        )
        found = [[_nothing(asked.metric, len(names), question)] for _, names in window]
        for _, (number, n_rows, part) in run_tasks(answer, calls, spread.workers):
            found[number].append(part)
            if question.k is not None:
                found[number] = [_best(found[number], question.k)]
            question.check(found[number])
            done += n_rows * len(window[number][1])
            spread.report(min(done, total), total)
        yield from (_sorted(names, found[n]) for n, (_, names) in enumerate(window))
        first = ends[-1]
    spread.report(total, total)


def _filters_of(span: Span, filters: Filters, ends: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """The blocks of queries to search in a span, and their filters of its rows."""
    if isinstance(filters, list):
        for number, (start, stop) in enumerate(pairwise(ends)):
            yield number, [each.between(span.first, span.stop) for each in filters[start:stop]]
        return
    part = None if filters is None else filters.between(span.first, span.stop)
    if part is None or len(part):
        where = None if part is None else ray.put(part)
        yield from ((number, where) for number in range(len(ends) - 1))


def answer(
    number: int, question: _Question, span: Span, prepared: Prepared, where: Filters
) -> tuple[int, int, _Found]:
    """Search a span. Runs in a worker; gives the number back, and how many rows were searched."""
    codes, (lengths, stored) = open_span(span).codes, open_span(span).row_lengths(question.least)
    options: dict[str, Any] = {"where": where, "lengths": stored}
    if question.k is not None:
        values, rows = prepared_top_k(codes, prepared, question.k, 1, **options)
        queries = np.indices(rows.shape)[0]
    else:
        options["max_results"] = question.most
        offsets, rows, values = prepared_within(codes, prepared, question.bound, 1, **options)
        queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys, there = values, rows >= 0
    if prepared.offsets is not None:  # different sums may be equal in float32
        of, found = queries[there], rows[there]
        sums = exact_scores(codes[found], prepared.queries[of])
        keys = np.full(rows.shape, np.inf)
        keys[there] = (
            -sums if lengths is None else -lengths[found] * (sums + prepared.offsets[of, 0])
        )
    rows = np.where(there, rows + span.first, NO_ROW)
    return number, len(codes), _Found(keys, values, rows, queries)


def _nothing(metric: Metric, n_queries: int, question: _Question) -> _Found:
    none = np.empty((0,) if question.k is None else (n_queries, 0), np.int64)
    return _Found(none, none.astype(np.int32 if metric.is_distance else np.float32), none, none)


def _best(parts: list[_Found], k: int) -> _Found:
    """The k best results of each query, ties in row order, row -1 last."""
    joined = [np.concatenate(each, axis=1) for each in zip(*parts, strict=True)]
    order = np.lexsort((joined[2].view(np.uint64), joined[0]))[:, :k]
    return _Found(*(np.take_along_axis(each, order, axis=1) for each in joined))


def _sorted(names: NDArray[Any], parts: list[_Found]) -> _Answers:
    """All results in the order of the queries, best first."""
    flat = [np.concatenate([each.ravel() for each in of]) for of in zip(*parts, strict=True)]
    keys, values, rows, queries = (each[flat[2] >= 0] for each in flat)
    order = np.lexsort((rows, keys, queries))
    counts = np.bincount(queries, minlength=len(names))
    return _Answers(names, counts, values[order], rows[order])


def _output(target: Address | None, overwrite: bool, ids: str | None) -> ResultFile | None:
    if target is not None:
        return ResultFile(target, overwrite)
    if ids is not None:
        raise InputError("ids names the queries in a Parquet file: pass target")
    return None
