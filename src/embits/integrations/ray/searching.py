"""Batch search over a collection, and its near pairs: workers search spans, and we merge.

Blocks of queries are searched in all spans. For pairs, the tables of `embits.search.pair_tables`
divide the pairs among them: a pair belongs to one table. A task searches one table, or one part of
it: the codes whose bits in the table have some hashes. If a scan is faster than tables, a task
compares two spans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import ray
from numpy.typing import NDArray

from embits import search as one_machine
from embits.arrays import Progress, to_numpy
from embits.checks import wanted_distance, wanted_results, wanted_rows
from embits.errors import InputError
from embits.integrations import Facts
from embits.integrations.ray.spans import OpenSpan, Span, Spread, in_span, open_span
from embits.integrations.ray.tasks import check_output, n_processors, run_tasks, write_results
from embits.integrations.ray.vectors import Vectors
from embits.search import (
    DistanceResult,
    PairsResult,
    ScoreResult,
    WithinResult,
    WithinScoreResult,
)
from embits.search.filters import Filters, check_state, found_rows, parse_filters
from embits.search.metrics import Prepared, metric_of
from embits.search.pair_tables import SAMPLE_ROWS, Table, as_words, best_blocks, hashes, tables_of
from embits.search.pairs import DistinctCodes, PairCollector, collect, pairs_of_table
from embits.search.radius import prepared_within, too_many, wanted_bound
from embits.search.rescoring import exact_scores
from embits.search.results import NO_DISTANCE, NO_ROW, NO_SCORE
from embits.search.scan import prepared_top_k

QUERIES_AT_ONCE = 1 << 13  # of a task
MAX_BLOCKS = 8  # of queries; a Parquet piece is read once for all of them
MERGED_AT_ONCE = 8  # parts of the results of a block
MAX_PART_ROWS = 1 << 24  # rows of a task that searches a table for pairs: about 1 GB
TASKS_PER_CPU = 2

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
    job = _Search(collection, queries, metric, column, ids, target, overwrite, workers, progress)
    with job.spread.errors():
        filters = job.filters(where, exclude)
        limits = (
            filters if isinstance(filters, list) else [job.spread if filters is None else filters]
        )
        n_columns = wanted_rows(k, max(map(len, limits), default=0))
        found = job.run(filters, n_columns)
    if not isinstance(found, _Found):
        return found
    is_distance = job.metric.is_distance
    places = found.queries, _places(found.queries)
    rows = np.full((job.n, n_columns), NO_ROW, np.int64)
    values: Any = np.full(rows.shape, NO_DISTANCE if is_distance else NO_SCORE)
    rows[places], values[places] = found.rows, found.values
    result = DistanceResult(values, rows) if is_distance else ScoreResult(values, rows)
    result.names = job.spread
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
    job = _Search(collection, queries, metric, column, ids, target, overwrite, workers, progress)
    bound = wanted_bound(job.metric, distance, similarity, job.spread.coder.n_bits_)
    most = wanted_results(max_results)
    with job.spread.errors():
        found = job.run(job.filters(where, exclude), None, bound, most)
    if not isinstance(found, _Found):
        return found
    offsets = np.searchsorted(found.queries, np.arange(job.n + 1))
    kind: Any = WithinResult if job.metric.is_distance else WithinScoreResult
    result: WithinResult | WithinScoreResult = kind(offsets, found.rows, found.values)
    result.names = job.spread
    return result


def pairs_within(
    collection: str | os.PathLike[str],
    distance: int,
    *,
    max_results: int | None = None,
    target: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> PairsResult | Facts:
    """All pairs of rows within a Hamming distance, found by the workers of a cluster.

    Args:
        collection: As for `search`.
        distance: As in `Collection.pairs_within`.
        max_results: As in `Collection.pairs_within`.
        target: A Parquet file to write in place of arrays: first, second, first_id, second_id and
            distance of each pair. It appears when it is complete.
        overwrite: Replace the file.
        workers: Concurrent tasks; None is one per processor.
        progress: Called with (done, total) tasks.

    Returns:
        The named tuple of `Collection.pairs_within`; with `target`, what was written: target, rows,
        bytes.

    Raises:
        TooManyResultsError: There are more pairs than `max_results`.
        InputError: An argument is wrong, the target exists, or the collection was changed while
            the job ran.
        FormatError: The collection is damaged.
        ClusterError: The job failed for another reason.
    """
    check_output(target, overwrite)
    spread = Spread(collection, workers, progress)
    distance = wanted_distance(distance, spread.coder.n_bits_)
    most = wanted_results(max_results)
    collector = PairCollector(len(spread), distance, most)
    with spread.errors():
        for pairs in _pairs(spread, distance, most):
            collector.expect(len(pairs.first))
            collector.add(pairs)
        first, second, distances = result = collector.result()
        if target is None:
            return result
        ids = np.split(spread.names(np.concatenate([first, second]), by_workers=True), 2)
        columns = {"first": first, "second": second, "first_id": ids[0], "second_id": ids[1]}
        return write_results(target, [pa.table(columns | {"distance": distances})])


class _Found(NamedTuple):
    """Results of queries, of shape (n,) each; merged, in the order of the queries, best first."""

    queries: NDArray[np.int64]
    keys: NDArray[Any]  # the smallest is the best: distances, or exact scores, negative
    rows: NDArray[np.int64]  # of the collection
    values: NDArray[Any]  # distances or scores, as users get them


class _Search:
    """The queries of a job, an array or Parquet files, which are searched in blocks."""

    def __init__(
        self,
        collection: Address,
        queries: Any,
        metric: str,
        column: str | None,
        ids: str | None,
        target: Address | None,
        overwrite: bool,
        workers: int | None,
        progress: Progress | None,
    ) -> None:
        check_output(target, overwrite)
        if target is None and ids is not None:
            raise InputError("ids names the queries in a Parquet file: pass target")
        self.spread, self.metric = Spread(collection, workers, progress), metric_of(metric)
        self._target, self._name_type = target, pa.int64()
        if isinstance(queries, str | os.PathLike):
            files = Vectors(queries, column, ids)
            self.n, self._batches = files.n_rows, self._read(files, ids)
            if ids is not None:
                self._name_type = files.schema.field(ids).type
            return
        if column is not None or ids is not None:
            raise InputError("column and ids name columns of Parquet files, not of an array")
        array, coder = to_numpy(queries), self.spread.coder
        array = coder.check_codes(array) if array.dtype == np.uint8 else coder.check_vectors(array)
        self.n, self._batches = len(array), iter([(array, np.arange(len(array)))])
        self.metric.prepare(coder, array[:1])  # refuses codes that must be floats

    def filters(self, where: Any, exclude: Any) -> Filters:
        """Filters of the whole collection; workers look up ids."""
        check_state(self.spread.manifest, where=where, exclude=exclude)

        def rows_of_ids(name: str, ids: list[str]) -> NDArray[np.int64]:
            found = self.spread.each(OpenSpan.find, ray.put(ids))
            return found_rows(name, ids, np.max([np.full(len(ids), -1), *found], axis=0))

        return parse_filters(len(self.spread), (self.n,), where, exclude, rows_of_ids)

    def _read(self, files: Vectors, ids: str | None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        done = 0
        for batch in files.batches([] if ids is None else [ids]):
            vectors, _ = batch.read(self.spread.coder.n_features_in_, "raise")
            names = np.arange(done, done + len(vectors))
            if ids is not None:
                names = np.array(batch.table.column(ids).to_pylist(), dtype=object)
            done += len(vectors)
            yield vectors, names

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

    def run(
        self, filters: Filters, k: int | None, bound: float = 0, most: int = 0
    ) -> _Found | Facts:
        """The k best rows of each query, or all up to a bound; or what was written of them."""
        least = None
        if self.metric.needs_lengths:  # shorter vectors get it when lengths are joined
            least = max(self.spread.each(OpenSpan.least_length), default=0.0)
        answers = self._answers(filters, k, bound, most, least)
        if self._target is not None:
            facts = write_results(self._target, (self._table(*each) for each in answers))
            return {**facts, "queries": self.n}
        found, n_queries = list[_Found](), 0
        for names, part in answers:
            found.append(part._replace(queries=part.queries + n_queries))
            n_queries += len(names)
            _check_count(found, k, bound, most)
        return _Found(*map(np.concatenate, zip(*found, strict=True)))

    def _table(self, names: NDArray[Any], found: _Found) -> Any:
        query = pa.array(names[found.queries], self._name_type)
        columns = {"query": query, "row": found.rows, self.metric.values[:-1]: found.values}
        return pa.table(columns | {"id": self.spread.names(found.rows, by_workers=True)})

    def _answers(
        self, filters: Filters, k: int | None, bound: float, *others: Any
    ) -> Iterator[tuple[NDArray[Any], _Found]]:
        """The names and results of blocks of queries; some blocks are searched at a time."""
        spread, blocks, first = self.spread, self.blocks(), 0
        total, done = max(self.n * len(spread), 1), 0
        prepare = ray.remote(num_cpus=1, max_retries=-1)(self.metric.prepare)
        coder, none = ray.put(spread.coder), np.empty(0, np.int64)
        values = none.astype(np.int32 if self.metric.is_distance else np.float32)
        while window := list(islice(blocks, MAX_BLOCKS)):
            ends = np.cumsum([first, *(len(vectors) for vectors, _ in window)])
            prepared = [prepare.remote(coder, vectors) for vectors, _ in window]
            found = [[_Found(none, none, none, values)] for _ in window]
            calls = (
                (span, _answer, prepared[number], number, where, k, bound, *others)
                for span in spread.spans
                for number, where in enumerate(_filters_in(span, filters, ends))
                if where is None or any(map(len, where if isinstance(where, list) else [where]))
            )
            for _, (number, n_rows, part) in run_tasks(in_span, calls, spread.workers):
                found[number].append(part)
                if len(found[number]) > MERGED_AT_ONCE:
                    found[number] = [_merged(found[number], k)]
                _check_count(found[number], k, bound, others[0])
                done += n_rows * len(window[number][1])
                spread.report(min(done, total), total)
            for (_, names), parts in zip(window, found, strict=True):
                yield names, _merged(parts, k)
            first = ends[-1]
        spread.report(total, total)


def _filters_in(span: Span, filters: Filters, ends: NDArray[np.int64]) -> Iterator[Filters]:
    """The filters of the rows of a span, for each block of queries."""
    for start, stop in pairwise(ends):
        if isinstance(filters, list):
            yield [each.between(span.first, span.stop) for each in filters[start:stop]]
        else:
            yield None if filters is None else filters.between(span.first, span.stop)


def _answer(
    span: OpenSpan,
    prepared: Prepared,
    number: int,
    where: Filters,
    k: int | None,
    bound: float,
    most: int,
    least: float | None,
) -> tuple[int, int, _Found]:
    """Search a span. Runs in a worker; gives the number back, and how many rows were searched."""
    codes, lengths = span.codes, None if least is None else span.lengths(least)
    options: dict[str, Any] = {"where": where, "lengths": lengths}
    if k is not None:
        values, rows = prepared_top_k(codes, prepared, k, 1, **options)
        queries, there = np.indices(rows.shape)[0], rows != NO_ROW
        queries, values, rows = queries[there], values[there], rows[there]
    else:
        options["max_results"] = most
        offsets, rows, values = prepared_within(codes, prepared, bound, 1, **options)
        queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys: NDArray[Any] = values
    if prepared.offsets is not None:  # different sums may be equal in float32
        keys = -exact_scores(codes[rows], prepared.queries[queries])
        if lengths is not None:
            keys = lengths[rows] * (keys - prepared.offsets[queries, 0])
    return number, len(codes), _Found(queries, keys, rows + span.first, values)


def _merged(parts: list[_Found], k: int | None) -> _Found:
    """Results in the order of the queries, best first, ties in row order; k of each query."""
    flat = [np.concatenate(each) for each in zip(*parts, strict=True)]
    queries, keys, rows, _ = flat
    order = np.lexsort((rows, keys, queries))
    if k is not None:
        order = order[_places(queries[order]) < k]
    return _Found(*(each[order] for each in flat))


def _places(queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each result among those of its query; the queries are sorted."""
    return np.arange(len(queries)) - np.searchsorted(queries, queries)


