"""Codes that are identical, taken together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from embits.search.pair_tables import as_words, by_hash
from embits.search.ragged import parts, ranges
from embits.search.results import PairsResult

BLOCK_PAIRS = 1 << 20
"""Pairs of a block; a block may be larger by the number of rows of one code."""


class DistinctCodes:
    """The distinct codes of a collection, and the rows that have them.

    Args:
        codes: Packed codes, uint8 of shape (n, width).

    Attributes:
        codes: The distinct codes, (m, width), in any order.
        rows: Rows by code, (n,): code i has rows[starts[i] : starts[i + 1]], in row order.
        starts: (m + 1,).
    """

    def __init__(self, codes: NDArray[np.uint8]) -> None:
        self.rows, is_first = _by_code(codes)
        self.starts = np.append(np.flatnonzero(is_first), len(codes))
        self.codes = codes[self.rows[self.starts[:-1]]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each code has."""
        return np.diff(self.starts)

    def n_identical(self) -> int:
        """How many pairs of rows have the same code."""
        sizes = self.sizes
        return int((sizes * (sizes - 1) // 2).sum())

    def identical(self) -> Iterator[PairsResult]:
        """All pairs of rows that have the same code, in blocks."""
        ends = np.repeat(self.starts[1:], self.sizes)
        places = np.arange(len(self.rows))
        yield from self._pairs(places, places + 1, ends - places - 1, np.zeros(len(ends), np.int32))

    def n_pairs(self, firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> int:
        """How many pairs of rows these pairs of codes stand for."""
        return int((self.sizes[firsts] * self.sizes[seconds]).sum())

    def pairs(
        self, firsts: NDArray[np.int64], seconds: NDArray[np.int64], distances: NDArray[np.int32]
    ) -> Iterator[PairsResult]:
        """All pairs of rows that these pairs of codes stand for, in blocks."""
        sizes = self.sizes
        for part in parts(sizes[firsts], BLOCK_PAIRS):
            counts = sizes[firsts[part]]
            places = ranges(self.starts[firsts[part]], counts)
            others = np.repeat(seconds[part], counts)
            yield from self._pairs(
                places, self.starts[others], sizes[others], np.repeat(distances[part], counts)
            )

    def _pairs(
        self,
        places: NDArray[np.int64],
        starts: NDArray[np.int64],
        counts: NDArray[np.int64],
        distances: NDArray[np.int32],
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


def _by_code(codes: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows by code, then row; and where a new code starts."""
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
    return order, is_first
