"""Parquet: vectors in a column of lists of floats, or in many columns of floats; and their ids."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.errors import InputError, ReadError, first_line, from_extra
from embits.readers.blocks import Block, CountedBlocks, GoodRows, Position, good_rows
from embits.readers.several import TABLES, partitions, visible
from embits.readers.source import AnyPath, IdColumn, Source, largest_inside
from embits.readers.words import MatrixWords, words_for
from embits.vectors import WordVectors, normalize_ids, refuse_empty_ids

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

ID_NAMES = ("id", "ids", "_id", "word", "key")

_ROWS_AT_ONCE = 1 << 14
_GROUPS, _SAMPLE_ROWS = 16, 8192  # that are read to find the length of most vectors
_BUFFER_BYTES = 32 << 20  # for all columns together
_MAX_IDS = 1 << 26  # bytes of those that are read at once
_NUMBERED = re.compile(r"(.*?)\d{1,9}")
_NOT_FINITE = "nan, inf or null among the numbers"
_LOG = logging.getLogger("embits")  # the command line prints it as notes


class Columns(NamedTuple):
    """The columns that are read: one of lists or several of floats, and that of the ids."""

    vectors: list[str]
    ids: str | None


def parquet_files(path: AnyPath, filesystem: fs.FileSystem | None = None) -> list[str]:
    """The file itself, or the `.parquet` and `.pq` files in a folder, hidden ones excepted."""
    arrow = _arrow(path).fs
    files, folder = filesystem or arrow.LocalFileSystem(), os.fspath(path)
    with _damage_refused(path):
        kind = files.get_file_info(folder).type
        if kind == arrow.FileType.File:
            return [folder]
        found = files.get_file_info(
            arrow.FileSelector(folder, allow_not_found=True, recursive=True)
        )
    paths = [entry.path for entry in found if entry.type == arrow.FileType.File]
    by_name = {each[len(folder) :].strip("/"): each for each in paths}
    if names := visible(by_name, *TABLES):
        return [by_name[name] for name in names]
    what = "nothing there" if kind == arrow.FileType.NotFound else "no .parquet files"
    raise ReadError(f"{path}: found {what}, expected a folder of Parquet files, or one")


def open_table(
    path: AnyPath,
    filesystem: fs.FileSystem | None = None,
    n_columns: int = 0,
    **options: object,
) -> pq.ParquetFile:
    """The `ParquetFile`; of a large one, each of the `n_columns` to read has a small buffer."""
    open_parquet = _arrow(path).parquet.ParquetFile
    with _damage_refused(path):
        size = 0 if filesystem else Path(path).stat().st_size
        if n_columns == 0 or size <= _BUFFER_BYTES:
            return open_parquet(path, filesystem=filesystem, **options)
        # Without a buffer size, whole column chunks are read, which may have a gigabyte each. With
        # one, a small file that claims a page of gigabytes would get memory for it.
        buffer = max(1 << 14, min(1 << 20, _BUFFER_BYTES // n_columns))
        return open_parquet(path, pre_buffer=False, buffer_size=buffer, **options)


def read_batches(
    path: AnyPath,
    columns: Sequence[str],
    filesystem: fs.FileSystem | None = None,
    *,
    groups: Sequence[int] | None = None,
    size: int = _ROWS_AT_ONCE,
    ids: str | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Record batches of some columns, of at most `size` rows, each with its first row's number.

    Strings of the column `ids` are those of its dictionary.
    """
    coded = [ids] if ids else None
    table = open_table(path, filesystem, len(columns), read_dictionary=coded)
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
    schema: pa.Schema, where: str, column: str | None = None, ids: IdColumn = None
) -> Columns:
    """The columns of vectors (the only one of lists, or all of floats) and ids in a schema."""
    there = f"columns {', '.join(schema.names[:12])}"
    for name in (column, ids):
        if name and type_of(schema, name) is None:
            raise ReadError(f"{where}: found {there}, expected one named {name!r}")
    if ids is None:
        named = [n for n in ID_NAMES if n in schema.names and not _numbers_in(schema.field(n).type)]
        usable = [name for name in named if _holds_ids(schema.field(name).type)]
        ids = next(iter(usable or named), None)
    _check_holds_ids(schema, where, ids)
    values = {field.name: _numbers_in(field.type) for field in schema}
    lists = [name for name, kind in values.items() if kind == "float"]
    lists = lists or [name for name, kind in values.items() if kind == "int8"]
    if column is not None and not _numbers_in(kind := type_of(schema, column)):
        raise ReadError(f"{where}, column {column!r}: found {kind}, expected lists of floats")
    if column is None and len(lists) > 1:
        found = f"several columns of vectors ({', '.join(lists[:12])})"
        raise ReadError(f"{where}: found {found}, expected one: name it with --column, or column=")
    if vectors := [column] if column else lists or _float_columns(schema, where):
        return Columns(vectors, ids or None)
    raise ReadError(f"{where}: found {there}, expected one of float lists, or columns of floats")


