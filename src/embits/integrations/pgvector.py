"""Codes in Postgres: a table with a `bit(n)` column, searched by pgvector.

The table has the columns `id` (the row number, primary key), `word` (unique; left out if the rows
have no words) and `code`. The table's comment describes the codes as JSON, and marks the table as
one that embits wrote. Postgres orders bits as embits does, first bit first.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryVectors
from embits.checks import whole
from embits.coders import Coder
from embits.errors import DatabaseError, InputError, MissingExtraError
from embits.integrations import Facts
from embits.integrations import table as tables
from embits.integrations.table import Description, Neighbor, Query

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
MAX_INDEXED_BITS = 64_000
MAX_EF_SEARCH = 1000  # pgvector's limit
MAX_NAME_BYTES = 63  # Postgres truncates longer names without an error
MAX_UNIQUE_BYTES = 2600  # of a word; an entry of a B-tree may have 2,704
_BLOCK_ROWS = 16384
_DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')  # outside double quotes
_EXTENSION = """
select nspname, extversion, current_setting('hnsw.ef_search', true) from pg_extension e
join pg_namespace n on n.oid = e.extnamespace where extname = 'vector'
"""
_GRANTS = """
select privilege_type, rolname, is_grantable from pg_class, aclexplode(relacl)
left join pg_roles r on r.oid = grantee where pg_class.oid = %s and grantee <> relowner
"""


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
    overwrite: bool = False,
) -> Facts:
    """Write codes to a table in one transaction: readers see the old table or the new one.

    Args:
        bits: What to write.
        target: The database: postgresql://user@host:port/name, or another libpq connection string.
        progress: Called with (done, total) as rows are copied, before they are indexed.
        table: A name or schema.name, taken as written.
        index: Build an HNSW index (pgvector 0.7 or newer); without one, a search reads all rows.
        m: Links per row in the index.
        ef_construction: Candidates per row while the index is built.
        maintenance_work_mem: Memory for building the index, such as "1GB"; None is the server's.
        overwrite: Replace a table that embits wrote; the new one has its grants.

    Returns:
        The table, the kind of its index, and the seconds that copying and indexing took.

    Raises:
        InputError: An option is out of range, or the table may not be replaced.
        DatabaseError: The server cannot be reached, lacks pgvector, or reports an error, such as
            one of a word with the character NUL.
    """
    bits, name, address = tables.to_export(bits), _parts(table), _without_password(target)
    if not isinstance(index, bool):
        raise InputError(f"index is {index!r}, expected true or false")
    if index:
        whole("ef_construction", ef_construction, max(4, 2 * whole("m", m, 2, 100)), 1000)
        if bits.n_bits > MAX_INDEXED_BITS:
            raise InputError(
                f"pgvector indexes at most {MAX_INDEXED_BITS:,} bits, the codes have "
                f"{bits.n_bits:,}: use index=false"
            )
    with _connected(target, address) as connection, connection.transaction():
        # Of two exports to one table, the second waits here for the first.
        connection.execute("select pg_advisory_xact_lock(hashtext(%s))", (f"embits {table}",))
        old = _look(connection, name)
        if old is not None:
            tables.check_replaceable(f"the table {table}", old.description, overwrite)
        operators = _operators(connection) if index else None
        if maintenance_work_mem is not None:
            memory = str(maintenance_work_mem)
            connection.execute("select set_config('maintenance_work_mem', %s, true)", (memory,))
        schema, temporary = [old.schema] if old else name[:-1], f"embits_{os.urandom(6).hex()}"
        new = sql.Identifier(*schema, temporary)
        start = time.perf_counter()
        _copy(connection, new, bits, progress)
        copied = time.perf_counter()
        if operators is not None:
            _make_index(connection, new, operators, m, ef_construction)
        indexed = time.perf_counter()
        description = sql.Literal(Description.of(bits, "hnsw" if index else "none").to_json())
        _execute(connection, "comment on table {} is {}", new, description)
        _execute(connection, "analyze {}", new)
        _replace(connection, old, schema, temporary, name[-1])
    facts = {"target": address, "table": str(table), "index": "hnsw" if index else "none"}
    return facts | {"copy_s": round(copied - start, 2), "index_s": round(indexed - copied, 2)}


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
        query: A word or row number, which is left out; a packed code (uint8); or a float vector.
        k: The number of neighbors; fewer come back if there are fewer rows.
        table: The table that was exported to.
        where: A condition in SQL, run unchanged: pass untrusted values through `params`. The index
            may return fewer than k rows that meet it; `exact` finds all.
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
        InputError: There is no such table or row, or the query or the coder does not fit the codes.
        psycopg.Error: Postgres cannot run `where`.
    """
    whole("ef_search", ef_search, 1, MAX_EF_SEARCH)
    with connection.transaction():
        codes = _Codes(connection, table)

        def search(code: NDArray[np.uint8], size: int) -> list[Neighbor]:
            by_index = not exact and codes.description.index != "none" and size <= MAX_EF_SEARCH
            extension = codes.run(_EXTENSION) if by_index else []
            if not extension:
                exactly = distance(code, codes.description.bits, exact=True)
                return codes.by_distance(exactly, where, params, size)
            ((schema, _, setting),) = extension
            set_ef = "select set_config('hnsw.ef_search', %s, true)"
            codes.run(set_ef, (str(max(ef_search, size)),))
            operator = f"operator({sql.Identifier(schema).as_string(connection)}.<~>)"
            value = distance(code, codes.description.bits).replace("<~>", operator)
            rest = f"{tables.where_clause(where)} order by distance limit {size}"
            found = codes.neighbors(f"{value} as distance", rest, params)
            codes.run(set_ef, (setting,))  # as it was, for the rest of an outer transaction
            return found

        return codes.nearest(query, k, coder, search)


