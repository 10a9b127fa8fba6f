"""SQLite with sqlite-vec: which library opens it, which files are ours, how bits lie in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, MissingExtraError

APPLICATION = 0x656D6274  # "embt": in the file's header, to know our own files by


def to_blob(code: NDArray[np.uint8]) -> bytes:
    """A packed code as the bytes that `vec_bit(?)` takes.

    Example:
        >>> import numpy as np
        >>> to_blob(np.packbits([1, 0, 0, 0, 0, 0, 0, 0])).hex()
        '01'
    """
    return turned(np.asarray(code, dtype=np.uint8)).tobytes()


def turned(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bits of each byte in the other order."""
    return np.packbits(np.unpackbits(codes, axis=-1), axis=-1, bitorder="little")


def engine() -> Any:
    """Python's sqlite3 where it can load extensions, else apsw."""
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


def open_database(path: Path, mode: str) -> Any:
    """A connection with sqlite-vec at hand; what the file's schema says is not trusted.

    Raises:
        MissingExtraError: sqlite-vec is not installed, or nothing that can load it.
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


def is_ours(path: Path) -> bool:
    """Whether the file is a database that `export` wrote."""
    with path.open("rb") as file:
        header = file.read(100)
    is_sqlite = header[:16] == b"SQLite format 3\0"
    return is_sqlite and header[68:72] == APPLICATION.to_bytes(4, "big")


def refuse_others(path: Path) -> None:
    """A database is something people keep more in: nothing of theirs is overwritten.

    Raises:
        InputError: There is a file that `export` did not write, or it is in use.
    """
    if path.is_file() and path.stat().st_size and not is_ours(path):
        raise InputError(f"{path} exists and is not a database that embits wrote")
    for suffix in ("-journal", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise InputError(f"{path} is in use: {path.name}{suffix} lies beside it")
