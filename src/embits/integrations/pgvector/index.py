"""pgvector's HNSW index: checks, building, and progress."""

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

MAX_INDEXED_BITS = 64_000


def check_index(n_bits: int, m: Any, ef_construction: Any) -> None:
    """Check pgvector's limits before anything is sent.

    Raises:
        InputError: An option is out of range, or the codes are too wide.
    """
    if n_bits > MAX_INDEXED_BITS:
        raise InputError(
            f"pgvector indexes at most {MAX_INDEXED_BITS:,} bits, the codes have {n_bits:,}: "
            "use index=false"
        )
    for option, value, least, most in (
        ("m", m, 2, 100),
        ("ef_construction", ef_construction, max(4, 2 * m if isinstance(m, int) else 4), 1000),
    ):
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"{option} is {value!r}, expected a number from {least} to {most}")


def pgvector_schema(connection: Connection[Any]) -> str:
    """Enable pgvector if necessary, and return the schema of its operators.

    Raises:
        DatabaseError: pgvector is missing or too old, or this user may not enable it.
    """
    try:
        connection.execute("create extension if not exists vector")
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise DatabaseError(
            "the server has no pgvector; install it there, or use index=false"
        ) from None
    except errors.InsufficientPrivilege:
        raise DatabaseError(
            "pgvector is not enabled in this database, and this user may not enable it; ask the "
            'owner to run "create extension vector", or use index=false'
        ) from None
    row = fetch_one(
        connection,
        "select nspname, extversion from pg_extension e join pg_namespace n "
        "on n.oid = e.extnamespace where extname = 'vector'",
    )
    if row is None:
        raise DatabaseError("pgvector was enabled but cannot be found")
    if tuple(map(int, row[1].split(".")[:2])) < (0, 7):
        raise DatabaseError(
            f"the database has pgvector {row[1]}, and an index of bits needs 0.7: "
            'run "alter extension vector update", or use index=false'
        )
    return str(row[0])


def make_index(
    connection: Connection[Any], table: Table, operators: str, m: int, ef_construction: int
) -> None:
    """Build the index; warn if it did not fit in memory."""
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
            "the index did not fit in maintenance_work_mem and took longer to build; "
            "raise it with the option maintenance_work_mem=1GB",
            stacklevel=3,
        )


@contextlib.contextmanager
def index_progress(
    address: str, process: int, rows: int, progress: Progress | None
) -> Iterator[None]:
    """Call `progress` with (rows + rows indexed, 2 * rows) while an index is built.

    Progress is visible to a second connection only. Without one, nothing is reported.
    """
    if progress is None:
        yield
        return
    made = threading.Event()

    def watch() -> None:
        with contextlib.suppress(DatabaseError), connected(address) as connection:
            while not made.wait(0.3):
                # Blocks, not tuples: each parallel worker counts its own tuples.
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
