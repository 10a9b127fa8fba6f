"""Which rows a fit looks at: a sample of all, batches full of neighbors, and a held-out check."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, unit_rows
from embits.coders.backend import product

SAMPLE_ROWS = 50_000  # rows a fit is based on, whatever the vocabulary ...
SAMPLE_BYTES = 128 << 20  # ... and bytes of their floats: a fit holds three times as much
ENOUGH_ROWS = 5000  # fewer are trained on less, and their mean and variances are shrunk
ANCHORS = 4096  # rows whose neighborhoods are searched ...
ANCHORS_AMONG = 8192  # ... and the rows among which they are searched, for wide codes
NEIGHBORS = 16  # rows of a neighborhood, the anchor among them
ASKING = 4  # one row of so many asks for its neighbors among all rows of a batch
HELD_OUT = 512  # queries of the held-out check ...
HELD_OUT_AMONG = 4096  # ... and the rows among which they are searched


def sample_rows(n: int, dims: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sorted numbers of at most SAMPLE_ROWS rows out of n: half the first ones, half any others.

    Word vectors come by falling frequency, and most queries are frequent words; the rare
    ones are many, alike and noisy. Where rows have no order this is a plain random sample.
    """
    most = min(SAMPLE_ROWS, max(2, SAMPLE_BYTES // (4 * dims)))
    if n <= most:
        return np.arange(n)
    first = most // 2
    others = first + rng.choice(n - first, most - first, replace=False)
    return np.concatenate([np.arange(first), np.sort(others)])


class Batches:
    """Draws batches that are half neighborhoods and half random rows.

    Random rows alone hold few true neighbors of each other, and so teach little about them.
    """

    def __init__(
        self, x: NDArray[np.float32], rng: np.random.Generator, among_all: bool = False
    ) -> None:
        self._rng = rng
        self._n = len(x)
        among = rng.permutation(self._n)[: None if among_all else ANCHORS_AMONG]
        unit = unit_rows(x[among])
        anchors, size = min(ANCHORS, len(among)), min(NEIGHBORS, len(among))
        self._neighborhoods = np.empty((anchors, size), dtype=np.int64)
        for rows in blocks(anchors, 128):
            similarities = product(unit[rows], unit.T)
            nearest = np.argpartition(similarities, -size, axis=1)[:, -size:]
            self._neighborhoods[rows] = among[nearest]

    def draw(self, size: int) -> NDArray[np.int64]:
        """Numbers of about `size` rows, each once, in random order."""
        if size >= self._n:
            return self._rng.permutation(self._n)
        count = -(-size // (2 * NEIGHBORS))
        near = self._neighborhoods[self._rng.integers(len(self._neighborhoods), size=count)]
        others = self._rng.integers(self._n, size=size - min(near.size, size))
        return self._rng.permutation(np.unique(np.concatenate([near.ravel()[:size], others])))


class HeldOut:
    """Recall of the ten nearest rows on queries that are kept out of training."""

    def __init__(self, x: NDArray[np.float32], queries: int) -> None:
        """`x`: shaped rows of the queries, then of those they are looked up among."""
        self.x = x
        self._queries = queries
        self._k = max(1, min(10, (len(x) - 1) // 2))
        unit = unit_rows(x)
        self._is_near = np.zeros((queries, len(x)), dtype=bool)
        np.put_along_axis(self._is_near, self._top(product(unit[:queries], unit.T)), True, axis=1)

    def recall(self, W: NDArray[Any], t: NDArray[Any]) -> float:
        """Mean of the recall by Hamming distance and by float query."""
        z = product(self.x, W.T.astype(np.float32)) + t.astype(np.float32)
        b = np.where(z >= 0, np.float32(1), np.float32(-1))
        nearest = [self._top(product(q, b.T)) for q in (b[: self._queries], z[: self._queries])]
        hits = [np.take_along_axis(self._is_near, rows, axis=1).mean() for rows in nearest]
        return float(np.mean(hits))

    def _top(self, similarities: NDArray[np.float32]) -> NDArray[np.int64]:
        similarities[np.arange(self._queries), np.arange(self._queries)] = -np.inf
        top: NDArray[np.int64] = np.argpartition(similarities, -self._k, axis=1)[:, -self._k :]
        return top


class Split(NamedTuple):
    """Rows to train on, and rows of the held-out check, its queries first."""

    train: NDArray[np.int64]
    check: NDArray[np.int64]
    queries: int


def hold_out(n: int, rng: np.random.Generator) -> Split:
    """Keep queries out of a training on n rows; of fewer than 100 rows, all are used for both."""
    order = rng.permutation(n)
    queries = min(HELD_OUT, n // 10) if n >= 100 else n
    train = np.sort(order[queries:]) if n >= 100 else np.arange(n)
    among = order[queries : queries + HELD_OUT_AMONG]
    return Split(train, np.concatenate([order[:queries], among]), queries)
