"""Queries to a table or a Parquet file that `duckdb.export` wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import FormatError, InputError, named_if_missing
from embits.integrations.databases import Neighbor, Query, where_clause
from embits.integrations.descriptions import check_ours
from embits.integrations.duckdb.database import (
    CodeTable,
    code_columns,
    duckdb,
    is_database,
    is_parquet,
    one_line_errors,
    parquet_description,
    parquet_relation,
    quoted,
    table_description,
    to_integers,
)
from embits.integrations.tables import binary_vectors, nearest_neighbors
from embits.search.arguments import packed


def connect(path: str | os.PathLike[str]) -> Any:
    """Open a database read-only; a DuckDB connection of your own serves as well.

    Raises:
        FormatError: It is not a DuckDB database.
        DatabaseError: It is in use by a writer, or cannot be read.
        OSError: There is no such file, or it cannot be opened.
    """
    path = Path(path)
    with named_if_missing(path):
        if not is_database(path):
            raise FormatError(f"{path}: not a DuckDB database")
    with one_line_errors(str(path)):
        return duckdb().connect(str(path), read_only=True)


def nearest(
    source: str | os.PathLike[str] | Any,
    query: Query,
    k: int = 10,
    *,
    table: str = "embits",
    where: str | None = None,
    params: Sequence[Any] = (),
    coder: Coder | None = None,
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The database or Parquet file, or an open DuckDB connection, which is faster for
            many queries.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors; fewer come back if there are fewer rows.
        table: The table that was exported to; a Parquet file has none.
        where: A condition in SQL on `id`, `word` and whatever subqueries name. It is run as it is:
            pass values of others through `params`.
        params: The values of the `?` in `where`.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the table.
        InputError: There is no such table or row, the query does not have the codes' width, or
            the coder is not the one that made them.
        DatabaseError: DuckDB reports an error, such as one in `where`.
    """
    condition = where_clause(where)
    with opened(source, table) as codes:

        def closest(code: NDArray[np.uint8], k: int) -> list[Neighbor]:
            word = "word" if codes.description.words else "id::varchar"
            select = f"select {word}, {distance(code)} as distance, id from {codes.relation} "
            order = f" order by distance, id limit {k}"
            found = codes.connection.execute(select + condition + order, list(params)).fetchall()
            return [Neighbor(*each) for each in found]

        return nearest_neighbors(codes, query, k, coder, closest)


def read(
    source: str | os.PathLike[str] | Any, coder: Coder, *, table: str = "embits"
) -> BinaryVectors:
    """Read a whole table or Parquet file back.

    Args:
        source: The database or Parquet file, or an open DuckDB connection.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        table: The table that was exported to; a Parquet file has none.

    Raises:
        InputError: There is no such table, `export` did not write it, or another coder made its
            codes.
        FormatError: The rows do not match their description.
        DatabaseError: DuckDB reports an error.
    """
    with opened(source, table) as codes:
        return binary_vectors(codes.rows(), codes, coder)


def distance(code: Any) -> str:
    """Return the Hamming distance of each row to a packed code as an expression in SQL.

    It names the columns `c0`, `c1`, … and goes into any query on the table or Parquet file.

    Example:
        >>> import numpy as np
        >>> distance(np.packbits([1, 0, 1, 1]))
        'bit_count(xor(c0, 12682136550675316736::ubigint))::integer'
    """
    code = packed("the code", code)
    if code.ndim != 1:
        raise InputError(f"the code has {code.ndim} dimensions, expected a single code")
    integers = to_integers(code[np.newaxis])[0].tolist()
    # The type of bit_count is TINYINT: sums of it overflow.
    terms = zip(code_columns(8 * len(code)), integers, strict=True)
    return " + ".join(f"bit_count(xor({name}, {value}::ubigint))::integer" for name, value in terms)


@contextlib.contextmanager
def opened(source: Any, table: str) -> Iterator[CodeTable]:
    """Yield the table of codes; a connection that was opened here is closed at the end."""
    if not isinstance(source, str | os.PathLike):
        with one_line_errors("DuckDB"):
            yield _table(source, table)
        return
    path = Path(source)
    parquet = is_parquet(path)
    with one_line_errors(str(path)), duckdb().connect() if parquet else connect(path) as connection:
        yield _parquet(connection, path) if parquet else _table(connection, table)


def _table(connection: Any, table: str) -> CodeTable:
    relation, place = quoted(table), f"the table {table}"
    exists, found = table_description(connection, table)
    if not exists:
        raise InputError(f"there is no table {table}; `embits export --to duckdb` writes one")
    return CodeTable(connection, relation, check_ours(found, place), place)


def _parquet(connection: Any, path: Path) -> CodeTable:
    found = check_ours(parquet_description(connection, path), str(path))
    return CodeTable(connection, parquet_relation(path), found, str(path))
