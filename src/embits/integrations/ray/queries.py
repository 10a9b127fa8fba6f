"""The queries of a search: blocks of an array or of Parquet files, prepared once for all spans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.coders import Coder
from embits.errors import InputError
from embits.integrations.ray.columns import (
    bad_row_error,
    check_id_column,
    read_vectors,
    vector_column,
)
from embits.integrations.ray.pieces import BatchLocation, ParquetFiles, PieceReader
from embits.integrations.ray.steps import SharedCoder
from embits.search.metrics import METRICS, Prepared, metric_of

QUERIES_AT_ONCE = 1 << 13  # of a task

QuerySource: TypeAlias = str | os.PathLike[str] | Any
"""A Parquet file or a folder of them, or an array of floats or of packed codes."""


class QueryBlock(NamedTuple):
    """Queries that follow each other: their vectors or codes, and their names."""

    first: int
    vectors: NDArray[Any]
    names: Any  # an Arrow array

    @property
    def stop(self) -> int:
        """The query after the last one."""
        return self.first + len(self.vectors)


def prepare(coder: SharedCoder, vectors: NDArray[Any], metric: str) -> Prepared:
    """Encode queries, or weigh bits by them. Runs in a worker."""
    return METRICS[metric].prepare(coder.get(), vectors)


class Queries:
    """The queries of a job.

    Args:
        source: Parquet, or an array of shape (q, dims) or (q, width).
        coder: The coder of the collection.
        metric: How rows are compared.
        column: The column of vectors of Parquet files; None takes the only one.
        ids: A column of Parquet files that names queries in results; None numbers them.

    Raises:
        ReadError: There are no vectors, or no such column.
        InputError: The shape or type of an array does not fit, or the metric needs floats.
    """

    def __init__(
        self, source: QuerySource, coder: Coder, metric: str, column: str | None, ids: str | None
    ) -> None:
        metric_of(metric)
        self._dims, self._ids = coder.n_features_in_, ids
        if isinstance(source, str | os.PathLike):
            self._files = ParquetFiles.under(source)
            self._column = vector_column(self._files.schema, column, self._files.address)
            if ids is not None:
                check_id_column(self._files.schema, ids, self._files.address)
            self.n = self._files.n_rows
            return
        if column is not None or ids is not None:
            raise InputError("column and ids name columns of Parquet files, not of an array")
        self._array = _checked(to_numpy(source), coder)
        self.n = len(self._array)
        METRICS[metric].prepare(coder, self._array[:1])  # refuses codes that must be floats

    def blocks(self) -> Iterator[QueryBlock]:
        """The queries in blocks of nearly equal size.

        Matrix libraries round products of a few rows differently, so no block is much smaller than
        the others.

        Raises:
            ReadError: A row of a Parquet file is bad; names it.
        """
        import pyarrow as pa

        cuts = np.linspace(0, self.n, -(-self.n // QUERIES_AT_ONCE) + 1).astype(np.int64)
        batches = self._read() if hasattr(self, "_files") else iter([(self._array, None)])
        first = 0
        for vectors, names in _of_sizes(batches, np.diff(cuts).tolist()):
            numbers = pa.array(np.arange(first, first + len(vectors)))
            yield QueryBlock(first, vectors, numbers if names is None else names)
            first += len(vectors)

    def _read(self) -> Iterator[tuple[NDArray[np.float32], Any]]:
        columns = [self._column] + ([] if self._ids is None else [self._ids])
        runs = {
            "file": list(self._files.groups),
            "first": [0] * len(self._files.groups),
            "last": [len(groups) for groups in self._files.groups.values()],
            "row": [0] * len(self._files.groups),
        }
        yield from PieceReader(self._files.address, columns, self._vectors)(runs)

    def _vectors(self, table: Any, place: BatchLocation | None) -> tuple[NDArray[np.float32], Any]:
        found = read_vectors(table.column(self._column), self._dims)
        if len(found.bad) and place is not None:
            row = f"row {place.first_row + int(found.bad[0])}"
            raise bad_row_error(str(place), self._column, found.found, self._dims, row)
        names = None if self._ids is None else table.column(self._ids).combine_chunks()
        return found.matrix, names


def _of_sizes(
    batches: Iterator[tuple[NDArray[Any], Any]], sizes: list[int]
) -> Iterator[tuple[NDArray[Any], Any]]:
    """Batches of vectors and names, which may be None, as blocks of the given sizes."""
    import pyarrow as pa

    vectors, names = next(batches, (np.empty((0, 0)), None))
    for size in sizes:
        while len(vectors) < size:
            more, more_names = next(batches)
            vectors = np.concatenate([vectors, more])
            names = None if names is None else pa.concat_arrays([names, more_names])
        yield vectors[:size], None if names is None else names[:size]
        vectors, names = vectors[size:], None if names is None else names[size:]


def _checked(array: NDArray[Any], coder: Coder) -> NDArray[Any]:
    """Queries as a batch of codes or of finite floats."""
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"queries are {array.dtype} of shape {array.shape}, expected floats of shape "
            f"(q, {coder.n_features_in_}) or packed codes (uint8) of shape (q, {coder.n_bytes_})"
        )
    return coder.check_codes(array) if array.dtype == np.uint8 else coder.check_vectors(array)
