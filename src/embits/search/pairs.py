"""All pairs of codes within a distance of each other.

The bits of a code are divided into m blocks. Two codes within d bits agree in at least m - d
blocks, so a table for each choice of s = m - d blocks, which sorts the codes by the bits of these
blocks, has every near pair in one of its buckets (Manku, Jain and Das Sarma, 2007). With s = 1 this
is multi-index hashing, and with s = 0 a scan of all pairs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import Progress
from embits.checks import packed_codes, wanted_distance, wanted_results, wanted_threads
from embits.errors import TooManyResultsError
from embits.search.results import GroupsResult, PairsResult
from embits.search.scan import split_keys, within

_MAX_BUCKET = 2048  # rows; the pairs of a larger bucket are found by planes
_MAX_COMPARED = 1 << 24  # pairs at a time: what is found takes at most 16 bytes each
_MAX_FOUND = 1 << 22  # pairs of a batch
_QUERIES = 1024  # of a batch
BLOCK_PAIRS = 1 << 20  # a block may be larger by the number of rows of one code
_BLOCK_BYTES = 1 << 24  # of codes that are compared at a time
_SORTED_AHEAD = 2  # tables that are sorted while another is searched: most of the time is sorting
Codes: TypeAlias = NDArray[np.uint8]
Rows: TypeAlias = NDArray[np.int64]
# Codes, sorted into a table, with the place of each among the distinct codes and their buckets.
_Sorted: TypeAlias = tuple[Codes, Rows, Rows]
_Pairs: TypeAlias = tuple[Rows, Rows, NDArray[np.int32]]

_MAX_KEPT_BLOCKS = 6  # tries of s
_MAX_TABLES = 1000
_MIN_ROWS = 5000  # fewer are scanned
SAMPLE_ROWS = 1 << 14
_SAMPLE_TABLES = 6
# Nanoseconds, measured on one core of an EPYC with AVX-512: to sort a row into a table, to compare
# two codes of a bucket, and two codes in a scan by planes; each of the last two with the part that
# grows with the bytes of a code.
_ROW_NS = 150
_BUCKET_NS, _BUCKET_NS_PER_BYTE = 0.5, 0.04
_SCAN_NS, _SCAN_NS_PER_BYTE = 0.005, 0.005


def pairs_within(
    codes: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    max_results: int | None = None,
) -> PairsResult:
    """All pairs of rows of `codes` within a Hamming distance.

    Near codes are found by tables of substrings, or by a scan where that is faster.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        distance: The largest number of bits that may differ.
        threads: As in `top_k`.
        max_results: Pairs at which the search stops with an error; None means 100 million, which
            need 3 GB of memory.

    Returns:
        Pairs in the order of `first`, then `second`. They do not depend on the number of threads.

    Raises:
        InputError: An argument is wrong.
        TooManyResultsError: There are more pairs than `max_results`.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> pairs_within(codes, 3)
        PairsResult(first=array([0, 1]), second=array([2, 2]), distances=array([1, 3], dtype=int32))
    """
    codes, distance = _checked(codes, distance, threads)
    most = wanted_results(max_results)
    blocks = _blocks(codes, distance, threads, most)
    return sorted_pairs(blocks, len(codes), distance, most)


def iter_pairs_within(
    codes: NDArray[np.uint8], distance: int, threads: int | None = None
) -> Iterator[PairsResult]:
    """The pairs of `pairs_within` in blocks of about a million, for results of any size.

    Each pair is in one block. Pairs are sorted within a block, but blocks come in no order.
    Arguments and errors are as in `pairs_within`.
    """
    return _blocks(*_checked(codes, distance, threads), threads)


def _checked(codes: Any, distance: Any, threads: Any) -> tuple[Codes, int]:
    codes = packed_codes(codes)
    wanted_threads(threads)
    return codes, wanted_distance(distance, 8 * codes.shape[1])


def _blocks(
    codes: Codes, distance: int, threads: int | None, most: int | None = None
) -> Iterator[PairsResult]:
    distinct = DistinctCodes(codes)
    return distinct.row_pairs(near_pairs(distinct.codes, distance, threads), distance, most)


def near_pairs(
    codes: Codes,
    distance: int,
    threads: int | None = None,
    progress: Progress | None = None,
    tables: Sequence[Table] | None = None,
) -> Iterator[_Pairs]:
    """Pairs of distinct codes within a distance, each once, in blocks of any order.

    With `tables`, only the pairs that belong to these.
    """
    if not distance:
        return
    if tables is None:
        tables = list(tables_of(best_blocks(codes, distance), distance))
    for done, (table, by_key) in enumerate(_sorted_tables(codes, tables, threads)):
        for pairs, share in _table_pairs(table, by_key, distance, threads):
            yield pairs
            if progress is not None:
                progress(round((done + share) * len(codes)), len(tables) * len(codes))


def _sorted_tables(
    codes: Codes, tables: Sequence[Table], threads: int | None
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


def _sort(codes: Codes, words: NDArray[np.uint64], table: Table) -> _Sorted:
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
    for first, end in buckets[sizes > _MAX_BUCKET].tolist():
        some, of_rows = codes[first:end], rows[first:end]
        for done, firsts, seconds, distances in _bucket_pairs(some, table, distance, threads):
            yield (of_rows[firsts], of_rows[seconds], distances), (first + done) / len(codes)


def _bucket_pairs(
    codes: Codes, table: Table, distance: int, threads: int | None
) -> Iterator[tuple[int, *_Pairs]]:
    """Pairs of places in a large bucket, after the number of codes that are done."""
    begin, size = 0, _QUERIES  # batches of codes are queries of the codes after them
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
        apart = codes[firsts] ^ codes[seconds]
        chosen = ~(apart & table.agree).any(axis=1)  # those that belong to this table
        for mask in table.differ:
            chosen &= (apart & mask).any(axis=1)
        begin, size = begin + len(queries), min(2 * size, _QUERIES)
        yield begin, firsts[chosen], seconds[chosen], found.distances[after][chosen]


class DistinctCodes:
    """The distinct codes of a collection, (m, width) in any order, and the rows that have them.

    Code i has rows[starts[i] : starts[i + 1]], in row order, `sizes[i]` of them.
    """

    def __init__(self, codes: Codes) -> None:
        words = as_words(codes)
        order, is_first = by_hash(words)
        same = np.flatnonzero(~is_first)
        different = (words[order[same]] != words[order[same - 1]]).any(axis=1)
        if different.any():  # codes that share a hash are sorted whole
            runs = np.cumsum(is_first)
            places = np.flatnonzero(np.isin(runs, runs[same[different]]))
            rows = order[places]
            order[places] = rows[np.lexsort((rows, *words[rows].T, runs[places]))]
            inner = places[~is_first[places]]
            is_first[inner] = (words[order[inner]] != words[order[inner - 1]]).any(axis=1)
        self.rows = order
        self.starts = np.append(np.flatnonzero(is_first), len(codes))
        self.sizes = np.diff(self.starts)
        self.codes = codes[order[self.starts[:-1]]]

    def row_pairs(
        self,
        near: Iterable[_Pairs],
        distance: int,
        most: int | None = None,
        *,
        identical: bool = True,
    ) -> Iterator[PairsResult]:
        """All pairs of rows that near pairs of codes stand for, and those of the same code.

        Each block is sorted. It is an error before a block is made if there are more than `most`.
        """
        sizes, n_pairs = self.sizes, 0
        if identical:
            n_pairs = _counted(int((sizes * (sizes - 1) // 2).sum()), distance, most)
            places, ends = np.arange(len(self.rows)), np.repeat(self.starts[1:], sizes)
            none = np.zeros(len(ends), np.int32)
            yield from self._pairs(places, places + 1, ends - places - 1, none)
        for firsts, seconds, distances in near:
            more = int((sizes[firsts] * sizes[seconds]).sum())
            n_pairs = _counted(n_pairs + more, distance, most)
            for part in parts(sizes[firsts], BLOCK_PAIRS):
                counts = sizes[firsts[part]]
                places = ranges(self.starts[firsts[part]], counts)
                others = np.repeat(seconds[part], counts)
                of_pairs = np.repeat(distances[part], counts)
                yield from self._pairs(places, self.starts[others], sizes[others], of_pairs)

    def _pairs(
        self, places: Rows, starts: Rows, counts: Rows, distances: NDArray[np.int32]
    ) -> Iterator[PairsResult]:
        """The row of each place with the rows of the places [start, start + count)."""
        for part in parts(counts, BLOCK_PAIRS):
            a = self.rows[np.repeat(places[part], counts[part])]
            b = self.rows[ranges(starts[part], counts[part])]
            if len(a):
                first, second = np.minimum(a, b), np.maximum(a, b)
                order = np.lexsort((second, first))
                of_pairs = np.repeat(distances[part], counts[part])
                yield PairsResult(first[order], second[order], of_pairs[order])


def _counted(n_pairs: int, distance: int, most: int | None) -> int:
    if most is not None and n_pairs > most:
        found = f"more than {most:,} pairs are within distance {distance}: choose a smaller"
        others = "take the groups of duplicates or the blocks of iter_pairs_within"
        raise TooManyResultsError(f"{found} distance, {others}, or pass a larger max_results")
    return n_pairs


def sorted_pairs(
    blocks: Iterable[PairsResult], n: int, distance: int, most: int | None = None
) -> PairsResult:
    """Blocks of pairs of n rows as one sorted result; meanwhile most pairs take eight bytes."""
    row_bits, distance_bits, n_pairs = n.bit_length(), distance.bit_length(), 0
    is_packed = 2 * row_bits + distance_bits <= 64
    none = np.empty(0, np.int64)
    packed, whole = [none.astype(np.uint64)], [PairsResult(none, none, none.astype(np.int32))]
    for block in blocks:
        n_pairs = _counted(n_pairs + len(block.first), distance, most)
        if is_packed:
            keys = block.first.astype(np.uint64) << np.uint64(row_bits)
            keys |= block.second.astype(np.uint64)
            keys <<= np.uint64(distance_bits)
            keys |= block.distances.astype(np.uint64)
            packed.append(keys)
        else:
            whole.append(block)
    if not is_packed:
        first, second, distances = map(np.concatenate, zip(*whole, strict=True))
        order = np.lexsort((second, first))
        return PairsResult(first[order], second[order], distances[order])
    keys = np.concatenate(packed)
    packed.clear()
    keys.sort()
    distances = (keys & np.uint64((1 << distance_bits) - 1)).astype(np.int32)
    keys >>= np.uint64(distance_bits)
    second = (keys & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    keys >>= np.uint64(row_bits)
    return PairsResult(keys.astype(np.int64), second, distances)


def duplicates(
    codes: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    progress: Progress | None = None,
) -> GroupsResult:
    """Groups of rows that are within a Hamming distance of each other, directly or through others.

    Arguments are as in `pairs_within`. No list of pairs is made, so rows with the same code may be
    many. `progress` is called with what is done and the total.

    Raises:
        InputError: An argument is wrong.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0001], [0b1111_0000], [0b0011], [0b0111]], dtype=np.uint8)
        >>> groups = duplicates(codes, 1)
        >>> groups.offsets.tolist(), groups.rows.tolist(), groups.distances.tolist()
        ([0, 3], [0, 2, 3], [0, 1, 2])
    """
    codes, distance = _checked(codes, distance, threads)
    leaders = _leaders(codes, distance, threads, progress)
    sizes = np.bincount(leaders, minlength=len(codes))
    members = np.flatnonzero(sizes[leaders] > 1)
    rows = members[np.argsort(leaders[members], kind="stable")]
    distances = np.empty(len(rows), np.int32)
    for part in parts(np.full(len(rows), codes.shape[1]), _BLOCK_BYTES):
        differing = codes[rows[part]] ^ codes[leaders[rows[part]]]
        distances[part] = np.bitwise_count(differing).sum(axis=1, dtype=np.int32)
    return GroupsResult(np.append(0, np.cumsum(sizes[sizes > 1])), rows, distances)


def _leaders(codes: Codes, distance: int, threads: int | None, progress: Progress | None) -> Rows:
    """The first row of each row's group."""
    distinct = DistinctCodes(codes)
    roots = np.arange(len(distinct.codes))
    pending: list[Rows] = []
    for firsts, seconds, _ in near_pairs(distinct.codes, distance, threads, progress):
        apart = roots[firsts] != roots[seconds]
        pending.append(np.array([firsts[apart], seconds[apart]]))
        # To join sets reads all roots: it is done for many pairs at a time.
        if sum(pairs.size for pairs in pending) > len(roots):
            roots, pending = _united(roots, *np.hstack(pending)), []
    if pending:
        roots = _united(roots, *np.hstack(pending))
    groups = np.empty(len(codes), np.int64)
    groups[distinct.rows] = np.repeat(roots, distinct.sizes)
    first_rows = np.empty(len(roots), np.int64)
    first_rows[groups[::-1]] = np.arange(len(codes))[::-1]  # the last write is of the first row
    return first_rows[groups]