def read(connection: Connection[Any], coder: Coder, table: str = "embits") -> BinaryVectors:
    """Read a whole table back.

    Args:
        connection: An open psycopg connection.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        table: The table that was exported to.

    Raises:
        InputError: `export` did not write such a table, or another coder made its codes.
        FormatError: The rows do not match their description.
    """
    with connection.transaction():
        return _Codes(connection, table).read(coder)


def distance(code: Any, n_bits: int | None = None, *, exact: bool = False) -> str:
    """Return the Hamming distance of each row to a packed code as an expression in SQL.

    It names the column `code`. Ordered by it, Postgres uses pgvector's index, unless it is to be
    `exact`: then every row is compared, and the extension is not needed.

    Args:
        code: A packed code, uint8 of shape (ceil(n_bits / 8),).
        n_bits: The bits of a code; None is all bits of its bytes.
        exact: Use no index.

    Example:
        >>> distance(np.packbits([1, 0, 1, 1]), 4)
        "code <~> B'1011'"
        >>> distance(np.packbits([1, 0, 1, 1]), 4, exact=True)
        "bit_count(code # B'1011')"
    """
    text = "".join(map(str, np.unpackbits(np.asarray(code, np.uint8), count=n_bits).tolist()))
    return f"bit_count(code # B'{text}')" if exact else f"code <~> B'{text}'"


def _parts(table: Any) -> list[str]:
    """Parse `name` or `schema.name`, as written; double quotes enclose a part with a dot.

    Example:
        >>> _parts("App.words"), _parts('"a.b"')
        (['App', 'words'], ['a.b'])
    """
    parts = [
        part[1:-1].replace('""', '"') if re.fullmatch('"(?:[^"]|"")*"', part) else part
        for part in _DOT.split(str(table))
    ]
    fit = all(part and len(part.encode()) <= MAX_NAME_BYTES and "\0" not in part for part in parts)
    if len(parts) > 2 or not fit:
        raise InputError(
            f"the table is {table!r}, expected a name or schema.name of {MAX_NAME_BYTES} bytes each"
        )
    return parts


