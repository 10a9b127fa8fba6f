"""Results of spans, merged into the result of the whole collection."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.search.radius import too_many


class Found(NamedTuple):
    """What a span has for a block of queries.

    Attributes:
        values: Distances, or scores in float64 without offsets: (q, k), or one after the other.
        rows: Rows of the collection, of the same shape; -1 where there is none.
        offsets: What is added to the scores, (q, 1); None for distances.
        ends: Where the results of each query start and end, (q + 1,); None for a top-k search.
    """

    values: NDArray[Any]
    rows: NDArray[np.int64]
    offsets: NDArray[np.float32] | None
    ends: NDArray[np.int64] | None = None


class TopK:
    """The k best rows of a block of queries among the spans that were merged."""

    def __init__(self, n_queries: int, k: int, dtype: type[np.generic]) -> None:
        self._k = k
        self.values: NDArray[Any] = np.empty((n_queries, 0), dtype)
        self.rows: NDArray[np.int64] = np.empty((n_queries, 0), np.int64)
        self._offsets: NDArray[np.float32] | None = None

    def add(self, found: Found) -> None:
        """Merge the result of a span. The order of spans does not matter."""
        values = np.concatenate([self.values, found.values], axis=1)
        rows = np.concatenate([self.rows, found.rows], axis=1)
        order = best_first(values, rows)[:, : self._k]
        self.values = np.take_along_axis(values, order, axis=1)
        self.rows = np.take_along_axis(rows, order, axis=1)
        self._offsets = found.offsets

    def finish(self) -> None:
        """Add the offsets of the scores."""
        if self.values.dtype.kind == "f":
            offsets = np.float32(0) if self._offsets is None else self._offsets
            self.values = self.values.astype(np.float32) + offsets

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows each query has."""
        counts: NDArray[np.int64] = (self.rows >= 0).sum(axis=1)
        return counts

    @property
    def flat(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Values and rows of all queries, one after the other."""
        there = self.rows >= 0
        return self.values[there], self.rows[there]


class Ragged:
    """All rows of a block of queries that are within a bound, among the spans that were merged."""

    def __init__(self, n_queries: int, dtype: type[np.generic], bound: str, most: int) -> None:
        self._n_queries, self._bound, self._most = n_queries, bound, most
        self._parts = [Found(np.empty(0, dtype), np.empty(0, np.int64), None)]
        self._queries = [np.empty(0, np.int64)]
        self._n_found = 0

    def add(self, found: Found) -> None:
        """Merge the result of a span. The order of spans does not matter.

        Raises:
            TooManyResultsError: There are more rows than are wanted.
        """
        assert found.ends is not None
        self._parts.append(found)
        self._queries.append(np.repeat(np.arange(self._n_queries), np.diff(found.ends)))
        self._n_found += len(found.rows)
        if self._n_found > self._most:
            raise too_many(self._most, self._bound)

    def finish(self) -> None:
        """Sort what was found, and add the offsets of the scores."""
        queries = np.concatenate(self._queries)
        values = np.concatenate([part.values for part in self._parts])
        rows = np.concatenate([part.rows for part in self._parts])
        order = np.lexsort((rows, _ascending(values), queries))
        self.values, self.rows, queries = values[order], rows[order], queries[order]
        self.counts = np.bincount(queries, minlength=self._n_queries)
        if self.values.dtype.kind == "f":
            self.values = self.values.astype(np.float32)
        if (offsets := self._parts[-1].offsets) is not None:
            self.values += offsets[queries, 0]
        self._parts, self._queries = [], []

    @property
    def flat(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Values and rows of all queries, one after the other."""
        return self.values, self.rows


def best_first(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.intp]:
    """The order of each query's results: best first, ties in row order, row -1 last."""
    return np.lexsort((rows.view(np.uint64), _ascending(values)), axis=-1)


def _ascending(values: NDArray[Any]) -> NDArray[Any]:
    """Values of which the smallest is the best."""
    return values if values.dtype.kind == "i" else -values
