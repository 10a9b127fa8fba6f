"""Connections to Postgres: addresses, table names, one-line errors, and our tables' comments."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from embits.errors import DatabaseError, InputError
from embits.integrations.pgvector.psycopg import (
    Connection,
    Error,
    connect,
    conninfo_to_dict,
    sql,
    tuple_row,
)

MAX_NAME_BYTES = 63  # Postgres truncates longer names without an error
_DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')  # outside double quotes


class Table(NamedTuple):
    """A table's name, as written: it is not folded to lower case.

    Example:
        >>> Table.parse("app.words"), Table.parse('"a.b"')
        (Table(schema='app', name='words'), Table(schema=None, name='a.b'))
    """

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `name` or `schema.name`; double quotes enclose a part that contains a dot.

        Raises:
            InputError: It is not a valid name.
        """
        parts = [
            part[1:-1].replace('""', '"') if re.fullmatch('"(?:[^"]|"")*"', part) else part
            for part in _DOT.split(text)
        ]
        if len(parts) > 2 or not all(parts) or "\0" in text:
            raise InputError(f"the table is {text!r}, expected a name or schema.name")
        for part in parts:
            if len(part.encode()) > MAX_NAME_BYTES:
                raise InputError(f"{part!r} is longer than Postgres' {MAX_NAME_BYTES} bytes")
        return cls(None, parts[0]) if len(parts) == 1 else cls(parts[0], parts[1])

    @property
    def identifier(self) -> sql.Identifier:
        """Quoted for SQL."""
        return sql.Identifier(*([self.schema] if self.schema else []), self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


class Description(NamedTuple):
    """The facts that `export` wrote in a table's comment, and the table's oid and schema."""

    oid: int
    schema: str
    facts: dict[str, Any]


def read_description(connection: Connection[Any], table: Table) -> Description | None:
    """Return the description of a table, or None if there is no such table.

    Raises:
        InputError: `export` did not write the table.
    """
    row = fetch_one(
        connection,
        "select c.oid, n.nspname, obj_description(c.oid, 'pg_class') from pg_class c "
        "join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)",
        (table.identifier.as_string(connection),),
    )
    if row is None:
        return None
    with contextlib.suppress(ValueError):
        facts = json.loads(row[2] or "")
        if isinstance(facts, dict) and {"embits", "bits", "words", "index"} <= facts.keys():
            return Description(row[0], row[1], facts)
    raise InputError(f"the table {table} is not one that embits wrote; choose another name")


def expect_description(connection: Connection[Any], table: Table) -> Description:
    """Return the description of a table.

    Raises:
        InputError: There is no such table, or `export` did not write it.
    """
    found = read_description(connection, table)
    if found is None:
        raise InputError(f"there is no table {table}; `embits export --to pgvector` writes one")
    return found


def fetch_one(
    connection: Connection[Any], query: Any, values: tuple[Any, ...] = ()
) -> tuple[Any, ...] | None:
    """Return the first row as a tuple, whatever the connection's row factory is."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        return cursor.execute(query, values).fetchone()


@contextlib.contextmanager
def connected(address: str) -> Iterator[Connection[Any]]:
    """Yield a connection, and commit or roll back at the end; errors are one line.

    Raises:
        DatabaseError: The server cannot be reached, or reports an error.
    """
    where = without_password(address)
    try:
        connection = connect(address, client_encoding="utf8", autocommit=True)
    except Error as error:
        raise DatabaseError(f"cannot connect to {where}: {_one_line(error)}") from None
    try:
        with connection:
            yield connection
    except Error as error:
        raise DatabaseError(f"{where}: {_one_line(error)}") from None


def without_password(address: str) -> str:
    """Return the address without its password.

    Raises:
        InputError: The address is not valid. The message does not repeat it, as an unescaped
            password may appear in any part of it.

    Example:
        >>> without_password("postgresql://me:secret@db.example:5433/app?sslmode=require")
        'postgresql://me@db.example:5433/app'
    """
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except Error:
        parts = {"host": "@"}
    user, host, port, name = (parts.get(part, "") for part in ("user", "host", "port", "dbname"))
    if "@" in host + name or not re.fullmatch(r"[\d,]*", port):
        raise InputError(
            "the address of the database is not valid; expected "
            "postgresql://user:password@host:port/database, with % @ / : in a password escaped "
            "(%25 %40 %2F %3A)"
        )
    port = f":{port}" if port else ""
    user = f"{user}@" if user else ""
    if host.startswith("/"):  # the folder of a socket
        return f"postgresql://{user}{port}/{name}?host={host}"
    return f"postgresql://{user}{host}{port}/{name}"


def _one_line(error: Error) -> str:
    said = [error.diag.message_primary or str(error), error.diag.message_detail or ""]
    return " ".join("; ".join(part for part in said if part).split())
