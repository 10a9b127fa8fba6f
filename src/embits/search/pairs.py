"""All pairs of codes within a distance of each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import Progress
from embits.errors import TooManyResultsError
from embits.search.arguments import (
    packed_codes,
    wanted_distance,
    wanted_results,
    wanted_threads,
)
from embits.search.identical import DistinctCodes
from embits.search.pair_collector import PairCollector
from embits.search.pair_tables import Table, as_words, best_blocks, by_hash, tables_of
from embits.search.radius import split_keys, within
from embits.search.ragged import parts
from embits.search.results import PairsResult

_MAX_BUCKET = 2048  # rows; the pairs of a larger bucket are found by planes
_MAX_COMPARED = 1 << 24  # pairs at a time: what is found takes at most 16 bytes each
_MAX_FOUND = 1 << 22  # pairs of a batch
_QUERIES = 1024  # of a batch
_SORTED_AHEAD = 2  # tables that are sorted while another is searched: most of the time is sorting
# Codes, sorted into a table, with the place of each among the distinct codes and their buckets.
_Sorted: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def pairs_within(
    codes: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    max_results: int | None = None,
) -> PairsResult:
    """All pairs of rows of `codes` within a Hamming distance.

    Near codes are found by tables of substrings, or by a scan where that is faster. Rows with the
    same code are searched once.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        distance: The largest number of bits that may differ.
        threads: As in `top_k`.
        max_results: Pairs at which the search stops with an error; None means 100 million, which
            need 3 GB of memory.

    Returns:
        A named tuple `first`, `second` (row numbers, first < second) and `distances`, in the order
        of `first`, then `second`. The result does not depend on the number of threads.

    Raises:
        InputError: A wrong dtype, number of dimensions, distance, max_results or threads.
        TooManyResultsError: There are more pairs than `max_results`.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> pairs_within(codes, 3)
        PairsResult(first=array([0, 1]), second=array([2, 2]), distances=array([1, 3], dtype=int32))
    """
    codes = packed_codes(codes)
    distance = wanted_distance(distance, 8 * codes.shape[1])
    most = wanted_results(max_results)
    wanted_threads(threads)
    distinct = DistinctCodes(codes)
    found = PairCollector(len(codes), distance, most)
    found.expect(distinct.n_identical())
    for block in distinct.identical():
        found.add(block)
    for pairs in near_pairs(distinct.codes, distance, threads):
        found.expect(distinct.n_pairs(pairs[0], pairs[1]))
        for block in distinct.pairs(*pairs):
            found.add(block)
    del distinct
    return found.result()


def iter_pairs_within(
    codes: NDArray[np.uint8], distance: int, threads: int | None = None
) -> Iterator[PairsResult]:
    """The pairs of `pairs_within` in blocks of about a million, for results of any size.

    Each pair is in one block. Pairs are sorted within a block, but blocks come in no order.

    Raises:
        InputError: As in `pairs_within`.
    """
    codes = packed_codes(codes)
    distance = wanted_distance(distance, 8 * codes.shape[1])
    wanted_threads(threads)
    return _blocks(DistinctCodes(codes), distance, threads)


def _blocks(distinct: DistinctCodes, distance: int, threads: int | None) -> Iterator[PairsResult]:
    yield from distinct.identical()
    for pairs in near_pairs(distinct.codes, distance, threads):
        yield from distinct.pairs(*pairs)


def near_pairs(
    codes: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[_Pairs]:
    """Pairs of distinct codes within a distance, each once, in blocks of any order."""
    blocks = best_blocks(codes, distance) if distance else codes[:0]
    tables = list(tables_of(blocks, distance)) if distance else []
    for done, (table, by_key) in enumerate(_sorted_tables(codes, tables, threads)):
        for pairs, share in _table_pairs(table, by_key, distance, threads):
            yield pairs
            if progress is not None:
                progress(round((done + share) * len(codes)), len(tables) * len(codes))


def pairs_of_table(
    codes: NDArray[np.uint8], table: Table, distance: int, threads: int | None = None
) -> Iterator[_Pairs]:
    """Those pairs of distinct codes within a distance that belong to one table, in blocks."""
    by_key = _sort(codes, as_words(codes), table)
    yield from (pairs for pairs, _ in _table_pairs(table, by_key, distance, threads))


def _sorted_tables(
    codes: NDArray[np.uint8], tables: list[Table], threads: int | None
) -> Iterator[tuple[Table, _Sorted]]:
    words = as_words(codes)
    if threads == 1:
        yield from ((table, _sort(codes, words, table)) for table in tables)
        return
    waiting: deque[Future[_Sorted]] = deque()
    with ThreadPoolExecutor(_SORTED_AHEAD) as sorter:
        for place, table in enumerate(tables):
            for following in tables[place + len(waiting) : place + _SORTED_AHEAD + 1]:
                waiting.append(sorter.submit(_sort, codes, words, following))
            yield table, waiting.popleft().result()


def _sort(codes: NDArray[np.uint8], words: NDArray[np.uint64], table: Table) -> _Sorted:
    """Codes by the bits that a table compares, with buckets of two codes and more."""
    n = len(codes)
    if not table.agree.any():  # a scan
        return codes, np.arange(n), np.array([[0, n]])[: n > 1]
    rows, is_first = by_hash(words, table.agree)
    starts = np.flatnonzero(is_first)
    sizes = np.diff(starts, append=n)
    starts, sizes = starts[sizes > 1], sizes[sizes > 1]
    return codes[rows], rows, np.column_stack((starts, starts + sizes))


def _table_pairs(
    table: Table, by_key: _Sorted, distance: int, threads: int | None
) -> Iterator[tuple[_Pairs, float]]:
    """The pairs that belong to a table, and the share of its codes that is searched."""
    codes, rows, buckets = by_key
    sizes = buckets[:, 1] - buckets[:, 0]
    small = buckets[sizes <= _MAX_BUCKET]
    masks = np.vstack([table.agree, table.differ])
    compared = np.diff(small)[:, 0] ** 2 // 2
    for part in parts(compared, _MAX_COMPARED):
        flat = small[part].ravel()
        found = _core.pairs_in_buckets(codes, flat, distance, masks, wanted_threads(threads))
        seconds, distances = split_keys(found[1::2])
        yield (rows[found[::2]], rows[seconds], distances), flat[-1] / len(codes)
    for begin, end in buckets[sizes > _MAX_BUCKET].tolist():
        for batch, pairs in _bucket_pairs(codes[begin:end], table, distance, threads):
            firsts, seconds, distances = pairs
            found_rows = rows[begin + firsts], rows[begin + seconds]
            yield (*found_rows, distances), (begin + batch) / len(codes)


def _bucket_pairs(
    codes: NDArray[np.uint8], table: Table, distance: int, threads: int | None
) -> Iterator[tuple[int, _Pairs]]:
    """The pairs of a large bucket: batches of its codes as queries, with the codes after them.

    Yields:
        How many codes are done, and pairs of places in the bucket.
    """
    begin, size = 0, _QUERIES
    while begin < len(codes):
        queries = codes[begin : begin + size]
        most = _MAX_FOUND if size > 1 else None
        try:
            found = within(codes[begin:], queries, distance, threads, max_results=most)
        except TooManyResultsError:
            size = max(size // 4, 1)
            continue
        firsts = np.repeat(np.arange(len(queries)), np.diff(found.offsets))
        after = found.rows > firsts
        firsts, seconds = begin + firsts[after], begin + found.rows[after]
        chosen = _belongs(codes[firsts] ^ codes[seconds], table)
        begin, size = begin + len(queries), min(2 * size, _QUERIES)
        yield begin, (firsts[chosen], seconds[chosen], found.distances[after][chosen])


def _belongs(differing: NDArray[np.uint8], table: Table) -> NDArray[np.bool_]:
    """Whether pairs belong to a table, by the bits in which their codes differ."""
    differ = [(differing & mask).any(axis=1) for mask in (table.agree, *table.differ)]
    return np.logical_and.reduce([~differ[0], *differ[1:]])  # type: ignore[no-any-return]
