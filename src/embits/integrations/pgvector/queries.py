"""Queries to a table that `pgvector.export` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import InputError, UnknownWordError
from embits.integrations.codes import check_coder, from_codes
from embits.integrations.databases import (
    Neighbor,
    Query,
    number_ids,
    other_cases,
    query_code,
    row_number,
    where_clause,
)
from embits.integrations.pgvector.psycopg import Connection, sql, tuple_row
from embits.integrations.pgvector.server import Table, expect_description, fetch_one
from embits.search.arguments import wanted_rows

MAX_EF_SEARCH = 1000  # pgvector's limit
_READ_ROWS = 10_000


class Search(NamedTuple):
    """A search for the nearest rows of a code.

    Attributes:
        connection: An open connection.
        table: The table.
        facts: Its description.
        code: The query's code as a string of bits.
        wanted: How many rows.
        where: A condition in SQL, or None.
        params: The values of its parameters.
    """

    connection: Connection[Any]
    table: Table
    facts: dict[str, Any]
    code: str
    wanted: int
    where: str | None
    params: tuple[Any, ...]

    def run(self, distance: sql.Composed, order: LiteralString) -> list[Neighbor]:
        """The rows with the smallest distance, an expression in SQL with the code as parameter."""
        word = sql.SQL("word" if self.facts["words"] else "id::text")
        select = sql.SQL("select id, {} as word, {} as distance from {} {} order by {} limit %s")
        where = sql.SQL(where_clause(self.where))
        query = select.format(word, distance, self.table.identifier, where, sql.SQL(order))
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(query, (self.code, *self.params, self.wanted))
            return [Neighbor(word, int(distance), row) for row, word, distance in cursor]


def nearest(
    connection: Connection[Any],
    query: Query,
    k: int = 10,
    *,
    table: str = "embits",
    where: str | None = None,
    params: Sequence[Any] = (),
    coder: Coder | None = None,
    exact: bool = False,
    ef_search: int = 200,
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance, ties in row order.

    Args:
        connection: An open psycopg connection.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors; fewer come back if there are fewer rows.
        table: The table that was exported to.
        where: A condition in SQL on `id` and `word`, and on whatever subqueries name. It is run as
            it is: pass values of others through `params`. The index may return fewer than k rows
            that meet it; `exact` finds all.
        params: The values of the `%s` in `where`; write `%` as `%%`.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
        exact: Compare with every row instead of using the index. This also happens without an
            index, or if k is beyond the index's limit of 1,000.
        ef_search: Candidates that the index examines; more find more of the true neighbors, and
            take longer.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the table.
        InputError: There is no such table or row, the query does not have the codes' width, or
            the coder is not the one that made the codes.
        psycopg.Error: Postgres cannot run `where`.
    """
    name = Table.parse(table)
    if type(ef_search) is not int or not 1 <= ef_search <= MAX_EF_SEARCH:
        raise InputError(f"ef_search is {ef_search!r}, expected 1 to {MAX_EF_SEARCH}")
    with connection.transaction():
        facts = expect_description(connection, name).facts
        row, code = _query_row_and_code(connection, name, facts, query, coder)
        wanted = wanted_rows(k, np.iinfo(np.int64).max) + (row is not None)
        search = Search(connection, name, facts, code, wanted, where, tuple(params))
        if exact or facts["index"] is None or wanted > MAX_EF_SEARCH:
            found = _exact(search)
        else:
            found = _by_index(search, max(ef_search, wanted))
    neighbors = sorted(found, key=lambda each: (each.distance, each.row))
    return [each for each in neighbors if each.row != row][:k]


def read(connection: Connection[Any], coder: Coder, table: str = "embits") -> BinaryVectors:
    """Read a whole table back.

    Args:
        connection: An open psycopg connection.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        table: The table that was exported to.

    Raises:
        InputError: There is no such table, `export` did not write it, or another coder made its
            codes.
    """
    name = Table.parse(table)
    numbers: list[int] = []
    words: list[str] = []
    with connection.transaction():
        facts = expect_description(connection, name).facts
        check_coder(coder, facts["bits"], facts.get("coder"), f"the table {name}")
        blocks = [np.empty((0, coder.n_bytes_), dtype=np.uint8)]
        select = sql.SQL("select code, id{} from {} order by id").format(
            sql.SQL(", word" if facts["words"] else ""), name.identifier
        )
        with connection.cursor("embits_read", row_factory=tuple_row) as cursor:
            cursor.execute(select, binary=True)
            while rows := cursor.fetchmany(_READ_ROWS):
                packed = np.frombuffer(b"".join(row[0] for row in rows), dtype=np.uint8)
                blocks.append(packed.reshape(len(rows), -1)[:, 4:])  # after the number of bits
                numbers += [row[1] for row in rows]
                words += [row[2] for row in rows] if facts["words"] else []
    ids = words if facts["words"] else number_ids(numbers)
    return from_codes(np.concatenate(blocks), coder, ids)


def _query_row_and_code(
    connection: Connection[Any], table: Table, facts: dict[str, Any], query: Query, coder: Any
) -> tuple[int | None, str]:
    """Return the row that the query names, if any, and the query's code as a string of bits."""
    if not isinstance(query, str | int | np.integer):
        code = query_code(query, facts["bits"], coder, facts.get("coder"))
        return None, "".join(map(str, np.unpackbits(code, count=facts["bits"]).tolist()))
    by_word = isinstance(query, str) and facts["words"]
    if isinstance(query, str) and not by_word:
        query = row_number(query)
    select = sql.SQL("select id, code::text from {} where {} = %s")
    column = sql.Identifier("word" if by_word else "id")
    key = query if by_word else int(query)
    found = fetch_one(connection, select.format(table.identifier, column), (key,))
    if found is not None:
        return found
    if not by_word:
        raise InputError(f"there is no row {key} in {table}")
    raise UnknownWordError(str(query), _spellings(connection, table, str(query)))


def _spellings(connection: Connection[Any], table: Table, word: str) -> list[str]:
    select = sql.SQL("select word from {} where word = any(%s) order by id limit 3")
    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(select.format(table.identifier), (other_cases(word),))
        return [row[0] for row in cursor]


def _exact(search: Search) -> list[Neighbor]:
    # Postgres' own operators: they use no index and need no extension.
    distance = sql.SQL("bit_count(code # %s::bit({}))").format(sql.Literal(search.facts["bits"]))
    return search.run(distance, "distance, id")


def _by_index(search: Search, ef_search: int) -> list[Neighbor]:
    connection = search.connection
    schema = fetch_one(
        connection,
        "select nspname, current_setting('hnsw.ef_search', true) from pg_extension e "
        "join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'",
    )
    if schema is None:
        return _exact(search)
    distance = sql.SQL("code operator({}.<~>) %s::bit({})").format(
        sql.Identifier(schema[0]), sql.Literal(search.facts["bits"])
    )
    setting = "select set_config('hnsw.ef_search', %s, true)"
    connection.execute(setting, (str(ef_search),))
    found = search.run(distance, "distance")
    connection.execute(setting, (schema[1],))  # the old value, for the rest of an outer transaction
    return found
