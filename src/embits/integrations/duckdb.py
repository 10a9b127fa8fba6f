"""Codes in DuckDB: a table of a database file, or a Parquet file, searched in SQL.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and the code in
unsigned integers of 64 bits: `c0`, `c1`, …, the first bit highest, the last one padded with zeros.
DuckDB compares such columns two to three times as fast as its type BIT. The table's comment, or the
Parquet file's metadata, describes the codes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryVectors
from embits.checks import packed
from embits.coders import Coder
from embits.errors import FormatError, InputError, named_if_missing
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Description, Neighbor, Place, Query

__all__ = ["connect", "distance", "export", "nearest", "read"]

_BLOCK_ROWS = 122_880  # DuckDB's row group


def export(
    bits: BinaryVectors, target: str, *, progress: Progress | None = None, table: str = "embits",
    overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a table in one transaction, or to a Parquet file: see `integrations.export`.

    Args:
        target: A database, which is made if there is none, or a file that ends in `.parquet`.
        table: The table's name, taken as written; not used for Parquet. Others are not touched.
        overwrite: Replace a table or Parquet file that embits wrote.
    """
    engine, bits, path = _duckdb(), tables.to_export(bits), Path(target)
    check_target(path, overwrite=True)
    text = "'" + Description.of(bits).to_json().replace("'", "''") + "'"
    with tables.one_line_errors(path, engine.Error):
        if path.suffix == ".parquet":
            _write_parquet(bits, path, progress, text, overwrite)
            return {"bytes": path.stat().st_size}
        name = _quoted(table)
        if path.exists() and not _starts_with(path, b"DUCK", at=8):
            raise InputError(f"{path} exists and is not a DuckDB database; choose another file")
        with (
            tables.nothing_new_if_it_fails(path, Path(f"{path}.wal")),
            engine.connect(str(path)) as connection,
        ):
            connection.execute("begin")
            exists, found = _look(connection, table)
            if exists:
                tables.check_ours(f"the table {table}", found, overwrite)
                connection.execute(f"drop table {name}")
            _write(connection, name, bits, progress)
            connection.execute(f"comment on table {name} is {text}")
            connection.execute("commit")
    return {"table": table, "bytes": path.stat().st_size}


def connect(path: str | os.PathLike[str]) -> Any:
    """Open a database read-only; a DuckDB connection of your own serves as well.

    Raises FormatError if it is no DuckDB database, DatabaseError if a writer uses it or it cannot
    be read, and OSError if there is no such file.
    """
    path = Path(path)
    with named_if_missing(path):
        if not _starts_with(path, b"DUCK", at=8):
            raise FormatError(f"{path}: not a DuckDB database")
    with tables.one_line_errors(path, _duckdb().Error):
        return _duckdb().connect(str(path), read_only=True)


