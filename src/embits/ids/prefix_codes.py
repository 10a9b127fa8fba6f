"""Canonical Huffman codes of at most 15 bits, for alphabets of up to 255 symbols."""

from __future__ import annotations

import heapq
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.errors import FormatError

MAX_LENGTH = 15

Lengths: TypeAlias = NDArray[np.int64]


def code_lengths(counts: NDArray[Any]) -> Lengths:
    """Bits of each symbol's code; 0 for a symbol that does not occur.

    >>> code_lengths(np.array([5, 0, 1, 2])).tolist()
    [1, 0, 2, 2]
    """
    weights = counts.astype(np.int64)
    lengths = _depths(weights)
    while lengths.max(initial=0) > MAX_LENGTH:
        weights = (weights + 1) // 2  # flatter: rare symbols get shorter codes
        lengths = _depths(weights)
    return lengths


def _depths(weights: NDArray[np.int64]) -> Lengths:
    """The depth of each symbol in a Huffman tree."""
    depths = np.zeros(len(weights), np.int64)
    heap = [(weight, symbol, [symbol]) for symbol, weight in enumerate(weights.tolist()) if weight]
    heapq.heapify(heap)
    if len(heap) == 1:
        depths[heap[0][2]] = 1  # a code needs a bit
    while len(heap) > 1:
        (a, first, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        depths[left + right] += 1
        heapq.heappush(heap, (a + b, first, left + right))
    return depths


def code_table(lengths: Lengths) -> NDArray[np.uint32]:
    """The canonical code of each symbol, as code x 16 + length."""
    table = np.zeros(len(lengths), np.uint32)
    code = before = 0
    for symbol in _in_order(lengths):
        length = int(lengths[symbol])
        code <<= length - before
        table[symbol] = code << 4 | length
        code, before = code + 1, length
    return table


def to_bytes(lengths: Lengths) -> bytes:
    """How many symbols have 1 to 15 bits, then the symbols by length and value."""
    counts = np.bincount(lengths, minlength=MAX_LENGTH + 1)[1:]
    return bytes(counts.tolist()) + bytes(_in_order(lengths))


def _in_order(lengths: Lengths) -> list[int]:
    used = np.flatnonzero(lengths)
    in_order: list[int] = used[np.argsort(lengths[used], kind="stable")].tolist()
    return in_order


def check_codes(content: bytes, n_codes: int) -> None:
    """Check that an array holds so many codes, and that no code has too many symbols.

    Raises:
        FormatError: It holds something else.
    """
    start = 0
    for _ in range(n_codes):
        counts = content[start : start + MAX_LENGTH]
        used = sum(count << (MAX_LENGTH - 1 - i) for i, count in enumerate(counts))
        if len(counts) < MAX_LENGTH or used > 1 << MAX_LENGTH:
            raise FormatError("damaged: the words' codes are not prefix codes")
        start += MAX_LENGTH + sum(counts)
    if start != len(content):
        raise FormatError(f"damaged: the words' codes have {len(content)} bytes, expected {start}")
