"""What a search returns: named tuples, whose fields say what the values are."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Where a query with its own filter has fewer rows than others of the batch.
NO_ROW = -1
NO_DISTANCE = np.int32(2**31 - 1)
NO_SCORE = np.float32(-np.inf)


class Names(Protocol):
    """What knows the ids of rows."""

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows, in their shape."""


def ids_of(rows: NDArray[np.int64], names: Names | None) -> NDArray[Any]:
    """The ids of rows as `str` objects, in their shape; "" for row -1.

    Args:
        rows: Row numbers.
        names: What knows the ids; None makes ids of the row numbers.
    """
    ids = np.full(rows.shape, "", dtype=object)
    there = rows != NO_ROW
    found = rows[there]
    ids[there] = list(map(str, (found if names is None else names.names(found)).tolist()))
    return ids


class Found:
    """Rows with their ids: those of the state that was searched, whatever has changed since."""

    rows: NDArray[np.int64]
    names: Names | None = None  # what knows the ids of the rows that were searched

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The ids of `rows` as `str` objects, in the same shape; "" for row -1.

        Rows without ids have their row numbers as ids, as text.
        """
        return ids_of(self.rows, self.names)

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids} if self.names is not None else {}


class _Distances(NamedTuple):
    distances: NDArray[np.int32]
    rows: NDArray[np.int64]


class DistanceResult(Found, _Distances):
    """Rows by Hamming distance, nearest first. The smallest distance is the best.

    Attributes:
        distances: Bits that differ, int32 of shape (q, k), or (k,) for a single query.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class _Scores(NamedTuple):
    scores: NDArray[np.float32]
    rows: NDArray[np.int64]


class ScoreResult(Found, _Scores):
    """Rows by the score of a float query against bits. The largest score is the best.

    Attributes:
        scores: float32 of shape (q, k), or (k,) for a single query, best first.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class _Cosines(NamedTuple):
    cosines: NDArray[np.float32]
    rows: NDArray[np.int64]


class CosineResult(Found, _Cosines):
    """Rows by cosine to the original float vectors. The largest cosine is the best.

    Attributes:
        cosines: float32 of shape (q, k), or (k,) for a single query, best first.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class _WithinDistance(NamedTuple):
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    distances: NDArray[np.int32]


class WithinResult(Found, _WithinDistance):
    """All rows within a Hamming distance of each query, as many as there are.

    The rows of query i are `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order.

    Attributes:
        offsets: int64 of shape (q + 1,); (2,) for a single query.
        rows: Row numbers of all queries, one after the other, int64 of shape (offsets[-1],).
        distances: Bits that differ, int32 of the same shape.
    """


class _WithinScore(NamedTuple):
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class WithinScoreResult(Found, _WithinScore):
    """All rows that score at least a similarity against each query, as many as there are.

    The rows of query i are `rows[offsets[i] : offsets[i + 1]]`, best first, ties in row order.

    Attributes:
        offsets: int64 of shape (q + 1,); (2,) for a single query.
        rows: Row numbers of all queries, one after the other, int64 of shape (offsets[-1],).
        scores: float32 of the same shape.
    """


class PairsResult(NamedTuple):
    """Pairs of rows within a Hamming distance, in the order of `first`, then `second`.

    Attributes:
        first: Row numbers, int64 of shape (p,).
        second: Row numbers, each larger than its `first`, int64 of the same shape.
        distances: Bits that differ, int32 of the same shape.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    distances: NDArray[np.int32]


class GroupsResult(Found, _WithinDistance):
    """Groups of rows: two rows within the distance, directly or through others, share a group.

    Group i is `rows[offsets[i] : offsets[i + 1]]`, in row order. Groups are in the order of their
    first rows, and have at least two rows.

    Attributes:
        offsets: int64 of shape (groups + 1,).
        rows: Row numbers, int64 of shape (offsets[-1],).
        distances: The bits in which each row differs from the first row of its group, int32 of the
            same shape. It may be more than the distance that was searched for.
    """


SearchResult: TypeAlias = DistanceResult | ScoreResult | CosineResult
"""What `BinaryVectors.search` returns: the metric, or rescoring by floats, decides which."""
