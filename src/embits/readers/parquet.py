"""Parquet: a column of strings, and one column of lists of floats or many columns of floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import MissingExtraError
from embits.readers.blocks import Block, Position
from embits.readers.counted_blocks import CountedBlocks, rows_at_once
from embits.readers.source import Source, largest_inside
from embits.readers.words_sidecar import FoundWords, words_for

_ROWS_AT_ONCE = 1 << 14
_BUFFER_BYTES = 32 << 20  # for all columns together


class ParquetBlocks(CountedBlocks):
    """A Parquet table in blocks. Pages are read one by one, whatever the size of a row group."""

    def __init__(self, source: Source) -> None:
        table = _open(source)
        self._columns, self._name_column = _vector_columns(source, table.schema_arrow)
        if source.words is not None:
            self._name_column = None
        n_rows = source.rows_wanted(_row_count(source, table))
        if n_rows == 0:
            raise source.read_error("0 rows", "at least one row")
        dims = self._find_dims(source, table.schema_arrow)
        given = FoundWords(None) if source.words is None else words_for(source, n_rows, dims)
        super().__init__(source, dims, n_rows, given)
        self.named = self.named or self._name_column is not None
        if 4 * n_rows * dims > largest_inside(source.size):
            self.n_rows = None  # it may be false: no memory is reserved for so many

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
            named = None
            if name_column is not None:
                named = _strings(self.source, part.column(name_column), done)
            elif words:
                named = self.words_at(done, done + len(part))
            done += len(part)
            block = self.block(start, values, named)
            yield block
            start = block.end
            if done == self._n_rows:
                return
        raise self.source.read_error(f"{done} rows", f"{self._n_rows}")

    def _find_dims(self, source: Source, schema: Any) -> int:
        import pyarrow.types as kinds

        kind = schema.field(self._columns[0]).type
        if kinds.is_floating(kind):
            return len(self._columns)
        if kinds.is_fixed_size_list(kind):
            if kind.list_size < 1:  # a damaged file may claim any size
                raise source.read_error(f"vectors of {kind.list_size} numbers", "at least one")
            return int(kind.list_size)
        for batch in _batches(source, _open(source, 1), self._columns, None, 1):
            return int(_matrix(source, batch, self._columns, 0).shape[1])
        raise source.read_error("0 rows", "at least one row")


def _row_count(source: Source, table: Any) -> int:
    """The rows that the metadata claims; a damaged file may claim any number."""
    groups = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
    n_rows = int(table.metadata.num_rows)
    if n_rows != sum(groups) or min(groups, default=0) < 0:
        found = f"a damaged file ({n_rows} rows, and {sum(groups)} in its row groups)"
        raise source.read_error(found, "a Parquet table")
    return n_rows


def _groups_from(table: Any, row: int) -> tuple[list[int], int]:
    """The row groups from the one that holds a row on, and their first row."""
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
        raise source.read_error("no column of strings", "one with the words")
    names: list[str] = []
    for batch in _batches(source, table, [], column):
        names += _strings(source, batch.column(column), len(names))
    return names


def has_word_column(source: Source) -> bool:
    """Whether the file holds a column of strings."""
    return _string_column(_open(source).schema_arrow) is not None


def has_codes(source: Source) -> bool:
    """Whether embits wrote codes into the file, or it has a column of binary codes."""
    schema = _open(source).schema_arrow
    import pyarrow.types as kinds  # `_open` has refused a missing pyarrow

    is_ours = b"embits" in (schema.metadata or {})
    return is_ours or any(kinds.is_fixed_size_binary(field.type) for field in schema)


def _open(source: Source, n_columns: int = 0) -> Any:
    """The table; a large one with a small buffer for each of the `n_columns` to read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(f"reading {source.path.name}", "parquet") from error
    try:
        if n_columns == 0 or source.size <= _BUFFER_BYTES:
            return pq.ParquetFile(source.path)
        # Without a buffer size, whole column chunks are read, which may have a gigabyte each. With
        # one, a small file that claims a page of gigabytes would get memory for it.
        size = max(1 << 14, min(1 << 20, _BUFFER_BYTES // n_columns))
        return pq.ParquetFile(source.path, pre_buffer=False, buffer_size=size)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.read_error(f"a damaged file ({error})", "a Parquet table") from error


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
        raise source.read_error(f"a damaged file ({error})", "a Parquet table") from error
    finally:
        pa.default_memory_pool().release_unused()  # otherwise it keeps about 100 MB


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
        raise source.read_error(
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
            raise source.read_error("a null", "a vector", f"row {done + row}")
    if kinds.is_floating(first.type):
        return np.stack([batch.column(name).to_numpy(False) for name in columns], axis=1)
    values = first.flatten()
    if values.null_count:
        raise source.read_error("a null in a vector", "numbers", f"row {done} or after")
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
        raise source.read_error("a null", "a word", f"row {done + row}")
    try:
        strings: list[str] = column.to_pylist()
    except UnicodeDecodeError as error:
        raise source.read_error(
            "a word that is not UTF-8", "UTF-8", f"row {done} or after"
        ) from error
    return strings


def _ragged(source: Source, row: int, found: int, expected: int) -> Exception:
    return source.read_error(f"{found} numbers", f"{expected}", f"row {row}")
