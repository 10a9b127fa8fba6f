"""Codes in Postgres: a table with a `bit(n)` column, searched by pgvector.

The table has the columns `id` (the row number, primary key), `word` (unique; left out if the rows
have no words) and `code`. The table's comment describes the codes as JSON, and marks the table as
one that embits wrote. Postgres orders bits as embits does, first bit first.

`nearest` and `read` take an open psycopg connection, and the name of the `table`. `nearest` uses
the index, and then may return fewer rows than pass `where`. It compares every row with
`exact=True`, without an index, and if k is beyond the index's limit of 1,000. `params` are the
values of each `%s` in `where`, which has `%%` for `%`. Their errors are those of psycopg.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryRows
from embits.errors import InputError, MissingExtraError
from embits.integrations import Facts
from embits.integrations import table as tables
from embits.integrations.table import Codes

try:
    import psycopg
    from psycopg import Connection, errors, sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.rows import tuple_row
except ImportError:
    raise MissingExtraError("Postgres", "pgvector") from None

__all__ = ["distance", "export", "nearest", "read"]

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # of a binary COPY: no flags, no extension
TRAILER = b"\xff\xff"
MAX_EF_SEARCH = 1000  # pgvector's limit
EF_SEARCH = 200  # candidates of a search; pgvector's own 40 find 94 % of the ten nearest, not 98 %
MAX_NAME_BYTES = 63  # Postgres truncates longer names without an error
MAX_UNIQUE_BYTES = 2600  # of a word; an entry of a B-tree may have 2,704
_BLOCK_ROWS = 16384
# pgvector may be in a schema of its own. Both settings end with the transaction.
_USE_PGVECTOR = """
select set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''),
                                           quote_ident(nspname)), true),
       set_config('hnsw.ef_search',
                  greatest(current_setting('hnsw.ef_search', true)::int, %s)::text, true)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'
"""


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, table: str = "embits",
    index: bool = True, overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a table: see `integrations.export`. Readers see the old table or the new one.

    Args:
        target: The database: postgresql://user@host:port/name, or another libpq connection string.
        table: A name or schema.name, taken as written.
        index: Build an HNSW index (pgvector 0.7 or newer); without one, a search reads all rows.
    """
    bits, name, address = tables.to_export(bits), _parts(table), _without_password(target)
    if not isinstance(index, bool):
        raise InputError(f"index is {index!r}, expected true or false")
    kind, temporary = "hnsw" if index else "none", f"embits_{os.urandom(6).hex()}"
    with (
        tables.one_line_errors(address, psycopg.Error),
        psycopg.connect(target, client_encoding="utf8", autocommit=True) as connection,
        connection.transaction(),
    ):
        # Of two exports to one table, the second waits here for the first.
        connection.execute("select pg_advisory_xact_lock(hashtext(%s))", (f"embits {table}",))
        schema, comment = _look(connection, name)
        if comment is not None:
            # Others may read and write the table meanwhile, but not replace it.
            _execute(connection, "lock table {} in access share mode", sql.Identifier(*name))
            schema, comment = _look(connection, name)
            tables.check_ours(f"the table {table}", comment, overwrite)
        new = sql.Identifier(*schema, temporary)
        if index:
            connection.execute("create extension if not exists vector")
            connection.execute(_USE_PGVECTOR, (EF_SEARCH,))
        _copy(connection, new, bits, progress)
        if index:
            _execute(connection, "create index on {} using hnsw (code bit_hamming_ops)", new)
        description = sql.Literal(tables.Description.of(bits, kind).to_json())
        _execute(connection, "comment on table {} is {}", new, description)
        _execute(connection, "analyze {}", new)
        if comment is not None:  # readers wait from here to the commit
            _execute(connection, "drop table {}", sql.Identifier(*schema, name[-1]))
        _execute(connection, "alter table {} rename to {}", new, sql.Identifier(name[-1]))
        for suffix in ("pkey", "word_key", "word_idx", "code_idx"):
            old = sql.Identifier(*schema, f"{temporary}_{suffix}")
            with contextlib.suppress(errors.DuplicateTable), connection.transaction():
                to = sql.Identifier(f"{name[-1]}_{suffix}")
                _execute(connection, "alter index if exists {} rename to {}", old, to)
    return {"target": address, "table": str(table), "index": kind}


def distance(code: Any, n_bits: int | None = None, *, exact: bool = False) -> str:
    """Return the Hamming distance of each row to a packed code as an expression in SQL.

    It names the column `code`. Ordered by it, Postgres uses pgvector's index, unless it is to be
    `exact`: then every row is compared, and the extension is not needed. Without `n_bits`, all
    bits of the code's bytes count.

    Example:
        >>> distance(np.packbits([1, 0, 1, 1]), 4)
        "code <~> B'1011'"
        >>> distance(np.packbits([1, 0, 1, 1]), 4, exact=True)
        "bit_count(code # B'1011')"
    """
    text = "".join(map(str, np.unpackbits(np.asarray(code, np.uint8), count=n_bits).tolist()))
    return f"bit_count(code # B'{text}')" if exact else f"code <~> B'{text}'"


