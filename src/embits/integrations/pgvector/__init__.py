"""Codes in Postgres: a table with a `bit(n)` column, searched by pgvector.

The table has the columns `id` (the row number, primary key), `word` (unique; left out if the rows
have no words) and `code`. The table's comment describes the codes as JSON, and marks the table as
one that embits wrote. Postgres orders bits as embits does, first bit first.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from typing import Any

from embits._version import __version__
from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.coders.identity import coder_checksum
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.pgvector.additions import check_no_additions, check_rows, rows_digest
from embits.integrations.pgvector.index import (
    check_index,
    index_progress,
    make_index,
    pgvector_schema,
)
from embits.integrations.pgvector.psycopg import Connection, sql
from embits.integrations.pgvector.queries import nearest, read
from embits.integrations.pgvector.rows import (
    HEADER,
    TRAILER,
    binary_rows,
    check_no_nul,
    longest_word,
)
from embits.integrations.pgvector.server import (
    Description,
    Table,
    connected,
    fetch_one,
    read_description,
    without_password,
)

__all__ = ["export", "nearest", "read"]

MAX_UNIQUE_BYTES = 2600  # of a word; an entry of a B-tree may have 2,704


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    table: str = "embits",
    index: bool = True,
    m: int = 16,
    ef_construction: int = 64,
    maintenance_work_mem: str | None = None,
) -> Facts:
    """Write codes to a table in one transaction: readers see the old table or the new one.

    A table that an earlier export wrote is replaced, and keeps its grants. Any other table of the
    same name is refused, and so is one with columns, indexes, triggers or rows that were added
    or changed.

    Args:
        bits: What to write.
        target: The database: postgresql://user@host:port/name, or another libpq connection string.
        progress: Called with (done, total) as rows are copied and indexed.
        table: A name or schema.name, taken as written.
        index: Build an HNSW index (pgvector 0.7 or newer); without one, a search reads all rows.
        m: Links per row in the index.
        ef_construction: Candidates per row while the index is built.
        maintenance_work_mem: Memory for building the index, such as "1GB"; None is the server's.

    Returns:
        The table, the kind of its index, and the seconds that copying and indexing took.

    Raises:
        InputError: An option is out of range, a word cannot be stored, or the table is not ours.
        DatabaseError: The server cannot be reached, lacks pgvector, or reports an error.
    """
    bits, name = to_export(bits), Table.parse(str(table))
    if not isinstance(index, bool):
        raise InputError(f"index is {index!r}, expected true or false")
    if index:
        check_index(bits.n_bits, m, ef_construction)
    check_no_nul(bits.words)
    address = without_password(target)
    with connected(target) as connection, connection.transaction():
        # Of two exports to one table, the second waits here for the first.
        connection.execute("select pg_advisory_xact_lock(hashtext(%s))", (f"embits {name}",))
        old = read_description(connection, name)
        if old is not None:
            check_no_additions(connection, name, old)
            # Until the commit, others may read the old rows but not change them.
            lock = sql.SQL("lock table {} in share mode").format(name.identifier)
            connection.execute(lock)
            check_rows(connection, name, old)
        new = Table(_schema(connection, name, old), f"embits_{os.urandom(6).hex()}")
        operators = pgvector_schema(connection) if index else None
        if maintenance_work_mem is not None:
            memory = str(maintenance_work_mem)
            connection.execute("select set_config('maintenance_work_mem', %s, true)", (memory,))
        start = time.perf_counter()
        _copy(connection, new, bits, progress, with_index=index)
        copied = time.perf_counter()
        if operators is not None:
            making = index_progress(target, connection.info.backend_pid, len(bits), progress)
            with making if len(bits) else nullcontext():
                make_index(connection, new, operators, m, ef_construction)
        indexed = time.perf_counter()
        _write_description(connection, new, bits, "hnsw" if index else None)
        _replace(connection, old, new, name)
    facts = {"target": address, "table": str(name), "index": "hnsw" if index else "none"}
    return facts | {"copy_s": round(copied - start, 2), "index_s": round(indexed - copied, 2)}


def _schema(connection: Connection[Any], name: Table, old: Description | None) -> str:
    if name.schema is not None or old is not None:
        return name.schema or old.schema  # type: ignore[union-attr]
    row = fetch_one(connection, "select current_schema()")
    if row is None or row[0] is None:
        raise InputError("the search path has no existing schema: give the table as schema.name")
    return str(row[0])


def _copy(
    connection: Connection[Any],
    table: Table,
    bits: BinaryVectors,
    progress: Progress | None,
    with_index: bool,
) -> None:
    has_words = isinstance(bits.words, Vocabulary)
    word = sql.SQL(', word text collate "C" not null' if has_words else "")
    connection.execute(
        sql.SQL("create table {} (id bigint not null{}, code bit({}) not null)").format(
            table.identifier, word, sql.Literal(bits.n_bits)
        )
    )
    columns = sql.SQL("id, code, word" if has_words else "id, code")
    into = sql.SQL("copy {} ({}) from stdin with (format binary, freeze)")
    with connection.cursor() as cursor, cursor.copy(into.format(table.identifier, columns)) as copy:
        copy.write(HEADER)
        for done, rows in binary_rows(bits):
            copy.write(rows)
            if progress is not None:
                progress(done, len(bits) * (2 if with_index else 1))
        copy.write(TRAILER)
    alter = sql.SQL("alter table {} add primary key (id)")
    connection.execute(alter.format(table.identifier))
    if isinstance(bits.words, Vocabulary):
        # Long texts as words do not fit a B-tree, the only index that can be unique.
        long = longest_word(bits.words) > MAX_UNIQUE_BYTES
        keys = (
            "create index on {} using hash (word)" if long else "alter table {} add unique (word)"
        )
        connection.execute(sql.SQL(keys).format(table.identifier))


def _write_description(
    connection: Connection[Any], table: Table, bits: BinaryVectors, index: str | None
) -> None:
    facts = {
        "embits": __version__,
        "rows": len(bits),
        "bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
        "coder": coder_checksum(bits.coder),
        "words": isinstance(bits.words, Vocabulary),
        "digest": rows_digest(connection, table, words=isinstance(bits.words, Vocabulary)),
        "index": index,
    }
    comment = sql.SQL("comment on table {} is {}")
    connection.execute(comment.format(table.identifier, sql.Literal(json.dumps(facts))))
    connection.execute(sql.SQL("analyze {}").format(table.identifier))


def _replace(
    connection: Connection[Any], old: Description | None, new: Table, table: Table
) -> None:
    """Rename `new` to `table` and drop `old`; readers wait from here to the commit."""
    name = table.name
    if old is not None:
        before = sql.Identifier(old.schema, name)
        connection.execute(sql.SQL("lock table {} in access exclusive mode").format(before))
        check_no_additions(connection, table, old)  # again: now nobody can add anything
        _copy_grants(connection, old, new)
        connection.execute(sql.SQL("drop table {}").format(before))
    rename = sql.SQL("alter table {} rename to {}")
    connection.execute(rename.format(new.identifier, sql.Identifier(name)))
    for suffix in ("pkey", "word_key", "word_idx", "code_idx"):
        index = Table(new.schema, f"{new.name}_{suffix}")
        wanted = name.encode()[: 62 - len(suffix)].decode(errors="ignore") + f"_{suffix}"
        free = fetch_one(
            connection,
            "select to_regclass(%s) is null and to_regclass(%s) is not null",
            (
                sql.Identifier(str(new.schema), wanted).as_string(connection),
                index.identifier.as_string(connection),
            ),
        )
        if free and free[0]:
            rename = sql.SQL("alter index {} rename to {}")
            connection.execute(rename.format(index.identifier, sql.Identifier(wanted)))


def _copy_grants(connection: Connection[Any], old: Description, new: Table) -> None:
    grants = connection.execute(
        "select coalesce(rolname, ''), privilege_type, is_grantable "
        "from pg_class, aclexplode(relacl) left join pg_roles r on r.oid = grantee "
        "where pg_class.oid = %s and grantee <> relowner",
        (old.oid,),
    ).fetchall()
    for role, privilege, grantable in grants:
        connection.execute(
            sql.SQL("grant {} on {} to {}{}").format(
                sql.SQL(privilege),
                new.identifier,
                sql.Identifier(role) if role else sql.SQL("public"),
                sql.SQL(" with grant option" if grantable else ""),
            )
        )
