"""Parquet: vectors in a column of lists of floats, or in many columns of floats; and their ids."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embits.errors import ReadError, from_extra
from embits.readers.blocks import Block, CountedBlocks, GoodRows, Position, good_rows
from embits.readers.source import IdColumn, Source, largest_inside
from embits.readers.words import FoundWords, words_for

ID_NAMES = ("id", "ids", "_id", "word", "key")

_ROWS_AT_ONCE = 1 << 14
_BUFFER_BYTES = 32 << 20  # for all columns together
_NUMBERED = re.compile(r"(.*?)\d{1,9}")
_NOT_FINITE = "nan, inf or null among the numbers"
_LOG = logging.getLogger("embits")  # the command line prints it as notes


class Columns(NamedTuple):
    """The columns that are read: one of lists or several of floats, and that of the ids."""

    vectors: list[str]
    ids: str | None


def parquet_files(path: str | os.PathLike[str], filesystem: Any = None) -> list[str]:
    """The file itself, or the `.parquet` and `.pq` files in a folder, hidden ones excepted."""
    fs = _arrow(path).fs
    files, folder = filesystem or fs.LocalFileSystem(), os.fspath(path)
    with _damage_refused(path):
        kind = files.get_file_info(folder).type
        if kind == fs.FileType.File:
            return [folder]
        found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
    names = sorted(
        entry.path
        for entry in found
        if entry.type == fs.FileType.File
        and entry.path.endswith((".parquet", ".pq"))
        and not any(part[:1] in "._" for part in entry.path[len(folder) :].strip("/").split("/"))
    )
    if not names:
        what = "nothing there" if kind == fs.FileType.NotFound else "no .parquet files"
        raise ReadError(f"{path}: found {what}, expected a folder of Parquet files, or one")
    return names


def open_table(path: str | os.PathLike[str], filesystem: Any = None, n_columns: int = 0) -> Any:
    """The `ParquetFile`; of a large one, each of the `n_columns` to read has a small buffer."""
    open_parquet = _arrow(path).parquet.ParquetFile
    with _damage_refused(path):
        size = 0 if filesystem else Path(path).stat().st_size
        if n_columns == 0 or size <= _BUFFER_BYTES:
            return open_parquet(path, filesystem=filesystem)
        # Without a buffer size, whole column chunks are read, which may have a gigabyte each. With
        # one, a small file that claims a page of gigabytes would get memory for it.
        buffer = max(1 << 14, min(1 << 20, _BUFFER_BYTES // n_columns))
        return open_parquet(path, pre_buffer=False, buffer_size=buffer)


def read_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    filesystem: Any = None,
    *,
    groups: Sequence[int] | None = None,
    size: int = _ROWS_AT_ONCE,
) -> Iterator[tuple[int, Any]]:
    """Record batches of some columns, of at most `size` rows, each with its first row's number."""
    table = open_table(path, filesystem, len(columns))
    groups = range(table.num_row_groups) if groups is None else groups  # which follow each other
    first = sum(_group_rows(table)[: min(groups, default=0)])
    try:
        with _damage_refused(path):
            for batch in table.iter_batches(size, list(groups), columns=list(columns)):
                yield first, batch
                first += len(batch)
    finally:
        _arrow(path).default_memory_pool().release_unused()  # otherwise it keeps about 100 MB


def find_columns(
    schema: Any, where: str, column: str | None = None, ids: IdColumn = None
) -> Columns:
    """The columns of vectors (the only one of lists, or all of floats) and ids in a schema."""
    there = f"columns {', '.join(schema.names[:12])}"
    for name in (column, ids):
        if name and name not in schema.names:
            raise ReadError(f"{where}: found {there}, expected one named {name!r}")
    if ids is None:
        named = [n for n in ID_NAMES if n in schema.names and not _is_vector(schema.field(n).type)]
        usable = [name for name in named if _holds_ids(schema.field(name).type)]
        ids = next(iter(usable or named), None)
    _check_holds_ids(schema, where, ids)
    lists = [field.name for field in schema if _is_vector(field.type)]
    if column is not None and column not in lists:
        kind = schema.field(column).type
        raise ReadError(f"{where}, column {column!r}: found {kind}, expected lists of floats")
    if column is None and len(lists) > 1:
        found = f"several columns of vectors ({', '.join(lists[:12])})"
        raise ReadError(f"{where}: found {found}, expected one: name it with --column, or column=")
    if vectors := [column] if column else lists or _float_columns(schema, where):
        return Columns(vectors, ids or None)
    raise ReadError(f"{where}: found {there}, expected one of float lists, or columns of floats")


