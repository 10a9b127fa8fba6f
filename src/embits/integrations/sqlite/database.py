"""SQLite with sqlite-vec: opening databases, recognizing ours, and the order of bits."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from embits.errors import FormatError, InputError, MissingExtraError, named_if_missing

APPLICATION = 0x656D6274  # "embt", the application id in the header of our databases
MAX_BITS = 8192  # sqlite-vec's limit
# Our tables and indexes. The width of the codes varies, so vec0's statement is not compared.
SCHEMA = {
    "embits": "create table embits (name text primary key, value) without rowid",
    "codes": None,
    "words": "create table words (id integer primary key, word text not null)",
    "words_by_word": "create unique index words_by_word on words (word)",
}
FACTS = ("version", "rows", "bits", "dims", "method", "words")
# Facts that databases of earlier versions lack: the checksums of all rows and of the coder.
DIGEST = "digest"
CODER = "coder"
_SHADOW_TABLE = re.compile(r"codes_(info|chunks|rowids|vector_chunks\d+)")


def connect(path: str | os.PathLike[str], *, writable: bool = False) -> Any:
    """Open a database that `export` wrote, with sqlite-vec loaded.

    Args:
        path: The file.
        writable: Allow changes; otherwise the connection is read-only. An export does not replace
            a database that was changed.

    Returns:
        A connection of the standard `sqlite3`, or of `apsw` where Python's own cannot load
        extensions. Both have `execute`.

    Raises:
        FormatError: `export` did not write it.
        OSError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    with named_if_missing(path), path.open("rb"):  # SQLite's own message does not give the reason
        pass
    if not is_ours(path):
        raise FormatError(f"{path}: not a database that embits wrote")
    try:
        return open_database(path, "rw" if writable else "ro")
    except engine().Error as error:
        raise FormatError(f"{path}: {error}") from None


def open_database(path: Path, mode: str) -> Any:
    """Open a connection with sqlite-vec loaded and an untrusted schema.

    Raises:
        MissingExtraError: sqlite-vec is not installed, or no SQLite can load it.
    """
    try:
        import sqlite_vec
    except ImportError:
        raise MissingExtraError("searching codes in SQLite", "sqlite") from None
    library = engine()
    address = f"file:{quote(str(path.resolve()))}?mode={mode}"
    if library.__name__ == "apsw":
        flags = library.SQLITE_OPEN_URI | library.SQLITE_OPEN_READWRITE
        connection = library.Connection(address, flags=flags)
    else:
        connection = library.connect(address, uri=True, isolation_level=None)
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.enable_load_extension(False)
    connection.execute("pragma trusted_schema = off")
    return connection


def engine() -> Any:
    """Return Python's sqlite3 if it can load extensions, else apsw."""
    try:
        import sqlite3

        if hasattr(sqlite3.Connection, "enable_load_extension"):
            return sqlite3
    except ImportError:  # Python may be built without it
        pass
    try:
        import apsw
    except ImportError:
        raise MissingExtraError("SQLite with extensions", "sqlite") from None
    return apsw


def is_ours(path: Path) -> bool:
    """Return whether `export` wrote this file."""
    with path.open("rb") as file:
        header = file.read(100)
    is_sqlite = header[:16] == b"SQLite format 3\0"
    return is_sqlite and header[68:72] == APPLICATION.to_bytes(4, "big")


def check_replaceable(path: Path) -> None:
    """Check that an export may write to this path.

    Raises:
        InputError: The file there was not written by `export`, was changed since, or is in use.
    """
    for suffix in ("-journal", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise InputError(f"{path} is in use: {path.name}{suffix} exists")
    if not path.is_file() or path.stat().st_size == 0:
        return
    if not is_ours(path):
        raise InputError(
            f"{path} exists and is not a database that embits wrote; "
            "choose another file, or move it away"
        )
    try:
        with contextlib.closing(open_database(path, "ro")) as connection:
            added = next(_additions(connection), None)
    except engine().Error as error:
        raise InputError(f"{path} exists and cannot be read ({error}); remove it first") from None
    if added is not None:
        raise InputError(
            f"{path} has {added} that embits did not write; choose another file, or move it away"
        )


def _additions(connection: Any) -> Iterator[str]:
    """Yield what was added to a database since `export` wrote it."""
    for kind, name, sql in connection.execute("select type, name, sql from sqlite_master"):
        if name.startswith("sqlite_") or _SHADOW_TABLE.fullmatch(name):
            continue  # SQLite's own, and those behind the vec0 table
        if name not in SCHEMA:
            yield f"the {kind} {name!r}"
        elif SCHEMA[name] not in (None, sql.lower()):
            yield f"columns in {name!r}"
    for (name,) in connection.execute("select name from embits"):
        if name not in (*FACTS, DIGEST, CODER):
            yield "a row in 'embits'"
    rows = connection.execute("select value from embits where name = 'rows'").fetchone()
    tables = {row[0] for row in connection.execute("select name from sqlite_master")}
    for table in tables & {"codes", "words"}:
        if connection.execute(f"select count(*) from {table}").fetchone() != rows:
            yield f"rows in {table!r}"
    stored = connection.execute("select value from embits where name = ?", (DIGEST,)).fetchone()
    if stored is not None and stored[0] != _stored_digest(connection, words="words" in tables):
        yield "changed rows"


def _stored_digest(connection: Any, *, words: bool) -> str:
    codes = connection.execute("select id, code from codes order by id")
    named = connection.execute("select id, word from words order by id") if words else ()
    return rows_digest(codes, named)


def rows_digest(codes: Iterable[tuple[int, bytes]], words: Iterable[tuple[int, str]]) -> str:
    """A checksum of all codes and words with their ids, in the order of the ids."""
    digest = hashlib.blake2b(digest_size=16)
    for row, code in codes:
        digest.update(b"%d %b" % (row, code))
    for row, word in words:
        digest.update(f"{row} {word}\n".encode())
    return digest.hexdigest()


def to_blob(code: NDArray[np.uint8]) -> bytes:
    """Return a packed code as the bytes that `vec_bit(?)` takes.

    Example:
        >>> import numpy as np
        >>> to_blob(np.packbits([1, 0, 0, 0, 0, 0, 0, 0])).hex()
        '01'
    """
    return reverse_bits(np.asarray(code, dtype=np.uint8)).tobytes()


def reverse_bits(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Reverse the order of the bits in each byte."""
    return np.packbits(np.unpackbits(codes, axis=-1), axis=-1, bitorder="little")