class _Codes(tables.SqlTable):
    mark = "%s"

    def __init__(self, connection: Connection[Any], table: str, exact: bool) -> None:
        name = _parts(table)
        super().__init__(f"the table {table}", _look(connection, name)[1])
        self.connection, self.exact = connection, exact
        self.relation = sql.Identifier(*name).as_string(connection).replace("%", "%%")

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, table: str = "embits", exact: bool = False) -> Iterator[_Codes]:
        with source.transaction(force_rollback=True):  # settings are as they were
            yield cls(source, table, exact)

    def run(self, statement: str, values: Sequence[Any]) -> Any:
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(statement.encode(), tuple(values), binary=True).fetchall()

    def packed(self, codes: list[bytes]) -> bytes:
        return b"".join(code[4:] for code in codes)  # the number of bits comes first

    def search(self, code: Codes, k: int, where: str | None, params: Sequence[Any]) -> Any:
        by_index = not self.exact and self.description.index != "none" and k <= MAX_EF_SEARCH
        by_index = by_index and bool(self.run(_USE_PGVECTOR, (max(EF_SEARCH, k),)))
        value = distance(code, self.description.bits, exact=not by_index)
        # The index serves an order by the distance alone.
        return self.by_distance(value, where, params, k, "" if by_index else ", id")


nearest, read = _Codes.nearest, _Codes.read


def _look(connection: Connection[Any], name: list[str]) -> tuple[list[str], str | None]:
    """The schema of a table, and what describes it; None if there is no such table."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(
            "select n.nspname, obj_description(c.oid, 'pg_class') from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)",
            (sql.Identifier(*name).as_string(connection),),
        ).fetchone()
    return ([row[0]], row[1] or "") if row else (name[:-1], None)


def _parts(table: Any) -> list[str]:
    parts = str(table).split(".")
    fit = all(part and len(part.encode()) <= MAX_NAME_BYTES and "\0" not in part for part in parts)
    if len(parts) > 2 or not fit:
        expected = f"a name or schema.name of {MAX_NAME_BYTES} bytes each"
        raise InputError(f"the table is {table!r}, expected {expected}")
    return parts


def _execute(connection: Connection[Any], statement: Any, *parts: sql.Composable) -> None:
    connection.execute(sql.SQL(statement).format(*parts))


def _without_password(address: str) -> str:
    """The address without its password; one that is not escaped may be in any part of it."""
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except psycopg.Error:
        parts = {"host": "@"}
    shown = {name: parts.get(name, "") for name in ("user", "host", "port", "dbname")}
    if "@" in shown["host"] + shown["dbname"] or re.search(r"[^\d,]", shown["port"]):
        raise InputError(
            "the address of the database is not valid; expected "
            "postgresql://user:password@host:port/database, with % @ / : in a password escaped "
            "(%25 %40 %2F %3A)"
        )
    return make_conninfo(**{name: value for name, value in shown.items() if value})


def _copy(
    connection: Connection[Any], table: sql.Identifier, bits: BinaryRows, progress: Any
) -> None:
    named = tables.ids_of(bits) is not None
    word = sql.SQL(', word text collate "C" not null' if named else "")
    create = "create table {} (id bigint not null{}, code bit({}) not null)"
    _execute(connection, create, table, word, sql.Literal(bits.n_bits))
    columns = sql.SQL("id, code, word" if named else "id, code")
    into = sql.SQL("copy {} ({}) from stdin with (format binary, freeze)")
    with connection.cursor() as cursor, cursor.copy(into.format(table, columns)) as copy:
        copy.write(HEADER)
        for rows in binary_rows(bits, progress):
            copy.write(rows)
        copy.write(TRAILER)
    _execute(connection, "alter table {} add primary key (id)", table)
    if named:
        # Long texts as words do not fit a B-tree, the only index that can be unique.
        long = tables.id_sizes(bits).max() > MAX_UNIQUE_BYTES
        unique, plain = "alter table {} add unique (word)", "create index on {} using hash (word)"
        _execute(connection, plain if long else unique, table)


def binary_rows(bits: BinaryRows, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield blocks of rows in Postgres' binary COPY format."""
    # A row is its number of fields, then the length and the bytes of each field, all big-endian:
    # id, code and word. All but the word have a fixed size: they are one structured array, and the
    # words, which are contiguous, are put between its rows.
    ids, width = tables.ids_of(bits), bits.codes.shape[1]
    fields = [("fields", ">i2"), ("id_size", ">i4"), ("id", ">i8"), ("code_size", ">i4"),
              ("n_bits", ">i4"), ("code", "u1", (width,)), ("word_size", ">i4")]  # fmt: skip
    for rows in blocks(len(bits), _BLOCK_ROWS):
        heads = np.empty(rows.stop - rows.start, dtype=fields[:-1] if ids is None else fields)
        heads["fields"], heads["id_size"], heads["code_size"] = 2 + (ids is not None), 8, 4 + width
        heads["id"], heads["n_bits"] = np.arange(rows.start, rows.stop), bits.n_bits
        heads["code"], block = bits.codes[rows], heads.view(np.uint8)
        if ids is not None:
            first = int(ids.ends[rows.start - 1]) if rows.start else 0
            ends = ids.ends[rows].astype(np.int64)
            sizes = heads["word_size"] = np.diff(ends, prepend=first)
            runs = np.stack([np.full_like(sizes, heads.itemsize), sizes], axis=1).ravel()
            is_word = np.repeat(np.tile([False, True], len(sizes)), runs)
            block = np.empty(len(is_word), dtype=np.uint8)
            block[~is_word] = heads.view(np.uint8)
            block[is_word] = ids.text[first : int(ends[-1])]
        yield block.tobytes()
        if progress is not None:
            progress(rows.stop, len(bits))
