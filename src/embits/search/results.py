"""What a search returns: named tuples, whose fields say what the values are."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import InputError

# Where a query with its own filter has fewer rows than others of the batch.
NO_ROW = -1
NO_DISTANCE = np.int32(2**31 - 1)
NO_SCORE = np.float32(-np.inf)


def ids_of(rows: NDArray[np.int64], names: Any) -> NDArray[Any]:
    """The ids of rows as `str` objects, in their shape; "" for row -1. Without names, numbers."""
    there = rows != NO_ROW
    found = rows[there]
    named: NDArray[Any] = found if names is None else names.names(found)
    if named.dtype != object:
        words = _core.number_words(named.astype(np.uint64))
        named = np.empty(len(words), object)
        named[:] = words
    if len(named) == rows.size:
        return named.reshape(rows.shape)
    ids = np.full(rows.shape, "", dtype=object)
    ids[there] = named
    return ids


class Found:
    """Rows with their ids: those of the state that was searched, whatever has changed since."""

    rows: NDArray[np.int64]
    names: Any = None  # what knows the ids of the rows that were searched, by its `names(rows)`
    rows_read: int | None = None
    """Rows that were scored for all queries together."""
    columns: Any = None  # what knows the values of their columns, called with a name and rows

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The ids of `rows` as `str` objects, in the same shape; "" for row -1.

        Rows without ids have their row numbers as ids, as text.
        """
        return ids_of(self.rows, self.names)

    def column(self, name: str) -> NDArray[Any]:
        """The values of a column of `rows` as Python objects, in the same shape.

        Missing values, and those of row -1, are None. Only the values of these rows are read.

        Raises:
            InputError: There is no such column.
        """
        if self.columns is None:
            raise InputError("the result knows no columns: it was copied to another process")
        values: NDArray[Any] = self.columns(name, self.rows)
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids} if self.names is not None else {}


_Rows: TypeAlias = NDArray[np.int64]
_Bits: TypeAlias = NDArray[np.int32]
_Scores: TypeAlias = NDArray[np.float32]


class DistanceResult(Found, NamedTuple("_", [("distances", _Bits), ("rows", _Rows)])):
    """Rows by Hamming distance, nearest first. The smallest distance is the best.

    Attributes:
        distances: Bits that differ, int32 of shape (q, k), or (k,) for a single query.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class ScoreResult(Found, NamedTuple("_", [("scores", _Scores), ("rows", _Rows)])):
    """Rows by the score of a float query against bits. The largest score is the best.

    Attributes:
        scores: float32 of shape (q, k), or (k,) for a single query, best first.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class CosineResult(Found, NamedTuple("_", [("cosines", _Scores), ("rows", _Rows)])):
    """Rows by cosine to the original float vectors. The largest cosine is the best.

    Attributes:
        cosines: float32 of shape (q, k), or (k,) for a single query, best first.
        rows: Row numbers, int64 of the same shape. Ties are in row order.
    """


class WithinResult(
    Found, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("distances", _Bits)])
):
    """All rows within a Hamming distance of each query, as many as there are.

    The rows of query i are `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order.

    Attributes:
        offsets: int64 of shape (q + 1,); (2,) for a single query.
        rows: Row numbers of all queries, one after the other, int64 of shape (offsets[-1],).
        distances: Bits that differ, int32 of the same shape.
    """


class WithinScoreResult(
    Found, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("scores", _Scores)])
):
    """All rows that score at least a similarity against each query; see `WithinResult`.

    Attributes:
        offsets: As in `WithinResult`.
        rows: As in `WithinResult`, best first.
        scores: float32 of the shape of `rows`.
    """


class GroupsResult(
    Found, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("distances", _Bits)])
):
    """Groups of rows: two rows within the distance, directly or through others, share a group.

    Group i is `rows[offsets[i] : offsets[i + 1]]`, in row order. Groups are in the order of their
    first rows, and have at least two rows.

    Attributes:
        offsets: int64 of shape (groups + 1,).
        rows: Row numbers, int64 of shape (offsets[-1],).
        distances: The bits in which each row differs from the first row of its group, int32 of the
            same shape. It may be more than the distance that was searched for.
    """


class PairsResult(NamedTuple):
    """Pairs of rows within a Hamming distance, in the order of `first`, then `second`.

    Attributes:
        first: Row numbers, int64 of shape (p,).
        second: Row numbers, each larger than its `first`, int64 of the same shape.
        distances: Bits that differ, int32 of the same shape.
    """

    first: _Rows
    second: _Rows
    distances: _Bits


SearchResult: TypeAlias = DistanceResult | ScoreResult | CosineResult
"""What `BinaryVectors.search` returns: the metric, or rescoring by floats, decides which."""
