"""Batch search over a collection, and its near pairs: workers search spans of rows, and we merge.

For pairs, a task searches a table of `embits.search.pairs`, or the part with some hashes; or it
compares two spans, if a scan is faster.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, combinations_with_replacement, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import ray
from numpy.typing import NDArray

from embits import search as one_machine
from embits._lazy import LazyProperty
from embits.arrays import Progress, to_numpy
from embits.checks import wanted_distance, wanted_results, wanted_rows
from embits.coders import Coder
from embits.collection import load
from embits.collection.manifest import CODER, Manifest
from embits.collection.parquet import coder_at, locate, manifest_at
from embits.collection.pieces import open_one, snapshot_of
from embits.columns import is_filter
from embits.errors import FormatError, InputError
from embits.file.overwrite import OVERWRITE, check_target
from embits.integrations import Facts
from embits.integrations.ray import tasks
from embits.integrations.ray.encoding import Vectors
from embits.remote import is_address
from embits.search import DistanceResult, PairsResult, ScoreResult, WithinResult, WithinScoreResult
from embits.search import pairs as near
from embits.search.filters import Filters, check_state, found_rows, parse_filters, rows_as_where
from embits.search.metrics import Prepared
from embits.search.plan import Rescore, metric_for, plan_stages
from embits.search.rescoring import exact_scores, rescore_decoded
from embits.search.results import NO_DISTANCE, NO_ROW, NO_SCORE
from embits.search.scan import parse_bound, prepared_top_k, prepared_within, too_many
from embits.segment import LENGTHS, Lengths
from embits.vectors import normalize_ids

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 22  # of a span; a Parquet piece is never divided
SPANS_PER_CPU = 4  # within these limits; workers then finish at about the same time
QUERIES_AT_ONCE = 1 << 13  # of a task
MAX_BLOCKS = 8  # of queries; a Parquet piece is read once for all of them
MAX_PART_ROWS = 1 << 24  # of a task that searches a table for pairs: about 1 GB
TASKS_PER_CPU = 2  # that search for pairs

Address: TypeAlias = str | os.PathLike[str]


def search(
    collection: Address, queries: Any, k: int = 10, *, metric: str | None = None, where: Any = None,
    exclude: Any = None, rows: Any = None, second_look: int | None = None,
    column: str | None = None, ids: str | None = None, target: Address | None = None,
    overwrite: bool = False, workers: int | None = None, progress: Progress | None = None,
) -> DistanceResult | ScoreResult | Facts:  # fmt: skip
    """The k nearest rows of each query, found by the workers of a cluster.

    `k`, `metric`, `where`, `exclude`, `rows`, `second_look` and the result are those of
    `Collection.search`.

    Args:
        collection: The folder of a collection that all workers can read, or the address of one in
            an object store whose pieces are Parquet files.
        queries: A Parquet file or a folder of them with a column of float lists, local or in an
            object store; or an array of floats (q, dims) or packed codes (q, width).
        column: The column of vectors in the Parquet files; None takes the only column of floats.
        ids: The column that names the queries in `target`; None numbers them.
        target: A Parquet file to write in place of arrays, local or in an object store, with a row
            for each result: query, row, distance or score, and id. It appears when it is complete,
            and what was written is returned: target, queries, rows and bytes.
        overwrite: Replace the file.
        workers: Concurrent tasks; None is one per processor.
        progress: Called with (done, total) comparisons of a query with a row.

    Raises:
        InputError: An argument is wrong, the target exists, or the collection was changed while
            the job ran.
        ReadError: The Parquet files have no vectors, or a bad one: names the file and the row.
        FormatError: The collection is damaged.
        ClusterError: The job failed for another reason.
    """
    job = _Job(collection, target, overwrite, workers, progress)
    with job.errors():
        asked = _Queries(job, metric, queries, column, ids)
        filters = asked.filters(where, exclude, rows)
        limits: Any = filters if isinstance(filters, list) else [filters]
        most = max((len(job if each is None else each) for each in limits), default=0)
        k = wanted_rows(k, most)
        rescore = None if second_look is None else Rescore(second_look, "decoded")
        stages = plan_stages(job.coder, asked.metric, k, len(job), rescore, lambda by: None)
        look = stages[0].size if stages else 0
        found = asked.run(filters, _Wanted(k, shortlist=min(look, most)))
    if not isinstance(found, _Found):
        return found
    result = (DistanceResult if asked.metric.is_distance else ScoreResult)(found.values, found.rows)
    result.names = job
    return result


def within(
    collection: Address, queries: Any, distance: int | None = None, *,
    similarity: float | None = None, metric: str = "hamming", where: Any = None,
    exclude: Any = None, rows: Any = None, max_results: int | None = None,
    column: str | None = None, ids: str | None = None, target: Address | None = None,
    overwrite: bool = False, workers: int | None = None, progress: Progress | None = None,
) -> WithinResult | WithinScoreResult | Facts:  # fmt: skip
    """All rows within a distance of each query, found by the workers of a cluster.

    `distance`, `similarity`, `metric`, `where`, `exclude`, `rows`, `max_results` and the result are
    those of `Collection.within`; with `target`, `max_results` is for 8,192 queries, and more raise
    a TooManyResultsError. The other arguments and errors are those of `search`.
    """
    job = _Job(collection, target, overwrite, workers, progress)
    with job.errors():
        asked = _Queries(job, metric, queries, column, ids)
        bound = parse_bound(asked.metric, distance, similarity, job.coder.n_bits_)
        wanted = _Wanted(None, bound, wanted_results(max_results))
        found = asked.run(asked.filters(where, exclude, rows), wanted)
    if not isinstance(found, _Found):
        return found
    offsets = np.searchsorted(found.queries, np.arange(asked.n + 1))
    kind = WithinResult if asked.metric.is_distance else WithinScoreResult
    result = kind(offsets, found.rows, found.values)
    result.names = job
    return result


def pairs_within(
    collection: Address, distance: int, *, max_results: int | None = None,
    target: Address | None = None, overwrite: bool = False, workers: int | None = None,
    progress: Progress | None = None,
) -> PairsResult | Facts:  # fmt: skip
    """All pairs of rows within a Hamming distance, found by the workers of a cluster.

    `distance`, `max_results` and the result are those of `Collection.pairs_within`; more pairs
    raise a TooManyResultsError. The other arguments and errors are those of `search`; `target` has
    first, second, first_id, second_id and distance of each pair, and `progress` counts tasks.
    """
    job = _Job(collection, target, overwrite, workers, progress)
    distance = wanted_distance(distance, job.coder.n_bits_)
    most = wanted_results(max_results)
    with job.errors():
        found = _pairs(job, distance, most)
        first, second, distances = result = near.sorted_pairs(found, len(job), distance, most)
        if target is None:
            return result
        ids = np.split(job.names(np.concatenate([first, second]), by_workers=True), 2)
        columns = {"first": first, "second": second, "first_id": ids[0], "second_id": ids[1]}
        return job.write([pa.table(columns | {"distance": distances})])


# -- the collection --------------------------------------------------------------------------------


class Span(NamedTuple):
    """The rows `first` to `stop - 1` of a collection; `parts` is what a job shares of it."""

    parts: ray.ObjectRef
    first: int
    stop: int


class OpenSpan:
    """A span that is mapped, or read from Parquet; FormatError if a file is missing or damaged."""

    def __init__(self, span: Span, folder: str, manifest: Manifest, coder: Coder) -> None:
        starts = _piece_starts(manifest)
        first, last = np.searchsorted(starts, [span.first, span.stop - 1], side="right") - 1
        entries = (entry for entry in manifest.pieces[first : last + 1] if entry.live)
        place: Any = folder if is_address(folder) else Path(folder)
        pieces = [open_one(place, entry, coder) for entry in entries]
        self._all = snapshot_of(coder, pieces, manifest)
        self.first, self._skipped = span.first, int(starts[first])  # rows before it, and its pieces
        self._rows = slice(span.first - self._skipped, span.stop - self._skipped)

    @LazyProperty
    def codes(self) -> NDArray[np.uint8]:
        """Packed codes; a copy if rows are removed or the span is of several pieces."""
        return self._all.codes.take(self._rows)

    @LazyProperty
    def lengths(self) -> Lengths:
        lengths: Lengths | None = self._all.values.get(LENGTHS)
        if lengths is None:
            raise InputError("the rows have no lengths: encode them with lengths=True (--lengths)")
        return lengths[self._rows]

    def find(self, ids: list[str]) -> NDArray[np.int64]:
        """The rows of ids; -1 for ids that are not in this span."""
        rows = self._all.ids.find_many(ids)
        is_here = (rows >= self._rows.start) & (rows < self._rows.stop)
        return np.where(is_here, rows + self._skipped, -1)

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self._all.ids.names(rows - self._skipped)


@lru_cache(maxsize=2)  # spans that a worker keeps open
def open_span(span: Span) -> OpenSpan:
    return OpenSpan(span, *tasks.shared(span.parts))


def in_span(span: Span, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with a span that is open. Runs in a worker."""
    return function(open_span(span), *arguments)