def vectors_of(column: pa.Array, dims: int | None = None) -> GoodRows:
    """The vectors in an Arrow array of lists, lists of fixed size or tensors; it may be chunked."""
    pa = _arrow("vectors")
    chunks = [getattr(chunk, "storage", chunk) for chunk in getattr(column, "chunks", [column])]
    if not chunks:
        return good_rows(np.empty((0, dims or 0), np.float32))
    lists = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    length = pa.compute.list_value_length(lists).fill_null(-1).to_numpy(False)
    if dims is None:
        dims = _most_common_length(length)
    right = length == dims
    values = (lists if right.all() else lists.filter(pa.array(right))).flatten()
    if values.null_count:
        kind = values.type if pa.types.is_float64(values.type) else pa.float32()
        values = values.cast(kind).fill_null(float("nan"))
    good = good_rows(values.to_numpy(False).reshape(int(right.sum()), dims), _NOT_FINITE)
    if right.all():
        return good
    wrong = np.flatnonzero(~right)
    bad = np.sort(np.concatenate([wrong, np.flatnonzero(right)[good.bad]]))
    first = int(length[wrong[0]])
    found = "a null" if first < 0 else f"{first} numbers"
    return GoodRows(good.matrix, bad, found if bad[0] == wrong[0] else good.found)


def _most_common_length(lengths: NDArray[np.integer]) -> int:
    """The most common of the lengths above 0; 0 if there is none."""
    distinct, counts = np.unique(lengths[lengths > 0], return_counts=True)
    return int(distinct[counts.argmax()]) if len(distinct) else 0


