"""pgvector's HNSW index over codes: may it be made, making it, and how far that is."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from embits.arrays import Progress
from embits.errors import DatabaseError, InputError
from embits.integrations.pgvector.psycopg import Connection, errors, sql
from embits.integrations.pgvector.server import Table, connected, fetch_one

_MOST_INDEXED_BITS = 64_000


def check_index(n_bits: int, m: Any, ef_construction: Any) -> None:
    """Refuse what pgvector would refuse, before anything is sent.

    Raises:
        InputError: An option is out of range, or the codes are too wide.
    """
    if n_bits > _MOST_INDEXED_BITS:
        raise InputError(
            f"pgvector indexes at most {_MOST_INDEXED_BITS:,} bits, the codes have {n_bits:,}: "
            "take index=false"
        )
    for option, value, least, most in (
        ("m", m, 2, 100),
        ("ef_construction", ef_construction, max(4, 2 * m if isinstance(m, int) else 4), 1000),
    ):
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"{option} is {value!r}, expected a number from {least} to {most}")


def pgvector_schema(connection: Connection[Any]) -> str:
    """The schema that pgvector's operators lie in, after enabling it where that is allowed.

    Raises:
        DatabaseError: It is missing, too old, or this user may not enable it.
    """
    try:
        connection.execute("create extension if not exists vector")
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise DatabaseError(
            "the server has no pgvector; install it there, or take index=false"
        ) from None
    except errors.InsufficientPrivilege:
        raise DatabaseError(
            "pgvector is not enabled in this database, and this user may not do it; have its "
            'owner run "create extension vector", or take index=false'
        ) from None
    row = fetch_one(
        connection,
        "select nspname, extversion from pg_extension e join pg_namespace n "
        "on n.oid = e.extnamespace where extname = 'vector'",
    )
    if row is None:
        raise DatabaseError("pgvector was enabled but is not there")
    if tuple(map(int, row[1].split(".")[:2])) < (0, 7):
        raise DatabaseError(
            f"the database has pgvector {row[1]}, and an index of bits needs 0.7: "
            'run "alter extension vector update", or take index=false'
        )
    return str(row[0])


def make_index(
    connection: Connection[Any], table: Table, operators: str, m: int, ef_construction: int
) -> None:
    """Make the index; a note says when it had too little memory."""
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    connection.execute(
        sql.SQL(
            "create index on {} using hnsw (code {}) with (m = {}, ef_construction = {})"
        ).format(
            table.identifier,
            sql.Identifier(operators, "bit_hamming_ops"),
            sql.Literal(m),
            sql.Literal(ef_construction),
        )
    )
    if any("maintenance_work_mem" in notice for notice in notices):
        warnings.warn(
            "the index did not fit maintenance_work_mem and took longer to make; "
            "raise it with the option maintenance_work_mem=1GB",
            stacklevel=3,
        )


@contextlib.contextmanager
def index_progress(
    address: str, process: int, rows: int, progress: Progress | None
) -> Iterator[None]:
    """Call `progress` with (rows + rows indexed, 2 * rows) while another connection makes an index.

    How far it is can only be seen from a second connection; where there is none to be had, the
    index is made all the same.
    """
    if progress is None:
        yield
        return
    made = threading.Event()

    def watch() -> None:
        with contextlib.suppress(DatabaseError), connected(address) as connection:
            while not made.wait(0.3):
                # Blocks and not tuples: with parallel workers each counts its own tuples.
                row = fetch_one(
                    connection,
                    "select blocks_done::float8 / nullif(blocks_total, 0) "
                    "from pg_stat_progress_create_index where pid = %s",
                    (process,),
                )
                if row and row[0] is not None:
                    progress(rows + int(rows * min(row[0], 1.0)), 2 * rows)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        made.set()
        watcher.join()
    progress(2 * rows, 2 * rows)
