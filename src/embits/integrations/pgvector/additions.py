"""Changes that users made to a table that `export` wrote: an export must not drop them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from embits.errors import InputError
from embits.integrations.pgvector.psycopg import Connection, sql, tuple_row
from embits.integrations.pgvector.server import Description, Table, fetch_one

_INDEXES = """
select c.relname, am.amname, array_agg(a.attname), bool_or(i.indpred is not null)
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_am am on am.oid = c.relam
left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = %(oid)s
group by c.relname, am.amname order by c.relname
"""
_OTHERS = """
select 'trigger', tgname from pg_trigger where tgrelid = %(oid)s and not tgisinternal
union all select 'policy', polname from pg_policy where polrelid = %(oid)s
union all select 'rule', rulename from pg_rewrite where ev_class = %(oid)s
union all select 'constraint', conname from pg_constraint
    where conrelid = %(oid)s and contype in ('c', 'f', 'x')
union all select 'foreign key', conname from pg_constraint
    where confrelid = %(oid)s and contype = 'f'
"""
_OUR_INDEXES = {("btree", "id"), ("btree", "word"), ("hash", "word"), ("hnsw", "code")}


def check_no_additions(connection: Connection[Any], table: Table, old: Description) -> None:
    """Check that a table has only what `export` wrote; the number of rows is not checked.

    Raises:
        InputError: It has columns, indexes, triggers or other objects of somebody else.
    """
    added = _added_column(connection, old) or _added_index(connection, old)
    if added is None:
        with connection.cursor(row_factory=tuple_row) as cursor:
            added = cursor.execute(_OTHERS, {"oid": old.oid}).fetchone()
    if added is not None:
        raise InputError(
            f"the table {table} has the {added[0]} {added[1]!r} that embits did not make; "
            f"choose another table, or drop that {added[0]} first"
        )


def check_rows(connection: Connection[Any], table: Table, old: Description) -> None:
    """Check that a table has the rows that `export` wrote.

    Raises:
        InputError: Rows were added, removed or changed.
    """
    advice = f"choose another table, or drop the table {table} first if its rows may be lost"
    count = sql.SQL("select count(*) from {}").format(table.identifier)
    found = fetch_one(connection, count)
    if found is not None and found[0] != old.facts.get("rows"):
        raise InputError(
            f"the table {table} has {found[0]} rows, and embits wrote {old.facts.get('rows')}; "
            + advice
        )
    digest = old.facts.get("digest")  # None: written before there were digests
    if digest is not None and rows_digest(connection, table, words=old.facts["words"]) != digest:
        raise InputError(f"rows of the table {table} were changed since embits wrote it; {advice}")


def rows_digest(connection: Connection[Any], table: Table, *, words: bool) -> str:
    """A checksum of all rows, in any order: the sum of their hashes, computed by the server."""
    row = "id || ' ' || code::text" + (" || ' ' || word" if words else "")
    select = sql.SQL('select coalesce(sum(hashtextextended(({}) collate "C", 0)), 0)::text from {}')
    found = fetch_one(connection, select.format(sql.SQL(row), table.identifier))
    return str(found[0]) if found else ""


def _added_column(connection: Connection[Any], old: Description) -> tuple[str, str] | None:
    ours = {"id": "bigint", "code": f"bit({old.facts['bits']})"}
    if old.facts["words"]:
        ours["word"] = "text"
    select = (
        "select attname, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = %s and attnum > 0 and not attisdropped order by attnum"
    )
    with connection.cursor(row_factory=tuple_row) as cursor:
        columns = cursor.execute(select, (old.oid,)).fetchall()
    return next((("column", name) for name, kind in columns if ours.get(name) != kind), None)


def _added_index(connection: Connection[Any], old: Description) -> tuple[str, str] | None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        indexes = cursor.execute(_INDEXES, {"oid": old.oid}).fetchall()
    seen = Counter[tuple[str, str | None]]()
    for name, method, columns, partial in indexes:
        column = columns[0] if len(columns) == 1 else None
        seen[method, column] += 1
        if (method, column) not in _OUR_INDEXES or partial or seen[method, column] > 1:
            return "index", name
    return None
