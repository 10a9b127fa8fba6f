"""Writing codes to DuckDB and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.descriptions import Description, check_ours, check_unchanged
from embits.integrations.duckdb.database import (
    KEY,
    CodeTable,
    code_columns,
    duckdb,
    is_database,
    is_parquet,
    one_line_errors,
    parquet_description,
    quoted,
    table_description,
    to_integers,
)
from embits.integrations.tables import row_blocks

_BLOCK_ROWS = 122_880  # DuckDB's row group


def export(
    bits: BinaryVectors, target: str, *, progress: Progress | None = None, table: str = "embits"
) -> Facts:
    """Write codes to a table in one transaction, or to a Parquet file, atomically.

    A table or Parquet file that an earlier export wrote is replaced. Any other is refused, and so
    is a table with columns, indexes or rows that were added or changed. Other tables of the
    database are not touched.

    Args:
        bits: What to write.
        target: A database, which is made if there is none, or a file that ends in `.parquet`.
        progress: Called with (done, total) as rows are written.
        table: The table's name, taken as written; not used for Parquet.

    Raises:
        InputError: The table or file may not be replaced, or the file is not a database.
        DatabaseError: The database is in use, or DuckDB reports an error.
        MissingExtraError: DuckDB or pyarrow is not installed.
        OSError: The file could not be written.
    """
    duckdb()
    bits, path = to_export(bits), Path(target)
    if path.is_dir() or not path.resolve().parent.is_dir():
        found = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise InputError(f"{path} {found}, expected a file to write")
    if path.suffix == ".parquet":
        return _to_parquet(bits, path, progress)
    return _to_database(bits, path, table, progress)


def _to_database(bits: BinaryVectors, path: Path, table: str, progress: Progress | None) -> Facts:
    name = quoted(table)
    new = not path.exists()
    if not new and not is_database(path):
        raise InputError(f"{path} exists and is not a DuckDB database; choose another file")
    try:
        with one_line_errors(str(path)), duckdb().connect(str(path)) as connection:
            connection.execute("begin")
            _check_replaceable(connection, name, table)
            connection.execute(f"drop table if exists {name}")
            _write(connection, name, bits, progress)
            text = Description.of(bits).to_json().replace("'", "''")
            connection.execute(f"comment on table {name} is '{text}'")
            connection.execute("commit")
    except BaseException:
        if new:  # an empty database otherwise
            for each in (path, Path(f"{path}.wal")):
                each.unlink(missing_ok=True)
        raise
    return {"table": table, "bytes": path.stat().st_size}


def _to_parquet(bits: BinaryVectors, path: Path, progress: Progress | None) -> Facts:
    with one_line_errors(str(path)), duckdb().connect() as connection:
        if path.exists() and path.stat().st_size:
            found = parquet_description(connection, path) if is_parquet(path) else None
            check_ours(found, str(path))
        _write(connection, "codes", bits, progress)
        text = Description.of(bits).to_json().replace("'", "''")
        with atomic_write(path) as file:
            temporary = file.name.replace("'", "''")
            options = f"format parquet, kv_metadata {{{KEY}: '{text}'}}"
            connection.execute(f"copy (from codes order by id) to '{temporary}' ({options})")
    return {"bytes": path.stat().st_size}


def _write(connection: Any, name: str, bits: BinaryVectors, progress: Progress | None) -> None:
    import pyarrow as pa

    named = isinstance(bits.words, Vocabulary)
    columns = code_columns(bits.n_bits)
    word = ", word varchar not null" if named else ""
    integers = ", ".join(f"{each} ubigint not null" for each in columns)
    connection.execute(f"create table {name} (id bigint not null{word}, {integers})")
    for rows in row_blocks(bits, _BLOCK_ROWS):
        block: dict[str, Any] = {"id": np.arange(rows.start, rows.stop)}
        if named:
            block["word"] = pa.array(bits.words[rows], pa.string())
        values = to_integers(bits.codes[rows])
        block |= {each: np.ascontiguousarray(values[:, at]) for at, each in enumerate(columns)}
        connection.register("embits_block", pa.table(block))
        connection.execute(f"insert into {name} select * from embits_block")
        connection.unregister("embits_block")
        if progress is not None:
            progress(rows.stop, len(bits))


def _check_replaceable(connection: Any, name: str, table: str) -> None:
    """Check that there is no table, or that it has only what `export` wrote.

    Raises:
        InputError: `export` did not write it, or something was added or changed since.
    """
    place = f"the table {table}"
    exists, found = table_description(connection, table)
    if not exists:
        return
    found = check_ours(found, place)
    for kind, added in _additions(connection, table, found):
        raise InputError(
            f"{place} has the {kind} {added!r} that embits did not make; choose another table, "
            f"or drop that {kind} first"
        )
    check_unchanged(found, CodeTable(connection, name, found, place).rows(), place)


def _additions(connection: Any, table: str, found: Description) -> list[tuple[str, str]]:
    ours = {"id": "BIGINT", **dict.fromkeys(code_columns(found.bits), "UBIGINT")}
    if found.words:
        ours["word"] = "VARCHAR"
    here = "schema_name = current_schema() and database_name = current_database()"
    columns = connection.execute(
        f"select column_name, data_type from duckdb_columns() where table_name = ? and {here}",
        [table],
    ).fetchall()
    indexes = connection.execute(
        f"select index_name from duckdb_indexes() where table_name = ? and {here}", [table]
    ).fetchall()
    added = [("column", name) for name, kind in columns if ours.get(name) != kind]
    return added + [("index", name) for (name,) in indexes]
