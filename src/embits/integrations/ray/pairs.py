"""All pairs of near rows of a collection whose pieces are spread over workers.

The tables of `embits.search.pair_tables` divide the pairs among them: a pair belongs to one table.
A task searches one table, or one part of it: the codes whose bits in the table have some hashes. If
a scan is faster than tables, a task compares two spans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.checks import wanted_distance, wanted_results
from embits.integrations import Facts
from embits.integrations.ray.spans import Span, Spread, open_span
from embits.integrations.ray.tasks import ResultFile, run_tasks
from embits.search import PairsResult
from embits.search import pairs_within as pairs_of_codes
from embits.search import within as within_codes
from embits.search.pair_tables import SAMPLE_ROWS, Table, as_words, best_blocks, hashes, tables_of
from embits.search.pairs import DistinctCodes, near_pairs, sorted_pairs

MAX_PART_ROWS = 1 << 24  # rows of a task: about 1 GB
TASKS_PER_CPU = 2


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
    output = None if target is None else ResultFile(target, overwrite)
    spread = Spread(collection, workers, progress)
    distance = wanted_distance(distance, spread.coder.n_bits_)
    most = wanted_results(max_results)
    with spread.errors():
        result = sorted_pairs(_found(spread, distance, most), len(spread), distance, most)
        return result if output is None else output.write(_columns(spread, result))


def _columns(spread: Spread, pairs: PairsResult) -> Iterator[dict[str, Any]]:
    rows = np.concatenate([pairs.first, pairs.second])
    first_ids, second_ids = np.split(spread.names(rows, by_workers=True), 2)
    ids = {"first_id": first_ids, "second_id": second_ids}
    yield {"first": pairs.first, "second": pairs.second, **ids, "distance": pairs.distances}


def _found(spread: Spread, distance: int, most: int) -> Iterator[PairsResult]:
    tables, spans = _tables(spread, distance), spread.spans
    function: Any = pairs_of_spans
    calls: list[Any] = [(*two, distance, most) for two in combinations_with_replacement(spans, 2)]
    if tables:  # in parts that are small enough for memory, and enough for all workers
        n_parts = max(
            -(-len(spread) // MAX_PART_ROWS), -(-TASKS_PER_CPU * spread.n_cpus // len(tables))
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
    parts = dict(run_tasks(_sample, ((span, step) for span in spread.spans), spread.workers))
    sample = DistinctCodes(np.concatenate([parts[number] for number in sorted(parts)])).codes
    blocks = best_blocks(sample, distance, n)
    return list(tables_of(blocks, distance)) if len(blocks) else []


def _sample(span: Span, step: int) -> NDArray[np.uint8]:
    """Every so many codes of a span. Runs in a worker."""
    return open_span(span).codes[::step]


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
    near = near_pairs(distinct.codes, distance, 1, tables=[table])
    blocks = distinct.row_pairs(near, distance, most, identical=with_identical)
    first, second, distances = sorted_pairs(blocks, len(rows), distance)
    return PairsResult(rows[first], rows[second], distances)


def pairs_of_spans(a: Span, b: Span, distance: int, most: int) -> PairsResult:
    """The pairs of a row of one span with a row of another, or of itself. Runs in a worker."""
    codes = np.asarray(open_span(a).codes)
    if a == b:
        first, second, distances = pairs_of_codes(codes, distance, 1, max_results=most)
    else:
        near = within_codes(open_span(b).codes, codes, distance, 1, max_results=most)
        first = np.repeat(np.arange(len(codes)), np.diff(near.offsets))
        second, distances = near.rows, near.distances
    return PairsResult(first + a.first, second + b.first, distances)
