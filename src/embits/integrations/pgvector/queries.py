"""Questions to a table that `pgvector.export` wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.bits import packed_width
from embits.coders import Coder
from embits.errors import InputError, UnknownWordError
from embits.integrations._neighbors import Neighbor, Query, other_cases, query_code
from embits.integrations.pgvector.psycopg import Connection, sql, tuple_row
from embits.integrations.pgvector.server import Table, expect_noted, fetch_one
from embits.search.arguments import wanted_rows

_MOST_EF_SEARCH = 1000  # pgvector's own limit
_READ_ROWS = 10_000


def nearest(
    connection: Connection[Any],
    query: Query,
    k: int = 10,
    *,
    table: str = "embits",
    coder: Coder | None = None,
    exact: bool = False,
    ef_search: int = 200,
) -> list[Neighbor]:
    """The k nearest rows by Hamming distance, ties in row order.

    Args:
        connection: An open psycopg connection.
        query: A word or a row number, which is left out of the answer; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: How many; more than there are gives all.
        table: The name it was exported to.
        coder: What makes a code of a float vector: `embits.load(file).coder`.
        exact: Compare with every row instead of asking the index; always so where there is none
            or k is beyond what it can find (1,000).
        ef_search: Rows that the index looks at; more find more of the true neighbors, and take
            longer.

    Returns:
        Neighbors (word, distance, row), best first; where rows go by number, that is the word.

    Raises:
        UnknownWordError: The word is not in the table.
        InputError: There is no such table, or the query does not fit it.
    """
    name = Table.parse(table)
    if type(ef_search) is not int or not 1 <= ef_search <= _MOST_EF_SEARCH:
        raise InputError(f"ef_search is {ef_search!r}, expected 1 to {_MOST_EF_SEARCH}")
    with connection.transaction():
        facts = expect_noted(connection, name).facts
        row, code = _asked(connection, name, facts, query, coder)
        wanted = wanted_rows(k, np.iinfo(np.int64).max) + (row is not None)
        values = (code, wanted)
        if exact or facts["index"] is None or wanted > _MOST_EF_SEARCH:
            found = _exact(connection, name, facts, values)
        else:
            found = _by_index(connection, name, facts, values, max(ef_search, wanted))
    neighbors = sorted(found, key=lambda each: (each.distance, each.row))
    return [each for each in neighbors if each.row != row][:k]


def read(
    connection: Connection[Any], table: str = "embits"
) -> tuple[list[str] | None, NDArray[np.uint8]]:
    """A table back as words (None where rows go by their number) and packed codes.

    Raises:
        InputError: There is no such table, or `export` did not write it.
    """
    name = Table.parse(table)
    words: list[str] = []
    with connection.transaction():
        facts = expect_noted(connection, name).facts
        blocks = [np.empty((0, packed_width(facts["bits"])), dtype=np.uint8)]
        select = sql.SQL("select code{} from {} order by id").format(
            sql.SQL(", word" if facts["words"] else ""), name.identifier
        )
        with connection.cursor("embits_read", row_factory=tuple_row) as cursor:
            cursor.execute(select, binary=True)
            while rows := cursor.fetchmany(_READ_ROWS):
                packed = np.frombuffer(b"".join(row[0] for row in rows), dtype=np.uint8)
                blocks.append(packed.reshape(len(rows), -1)[:, 4:])  # after the number of bits
                words += [row[1] for row in rows] if facts["words"] else []
    return words if facts["words"] else None, np.concatenate(blocks)


def _asked(
    connection: Connection[Any], table: Table, facts: dict[str, Any], query: Query, coder: Any
) -> tuple[int | None, str]:
    """The row that is asked about, if it is one, and its code as a string of bits."""
    if not isinstance(query, str | int | np.integer):
        code = query_code(query, facts["bits"], coder)
        return None, "".join(map(str, np.unpackbits(code, count=facts["bits"]).tolist()))
    by_word = isinstance(query, str) and facts["words"]
    if isinstance(query, str) and not by_word:
        is_number = query.isascii() and query.isdigit() and str(int(query)) == query
        if not is_number:
            raise UnknownWordError(query, [])
        query = int(query)
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


def _exact(
    connection: Connection[Any], table: Table, facts: dict[str, Any], values: tuple[str, int]
) -> list[Neighbor]:
    # Postgres' own operators: no index answers them, and no extension is needed.
    distance = sql.SQL("bit_count(code # %s::bit({}))").format(sql.Literal(facts["bits"]))
    return _select(connection, table, facts, distance, sql.SQL("distance, id"), values)


def _by_index(
    connection: Connection[Any],
    table: Table,
    facts: dict[str, Any],
    values: tuple[str, int],
    ef_search: int,
) -> list[Neighbor]:
    schema = fetch_one(
        connection,
        "select nspname, current_setting('hnsw.ef_search', true) from pg_extension e "
        "join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'",
    )
    if schema is None:
        return _exact(connection, table, facts, values)
    distance = sql.SQL("code operator({}.<~>) %s::bit({})").format(
        sql.Identifier(schema[0]), sql.Literal(facts["bits"])
    )
    setting = "select set_config('hnsw.ef_search', %s, true)"
    connection.execute(setting, (str(ef_search),))
    found = _select(connection, table, facts, distance, sql.SQL("distance"), values)
    connection.execute(setting, (schema[1],))  # as it was, for the rest of an outer transaction
    return found


def _select(
    connection: Connection[Any],
    table: Table,
    facts: dict[str, Any],
    distance: sql.Composed,
    order: sql.SQL,
    values: tuple[str, int],
) -> list[Neighbor]:
    word = sql.SQL("word" if facts["words"] else "id::text")
    select = sql.SQL("select id, {} as word, {} as distance from {} order by {} limit %s")
    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(select.format(word, distance, table.identifier, order), values)
        return [Neighbor(word, int(distance), row) for row, word, distance in cursor]
