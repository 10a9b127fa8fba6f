"""psycopg, or an error that says how to install it."""

from embits.errors import MissingExtraError

try:
    from psycopg import Connection, Error, connect, errors, sql
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.rows import tuple_row
except ImportError:
    raise MissingExtraError("Postgres", "pgvector") from None

__all__ = ["Connection", "Error", "connect", "conninfo_to_dict", "errors", "sql", "tuple_row"]