def _piece_starts(manifest: Manifest) -> NDArray[np.int64]:
    return np.cumsum([0, *(piece.live for piece in manifest.pieces)])


class _Job:
    """A collection as it was when the job started, what is asked of workers, and the output."""

    def __init__(
        self, address: Address, target: Any, overwrite: bool, workers: int | None, progress: Any
    ) -> None:
        if target is not None and not is_address(target):
            check_target(target, overwrite=overwrite)
        elif target is not None and not overwrite:
            files, path = locate(target)
            if files.get_file_info(path).is_file:
                raise InputError(f"{target} exists: choose another output, or {OVERWRITE}")
        text = os.fspath(address)
        self.address = text if is_address(text) else str(Path(text).resolve())
        self.manifest = manifest_at(self.address)
        self.coder = coder_at(self.address, self.manifest.coder_file or CODER)
        if is_address(text) and any(p.header or p.removed for p in self.manifest.pieces):
            raise InputError(f"{text}: copy the collection to a disk that all workers share")
        self._parts = self.address, self.manifest, self.coder
        self.target, self.workers = target, workers
        self.report = progress or (lambda done, total: None)
        self.spans = self.divided(tasks.n_processors(workers))

    def __len__(self) -> int:
        return self.manifest.rows

    def divided(self, n_cpus: int) -> list[Span]:
        """The rows in spans of about equal size, in row order."""
        wanted = min(MAX_ROWS, max(MIN_ROWS, -(-len(self) // (SPANS_PER_CPU * n_cpus))))
        cuts = np.linspace(0, len(self), -(-len(self) // wanted) + 1).astype(np.int64)
        starts = _piece_starts(self.manifest)
        owners = np.searchsorted(starts, cuts, side="right") - 1
        is_mapped = np.array([*(piece.header is not None for piece in self.manifest.pieces), True])
        cuts = np.unique(np.where(is_mapped[owners], cuts, starts[owners])).tolist()
        parts = ray.put(self._parts)
        return [Span(parts, *ends) for ends in pairwise(cuts)]

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the errors of workers as those of one machine."""
        try:
            with tasks.plain_errors():
                yield
        except FormatError:
            if manifest_at(self.address) == self.manifest:
                raise
            changed = f"{self.address} was changed while the job ran: run it again"
            raise InputError(changed) from None

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What a function returns for each open span; called by workers."""
        calls = ((span, function, *arguments) for span in self.spans)
        return tasks.gathered(in_span, calls, self.workers)

    def names(self, rows: NDArray[np.int64], by_workers: bool = False) -> NDArray[Any]:
        """The ids of rows, which may repeat; read in this process, or by workers."""
        different, places = np.unique(rows, return_inverse=True)
        none = np.empty(0, np.int64 if self.manifest.ids == "numbers" else object)
        names = self._read(OpenSpan.names, different, by_workers)
        return np.concatenate([none, *names])[places]

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes of rows, ascending, read by workers."""
        none = np.empty((0, self.coder.n_bytes_), np.uint8)
        found = self._read(lambda span, rows: span.codes[rows - span.first], rows, by_workers=True)
        return np.concatenate([none, *found])

    def _read(
        self, of_rows: Callable[..., Any], rows: NDArray[np.int64], by_workers: bool
    ) -> list[Any]:
        """What a method of spans gives for rows, ascending, of each span that has some."""
        parts = np.split(rows, np.searchsorted(rows, [s.first for s in self.spans[1:]]))
        asked = [each for each in zip(self.spans, parts, strict=False) if len(each[1])]
        if by_workers:
            calls = ((span, of_rows, part) for span, part in asked)
            return tasks.gathered(in_span, calls, self.workers)
        # In this process: also after the cluster was stopped.
        return [of_rows(OpenSpan(span, *self._parts), part) for span, part in asked]

    def write(self, tables: Iterable[Any]) -> Facts:
        files, path = locate(self.target)
        rows = tasks.write_parquet(files, path, tables)
        size = files.get_file_info(path).size
        return {"target": os.fspath(self.target), "rows": rows, "bytes": size}


# -- queries ---------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """Arrays of shape (q, k), or (n,) in the order of the queries."""

    queries: NDArray[np.int64]
    keys: NDArray[Any]  # the smallest is the best: distances, or exact scores, negative
    rows: NDArray[np.int64]  # of the collection; -1 where there is none
    values: NDArray[Any]  # distances or scores, as users get them


class _Wanted(NamedTuple):
    """The k best rows of each query, or all up to a bound, `most` of them."""

    k: int | None
    bound: float = 0
    most: int = 0
    longest: Lengths | None = None  # of vectors of each span, if lengths count
    shortlist: int = 0  # rows that are looked at a second time, k of which are wanted

    @property
    def scanned(self) -> int | None:
        """The rows of a query that the spans are searched for, or None for all."""
        return self.shortlist or self.k

    def check(self, found: list[_Found]) -> None:
        if self.k is None and sum(len(each.rows) for each in found) > self.most:
            raise too_many(self.most, f"the bound of {self.bound:g}")


class _Queries:
    """The queries of a job, an array or Parquet files, which are searched in blocks."""

    def __init__(
        self, job: _Job, metric: str | None, source: Any, column: str | None, ids: str | None
    ) -> None:
        if job.target is None and ids is not None:
            raise InputError("ids names the queries in a Parquet file: pass target")
        self.job, self._name_type = job, pa.int64()
        if isinstance(source, str | os.PathLike):
            files, self.metric = Vectors(source, column, ids), metric_for(metric, np.empty(0))
            self.n, self._batches = files.n_rows, self._read(files, ids)
            if ids is not None:
                self._name_type = files.schema.field(ids).type
            return
        if column is not None or ids is not None:
            raise InputError("column and ids name columns of Parquet files, not of an array")
        array, coder = to_numpy(source), job.coder
        self.metric = metric_for(metric, array)
        array = coder.check_codes(array) if array.dtype == np.uint8 else coder.check_vectors(array)
        self.n, self._batches = len(array), iter([(array, np.arange(len(array)))])
        self.metric.prepare(coder, array[:1])  # refuses codes that must be floats

    def filters(self, where: Any, exclude: Any, rows: Any) -> Filters:
        """Filters of the whole collection; workers look up ids."""
        where = rows_as_where(where, rows, len(self.job))
        lists = [each if isinstance(each, list | tuple) else () for each in (where, exclude)]
        if any(map(is_filter, chain([where, exclude], *lists))):
            bits = load(self.job.address)  # columns are read here, not by the workers
            check_state(self.job.manifest, where=bits.select(rows=[]))
            where, exclude = bits.current.selected(where), bits.current.selected(exclude)
        check_state(self.job.manifest, where=where, exclude=exclude)

        def rows_of_ids(name: str, given: NDArray[Any]) -> NDArray[np.int64]:
            ids = normalize_ids(given)
            found = self.job.each(OpenSpan.find, ray.put(ids))
            rows = np.max([np.full(len(ids), -1), *found], axis=0)
            return found_rows(name, given, rows, numbers=self.job.manifest.ids == "given")

        return parse_filters(len(self.job), (self.n,), where, exclude, rows_of_ids)

    def _read(self, files: Vectors, ids: str | None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        done = 0
        for batch in files.batches([] if ids is None else [ids]):
            vectors, _ = batch.read(self.job.coder.n_features_in_, "raise")
            names = np.arange(done, done + len(vectors))
            if ids is not None:
                names = np.array(batch.table.column(ids).to_pylist(), dtype=object)
            done += len(vectors)
            yield vectors, names

    def blocks(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """The queries and their names, in blocks of nearly equal size."""
        # Matrix libraries round products of a few rows differently: no block is much smaller.
        cuts = np.linspace(0, self.n, max(-(-self.n // QUERIES_AT_ONCE), 1) + 1).astype(np.int64)
        vectors, names = next(self._batches)
        for size in np.diff(cuts).tolist():
            while len(vectors) < size:
                more = next(self._batches)
                vectors, names = np.concatenate([vectors, more[0]]), np.append(names, more[1])
            yield vectors[:size], names[:size]
            vectors, names = vectors[size:], names[size:]

    def run(self, filters: Filters, wanted: _Wanted) -> _Found | Facts:
        """The results of all queries, or what was written of them."""
        if self.metric.needs_lengths and self.job.spans:
            one = self.job.each(lambda span: span.lengths[[span.lengths.steps.argmax()]])
            wanted = wanted._replace(longest=Lengths.joined(one))
        answers = self._answers(filters, wanted)
        if self.job.target is not None:
            facts = self.job.write(self._table(*each) for each in answers)
            return {**facts, "queries": self.n}
        found, n_queries = list[_Found](), 0
        for names, part in answers:
            found.append(part._replace(queries=part.queries + n_queries))
            n_queries += len(names)
            wanted.check(found)
        return _Found(*map(np.concatenate, zip(*found, strict=True)))

    def _table(self, names: NDArray[Any], found: _Found) -> Any:
        queries, _, rows, values = (each[found.rows != NO_ROW] for each in found)
        query = pa.array(names[queries], self._name_type)
        columns = {"query": query, "row": rows, self.metric.values[:-1]: values}
        return pa.table(columns | {"id": self.job.names(rows, by_workers=True)})

    def _answers(self, filters: Filters, wanted: _Wanted) -> Iterator[tuple[NDArray[Any], _Found]]:
        """The names and results of blocks of queries; some blocks are searched at a time."""
        job, blocks, first = self.job, self.blocks(), 0
        total, done = max(self.n * len(job), 1), 0
        prepare = ray.remote(num_cpus=1, max_retries=-1)(self.metric.prepare)
        coder = ray.put(job.coder)
        while window := list(islice(blocks, MAX_BLOCKS)):
            ends = np.cumsum([first, *(len(vectors) for vectors, _ in window)])
            prepared = [prepare.remote(coder, vectors) for vectors, _ in window]
            found = [[self._nothing(len(names), wanted.scanned)] for _, names in window]
            calls = (
                (span, _answer, prepared[number], number, where, wanted)
                for span in job.spans
                for number, where in enumerate(_filters_in(span, filters, ends))
                if where is None or any(map(len, where if isinstance(where, list) else [where]))
            )
            for _, (number, n_rows, part) in tasks.run_tasks(in_span, calls, job.workers):
                found[number].append(part)
                if wanted.k is not None:
                    found[number] = [_merged(found[number], wanted.scanned)]
                wanted.check(found[number])
                done += n_rows * len(window[number][1])
                job.report(min(done, total), total)
            for (vectors, names), parts in zip(window, found, strict=True):
                best = _merged(parts, wanted.scanned)
                yield names, self._looked(vectors, best, wanted.k) if wanted.shortlist else best
            first = ends[-1]
        job.report(total, total)

    def _looked(self, queries: NDArray[Any], found: _Found, k: int | None) -> _Found:
        """The best k of a shortlist by a second look, which a worker takes."""
        is_row = found.rows != NO_ROW
        rows, places = np.unique(found.rows[is_row], return_inverse=True)
        shortlist = np.full(found.rows.shape, NO_ROW, np.int64)
        shortlist[is_row] = places
        look = ray.remote(num_cpus=1, max_retries=-1)(rescore_decoded)
        given = self.job.coder, self.job.codes(rows), self.metric, queries, shortlist, k
        scores, chosen = ray.get(look.remote(*given))
        return _Found(found.queries[:, :k], -scores, np.append(rows, NO_ROW)[chosen], scores)

    def _nothing(self, n_queries: int, k: int | None) -> _Found:
        rows = np.full((0,) if k is None else (n_queries, k), NO_ROW, np.int64)
        is_distance = self.metric.is_distance
        values: Any = np.full(rows.shape, NO_DISTANCE if is_distance else NO_SCORE)
        return _Found(rows, values if is_distance else -values, rows, values)


def _filters_in(span: Span, filters: Filters, ends: NDArray[np.int64]) -> Iterator[Filters]:
    for start, stop in pairwise(ends):
        if isinstance(filters, list):
            yield [each.between(span.first, span.stop) for each in filters[start:stop]]
        else:
            yield None if filters is None else filters.between(span.first, span.stop)


def _answer(
    span: OpenSpan, prepared: Prepared, number: int, where: Filters, wanted: _Wanted
) -> tuple[int, int, _Found]:
    """Search a span. Runs in a worker; gives the number back, and how many rows were searched."""
    k, bound, most, longest = wanted.scanned, *wanted[1:4]
    codes, lengths = span.codes, None
    if longest is not None:  # rounded as one machine does that joins all lengths
        lengths = Lengths.joined([span.lengths, longest])[: len(codes)].floats
    options: dict[str, Any] = {"where": where, "lengths": lengths}
    if k is not None:
        values, rows = prepared_top_k(codes, prepared, k, 1, **options)
        queries = np.indices(rows.shape)[0]
    else:
        options["max_results"] = most
        offsets, rows, values = prepared_within(codes, prepared, bound, 1, **options)
        queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys, there = values, rows != NO_ROW
    if prepared.offsets is not None:  # different sums may be equal in float32
        of, found = queries[there], rows[there]
        sums = exact_scores(codes[found], prepared.queries[of])
        if lengths is not None:
            sums = lengths[found] * (sums + prepared.offsets[of, 0])
        keys = np.full(rows.shape, np.inf)
        keys[there] = -sums
    rows = np.where(there, rows + span.first, NO_ROW)
    return number, len(codes), _Found(queries, keys, rows, values)


def _merged(parts: list[_Found], k: int | None) -> _Found:
    """Results of some queries, best first, ties in row order; k of each query, row -1 last."""
    joined = [np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)]
    queries, keys, rows, _ = joined
    if k is None:
        order = np.lexsort((rows, keys, queries))
        return _Found(*(each[order] for each in joined))
    order = np.lexsort((rows.view(np.uint64), keys))[:, :k]
    return _Found(*(np.take_along_axis(each, order, axis=1) for each in joined))


# -- pairs -----------------------------------------------------------------------------------------


def _pairs(job: _Job, distance: int, most: int) -> Iterator[PairsResult]:
    """All pairs, in the order in which workers find them."""
    blocks = np.full((min(len(job), 1), job.coder.n_bytes_), 255, np.uint8)  # whole codes
    if distance and len(job):
        step = max(len(job) // near.SAMPLE_ROWS, 1)
        sample = np.concatenate(job.each(lambda span: span.codes[::step]))
        blocks = near.best_blocks(near.DistinctCodes(sample).codes, distance, len(job))
    tables = list(near.tables_of(blocks, distance)) if len(blocks) else []  # none: a scan is faster
    # In parts that are small enough for memory, and enough for all workers.
    n_tasks = TASKS_PER_CPU * tasks.n_processors(job.workers)
    n_parts = max(-(-len(job) // MAX_PART_ROWS), -(-n_tasks // max(len(tables), 1)))
    parts = product(enumerate(tables), range(n_parts))
    function: Any = _pairs_of_part
    calls: list[Any] = [(job.spans, t, i, n_parts, n == 0, distance, most) for (n, t), i in parts]
    if not tables:
        spans = combinations_with_replacement(job.spans, 2)
        function, calls = _pairs_of_spans, [(*two, distance, most) for two in spans]
    job.report(0, len(calls))
    for done, (_, pairs) in enumerate(tasks.run_tasks(function, calls, job.workers), start=1):
        job.report(done, len(calls))
        yield pairs


def _pairs_of_part(
    spans: list[Span], table: near.Table, part: int, of: int, same: bool, distance: int, most: int
) -> PairsResult:
    """The pairs of one part of a table, with those of identical codes. Runs in a worker."""
    some, numbers = [np.empty((0, len(table.agree)), np.uint8)], [np.empty(0, np.int64)]
    for span in spans:
        codes = open_span(span).codes
        # The low bits of a hash depend on few bits of a code.
        hashes = near.hashes(near.as_words(codes), table.agree) >> np.uint64(33)
        mine = hashes % np.uint64(of) == part
        some.append(codes[mine])
        numbers.append(span.first + np.flatnonzero(mine))
    rows, distinct = np.concatenate(numbers), near.DistinctCodes(np.concatenate(some))
    found = near.near_pairs(distinct.codes, distance, 1, tables=[table])
    blocks = distinct.row_pairs(found, distance, most, identical=same)
    first, second, distances = near.sorted_pairs(blocks, len(rows), distance)
    return PairsResult(rows[first], rows[second], distances)


def _pairs_of_spans(a: Span, b: Span, distance: int, most: int) -> PairsResult:
    """The pairs between two spans, or within one. Runs in a worker."""
    codes = open_span(a).codes
    if a == b:
        first, second, distances = one_machine.pairs_within(codes, distance, 1, max_results=most)
    else:
        found = one_machine.within(open_span(b).codes, codes, distance, 1, max_results=most)
        first = np.repeat(np.arange(len(codes)), np.diff(found.offsets))
        second, distances = found.rows, found.distances
    return PairsResult(first + a.first, second + b.first, distances)
