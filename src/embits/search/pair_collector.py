"""Pairs that are found in any order, kept in little memory and sorted at the end."""

from __future__ import annotations

import numpy as np

from embits.errors import TooManyResultsError
from embits.search.results import PairsResult


class PairCollector:
    """Collects blocks of pairs: eight bytes each, where rows and distances fit into 64 bits.

    Args:
        n: How many rows there are.
        distance: The largest distance.
        max_results: How many pairs may be collected.
    """

    def __init__(self, n: int, distance: int, max_results: int) -> None:
        self._row_bits, self._distance_bits = n.bit_length(), distance.bit_length()
        self._is_packed = 2 * self._row_bits + self._distance_bits <= 64
        self._distance, self._most = distance, max_results
        self._n_expected = 0
        none = np.empty(0, np.int64)
        self._packed = [none.astype(np.uint64)]
        self._blocks = [PairsResult(none, none, none.astype(np.int32))]

    def expect(self, n_pairs: int) -> None:
        """Raise TooManyResultsError if so many more pairs are too many."""
        self._n_expected += n_pairs
        if self._n_expected > self._most:
            raise TooManyResultsError(
                f"more than {self._most:,} pairs are within distance {self._distance}: choose a "
                "smaller distance, take the groups of duplicates or the blocks of "
                "iter_pairs_within, or pass a larger max_results"
            )

    def add(self, block: PairsResult) -> None:
        """Collect a block."""
        if not self._is_packed:
            self._blocks.append(block)
            return
        packed = block.first.astype(np.uint64) << np.uint64(self._row_bits)
        packed |= block.second.astype(np.uint64)
        packed <<= np.uint64(self._distance_bits)
        packed |= block.distances.astype(np.uint64)
        self._packed.append(packed)

    def result(self) -> PairsResult:
        """All pairs, in the order of `first`, then `second`; what was collected is freed."""
        if not self._is_packed:
            first, second, distances = map(np.concatenate, zip(*self._blocks, strict=True))
            order = np.lexsort((second, first))
            return PairsResult(first[order], second[order], distances[order])
        packed = np.concatenate(self._packed)
        self._packed = [packed[:0]]
        packed.sort()
        distances = (packed & _ones(self._distance_bits)).astype(np.int32)
        packed >>= np.uint64(self._distance_bits)
        second = (packed & _ones(self._row_bits)).astype(np.int64)
        packed >>= np.uint64(self._row_bits)
        return PairsResult(packed.astype(np.int64), second, distances)


def _ones(n_bits: int) -> np.uint64:
    return np.uint64((1 << n_bits) - 1)
