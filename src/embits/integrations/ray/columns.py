"""Vectors in an Arrow column: lists, lists of fixed size and tensors, of any float type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import ReadError


@dataclass(frozen=True, eq=False)
class VectorBatch:
    """The vectors of a column.

    Attributes:
        matrix: The good rows, float32 (n, dims).
        bad: Numbers of the bad rows, ascending.
        found: What is wrong with the first bad row.
    """

    matrix: NDArray[np.float32]
    bad: NDArray[np.int64]
    found: str = ""


def vector_column(schema: Any, column: str | None, where: str) -> str:
    """Return the name of the column of vectors: `column`, or the only one.

    Raises:
        ReadError: There is no such column, it holds no vectors, or there are several.
    """
    there = ", ".join(schema.names[:12])
    candidates = [field.name for field in schema if _value_type(field.type) is not None]
    if column is None:
        if len(candidates) != 1:
            which = "several columns of vectors: name one" if candidates else "no column of vectors"
            raise ReadError(f"{where}: found {which} (columns {there}), expected lists of floats")
        return str(candidates[0])
    if column not in schema.names:
        raise ReadError(f"{where}: found columns {there}, expected one named {column!r}")
    if column not in candidates:
        kind = schema.field(column).type
        raise ReadError(
            f"{where}, column {column!r}: found {kind}, expected lists of floats, all of one length"
        )
    return column


def read_vectors(column: Any, dims: int | None) -> VectorBatch:
    """Read the vectors of a chunked column; `dims` None takes the length of the first."""
    parts = [_storage(chunk) for chunk in column.chunks if len(chunk)]
    lengths = np.concatenate([_lengths(part) for part in parts]) if parts else np.empty(0, int)
    if dims is None:
        known = lengths[lengths > 0]
        dims = int(known[0]) if len(known) else 0
    right = np.asarray(lengths == dims)
    values = [_values(part, lengths_right) for part, lengths_right in _split(parts, right)]
    flat = np.concatenate(values) if values else np.empty(0, np.float32)
    matrix = flat.reshape(-1, dims) if dims else flat.reshape(0, 0)
    # One fast pass tells whether any number is not finite.
    finite: NDArray[np.bool_] = np.ones(len(matrix), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(matrix.sum()):
            finite = np.asarray(np.isfinite(matrix).all(axis=1))
    good = right.copy()
    good[right] = finite
    bad = np.flatnonzero(~good)
    if len(bad) == 0:
        return VectorBatch(matrix, bad)
    length = int(lengths[bad[0]])
    found = "a null" if length < 0 else f"{length} numbers" if length != dims else _NOT_FINITE
    return VectorBatch(matrix[finite], bad, found)


_NOT_FINITE = "nan, inf or null among the numbers"


def bad_row_error(where: str, column: str, found: str, dims: int | None, row: str) -> ReadError:
    """Return the error for a bad row."""
    expected = f"{dims} finite numbers" if dims else "finite numbers, as many in each row"
    return ReadError(
        f"{where}, column {column!r}, {row}: found {found}, expected {expected} "
        "(bad rows can be skipped)"
    )


def check_id_column(schema: Any, column: str, where: str) -> None:
    """Check that a column can hold ids.

    Raises:
        ReadError: There is no such column, or it holds neither strings nor whole numbers.
    """
    from pyarrow import types

    if column not in schema.names:
        there = ", ".join(schema.names[:12])
        raise ReadError(f"{where}: found columns {there}, expected one named {column!r}")
    kind = schema.field(column).type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
        raise ReadError(
            f"{where}, column {column!r}: found {kind}, expected ids: strings or whole numbers"
        )


def _value_type(kind: Any) -> Any:
    """Return the float type of a column of vectors; None for another column."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return kind.value_type if is_list and types.is_floating(kind.value_type) else None


def _storage(chunk: Any) -> Any:
    """Return the lists behind a tensor column of Ray or Arrow; other columns unchanged."""
    import pyarrow as pa

    return chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk


def _lengths(part: Any) -> NDArray[np.int64]:
    """Return the length of each row; -1 for a null."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(part)
    return np.asarray(lengths.fill_null(-1).to_numpy(False), dtype=np.int64)


def _split(parts: list[Any], right: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
    ends = np.cumsum([len(part) for part in parts])
    return list(zip(parts, np.split(right, ends[:-1]), strict=True)) if parts else []


def _values(part: Any, right: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the numbers of all rows of the right length in one array; nulls as NaN."""
    import pyarrow as pa

    if not right.all():
        part = part.filter(pa.array(right))
    values = part.flatten()
    if values.null_count:
        kind = pa.float32() if pa.types.is_float16(values.type) else values.type
        values = values.cast(kind).fill_null(float("nan"))
    with np.errstate(over="ignore", invalid="ignore"):  # too large for float32: refused as inf
        return np.asarray(values.to_numpy(False), dtype=np.float32)