def nearest(
    source: Place, query: Query, k: int = 10, *, table: str = "embits", where: str | None = None,
    params: Sequence[Any] = (), coder: Coder | None = None,
) -> list[Neighbor]:  # fmt: skip
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The database or Parquet file, or an open connection, which is faster.
        query: See `table.Table.nearest`, also for `k`, `coder` and the errors.
        table: The table that was exported to; a Parquet file has none.
        where: A condition in SQL, run unchanged: pass untrusted values through `params`.
        params: The values of the `?` in `where`.
    """
    with _opened(source, table) as codes:
        return codes.nearest(
            query, k, coder, lambda code, k: codes.by_distance(distance(code), where, params, k)
        )


def read(source: Place, coder: Coder, *, table: str = "embits") -> BinaryVectors:
    """Read a whole table or Parquet file back as BinaryVectors: see `table.Table.read`."""
    with _opened(source, table) as codes:
        return codes.read(coder)


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
    # The type of bit_count is TINYINT: sums of it overflow.
    return " + ".join(
        f"bit_count(xor(c{at}, {value}::ubigint))::integer"
        for at, value in enumerate(tables.integers(code[np.newaxis])[0].tolist())
    )


class _Codes(tables.SqlTable):
    def __init__(self, connection: Any, relation: str, place: str, found: Any) -> None:
        super().__init__(place, found)
        self.connection, self.relation = connection, relation
        self.columns = ", ".join(_columns(self.description.bits))

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, list(values)).fetchall()  # type: ignore[no-any-return]

    def packed(self, found: list[tuple[Any, ...]]) -> Codes:
        width = len(_columns(self.description.bits))
        values = np.array(found, dtype=">u8").reshape(len(found), width)
        return values.view(np.uint8)[:, : packed_width(self.description.bits)]


@contextlib.contextmanager
def _opened(source: Any, table: str) -> Iterator[_Codes]:
    is_path = isinstance(source, str | os.PathLike)
    with tables.one_line_errors(source if is_path else "DuckDB", _duckdb().Error):
        if is_path and _starts_with(path := Path(source), b"PAR1"):
            with _duckdb().connect() as connection:
                relation = f"read_parquet('{_pattern(path)}')"
                yield _Codes(connection, relation, str(path), _metadata(connection, path))
            return
        with connect(source) if is_path else contextlib.nullcontext(source) as connection:
            exists, found = _look(connection, table)
            if not exists:
                raise InputError(f"there is no table {table}; export to duckdb writes one")
            yield _Codes(connection, _quoted(table), f"the table {table}", found)


def _look(connection: Any, table: str) -> tuple[bool, Description | None]:
    """Whether there is a table or view of this name, and its description if it is ours."""
    here = "schema_name = current_schema() and database_name = current_database()"
    found = connection.execute(
        f"select comment from duckdb_tables() where table_name = $1 and {here} union all "
        f"select null from duckdb_views() where view_name = $1 and {here}",
        [table],
    ).fetchall()
    return bool(found), Description.parse(found[0][0]) if found else None


def _metadata(connection: Any, path: Path) -> Description | None:
    select = f"select value from parquet_kv_metadata('{_pattern(path)}') where key = 'embits'"
    found = connection.execute(select).fetchall()
    return Description.parse(bytes(found[0][0])) if found else None


def _write_parquet(
    bits: BinaryVectors, path: Path, progress: Progress | None, description: str, overwrite: bool
) -> None:
    with _duckdb().connect() as connection:
        if path.exists() and path.stat().st_size:
            found = _metadata(connection, path) if _starts_with(path, b"PAR1") else None
            tables.check_ours(str(path), found, overwrite)
        _write(connection, "codes", bits, progress)
        with atomic_write(path) as file:
            temporary = file.name.replace("'", "''")
            options = f"format parquet, use_tmp_file false, kv_metadata {{embits: {description}}}"
            connection.execute(f"copy (from codes order by id) to '{temporary}' ({options})")


def _write(connection: Any, name: str, bits: BinaryVectors, progress: Progress | None) -> None:
    pa, columns = package("pyarrow", "DuckDB", "duckdb"), _columns(bits.n_bits)
    word = "" if tables.ids_of(bits) is None else ", word varchar not null"
    types = ", ".join(f"{each} ubigint not null" for each in columns)
    connection.execute(f"create table {name} (id bigint not null{word}, {types})")
    for rows, codes, words in tables.row_blocks(bits, _BLOCK_ROWS, progress):
        block: dict[str, Any] = {"id": np.arange(rows.start, rows.stop)}
        if words is not None:
            block["word"] = pa.array(words, pa.string())
        block |= dict(zip(columns, np.ascontiguousarray(tables.integers(codes).T), strict=True))
        connection.register("embits_block", pa.table(block))
        connection.execute(f"insert into {name} select * from embits_block")
        connection.unregister("embits_block")


def _columns(n_bits: int) -> list[str]:
    return [f"c{at}" for at in range(-(-n_bits // 64))]


def _quoted(name: Any) -> str:
    return '"' + tables.check_name(r"[^\0]+", "a name", "the table", name).replace('"', '""') + '"'


def _pattern(path: Path) -> str:
    """The path for DuckDB, which reads `*`, `?` and `[` as patterns, inside quotes."""
    text = os.fspath(path.resolve()).replace("'", "''")
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)


def _starts_with(path: Path, mark: bytes, at: int = 0) -> bool:
    with path.open("rb") as file:
        return file.read(at + len(mark))[at:] == mark


def _duckdb() -> Any:
    return package("duckdb", "DuckDB", "duckdb")
