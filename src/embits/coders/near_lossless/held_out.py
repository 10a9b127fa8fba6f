"""Recall of codes on held-out queries, asked in three ways.

Products are summed in one order and searches are exact, so a recall does not depend on the
number of threads, and neither does a choice that is made by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.coders.near_lossless.rebuilding import Decoder, signs
from embits.coders.products import product
from embits.search import asymmetric_top_k, top_k

K = 10  # neighbors that are asked for

Floats = NDArray[np.float64]


class Asked(NamedTuple):
    """Recall of the nearest rows by Hamming distance, by float query and by decoded query."""

    hamming: float
    query: float
    decoded: float

    @property
    def score(self) -> float:
        """What a search is chosen by: the Hamming distance, the default metric, counts most."""
        return 4 * self.hamming + 2 * self.query + self.decoded


class Codes(NamedTuple):
    """Packed codes of the queries, and of the rows they are looked up among."""

    queries: NDArray[np.uint8]
    rows: NDArray[np.uint8]


class HeldOut:
    """Queries, the rows they are looked up among, and which of those are the nearest.

    Attributes:
        queries: Unit rows that no training has seen.
        rows: Unit rows.
    """

    def __init__(self, queries: NDArray[np.float32], rows: NDArray[np.float32]) -> None:
        self.queries = queries
        self.rows = rows
        self._k = max(1, min(K, len(rows) // 2))
        cosines = product(queries, np.ascontiguousarray(rows.T))
        nearest = np.argpartition(cosines, -self._k, axis=1)[:, -self._k :]
        self._is_near = np.zeros(cosines.shape, dtype=bool)
        np.put_along_axis(self._is_near, nearest, True, axis=1)

    def ask(self, codes: Codes, decoder: Decoder, weights: list[Floats]) -> Asked:
        """Ask in three ways.

        Args:
            codes: Of the queries and the rows.
            decoder: D and o.
            weights: What a float query may be multiplied by, each of shape (bits, dims); the best
                counts.
        """
        found = top_k(codes.rows, codes.queries, self._k).rows
        return Asked(
            self._recall(found),
            max(self.query_recall(codes, each) for each in weights),
            self.decoded_recall(codes, decoder, decoder.D),
        )

    def query_recall(self, codes: Codes, weights: Floats) -> float:
        """Recall by float query."""
        return self._weighted(self.queries, codes, weights)

    def decoded_recall(self, codes: Codes, decoder: Decoder, weights: Floats) -> float:
        """Recall by queries rebuilt from their bits."""
        return self._weighted(rebuilt(codes.queries, decoder), codes, weights)

    def _weighted(self, queries: NDArray[np.float32], codes: Codes, weights: Floats) -> float:
        projections = product(queries, weights.T.astype(np.float32))
        return self._recall(asymmetric_top_k(codes.rows, projections, self._k).rows)

    def _recall(self, found: NDArray[np.int64]) -> float:
        return float(np.take_along_axis(self._is_near, found, axis=1).mean())


def rebuilt(codes: NDArray[np.uint8], decoder: Decoder) -> NDArray[np.float32]:
    """Directions D b + o of packed codes."""
    vectors: NDArray[np.float32] = product(
        signs(codes, len(decoder.D)), decoder.D.astype(np.float32)
    )
    vectors += decoder.o.astype(np.float32)
    return vectors