class _Found(NamedTuple):
    """A table that is there; its description is None if embits did not write it."""

    oid: int
    schema: str
    description: Description | None


class _Codes(tables.SqlTable):
    """A table that `export` wrote."""

    columns = "code"
    mark = "%s"

    def __init__(self, connection: Connection[Any], table: str) -> None:
        found = _look(connection, _parts(table))
        if found is None:
            raise InputError(f"there is no table {table}; `embits export --to pgvector` writes one")
        super().__init__(f"the table {table}", found.description)
        self.connection = connection
        name = sql.Identifier(*_parts(table)).as_string(connection)
        self.relation = name.replace("%", "%%")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(statement.encode(), tuple(values), binary=True).fetchall()

    def packed(self, found: list[tuple[Any, ...]]) -> NDArray[np.uint8]:
        width = -(-self.description.bits // 8)
        codes = np.frombuffer(b"".join(row[0] for row in found), dtype=np.uint8)
        return codes.reshape(len(found), 4 + width)[:, 4:]  # after the number of bits


def _look(connection: Connection[Any], name: list[str]) -> _Found | None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(
            "select c.oid, n.nspname, obj_description(c.oid, 'pg_class') from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)",
            (sql.Identifier(*name).as_string(connection),),
        ).fetchone()
    return None if row is None else _Found(row[0], row[1], Description.parse(row[2]))


def _execute(connection: Connection[Any], statement: Any, *parts: sql.Composable) -> None:
    connection.execute(sql.SQL(statement).format(*parts))


@contextlib.contextmanager
def _connected(target: str, address: str) -> Iterator[Connection[Any]]:
    options: dict[str, Any] = {"client_encoding": "utf8", "autocommit": True}
    with (
        tables.one_line_errors(address, psycopg.Error),
        psycopg.connect(target, **options) as connection,
    ):
        yield connection


def _without_password(address: str) -> str:
    """Return the address without its password.

    An error does not repeat an address, as an unescaped password may appear in any part of it.

    Example:
        >>> _without_password("postgresql://me:secret@db.example:5433/app?sslmode=require")
        'user=me host=db.example port=5433 dbname=app'
    """
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
    connection: Connection[Any], table: sql.Identifier, bits: BinaryVectors, progress: Any
) -> None:
    named = tables.ids_of(bits) is not None
    word = sql.SQL(', word text collate "C" not null' if named else "")
    create = "create table {} (id bigint not null{}, code bit({}) not null)"
    _execute(connection, create, table, word, sql.Literal(bits.n_bits))
    columns = sql.SQL("id, code, word" if named else "id, code")
    into = sql.SQL("copy {} ({}) from stdin with (format binary, freeze)")
    with connection.cursor() as cursor, cursor.copy(into.format(table, columns)) as copy:
        copy.write(HEADER)
        for done, rows in binary_rows(bits):
            copy.write(rows)
            if progress is not None:
                progress(done, len(bits))
        copy.write(TRAILER)
    _execute(connection, "alter table {} add primary key (id)", table)
    if named:
        # Long texts as words do not fit a B-tree, the only index that can be unique.
        long = tables.longest_id(bits)[1] > MAX_UNIQUE_BYTES
        unique, plain = "alter table {} add unique (word)", "create index on {} using hash (word)"
        _execute(connection, plain if long else unique, table)