def _united(roots: Rows, firsts: Rows, seconds: Rows) -> Rows:
    """The root of each member after the sets of all pairs are joined.

    In each turn the larger of two roots gets the smaller, or one of several, as its parent.
    """
    while True:
        a, b = roots[firsts], roots[seconds]
        apart = a != b
        if not apart.any():
            return roots
        firsts, seconds, a, b = firsts[apart], seconds[apart], a[apart], b[apart]
        roots[np.maximum(a, b)] = np.minimum(a, b)
        while (roots[roots] != roots).any():
            roots = roots[roots]


class Table(NamedTuple):
    """A choice of blocks, by packed masks: a near pair is counted in the one table that it fits."""

    agree: Codes  # bits in which its codes agree, (width,)
    differ: Codes  # they differ in each of these blocks, (m, width)


def tables_of(blocks: Codes, distance: int) -> Iterator[Table]:
    """The tables for blocks of bits, packed masks of shape (m, width); without blocks, a scan."""
    for chosen in combinations(range(len(blocks)), max(len(blocks) - distance, 0)):
        agree = np.bitwise_or.reduce(blocks[list(chosen)], axis=0)
        before = range(chosen[-1] if chosen else 0)
        yield Table(agree, blocks[[block for block in before if block not in chosen]])


def best_blocks(codes: Codes, distance: int, n_rows: int | None = None) -> Codes:
    """Blocks of bits, packed masks (m, width), for all pairs within a distance; none: scan instead.

    `codes` may be a sample of `n_rows`.
    """
    n, width = n_rows or len(codes), codes.shape[1]
    step = max(len(codes) // SAMPLE_ROWS, 1)
    sample = codes[::step][:SAMPLE_ROWS]
    words = as_words(sample)
    best = np.empty((0, width), np.uint8)
    cost = n / 2 * n * (_SCAN_NS + _SCAN_NS_PER_BYTE * width)
    if n < _MIN_ROWS or n >= 2**32:
        return best
    for n_chosen in range(1, _MAX_KEPT_BLOCKS + 1):
        n_tables = math.comb(distance + n_chosen, n_chosen)
        if distance + n_chosen > 8 * width or n_tables > _MAX_TABLES:
            break
        blocks = balanced_blocks(sample, distance + n_chosen)
        tables = list(tables_of(blocks, distance))
        some = tables[:: -(-n_tables // _SAMPLE_TABLES)]
        sizes = [np.unique(hashes(words, table.agree), return_counts=True)[1] for table in some]
        pairs = sum(int((counts * (counts - 1) // 2).sum()) for counts in sizes) / len(some)
        compared = n_tables * pairs * (n / len(sample)) ** 2
        tried = n_tables * n * _ROW_NS + compared * (_BUCKET_NS + _BUCKET_NS_PER_BYTE * width)
        if tried < cost:
            best, cost = blocks, tried
    return best


def balanced_blocks(sample: Codes, n_blocks: int) -> Codes:
    """Packed masks, (n_blocks, width), of blocks that share the bits that are set in about half.

    Bits of learned codes may be nearly constant. A block of such bits would have few large buckets.
    """
    bits = np.unpackbits(sample, axis=1)
    order = np.argsort(np.abs(bits.mean(axis=0) - 0.5), kind="stable")
    turn, place = np.divmod(np.arange(len(order)), n_blocks)
    block = np.where(turn % 2, n_blocks - 1 - place, place)  # there and back: the sums are even
    masks = np.zeros((n_blocks, len(order)), bool)
    masks[block, order] = True
    return np.packbits(masks, axis=1)


def as_words(codes: Codes) -> NDArray[np.uint64]:
    """Packed codes as 64-bit words, (n, ceil(width / 8)); the last one is filled with zeros."""
    if codes.shape[1] % 8:
        codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return np.ascontiguousarray(codes).view(np.uint64)


def hashes(words: NDArray[np.uint64], mask: Codes | None = None) -> NDArray[np.uint64]:
    """A hash of the bits of each code, or of those of a mask; one word gives no collisions."""
    # Sums of products by odd numbers: the upper bits depend on all bits.
    masks = None if mask is None else as_words(mask[np.newaxis])[0]
    total, factors = np.zeros(len(words), np.uint64), _factors()
    for column in range(words.shape[1]):
        word = words[:, column] if masks is None else words[:, column] & masks[column]
        total += word * factors[column % len(factors)] ^ np.uint64(column)
    return total


def by_hash(words: NDArray[np.uint64], mask: Codes | None = None) -> tuple[Rows, NDArray[np.bool_]]:
    """Rows by 32 bits of their hash, then row; and where a new hash starts."""
    n = len(words)
    keys = hashes(words, mask)
    if n >= 2**32:
        order = np.argsort(keys >> np.uint64(32), kind="stable")
        keys = keys[order]
    else:  # a hash above a row: to sort these is faster than to sort rows by their hashes
        low = np.uint64(0xFFFFFFFF)
        keys &= ~low
        keys |= np.arange(n, dtype=np.uint64)
        keys.sort()
        order = (keys & low).astype(np.int64)
    keys >>= np.uint64(32)
    return order, np.append(np.ones(min(n, 1), bool), keys[1:] != keys[:-1])


@cache
def _factors() -> NDArray[np.uint64]:
    """Odd numbers; drawn at the first use, because numpy.random takes long to import."""
    drawn = np.random.default_rng(0).integers(0, 2**64, 1024, dtype=np.uint64)
    return np.asarray(drawn | np.uint64(1))


def ranges(starts: Rows, counts: Rows) -> Rows:
    """The numbers [start, start + count) of each range, one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + counts, counts)


def parts(counts: Rows, most: int) -> Iterator[slice]:
    """Slices whose counts add up to `most` at most, or that hold a single count.

    >>> [(part.start, part.stop) for part in parts(np.array([3, 1, 9, 1]), 4)]
    [(0, 2), (2, 3), (3, 4)]
    """
    sums = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(sums[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(sums, before + most, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end