def vectors_of(column: Any, dims: int | None = None) -> GoodRows:
    """The vectors in an Arrow array of lists, lists of fixed size or tensors; it may be chunked."""
    pa = _arrow("vectors")
    chunks = [getattr(chunk, "storage", chunk) for chunk in getattr(column, "chunks", [column])]
    if not chunks:
        return good_rows(np.empty((0, dims or 0), np.float32))
    lists = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    length = pa.compute.list_value_length(lists).fill_null(-1).to_numpy(False)
    if dims is None:  # those of the first vector that is not empty
        dims = int(next(iter(length[length > 0]), 0))
    right = length == dims
    values = (lists if right.all() else lists.filter(pa.array(right))).flatten()
    if values.null_count:
        kind = pa.float32() if pa.types.is_float16(values.type) else values.type
        values = values.cast(kind).fill_null(float("nan"))
    good = good_rows(values.to_numpy(False).reshape(int(right.sum()), dims), _NOT_FINITE)
    if right.all():
        return good
    wrong = np.flatnonzero(~right)
    bad = np.sort(np.concatenate([wrong, np.flatnonzero(right)[good.bad]]))
    first = int(length[wrong[0]])
    found = "a null" if first < 0 else f"{first} numbers"
    return GoodRows(good.matrix, bad, found if bad[0] == wrong[0] else good.found)


class ParquetBlocks(CountedBlocks):
    """A Parquet table in blocks. Pages are read one by one, whatever the size of a row group."""

    def __init__(self, source: Source) -> None:
        table = open_table(source.path)
        ids = False if source.words is not None else source.ids
        self._columns = find_columns(table.schema_arrow, source.name, source.column, ids)
        groups, total = _group_rows(table), int(table.metadata.num_rows)
        if total != sum(groups) or min(groups, default=0) < 0:  # damaged, it may claim any number
            found = f"a damaged file ({total} rows, and {sum(groups)} in its row groups)"
            raise source.read_error(found, "a Parquet table")
        dims = self._find_dims(source, table.schema_arrow) if total else 0
        given = FoundWords(None) if source.words is None else words_for(source, total, dims)
        super().__init__(source, dims, source.rows_wanted(total), given)
        # Without the rows that repeat an id, the others would lose their numbers.
        self.named = self.words_apart = self.named or self._columns.ids is not None
        if 4 * self._n_rows * dims > largest_inside(source.size):
            self.n_rows = None  # it may be false: no memory is reserved for so many
        vectors, named = self._columns
        several = f"the {len(vectors)} columns {vectors[0]!r} to {vectors[-1]!r}"
        which = several if len(vectors) > 1 else f"column {vectors[0]!r}"
        says = f"ids from column {named!r}" if named else "no column of ids"
        _LOG.info("vectors from %s, %s (--column and --ids choose others)", which, says)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        if start.offset >= self._n_rows:
            return
        vectors, ids = self._columns
        names = [*vectors, ids] if ids and words else vectors
        ends = np.cumsum(_group_rows(open_table(self.source.path)))
        # A batch may span groups: those after the last row must not be read.
        last = int(np.searchsorted(ends, self._n_rows))
        groups = range(int(np.searchsorted(ends, start.offset, side="right")), last + 1)
        size = min(self.rows_at_once, _ROWS_AT_ONCE)
        done = start.offset
        for first, batch in read_batches(self.source.path, names, groups=groups, size=size):
            part = batch.slice(min(done - first, len(batch)), self._n_rows - done)
            if len(part) == 0:
                continue
            named = self.words_at(done, done + len(part)) if words else None
            if ids and words:
                named = _ids_of(self.source, part.column(ids), done)
            if _is_vector(part.column(vectors[0]).type):
                good = vectors_of(part.column(vectors[0]), self.dims)
            else:
                numbers = [part.column(name).to_numpy(False) for name in vectors]
                good = good_rows(np.stack(numbers, axis=1), _NOT_FINITE)
            block = self.block(start, len(part), good, named)
            done += len(part)
            yield block
            start = block.end
            if done == self._n_rows:
                return
        raise self.source.read_error(f"{done} rows", f"{self._n_rows}")

    def _find_dims(self, source: Source, schema: Any) -> int:
        vectors, _ = self._columns
        kind = schema.field(vectors[0]).type
        if not _is_vector(kind):
            return len(vectors)
        kind = getattr(kind, "storage_type", kind)
        if hasattr(kind, "list_size"):
            if kind.list_size < 1:  # a damaged file may claim any size
                raise source.read_error(f"vectors of {kind.list_size} numbers", "at least one")
            return int(kind.list_size)
        for _, batch in read_batches(source.path, vectors, size=64):
            if dims := vectors_of(batch.column(0)).matrix.shape[1]:
                return int(dims)
        raise source.read_error("no vector", "at least one")