def _check_count(found: list[_Found], k: int | None, bound: float, most: int) -> None:
    if k is None and sum(len(each.rows) for each in found) > most:
        raise too_many(most, f"the bound of {bound:g}")


def _pairs(spread: Spread, distance: int, most: int) -> Iterator[PairsResult]:
    tables, spans = _tables(spread, distance), spread.spans
    function: Any = pairs_of_spans
    calls: list[Any] = [(*two, distance, most) for two in combinations_with_replacement(spans, 2)]
    if tables:  # in parts that are small enough for memory, and enough for all workers
        n_parts = max(
            -(-len(spread) // MAX_PART_ROWS),
            -(-TASKS_PER_CPU * n_processors(spread.workers) // len(tables)),
        )
        function = pairs_of_part
        calls = [
            (spans, table, number == 0, part, n_parts, distance, most)
            for number, table in enumerate(tables)
            for part in range(n_parts)
        ]
    spread.report(0, len(calls))
    for done, (_, pairs) in enumerate(run_tasks(function, calls, spread.workers), start=1):
        spread.report(done, len(calls))
        yield pairs


def _tables(spread: Spread, distance: int) -> list[Table]:
    """The tables to search; none if a scan is faster."""
    n, width = len(spread), spread.coder.n_bytes_
    if not n:
        return []
    if not distance:  # one table of whole codes
        return [Table(np.full(width, 255, np.uint8), np.empty((0, width), np.uint8))]
    step = max(n // SAMPLE_ROWS, 1)
    sample = DistinctCodes(np.concatenate(spread.each(_sample, step))).codes
    blocks = best_blocks(sample, distance, n)
    return list(tables_of(blocks, distance)) if len(blocks) else []


def _sample(span: OpenSpan, step: int) -> NDArray[np.uint8]:
    """Every so many codes of a span. Runs in a worker."""
    return span.codes[::step]


def pairs_of_part(
    spans: list[Span],
    table: Table,
    with_identical: bool,
    part: int,
    n_parts: int,
    distance: int,
    most: int,
) -> PairsResult:
    """The pairs of one part of a table. Runs in a worker."""
    some, numbers = [np.empty((0, len(table.agree)), np.uint8)], [np.empty(0, np.int64)]
    for span in spans:
        codes = np.asarray(open_span(span).codes)
        # The low bits of a hash depend on few bits of a code.
        mine = (hashes(as_words(codes), table.agree) >> np.uint64(33)) % np.uint64(n_parts) == part
        some.append(codes[mine])
        numbers.append(span.first + np.flatnonzero(mine))
    rows, distinct = np.concatenate(numbers), DistinctCodes(np.concatenate(some))
    near = pairs_of_table(distinct.codes, table, distance, 1) if distance else ()
    found = PairCollector(len(rows), distance, most)
    collect(found, distinct, near, with_identical)
    first, second, distances = found.result()
    return PairsResult(rows[first], rows[second], distances)


def pairs_of_spans(a: Span, b: Span, distance: int, most: int) -> PairsResult:
    """The pairs of a row of one span with a row of another, or of itself. Runs in a worker."""
    codes = np.asarray(open_span(a).codes)
    if a == b:
        first, second, distances = one_machine.pairs_within(codes, distance, 1, max_results=most)
    else:
        near = one_machine.within(open_span(b).codes, codes, distance, 1, max_results=most)
        first = np.repeat(np.arange(len(codes)), np.diff(near.offsets))
        second, distances = near.rows, near.distances
    return PairsResult(first + a.first, second + b.first, distances)
