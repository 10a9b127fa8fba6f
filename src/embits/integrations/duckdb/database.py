"""DuckDB databases and Parquet files: opening them, and recognizing ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import single
from embits.bits import packed_width
from embits.errors import DatabaseError, InputError, MissingExtraError
from embits.integrations.descriptions import Description
from embits.integrations.tables import Rows

KEY = "embits"  # of the description in a Parquet file's metadata
WORD_BYTES = 8


def duckdb() -> Any:
    """Return the package.

    Raises:
        MissingExtraError: DuckDB or pyarrow is not installed.
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401  # rows go in and out as Arrow tables
    except ImportError:
        raise MissingExtraError("DuckDB", "duckdb") from None
    return duckdb


def quoted(name: str) -> str:
    """A name as SQL.

    Raises:
        InputError: It is empty, or has a NUL.

    Example:
        >>> quoted('a"b')
        '"a""b"'
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError(f"the table is {name!r}, expected a name")
    return '"' + name.replace('"', '""') + '"'


def is_parquet(path: Path) -> bool:
    """Whether a file starts as Parquet files do."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def is_database(path: Path) -> bool:
    """Whether a file starts as DuckDB's databases do."""
    with path.open("rb") as file:
        return file.read(12)[8:] == b"DUCK"


@contextlib.contextmanager
def one_line_errors(place: str) -> Iterator[None]:
    """Turn DuckDB's errors into one line that names the place."""
    try:
        yield
    except duckdb().Error as error:
        raise DatabaseError(f"{place}: {' '.join(str(error).split())[:500]}") from None


class CodeTable:
    """A table or a Parquet file that `export` wrote.

    Attributes:
        connection: An open connection.
        relation: The table or file, in SQL.
        description: What the codes are.
        place: The table or file, for messages.
    """

    def __init__(self, connection: Any, relation: str, found: Description, place: str) -> None:
        self.connection = connection
        self.relation = relation
        self.description = found
        self.place = place

    @property
    def code_columns(self) -> list[str]:
        """The names of the columns that hold a code."""
        return code_columns(self.description.bits)

    def find(self, words: list[str]) -> dict[str, int]:
        """The row numbers of those words that are there."""
        select = f"select word, id from {self.relation} where word in (select unnest(?))"
        return dict(self.connection.execute(select, [words]).fetchall())

    def code(self, row: int) -> NDArray[np.uint8] | None:
        """The packed code of a row."""
        columns = ", ".join(self.code_columns)
        select = f"select {columns} from {self.relation} where id = ?"
        found = fetch_one(self.connection, select, [row])
        if found is None:
            return None
        return single(to_codes(np.array([found], dtype=np.uint64), self.description.bits))

    def rows(self) -> Rows:
        """All rows, in the order of their numbers."""
        word = ", word" if self.description.words else ""
        columns = ", ".join(self.code_columns)
        select = f"select id{word}, {columns} from {self.relation} order by id"
        table = self.connection.sql(select).to_arrow_table()
        integers = [table[name].to_numpy() for name in self.code_columns]
        codes = to_codes(np.stack(integers, axis=1).astype(np.uint64), self.description.bits)
        words = table["word"].to_pylist() if self.description.words else None
        return Rows(table["id"].to_numpy().astype(np.int64), codes, words)


def fetch_one(connection: Any, select: str, values: list[Any]) -> tuple[Any, ...] | None:
    """Return the first row. All are read: a connection with rows left runs nothing else."""
    return next(iter(connection.execute(select, values).fetchall()), None)


def code_columns(n_bits: int) -> list[str]:
    """The names of the columns that hold a code."""
    return [f"c{at}" for at in range(-(-n_bits // (8 * WORD_BYTES)))]


def to_integers(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes as integers of 64 bits, shape (n, ceil(n_bits / 64)), first bit highest.

    Example:
        >>> [hex(number) for number in to_integers(np.array([[0x80, 0x01]], np.uint8))[0]]
        ['0x8001000000000000']
    """
    width = -(-codes.shape[1] // WORD_BYTES) * WORD_BYTES
    padded = np.zeros((len(codes), width), dtype=np.uint8)
    padded[:, : codes.shape[1]] = codes
    return padded.view(">u8").astype(np.uint64)


def to_codes(integers: NDArray[np.uint64], n_bits: int) -> NDArray[np.uint8]:
    """The inverse of `to_integers`."""
    packed = np.ascontiguousarray(integers.astype(">u8")).view(np.uint8)
    rows = packed.reshape(len(integers), WORD_BYTES * integers.shape[1])
    return np.ascontiguousarray(rows[:, : packed_width(n_bits)])


def table_description(connection: Any, table: str) -> tuple[bool, Description | None]:
    """Return whether there is a table or view of this name, and its description if it is ours."""
    select = (
        "select comment from duckdb_tables() where table_name = $1 and schema_name = "
        "current_schema() and database_name = current_database() union all "
        "select comment from duckdb_views() where view_name = $1 and schema_name = "
        "current_schema() and database_name = current_database()"
    )
    found = fetch_one(connection, select, [table])
    return found is not None, Description.parse(found[0]) if found else None


def parquet_description(connection: Any, path: Path) -> Description | None:
    """Return the description in a Parquet file, or None if `export` did not write it."""
    select = "select value from parquet_kv_metadata(?) where key = ?"
    found = fetch_one(connection, select, [_glob_free(path), KEY.encode()])
    return Description.parse(bytes(found[0])) if found else None


def parquet_relation(path: Path) -> str:
    """A Parquet file as SQL."""
    return "read_parquet('" + _glob_free(path).replace("'", "''") + "')"


def _glob_free(path: Path) -> str:
    """The path for DuckDB, which reads `*`, `?` and `[` as patterns."""
    text = os.fspath(path.resolve())
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)