def read_id_column(source: Source) -> list[str]:
    """The ids of a table of ids: the column `source.ids`, one of `ID_NAMES`, or that of strings."""
    schema = open_table(source.path).schema_arrow
    names = [source.ids] if source.ids else _columns_of_ids(schema)
    if len(names) != 1 or names[0] not in schema.names:
        there = ", ".join(schema.names[:12])
        raise source.read_error(f"columns {there}", "one with the words: name it with --ids")
    _check_holds_ids(schema, str(source.path), names[0])
    batches = read_batches(source.path, names)
    return [word for first, batch in batches for word in _ids_of(source, batch.column(0), first)]


def may_hold_ids(path: Path) -> bool:
    """Whether a table has a column of ids, and holds no codes: their ids are not of a matrix."""
    schema, types = open_table(path).schema_arrow, _arrow(path).types
    is_ours = b"embits" in (schema.metadata or {})
    has_codes = is_ours or any(types.is_fixed_size_binary(field.type) for field in schema)
    return not has_codes and bool(_columns_of_ids(schema))


def _columns_of_ids(schema: Any) -> list[str]:
    """The column with a usual name; else all columns of strings."""
    if usual := [name for name in ID_NAMES if name in schema.names]:
        return usual[:1]
    return [field.name for field in schema if _holds_ids(field.type, numbers=False)]


def _arrow(path: str | os.PathLike[str] = "Parquet") -> Any:
    with from_extra(f"reading {Path(path).name}", "parquet"):
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.fs
        import pyarrow.parquet
    return pa


@contextmanager
def _damage_refused(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (_arrow(path).ArrowException, OSError, UnicodeDecodeError) as error:
        found = f"a damaged file ({error})"
        raise Source(Path(path)).read_error(found, "a Parquet table") from error


def _group_rows(table: Any) -> list[int]:
    return [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]


def _is_vector(kind: Any) -> bool:
    types, kind = _arrow().types, getattr(kind, "storage_type", kind)  # the lists of a tensor
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and bool(types.is_floating(kind.value_type))


def _holds_ids(kind: Any, *, numbers: bool = True) -> bool:
    types = _arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_string = types.is_string(kind) or types.is_large_string(kind)
    return bool(is_string or (numbers and types.is_integer(kind)))


def _check_holds_ids(schema: Any, where: str, name: IdColumn) -> None:
    if name and not _holds_ids(kind := schema.field(name).type):
        expected = "strings or whole numbers (--ids names another column, --no-ids none)"
        raise ReadError(f"{where}, column {name!r}: found {kind}, expected {expected}")


def _float_columns(schema: Any, where: str) -> list[str]:
    """The columns of floats; if some are numbered alike (`x0`, `x1`, ...), those by number."""
    floats = [field.name for field in schema if _arrow().types.is_floating(field.type)]
    stems = {name: match[1] for name in floats if (match := _NUMBERED.fullmatch(name))}
    counts = list(stems.values())
    stem = max(counts, key=counts.count, default="")
    if counts.count(stem) < 2:
        return floats
    numbers = {int(name[len(stem) :]): name for name in floats if stems.get(name) == stem}
    first, last = min(numbers), max(numbers)
    if not counts.count(stem) == len(numbers) == last - first + 1:
        found = f"{counts.count(stem)} columns of floats among {stem}{first} to {stem}{last}"
        raise ReadError(f"{where}: found {found}, expected each number once; or a column of lists")
    return [numbers[number] for number in sorted(numbers)]


def _ids_of(source: Source, column: Any, first: int) -> list[str]:
    if column.null_count:
        row = first + column.is_null().index(True).as_py()
        raise source.read_error("a null", "an id", f"row {row}")
    try:
        ids = list(map(str, column.to_pylist()))
    except UnicodeDecodeError as error:
        where = f"row {first} or after"
        raise source.read_error("an id that is not UTF-8", "UTF-8", where) from error
    if "" in ids:
        raise source.read_error("an empty id", "an id", f"row {first + ids.index('')}")
    return ids
