"""Parquet: a column of strings, and the vectors as one column of lists or as many of floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import MissingExtraError
from embits.readers.blocks import Block, CountedBlocks, Position, rows_at_once
from embits.readers.rows import named_rows
from embits.readers.source import Source
from embits.readers.words_sidecar import Words, words_for
from embits.vectors import WordVectors

_ROWS_AT_ONCE = 1 << 14
_BUFFER_BYTES = 32 << 20  # for all columns together, of a file that is read in blocks


def read_parquet(source: Source, words: Words | None) -> WordVectors:
    """Read a Parquet table batch by batch into one matrix."""
    table = _open(source)
    n_rows = source.rows_wanted(table.metadata.num_rows)
    columns, name_column = _vector_columns(source, table.schema_arrow)
    names: list[str] = []
    matrix: NDArray[np.float32] | None = None
    done = 0
    for batch in _batches(source, table, columns, name_column):
        values = _matrix(source, batch, columns, done)[: n_rows - done]
        if matrix is None:
            # Pages that are never written take no memory, so a wrong count costs nothing.
            matrix = np.empty((n_rows, values.shape[1]), np.float32)
        if values.shape[1] != matrix.shape[1]:
            raise _ragged(source, done, values.shape[1], matrix.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # refused below as not finite
            matrix[done : done + len(values)] = values
        if name_column is not None:
            names += _strings(source, batch.column(name_column), done)[: len(values)]
        done += len(values)
        source.report(done, n_rows)
        if done == n_rows:
            break
    if matrix is None or done != n_rows:
        raise source.refusal(f"{done} rows", "at least one row" if done == n_rows else f"{n_rows}")
    if words is not None:
        return named_rows(source, words_for(source, n_rows, words), matrix)
    return named_rows(source, names if name_column is not None else None, matrix)


class ParquetBlocks(CountedBlocks):
    """A Parquet table in blocks. Only pages are held, whatever the size of the row groups."""

    def __init__(self, source: Source, words: Words | None) -> None:
        table = _open(source)
        self._columns, self._name_column = _vector_columns(source, table.schema_arrow)
        if words is not None:
            self._name_column = None
        n_rows = source.rows_wanted(table.metadata.num_rows)
        given = None if words is None else words_for(source, n_rows, words)
        named = given is not None or self._name_column is not None
        super().__init__(source, self._find_dims(source), n_rows, given, named)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on: row groups before it are not touched."""
        if start.offset >= self._n_rows:
            return
        name_column = self._name_column if words else None
        table = _open(self.source, len(self._columns))
        groups, done = _groups_from(table, start.offset)
        size = min(rows_at_once(self.dims), _ROWS_AT_ONCE)
        for batch in _batches(self.source, table, self._columns, name_column, size, groups):
            skip = min(max(start.offset - done, 0), len(batch))
            part = batch.slice(skip, max(self._n_rows - done - skip, 0))
            done += skip
            if len(part) == 0:
                continue
            values = _matrix(self.source, part, self._columns, done)
            if values.shape[1] != self.dims:
                raise _ragged(self.source, done, values.shape[1], self.dims)
            with np.errstate(over="ignore", invalid="ignore"):  # refused as not finite
                matrix = np.array(values, dtype=np.float32, order="C")
            named = None
            if name_column is not None:
                named = _strings(self.source, part.column(name_column), done)
            elif words:
                named = self.words_at(done, done + len(part))
            done += len(part)
            block = self.block(start, matrix, named)
            yield block
            start = block.end
            if done == self._n_rows:
                return
        raise self.source.refusal(f"{done} rows", f"{self._n_rows}")

    def _find_dims(self, source: Source) -> int:
        table = _open(source, len(self._columns))
        for batch in _batches(source, table, self._columns, None, 1):
            return int(_matrix(source, batch, self._columns, 0).shape[1])
        raise source.refusal("0 rows", "at least one row")


def _groups_from(table: Any, row: int) -> tuple[list[int], int]:
    """The row groups from that of a row on, and the first row in them."""
    first = group = 0
    while group < table.num_row_groups:
        rows = table.metadata.row_group(group).num_rows
        if first + rows > row:
            break
        first, group = first + rows, group + 1
    return list(range(group, table.num_row_groups)), first