def type_of(schema: pa.Schema, name: str) -> pa.DataType:
    """The type of a column, where `a.b` is the field `b` of the structs in `a`; or None."""
    if name in schema.names:
        return schema.field(name).type
    outer, _, inner = name.rpartition(".")
    kind = type_of(schema, outer) if outer else None
    if kind is None or not _arrow().types.is_struct(kind) or kind.get_field_index(inner) < 0:
        return None
    return kind.field(inner).type


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of a table or batch, by a name that `type_of` knows."""
    if name in table.schema.names:
        return table.column(name)
    outer, _, inner = name.rpartition(".")
    return _arrow().compute.struct_field(column_of(table, outer), inner)


def _vectors_in(table: pa.Table, columns: Sequence[str], dims: int | None = None) -> GoodRows:
    if _numbers_in(type_of(table.schema, columns[0])):
        return vectors_of(column_of(table, columns[0]), dims)
    numbers = [table.column(name).to_numpy(zero_copy_only=False) for name in columns]
    return good_rows(np.stack(numbers, axis=1), _NOT_FINITE)


def is_table(data: object) -> bool:
    """Whether it is a table of pandas, polars or Arrow."""
    is_arrow = hasattr(data, "__arrow_c_stream__") and {"columns", "schema"} & {*dir(data)}
    return bool(is_arrow) or (hasattr(data, "iloc") and hasattr(data, "columns"))


def read_table(data: Any, column: str | None, ids: IdColumn) -> WordVectors:
    """The vectors and ids of a table in memory, as of a file; one of numbers alone is a matrix."""
    is_pandas = hasattr(data, "iloc")
    if not is_pandas and not hasattr(data, "slice"):  # such as batches of DuckDB
        data = _arrow("a table").table(data)
    head = to_numpy(data[:1] if is_pandas else data.slice(0, 1))
    if not (column or ids) and head.ndim == 2 and head.dtype.kind in "fiu":
        return WordVectors(None, data)
    pa = _arrow("a table")
    table = pa.Table.from_pandas(data, preserve_index=False) if is_pandas else pa.table(data)
    columns = find_columns(table.schema, "the table", column, ids)
    matrix, bad, found = _vectors_in(table, columns.vectors)
    if len(bad):
        expected = f"{matrix.shape[1]} finite numbers"
        raise InputError(f"the table, row {bad[0]}: found {found}, expected {expected}")
    words = columns.ids and normalize_ids(column_of(table, columns.ids))
    refuse_empty_ids(words or ())
    return WordVectors(words, matrix)


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
        dims = self._find_dims(source, table.schema_arrow, len(groups)) if total else 0
        separate = MatrixWords(None) if source.words is None else words_for(source, total, dims)
        super().__init__(source, dims, source.rows_wanted(total), separate)
        # Without the rows that repeat an id, the others would lose their numbers.
        self.has_words = self.words_are_ids = self.has_words or self._columns.ids is not None
        parts = [table.metadata.row_group(i).total_byte_size for i in range(table.num_row_groups)]
        size, most = max(4 * self._n_rows * dims, sum(parts)), largest_inside(source.size)
        if size > most:  # it may be false, too
            found = f"{source.size:,} bytes that unpack to {size:,}"
            raise source.read_error(found, f"at most {most:,} (write it without compression)")
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
        for first, batch in read_batches(
            self.source.path, names, groups=groups, size=size, ids=ids
        ):
            part = batch.slice(min(done - first, len(batch)), self._n_rows - done)
            if len(part) == 0:
                continue
            named = self.words_at(done, done + len(part)) if words else None
            if ids and words:
                named = ids_of(self.source, column_of(part, ids), done)
            good = _vectors_in(part, vectors, self.dims)
            block = self.block(start, len(part), good, named)
            done += len(part)
            yield block
            start = block.end
            if done == self._n_rows:
                return
        raise self.source.read_error(f"{done} rows", f"{self._n_rows}")

    def _find_dims(self, source: Source, schema: pa.Schema, n_groups: int) -> int:
        vectors, _ = self._columns
        kind = type_of(schema, vectors[0])
        if not _numbers_in(kind):
            return len(vectors)
        kind = getattr(kind, "storage_type", kind)
        if hasattr(kind, "list_size"):
            if kind.list_size < 1:  # a damaged file may claim any size
                raise source.read_error(f"vectors of {kind.list_size} numbers", "at least one")
            return int(kind.list_size)
        if source.on_bad == "skip":  # the first vector may be a bad one: take what most have
            sampled = range(0, n_groups, -(-n_groups // _GROUPS))
            n = -(-_SAMPLE_ROWS // (64 * len(sampled)))
            lengths, length_of = [np.empty(0, np.int64)], _arrow().compute.list_value_length
            for group in sampled:
                batches = read_batches(source.path, vectors, groups=[group], size=64)
                for _, batch in islice(batches, n):
                    lengths.append(length_of(column_of(batch, vectors[0])).fill_null(-1))
            if dims := _most_common_length(np.concatenate(lengths)):
                return dims
        for _, batch in read_batches(source.path, vectors, size=64):
            if dims := vectors_of(column_of(batch, vectors[0])).matrix.shape[1]:
                return int(dims)
        raise source.read_error("no vector", "at least one")


def read_columns(source: Source) -> pa.Table:
    """The columns `source.kept` of tables, and of the folders that they are in."""
    pa, tables, from_names = _arrow(source.path), [], set()
    for path in source.files or [source.path]:
        opened, folders = open_table(path), partitions(path)
        there = opened.schema_arrow.names
        if missing := [name for name in source.kept if name not in [*there, *folders]]:
            found = f"found columns {', '.join([*there, *folders][:12])}"
            place = path if source.files else source.name
            raise ReadError(f"{found}, expected one named {missing[0]!r}", path=place)
        read = opened.read([name for name in source.kept if name in there])
        columns = dict(zip(read.column_names, read.columns, strict=True))
        for name in set(source.kept) - set(there):
            value = pa.scalar(folders[name], pa.string())
            columns[name] = pa.repeat(value, opened.metadata.num_rows)
            from_names.add(name)
        tables.append(pa.table({name: columns[name] for name in source.kept}))
    try:
        table = pa.concat_tables(tables, promote_options="permissive").slice(0, source.limit)
    except pa.ArrowException as error:
        raise source.read_error(first_line(error), "columns of the same types") from None
    for name in from_names:
        with suppress(pa.ArrowException):  # whole numbers, if all of them are
            number = table.schema.get_field_index(name)
            table = table.set_column(number, name, table.column(name).cast(pa.int64()))
    return table


def read_id_column(source: Source) -> list[str]:
    """The ids of a table of ids: the column `source.ids`, one of `ID_NAMES`, or that of strings."""
    schema = open_table(source.path).schema_arrow
    names = [source.ids] if source.ids else _columns_of_ids(schema)
    if len(names) != 1 or names[0] not in schema.names:
        there = ", ".join(schema.names[:12])
        raise source.read_error(f"columns {there}", "one with the words: name it with --ids")
    _check_holds_ids(schema, source.name, names[0])
    batches = read_batches(source.path, names, ids=names[0])
    return [word for first, batch in batches for word in ids_of(source, batch.column(0), first)]


def may_hold_ids(path: Path) -> bool:
    """Whether a table has a column of ids, and holds no codes: their ids are not of a matrix."""
    schema, types = open_table(path).schema_arrow, _arrow(path).types
    is_ours = b"embits" in (schema.metadata or {})
    has_codes = is_ours or any(types.is_fixed_size_binary(field.type) for field in schema)
    return not has_codes and bool(_columns_of_ids(schema))


def _columns_of_ids(schema: pa.Schema) -> list[str]:
    """The column with a usual name; else all columns of strings."""
    if usual := [name for name in ID_NAMES if name in schema.names]:
        return usual[:1]
    return [field.name for field in schema if _holds_ids(field.type, numbers=False)]


def _arrow(path: AnyPath = "Parquet") -> Any:
    with from_extra(f"reading {Path(path).name}", "parquet"):
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.fs
        import pyarrow.parquet
    return pa


@contextmanager
def _damage_refused(path: AnyPath) -> Iterator[None]:
    try:
        yield
    except (_arrow(path).ArrowException, OSError, UnicodeDecodeError) as error:
        found = f"a damaged file ({error})"
        raise Source(Path(path)).read_error(found, "a Parquet table") from error


def _group_rows(table: pq.ParquetFile) -> list[int]:
    return [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]


def _numbers_in(kind: pa.DataType) -> str:
    """What lists hold: "float", "int8" or "uint8"; nothing if it is anything else."""
    types, kind = _arrow().types, getattr(kind, "storage_type", kind)  # the lists of a tensor
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return ""
    if types.is_floating(kind.value_type):
        return "float"
    return str(kind.value_type) if str(kind.value_type) in ("int8", "uint8") else ""


def _holds_ids(kind: pa.DataType, *, numbers: bool = True) -> bool:
    types = _arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_string = types.is_string(kind) or types.is_large_string(kind)
    is_string = is_string or str(kind) == "string_view"  # of polars
    is_uuid = str(getattr(kind, "storage_type", kind)) == "fixed_size_binary[16]"
    return bool(is_string or (numbers and (types.is_integer(kind) or is_uuid)))


def _check_holds_ids(schema: pa.Schema, where: str, name: IdColumn) -> None:
    if name and not _holds_ids(kind := type_of(schema, name)):
        expected = "strings or whole numbers, or UUIDs (--ids names another column, --no-ids none)"
        raise ReadError(f"{where}, column {name!r}: found {kind}, expected {expected}")


def _float_columns(schema: pa.Schema, where: str) -> list[str]:
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


def ids_of(source: Source, column: pa.Array, first: int) -> list[str]:
    """The ids in a column that starts at row `first`."""
    if hasattr(column, "dictionary"):  # few strings may stand in many rows
        with _damage_refused(source.path):  # an index may be wrong
            lengths = _arrow().compute.binary_length(column.dictionary)
            n_bytes = lengths.take(column.indices).sum().as_py() or 0
        if n_bytes > _MAX_IDS:
            found = f"{n_bytes:,} bytes of ids in {len(column):,} rows"
            raise source.read_error(found, "short ids", f"row {first}")
    if column.null_count:
        row = first + column.is_null().index(True).as_py()
        raise source.read_error("a null", "an id", f"row {row}")
    try:
        ids = list(normalize_ids(column))
    except UnicodeDecodeError as error:
        where = f"row {first} or after"
        raise source.read_error("an id that is not UTF-8", "UTF-8", where) from error
    if "" in ids:
        raise source.read_error("an empty id", "an id", f"row {first + ids.index('')}")
    return ids
