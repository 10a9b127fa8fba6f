"""Vectors in an Arrow column: lists, lists of fixed size and tensors, of any float type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import ReadError


@dataclass(frozen=True, eq=False)
class Vectors:
    """What a column holds.

    Attributes:
        matrix: The good rows, float32 (n, dims).
        bad: Numbers of the other rows, ascending.
        found: What is wrong with the first of them.
    """

    matrix: NDArray[np.float32]
    bad: NDArray[np.int64]
    found: str = ""


def vector_column(schema: Any, column: str | None, where: str) -> str:
    """The name of the column of vectors: the one asked for, or the only one there is.

    Raises:
        ReadError: It is not there, or no vectors; or it has to be named, as there are several.
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


def vectors_in(column: Any, dims: int | None) -> Vectors:
    """The vectors of a chunked column; `dims` None takes the length of the first."""
    parts = [_storage(chunk) for chunk in column.chunks if len(chunk)]
    lengths = np.concatenate([_lengths(part) for part in parts]) if parts else np.empty(0, int)
    if dims is None:
        known = lengths[lengths > 0]
        dims = int(known[0]) if len(known) else 0
    right = np.asarray(lengths == dims)
    values = [_values(part, lengths_right) for part, lengths_right in _split(parts, right)]
    flat = np.concatenate(values) if values else np.empty(0, np.float32)
    matrix = flat.reshape(-1, dims) if dims else flat.reshape(0, 0)
    # One fast pass says whether there is anything to look for.
    finite: NDArray[np.bool_] = np.ones(len(matrix), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(matrix.sum()):
            finite = np.asarray(np.isfinite(matrix).all(axis=1))
    good = right.copy()
    good[right] = finite
    bad = np.flatnonzero(~good)
    if len(bad) == 0:
        return Vectors(matrix, bad)
    length = int(lengths[bad[0]])
    found = "a null" if length < 0 else f"{length} numbers" if length != dims else _NOT_FINITE
    return Vectors(matrix[finite], bad, found)


_NOT_FINITE = "nan, inf or null among the numbers"


def refusal(
    where: str, column: str, found: str, dims: int | None, row: str, names: Sequence[str] = ()
) -> ReadError:
    """The one line that says which row is bad and what to do."""
    expected = f"{dims} finite numbers" if dims else "finite numbers, as many in each row"
    at = ", ".join([where, f"column {column!r}", row, *names])
    return ReadError(f"{at}: found {found}, expected {expected} (or leave bad rows out: skip them)")


def _value_type(kind: Any) -> Any:
    """The float type in a column of vectors; None when it is something else."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return kind.value_type if is_list and types.is_floating(kind.value_type) else None


def _storage(chunk: Any) -> Any:
    """The lists behind a tensor column of Ray or Arrow; anything else as it is."""
    import pyarrow as pa

    return chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk


def _lengths(part: Any) -> NDArray[np.int64]:
    """Numbers in each row; -1 for a null."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(part)
    return np.asarray(lengths.fill_null(-1).to_numpy(False), dtype=np.int64)


def _split(parts: list[Any], right: NDArray[np.bool_]) -> list[tuple[Any, NDArray[np.bool_]]]:
    ends = np.cumsum([len(part) for part in parts])
    return list(zip(parts, np.split(right, ends[:-1]), strict=True)) if parts else []


def _values(part: Any, right: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The numbers of the rows of the right length, one after the other; nulls as NaN."""
    import pyarrow as pa

    if not right.all():
        part = part.filter(pa.array(right))
    values = part.flatten()
    if values.null_count:
        kind = pa.float32() if pa.types.is_float16(values.type) else values.type
        values = values.cast(kind).fill_null(float("nan"))
    with np.errstate(over="ignore", invalid="ignore"):  # too large for float32: refused as inf
        return np.asarray(values.to_numpy(False), dtype=np.float32)