def read_word_column(source: Source) -> list[str]:
    """The strings of the first column of strings."""
    table = _open(source)
    column = _string_column(table.schema_arrow)
    if column is None:
        raise source.refusal("no column of strings", "one with the words")
    names: list[str] = []
    for batch in _batches(source, table, [], column):
        names += _strings(source, batch.column(column), len(names))
    return names


def has_word_column(source: Source) -> bool:
    """Whether the file holds a column of strings."""
    return _string_column(_open(source).schema_arrow) is not None


def _open(source: Source, n_columns: int = 0) -> Any:
    """The table; of a number of columns that are to be read in blocks, with buffers for those."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(f"reading {source.path.name}", "parquet") from error
    try:
        if n_columns == 0:
            return pq.ParquetFile(source.path)
        # Without a buffer size, whole column chunks are read: a gigabyte in a usual row group.
        size = max(1 << 14, min(1 << 20, _BUFFER_BYTES // n_columns))
        return pq.ParquetFile(source.path, pre_buffer=False, buffer_size=size)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.refusal(f"a damaged file ({error})", "a Parquet table") from error


def _batches(
    source: Source,
    table: Any,
    columns: list[str],
    name_column: str | None,
    size: int = _ROWS_AT_ONCE,
    groups: list[int] | None = None,
) -> Any:
    import pyarrow as pa

    wanted = columns if name_column is None else [name_column, *columns]
    try:
        yield from table.iter_batches(size, groups, columns=wanted)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.refusal(f"a damaged file ({error})", "a Parquet table") from error
    finally:
        pa.default_memory_pool().release_unused()  # it would keep a hundred megabytes for later


def _vector_columns(source: Source, schema: Any) -> tuple[list[str], str | None]:
    import pyarrow.types as kinds

    lists = [
        field.name
        for field in schema
        if (
            kinds.is_list(field.type)
            or kinds.is_large_list(field.type)
            or kinds.is_fixed_size_list(field.type)
        )
        and kinds.is_floating(field.type.value_type)
    ]
    floats = [field.name for field in schema if kinds.is_floating(field.type)]
    if len(lists) > 1 or not (lists or floats):
        raise source.refusal(
            f"columns {', '.join(schema.names[:8])}", "one of float lists, or columns of floats"
        )
    return lists or floats, _string_column(schema)


def _string_column(schema: Any) -> str | None:
    import pyarrow.types as kinds

    strings = [
        field.name
        for field in schema
        if kinds.is_string(field.type)
        or kinds.is_large_string(field.type)
        or (kinds.is_dictionary(field.type) and kinds.is_string(field.type.value_type))
    ]
    return strings[0] if strings else None


def _matrix(source: Source, batch: Any, columns: list[str], done: int) -> NDArray[Any]:
    import pyarrow.types as kinds

    first = batch.column(columns[0])
    for name in columns:
        if batch.column(name).null_count:
            row = batch.column(name).is_null().index(True).as_py()
            raise source.refusal("a null", "a vector", f"row {done + row + 1}")
    if kinds.is_floating(first.type):
        return np.stack([batch.column(name).to_numpy(False) for name in columns], axis=1)
    values = first.flatten()
    if values.null_count:
        raise source.refusal("a null in a vector", "numbers", f"after row {done}")
    lengths = np.asarray(first.value_lengths().to_numpy(False)) if len(first) else np.zeros(0)
    different = np.flatnonzero(lengths != lengths[0])
    if len(different):
        row = int(different[0])
        raise _ragged(source, done + row, int(lengths[row]), int(lengths[0]))
    matrix: NDArray[Any] = values.to_numpy(False).reshape(len(first), -1)
    return matrix


def _strings(source: Source, column: Any, done: int) -> list[str]:
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise source.refusal("a null", "a word", f"row {done + row + 1}")
    try:
        strings: list[str] = column.to_pylist()
    except UnicodeDecodeError as error:
        raise source.refusal("a word that is not UTF-8", "UTF-8", f"after row {done}") from error
    return strings


def _ragged(source: Source, row: int, found: int, expected: int) -> Exception:
    return source.refusal(f"{found} numbers", f"{expected}", f"row {row + 1}")
