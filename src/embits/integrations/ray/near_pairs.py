"""All pairs of near rows of a collection whose pieces are spread over workers.

The tables of `embits.search.pair_tables` divide the pairs among them: a pair belongs to one table.
A task searches one table, or one part of it: the codes whose bits in the table have some hashes. If
a scan is faster than tables, a task compares two spans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.errors import TooManyResultsError
from embits.integrations import Facts
from embits.integrations.ray.job import SpreadJob
from embits.integrations.ray.results import ResultFile
from embits.integrations.ray.spans import Span, open_span
from embits.integrations.ray.steps import SharedCoder
from embits.integrations.ray.tasks import n_processors
from embits.search import PairsResult
from embits.search import pairs_within as pairs_of_codes
from embits.search import within as within_codes
from embits.search.arguments import wanted_distance, wanted_results
from embits.search.pair_tables import (
    SAMPLE_ROWS,
    Table,
    as_words,
    best_blocks,
    hashes,
    tables_of,
)
from embits.search.pairs import DistinctCodes, PairCollector, pairs_of_table

MAX_PART_ROWS = 1 << 24  # rows of a task: about 1 GB
TASKS_PER_CPU = 2
_QUERIES = 1024  # of a scan


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
    output = None if target is None else ResultFile(target, overwrite=overwrite)
    job = SpreadJob(collection, workers, progress)
    distance = wanted_distance(distance, job.collection.coder.n_bits_)
    collector = PairCollector(len(job.collection), distance, wanted_results(max_results))
    with job.errors():
        for pairs in _found(job, distance, wanted_results(max_results)):
            collector.expect(len(pairs.first))
            collector.add(pairs)
        result = collector.result()
        return result if output is None else _written(job, result, output)


def _found(job: SpreadJob, distance: int, most: int) -> Iterator[PairsResult]:
    tables = _tables(job, distance)
    function: Any = _pairs_of_spans
    calls: list[Any] = [
        (a, b, job.coder, distance, most) for a, b in combinations_with_replacement(job.spans, 2)
    ]
    if tables:
        n_parts = _n_parts(len(job.collection), len(tables), n_processors(job.workers))
        function = _pairs_of_part
        calls = [
            (job.spans, job.coder, table, number == 0, part, n_parts, distance, most)
            for number, table in enumerate(tables)
            for part in range(n_parts)
        ]
    job.report(0, len(calls))
    for done, pairs in enumerate(job.run(function, calls), start=1):
        job.report(done, len(calls))
        yield pairs


def _tables(job: SpreadJob, distance: int) -> list[Table]:
    """The tables to search; none if a scan is faster."""
    n = len(job.collection)
    if not n:
        return []
    if not distance:  # one table of whole codes
        width = job.collection.coder.n_bytes_
        return [Table(np.full(width, 255, np.uint8), np.empty((0, width), np.uint8))]
    step = max(n // SAMPLE_ROWS, 1)
    calls = ((span, job.coder, step) for span in job.spans)
    sample = DistinctCodes(np.concatenate(list(job.run(_sample, calls)))).codes
    blocks = best_blocks(sample, distance, n)
    return list(tables_of(blocks, distance)) if len(blocks) else []


def _n_parts(n: int, n_tables: int, n_cpus: int) -> int:
    """Parts of each table: small enough for memory, and enough for all workers."""
    return max(-(-n // MAX_PART_ROWS), -(-TASKS_PER_CPU * n_cpus // n_tables))


def _sample(span: Span, coder: SharedCoder, step: int) -> NDArray[np.uint8]:
    """Every so many codes of a span. Runs in a worker."""
    return open_span(span, coder).codes[::step]


def _pairs_of_part(
    spans: list[Span],
    coder: SharedCoder,
    table: Table,
    with_identical: bool,
    part: int,
    n_parts: int,
    distance: int,
    most: int,
) -> PairsResult:
    """The pairs of one part of a table. Runs in a worker."""
    codes, rows = _codes_of_part(spans, coder, table, part, n_parts)
    distinct = DistinctCodes(codes)
    found = PairCollector(len(codes), distance, most)
    if with_identical:
        found.expect(distinct.n_identical())
        for block in distinct.identical():
            found.add(block)
    for pairs in pairs_of_table(distinct.codes, table, distance, 1) if distance else ():
        found.expect(distinct.n_pairs(pairs[0], pairs[1]))
        for block in distinct.pairs(*pairs):
            found.add(block)
    first, second, distances = found.result()
    return PairsResult(rows[first], rows[second], distances)


def _codes_of_part(
    spans: list[Span], coder: SharedCoder, table: Table, part: int, n_parts: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The codes of a part of a table, and their rows in the collection, ascending."""
    parts, rows = [np.empty((0, len(table.agree)), np.uint8)], [np.empty(0, np.int64)]
    for span in spans:
        codes = np.asarray(open_span(span, coder).codes)
        # The low bits of a hash depend on few bits of a code.
        mine = (hashes(as_words(codes), table.agree) >> np.uint64(33)) % np.uint64(n_parts) == part
        parts.append(codes[mine])
        rows.append(span.first + np.flatnonzero(mine))
    return np.concatenate(parts), np.concatenate(rows)


def _pairs_of_spans(a: Span, b: Span, coder: SharedCoder, distance: int, most: int) -> PairsResult:
    """The pairs of a row of one span with a row of another, or of itself. Runs in a worker."""
    codes = np.asarray(open_span(a, coder).codes)
    if a == b:
        first, second, distances = pairs_of_codes(codes, distance, 1, max_results=most)
        return PairsResult(first + a.first, second + a.first, distances)
    others = np.asarray(open_span(b, coder).codes)
    found = PairCollector(b.stop, distance, most)
    for begin in range(0, len(codes), _QUERIES):
        some = codes[begin : begin + _QUERIES]
        near = None
        with suppress(TooManyResultsError):  # which counts rows; the error below counts pairs
            near = within_codes(others, some, distance, 1, max_results=most)
        if near is None:
            found.expect(most + 1)
            break
        firsts = np.repeat(np.arange(len(some)) + begin, np.diff(near.offsets))
        found.expect(len(firsts))
        found.add(PairsResult(firsts + a.first, near.rows + b.first, near.distances))
    return found.result()


def _written(job: SpreadJob, pairs: PairsResult, output: ResultFile) -> Facts:
    with output.written():
        names = job.names(np.concatenate([pairs.first, pairs.second]))
        first, second = np.split(names, 2)
        output.write(
            {
                "first": pairs.first,
                "second": pairs.second,
                "first_id": first,
                "second_id": second,
                "distance": pairs.distances,
            }
        )
    return output.facts()
