"""What a search returns: named tuples, whose fields say what the values are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.errors import InputError

if TYPE_CHECKING:
    from embits.search.metrics import Metric

NO_ROW = -1  # where a query with its own filter has fewer rows than others of the batch
NO_DISTANCE = np.int32(2**31 - 1)
NO_SCORE = np.float32(-np.inf)


def ids_of(rows: NDArray[np.int64], names: Any) -> NDArray[Any]:
    """The ids of rows as `str` objects, in their shape; "" for row -1. Without names, numbers."""
    there = rows != NO_ROW
    named: NDArray[Any] = rows[there] if names is None else names.names(rows[there])
    ids = np.full(rows.shape, "", dtype=object)
    ids[there] = named if named.dtype == object else _core.number_words(named.astype(np.uint64))
    return ids


class ResultBase:
    """Rows with their ids: those of the state that was searched, whatever has changed since."""

    rows: NDArray[np.int64]
    names: Any = None  # what knows the ids of the rows that were searched, by its `names(rows)`
    columns: Any = None  # what knows the values of their columns, called with a name and rows
    rows_read: int | None = None
    """Rows that were scored for all queries together."""
    n_bits: int | None = None  # of a code

    @LazyProperty
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
        ids = {"ids": self.ids} if self.names is not None else {}
        return {**ids, "n_bits": self.n_bits}


def _equal_bits(distances: NDArray[np.int32], n_bits: int | None) -> NDArray[np.float32]:
    if n_bits is None:
        raise InputError("the result does not know how many bits the codes have")
    shares = 1 - distances / np.float32(n_bits)
    return np.where(distances == NO_DISTANCE, NO_SCORE, shares).astype(np.float32)


_Rows: TypeAlias = NDArray[np.int64]
_Bits: TypeAlias = NDArray[np.int32]
_Scores: TypeAlias = NDArray[np.float32]


class DistanceResult(ResultBase, NamedTuple("_", [("distances", _Bits), ("rows", _Rows)])):
    """Rows by Hamming distance, nearest first, ties in row order.

    Attributes:
        distances: Bits that differ, int32 of shape (q, k), or (k,) for a single query.
        rows: Row numbers, int64 of the same shape.
    """

    @property
    def scores(self) -> NDArray[np.float32]:
        """The share of the bits that are equal, float32 of the same shape."""
        return _equal_bits(self.distances, self.n_bits)


class ScoreResult(ResultBase, NamedTuple("_", [("scores", _Scores), ("rows", _Rows)])):
    """As `DistanceResult`, by the score of a float query: float32 `scores`, the largest first."""


class CosineResult(ResultBase, NamedTuple("_", [("cosines", _Scores), ("rows", _Rows)])):
    """As `DistanceResult`, by the original floats: float32 `cosines`, the largest first."""

    @property
    def scores(self) -> NDArray[np.float32]:
        """The cosines."""
        return self.cosines


class WithinResult(
    ResultBase, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("distances", _Bits)])
):
    """All rows within a Hamming distance of each query, as many as there are.

    The rows of query i are `rows[offsets[i] : offsets[i + 1]]`, nearest first, ties in row order.

    Attributes:
        offsets: int64 of shape (q + 1,); (2,) for a single query.
        rows: Row numbers of all queries, one after the other, int64 of shape (offsets[-1],).
        distances: Bits that differ, int32 of the same shape.
    """

    @property
    def scores(self) -> NDArray[np.float32]:
        """The share of the bits that are equal, float32 of the same shape."""
        return _equal_bits(self.distances, self.n_bits)


class WithinScoreResult(
    ResultBase, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("scores", _Scores)])
):
    """As `WithinResult`, best first, with float32 `scores`: rows of at least a similarity."""


class GroupsResult(
    ResultBase, NamedTuple("_", [("offsets", _Rows), ("rows", _Rows), ("distances", _Bits)])
):
    """Groups of rows: two rows within the distance, directly or through others, share a group.

    Group i is `rows[offsets[i] : offsets[i + 1]]`, in row order. Groups are in the order of their
    first rows, and have at least two rows.

    Attributes:
        offsets: int64 of shape (groups + 1,).
        rows: Row numbers, int64 of shape (offsets[-1],).
        distances: Bits in which each row differs from the first of its group, int32 of the same
            shape; they may be more than the distance that was searched for.
    """


class PairsResult(NamedTuple):
    """Pairs of rows within a Hamming distance, in the order of `first`, then `second`.

    All are of shape (p,). Row numbers are int64; distances, the bits that differ, are int32.
    """

    first: _Rows
    second: _Rows  # each larger than its `first`
    distances: _Bits


SearchResult: TypeAlias = DistanceResult | ScoreResult | CosineResult
"""What `BinaryVectors.search` returns: the metric, or rescoring by floats, decides which."""


def no_rows(metric: Metric, shape: tuple[int, ...], *, by_vectors: bool) -> SearchResult:
    """The result of a search where there are no rows, for queries of shape () or (q,)."""
    rows = np.empty((*shape, 0), np.int64)
    if metric.is_distance and not by_vectors:
        return DistanceResult(rows.astype(np.int32), rows)
    kind = CosineResult if by_vectors and not metric.needs_lengths else ScoreResult
    return kind(rows.astype(np.float32), rows)


def nothing_within(metric: Metric, n_queries: int) -> WithinResult | WithinScoreResult:
    """The result of a search with a bound where there are no rows."""
    starts = np.zeros(n_queries + 1, np.int64)
    if metric.is_distance:
        return WithinResult(starts, starts[:0], np.empty(0, np.int32))
    return WithinScoreResult(starts, starts[:0], np.empty(0, np.float32))
