"""Tables that bring near codes together, and the choice among them.

The bits of a code are divided into m blocks. Two codes within d bits agree in at least m - d
blocks, so a table for each choice of s = m - d blocks, which sorts the codes by the bits of these
blocks, has every near pair in one of its buckets (Manku, Jain and Das Sarma, 2007). With s = 1 this
is multi-index hashing, and with s = 0 a scan of all pairs. A larger s makes more tables, whose
buckets are smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class Table(NamedTuple):
    """A choice of blocks, by packed masks: a near pair is counted in the one table that it fits."""

    agree: NDArray[np.uint8]  # bits in which its codes agree, (width,)
    differ: NDArray[np.uint8]  # they differ in each of these blocks, (m, width)


def tables_of(blocks: NDArray[np.uint8], distance: int) -> Iterator[Table]:
    """The tables for blocks of bits, packed masks of shape (m, width); without blocks, a scan."""
    for chosen in combinations(range(len(blocks)), max(len(blocks) - distance, 0)):
        agree = np.bitwise_or.reduce(blocks[list(chosen)], axis=0)
        before = range(chosen[-1] if chosen else 0)
        yield Table(agree, blocks[[block for block in before if block not in chosen]])


def best_blocks(
    codes: NDArray[np.uint8], distance: int, n_rows: int | None = None
) -> NDArray[np.uint8]:
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


def balanced_blocks(sample: NDArray[np.uint8], n_blocks: int) -> NDArray[np.uint8]:
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


def as_words(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes as 64-bit words, (n, ceil(width / 8)); the last one is filled with zeros."""
    if codes.shape[1] % 8:
        codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return np.ascontiguousarray(codes).view(np.uint64)


def hashes(words: NDArray[np.uint64], mask: NDArray[np.uint8] | None = None) -> NDArray[np.uint64]:
    """A hash of the bits of each code, or of those of a mask; one word gives no collisions."""
    # Sums of products by odd numbers: the upper bits depend on all bits.
    masks = None if mask is None else as_words(mask[np.newaxis])[0]
    total, factors = np.zeros(len(words), np.uint64), _factors()
    for column in range(words.shape[1]):
        word = words[:, column] if masks is None else words[:, column] & masks[column]
        total += word * factors[column % len(factors)] ^ np.uint64(column)
    return total


def by_hash(
    words: NDArray[np.uint64], mask: NDArray[np.uint8] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
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


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers [start, start + count) of each range, one after the other.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + counts, counts)


def parts(counts: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Slices whose counts add up to `most` at most, or that hold a single count.

    Example:
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
