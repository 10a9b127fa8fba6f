"""Codes in DuckDB: a table of a database file, or a Parquet file, searched in SQL.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and the code in
unsigned integers of 64 bits: `c0`, `c1`, …, the first bit highest, the last one padded with zeros.
DuckDB compares such columns two to three times as fast as its type BIT. The table's comment, or the
Parquet file's metadata, describes the codes. `nearest` takes the name of the `table`, and `params`
for each `?` in `where`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryRows
from embits.checks import packed
from embits.columns import arrow
from embits.errors import FormatError, InputError, named_if_missing
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Rows, Text

__all__ = ["connect", "distance", "export", "nearest", "read"]


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, table: str = "embits",
    overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a table in one transaction, or to a Parquet file: see `integrations.export`.

    `target` is a database, which is made if there is none, or ends in `.parquet`. The `table` has
    its name as written; others are not touched.
    """
    engine, bits, path = _duckdb(), tables.to_export(bits), Path(target)
    check_target(path, overwrite=True)
    blocks = tables.arrow_tables(bits, _columns, progress)
    schema = next(blocks).schema
    if path.suffix == ".parquet":
        tables.check_ours(str(path), _metadata(path), overwrite)
        with (
            atomic_write(path) as file,
            _parquet().ParquetWriter(file, schema, use_dictionary=False) as writer,
        ):
            for block in blocks:
                writer.write_table(block)
        return {"bytes": path.stat().st_size}
    name, types = _quoted(table), {"id": "bigint", "word": "varchar"}
    columns = ", ".join(f"{each} {types.get(each, 'ubigint')} not null" for each in schema.names)
    description = schema.metadata[b"embits"].decode().replace("'", "''")
    if path.exists() and not _starts_with(path, b"DUCK", at=8):
        raise InputError(f"{path} exists and is not a DuckDB database; choose another file")
    new_files = tables.nothing_new_if_it_fails(path, Path(f"{path}.wal"))
    with new_files, tables.opened(path, engine.connect, "", engine.Error) as connection:
        connection.execute("begin")
        if tables.check_ours(f"the table {table}", _comment(connection, table), overwrite):
            connection.execute(f"drop table {name}")
        connection.execute(f"create table {name} ({columns})")
        for block in blocks:
            connection.register("embits_block", block)
            connection.execute(f"insert into {name} from embits_block")
        connection.execute(f"comment on table {name} is '{description}'")
        connection.execute("commit")
    return {"table": table, "bytes": path.stat().st_size}


def connect(path: str | os.PathLike[str]) -> Any:
    """Open a database read-only; a DuckDB connection of your own serves as well.

    Raises FormatError if it is no DuckDB database, DatabaseError if a writer uses it or it cannot
    be read, and OSError if there is no such file.
    """
    if not _starts_with(path, b"DUCK", at=8):
        raise FormatError(f"{path}: not a DuckDB database")
    with tables.one_line_errors(path, _duckdb().Error):
        return _duckdb().connect(str(path), read_only=True)


def distance(code: Any) -> str:
    """Return the Hamming distance of each row to a packed code as an expression in SQL.

    It names the columns `c0`, `c1`, … and goes into any query on the table or Parquet file.

    Example:
        >>> distance(np.packbits([1, 0, 1, 1]))
        'bit_count(xor(c0, 12682136550675316736::ubigint))::integer'
    """
    code = packed("the code", code)
    if code.ndim != 1:
        raise InputError(f"the code has {code.ndim} dimensions, expected a single code")
    values = enumerate(tables.integers(code[np.newaxis])[0].tolist())
    # The type of bit_count is TINYINT: sums of it overflow.
    return " + ".join(f"bit_count(xor(c{i}, {value}::ubigint))::integer" for i, value in values)


class _Codes(tables.SqlTable):
    def __init__(self, connection: Any, relation: str, place: str, text: Text) -> None:
        super().__init__(place, text)
        self.connection, self.relation = connection, relation
        self.columns = ", ".join(tables.integer_columns(self.description.bits))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, table: str = "embits") -> Iterator[_Codes]:
        errors = _duckdb().Error, arrow().ArrowException
        if not isinstance(source, str | os.PathLike) or not _starts_with(source, b"PAR1"):
            with tables.opened(source, connect, "DuckDB", *errors) as connection:
                text = _comment(connection, table)
                yield cls(connection, _quoted(table), f"the table {table}", text)
            return
        # DuckDB reads `*`, `?` and `[` as patterns, inside quotes too.
        path = re.sub(r"[*?[]", r"[\g<0>]", os.fspath(Path(source).resolve()).replace("'", "''"))
        with tables.opened(source, lambda _: _duckdb().connect(), "", *errors) as connection:
            yield cls(connection, f"read_parquet('{path}')", str(source), _metadata(Path(source)))

    def run(self, statement: str, values: Sequence[Any]) -> Any:
        return self.connection.execute(statement, list(values)).fetchall()

    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        values = [] if field is None else [value]
        selected = self.connection.sql(self.with_value(field), params=values)
        return tables.arrow_rows(selected, self.description.bits)

    def search(self, code: Codes, k: int, where: str | None, params: Sequence[Any]) -> Any:
        return self.by_distance(distance(code), where, params, k)


nearest, read = _Codes.nearest, _Codes.read


def _comment(connection: Any, table: str) -> str | None:
    """What describes a table; None if there is none."""
    here = "schema_name = current_schema() and database_name = current_database()"
    comments = connection.execute(
        f"select comment from duckdb_tables() where table_name = $1 and {here} union all "
        f"select null from duckdb_views() where view_name = $1 and {here}",
        [table],
    ).fetchall()
    return (comments[0][0] or "") if comments else None


def _metadata(path: Path) -> bytes | None:
    """What describes a Parquet file; None if there is none."""
    if not path.exists() or not path.stat().st_size:
        return None
    with contextlib.suppress(arrow().ArrowException):  # it is not Parquet, or damaged
        return bytes((_parquet().read_schema(path).metadata or {}).get(b"embits", b""))
    return b""


def _columns(codes: Codes) -> dict[str, Any]:
    names, numbers = tables.integer_columns(8 * codes.shape[1]), tables.integers(codes).T
    return {name: np.ascontiguousarray(each) for name, each in zip(names, numbers, strict=True)}


def _quoted(name: Any) -> str:
    return '"' + tables.check_name(r"[^\0]+", "a name", "the table", name).replace('"', '""') + '"'


def _starts_with(path: str | os.PathLike[str], mark: bytes, at: int = 0) -> bool:
    with named_if_missing(path), Path(path).open("rb") as file:
        return file.read(at + len(mark))[at:] == mark


def _duckdb() -> Any:
    return package("duckdb", "DuckDB", "duckdb")


def _parquet() -> Any:
    return package("pyarrow.parquet", "DuckDB", "duckdb")