def binary_rows(bits: BinaryVectors) -> Iterator[tuple[int, bytes]]:
    """Yield the rows done so far and a block of rows in Postgres' binary COPY format.

    A row is its number of fields, then the length and the bytes of each field, all big-endian:
    id, code and word. All but the word have a fixed size: they are one structured array, and the
    words, which are contiguous, are put between its rows.
    """
    ids, width = tables.ids_of(bits), bits.codes.shape[1]
    fields = [("fields", ">i2"), ("id_size", ">i4"), ("id", ">i8"), ("code_size", ">i4"),
              ("n_bits", ">i4"), ("code", "u1", (width,)), ("word_size", ">i4")]  # fmt: skip
    for rows in blocks(len(bits), _BLOCK_ROWS):
        heads = np.empty(rows.stop - rows.start, dtype=fields[:-1] if ids is None else fields)
        heads["fields"], heads["id_size"], heads["code_size"] = 2 + (ids is not None), 8, 4 + width
        heads["id"], heads["n_bits"] = np.arange(rows.start, rows.stop), bits.n_bits
        heads["code"] = bits.codes[rows]
        if ids is None:
            yield rows.stop, heads.tobytes()
            continue
        first = int(ids.ends[rows.start - 1]) if rows.start else 0
        ends = ids.ends[rows].astype(np.int64)
        sizes = heads["word_size"] = np.diff(ends, prepend=first)
        runs = np.stack([np.full_like(sizes, heads.itemsize), sizes], axis=1).ravel()
        is_word = np.repeat(np.tile([False, True], len(sizes)), runs)
        block = np.empty(len(is_word), dtype=np.uint8)
        block[~is_word] = heads.view(np.uint8)
        block[is_word] = ids.text[first : int(ends[-1])]
        yield rows.stop, block.tobytes()


def _operators(connection: Connection[Any]) -> str:
    """Enable pgvector if necessary, and return the schema of its operators."""
    try:
        connection.execute("create extension if not exists vector")
    except (errors.FeatureNotSupported, errors.UndefinedFile, errors.InsufficientPrivilege):
        raise DatabaseError(
            "pgvector is not enabled in this database, and cannot be: install it on the server, "
            'ask the owner to run "create extension vector", or use index=false'
        ) from None
    schema, version, _ = connection.execute(_EXTENSION).fetchone() or ("", "0.0", None)
    if tuple(map(int, version.split(".")[:2])) < (0, 7):
        raise DatabaseError(
            f"the database has pgvector {version}, and an index of bits needs 0.7: "
            'run "alter extension vector update", or use index=false'
        )
    return str(schema)


def _make_index(
    connection: Connection[Any], table: sql.Identifier, operators: str, m: int, ef_construction: int
) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    create = "create index on {} using hnsw (code {}) with (m = {}, ef_construction = {})"
    ops = sql.Identifier(operators, "bit_hamming_ops")
    settings = sql.Literal(m), sql.Literal(ef_construction)
    _execute(connection, create, table, ops, *settings)
    if any("maintenance_work_mem" in notice for notice in notices):
        warnings.warn(
            "the index did not fit in maintenance_work_mem and took longer to build; "
            "raise it with the option maintenance_work_mem=1GB",
            stacklevel=3,
        )


def _replace(
    connection: Connection[Any], old: _Found | None, schema: list[str], temporary: str, name: str
) -> None:
    """Drop `old` and rename the new table to its name; readers wait from here to the commit."""
    new = sql.Identifier(*schema, temporary)
    if old is not None:
        before = sql.Identifier(old.schema, name)
        _execute(connection, "lock table {} in access exclusive mode", before)
        if _look(connection, [old.schema, name]) != old:
            raise InputError(f"the table {name} was replaced by another program meanwhile")
        for privilege, role, grantable in connection.execute(_GRANTS, (old.oid,)).fetchall():
            to = sql.SQL("public") if role is None else sql.Identifier(role)
            option = sql.SQL(" with grant option" if grantable else "")
            grant = "grant {} on {} to {}{}"
            _execute(connection, grant, sql.SQL(privilege), new, to, option)
        _execute(connection, "drop table {}", before)
    _execute(connection, "alter table {} rename to {}", new, sql.Identifier(name))
    for suffix in ("pkey", "word_key", "word_idx", "code_idx"):
        index = sql.Identifier(*schema, f"{temporary}_{suffix}")
        wanted = sql.Identifier(f"{name}_{suffix}")
        with contextlib.suppress(errors.DuplicateTable), connection.transaction():
            _execute(connection, "alter index if exists {} rename to {}", index, wanted)
