"""Recall of codes on held-out rows, asked in three ways.

Scores are sums of whole numbers, so a recall does not depend on the number of threads of a
matrix library, and neither does a choice that is made by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.coders.near_lossless.rebuilding import Decoder, signs, whole_numbers

WEIGHT = 1 << 11  # the largest weight of a query in whole numbers: sums over bits are exact
FINE = 1 << 20  # the same for a decoder, in float64

Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """Recall of the nearest rows by Hamming distance, by float query and by decoded query."""

    hamming: float
    query: float
    decoded: float

    @property
    def mean(self) -> float:
        """The mean of the three."""
        return sum(self) / 3


class HeldOut:
    """Queries, the rows they are looked up among, and which of those are the nearest."""

    def __init__(self, unit: NDArray[np.float32], queries: int) -> None:
        """Take unit rows, the queries first."""
        self.unit = unit
        self._whole = whole_numbers(unit).astype(np.float64)
        self._queries = queries
        self._k = max(1, min(10, (len(unit) - 1) // 2))
        self._is_near = np.zeros((queries, len(unit)), dtype=bool)
        nearest = self._top(self._whole[:queries] @ self._whole.T)
        np.put_along_axis(self._is_near, nearest, True, axis=1)

    def ask(self, codes: NDArray[np.uint8], decoder: Decoder, weights: list[Floats]) -> Asked:
        """Ask for codes of all rows.

        Args:
            codes: Packed codes.
            decoder: D and o.
            weights: What a float query may be multiplied by, each of shape (bits, dims); the best
                counts.
        """
        b = signs(codes, len(decoder.D))
        return Asked(
            self._recall(b[: self._queries], b),
            max(self.query_recall(b, each) for each in weights),
            self.decoded_recall(b, decoder, decoder.D),
        )

    def query_recall(self, b: NDArray[np.float32], weights: Floats) -> float:
        """Recall by float query, for bits in {-1, 1}."""
        scores = self._whole[: self._queries] @ _fine(weights, weights).T
        return self._recall(_rounded(scores), b)

    def decoded_recall(self, b: NDArray[np.float32], decoder: Decoder, weights: Floats) -> float:
        """Recall by queries rebuilt from their bits."""
        D, o = _fine(decoder.D, decoder.D), _fine(decoder.o[None], decoder.D)[0]
        rebuilt = b[: self._queries].astype(np.float64) @ D + o
        return self._recall(_rounded(rebuilt @ _fine(weights, weights).T), b)

    def _recall(self, queries: NDArray[np.float32], b: NDArray[np.float32]) -> float:
        found = np.take_along_axis(self._is_near, self._top(queries @ b.T), axis=1)
        return float(found.mean())

    def _top(self, similarities: NDArray[np.floating]) -> NDArray[np.int64]:
        at = np.arange(self._queries)
        similarities[at, at] = -np.inf
        top: NDArray[np.int64] = np.argpartition(similarities, -self._k, axis=1)[:, -self._k :]
        return top


def _fine(weights: Floats, scale: Floats) -> Floats:
    """Weights as whole numbers; those of `scale` are at most FINE."""
    largest = float(np.abs(scale).max(initial=0))
    return np.rint(weights * (FINE / largest)) if largest > 0 else np.zeros_like(weights)


def _rounded(scores: Floats) -> NDArray[np.float32]:
    """Scores of each row as whole numbers up to WEIGHT."""
    largest = np.abs(scores).max(axis=1, initial=0, keepdims=True)
    whole: NDArray[np.float32] = np.rint(scores * (WEIGHT / np.maximum(largest, 1))).astype(
        np.float32
    )
    return whole
