"""Codes in a single SQLite file, searched by sqlite-vec.

The file has three tables: `codes`, a vec0 table of `id` (the row number) and `code`; `words` with
`id` and `word`, left out if the rows have no words; and `embits`, which describes the codes.
`nearest` takes `params` for each `?` in `where`.

sqlite-vec stores the first bit of a byte lowest: bits are reversed. Codes are padded to bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryRows
from embits.errors import FormatError, InputError, named_if_missing
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Description, Rows

__all__ = ["connect", "distance", "export", "nearest", "read", "to_blob"]

MAX_BITS = 8192  # sqlite-vec's limit
MAX_K = 1024  # beyond, sqlite-vec is slower than a scan of all rows; its own limit is 4096
_APPLICATION = 0x656D6274  # "embt", the application id in the header of our databases
_OURS = re.compile(r"embits|words|codes(_(info|chunks|rowids|vector_chunks\d+))?|sqlite_.*")


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, overwrite: bool = False
) -> Facts:
    """Write a database, atomically: see `integrations.export`.

    With `overwrite`, a database is replaced that embits wrote and that has no tables of others.
    """
    bits, path = tables.to_export(bits), Path(target)
    tables.check_limits(bits, "sqlite-vec", MAX_BITS)
    for suffix in ("-journal", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise InputError(f"{path} is in use: {path.name}{suffix} exists")
    if path.is_file() and path.stat().st_size:
        _check_replaceable(path)
    check_target(path, overwrite=overwrite)
    facts, width = dataclasses.asdict(Description.of(bits)), bits.codes.shape[1]
    facts |= {"words": int(facts["words"]), "version": facts.pop("embits")}
    del facts["index"]
    with (
        atomic_write(path) as file,
        tables.one_line_errors(path, _apsw().Error),
        # Nobody else opens the temporary file: no journal and no locks are needed.
        contextlib.closing(_open(file.name, "rw&nolock=1")) as connection,
    ):
        connection.execute(
            "pragma journal_mode = off; pragma synchronous = off; begin; "
            f"pragma application_id = {_APPLICATION}; "
            "create table embits (name text primary key, value) without rowid; "
            f"create virtual table codes using vec0(id integer primary key, code bit[{8 * width}])"
        ).fetchall()
        connection.executemany("insert into embits values (?, ?)", list(facts.items()))
        if facts["words"]:
            connection.execute("create table words (id integer primary key, word text not null)")
        for rows, codes, words in tables.row_blocks(bits, progress):
            blob = to_blob(codes)
            blobs = (blob[at : at + width] for at in range(0, len(blob), width))
            insert = "insert into codes (id, code) values (?, vec_bit(?))"
            connection.executemany(insert, zip(rows, blobs, strict=True))
            if words is not None:
                insert = "insert into words values (?, ?)"
                connection.executemany(insert, zip(rows, words, strict=True))
        if facts["words"]:
            connection.execute("create unique index words_by_word on words (word)")
        connection.execute("commit")
    return {"bytes": path.stat().st_size}


def connect(path: str | os.PathLike[str], *, writable: bool = False) -> Any:
    """Open a database that `export` wrote, as an `apsw.Connection` with sqlite-vec loaded.

    It is read-only unless it is to be `writable`. Raises FormatError if `export` did not write it,
    and OSError if there is no such file.
    """
    if not _is_ours(path):
        raise FormatError(f"{path}: not a database that embits wrote")
    with tables.one_line_errors(path, _apsw().Error):
        return _open(path, "rw" if writable else "ro")


def distance(code: Any) -> str:
    """Return the Hamming distance of each row to a packed code as an expression in SQL.

    It names the column `code`, and compares every row of a query.

    Example:
        >>> distance(np.packbits([1, 0, 1, 1]))
        "vec_distance_hamming(code, vec_bit(x'0d'))"
    """
    return f"vec_distance_hamming(code, vec_bit(x'{to_blob(code).hex()}'))"


def to_blob(code: Codes) -> bytes:
    """Return a packed code as the bytes that `vec_bit(?)` takes.

    Example:
        >>> to_blob(np.packbits([1, 0, 0, 0, 0, 0, 0, 0])).hex()
        '01'
    """
    bits = np.unpackbits(np.asarray(code, dtype=np.uint8), axis=-1)
    return np.packbits(bits, axis=-1, bitorder="little").tobytes()


class _Codes(tables.SqlTable):
    unordered = MAX_K

    def __init__(self, connection: Any, place: str) -> None:
        facts = dict(connection.execute("select name, value from embits").fetchall())
        facts |= {"embits": facts.get("version"), "words": facts.get("words") == 1}
        description = Description.parse(facts)
        if description is None or description.bits > MAX_BITS:
            raise FormatError(f"{place}: damaged: the table embits does not describe the codes")
        super().__init__(place, facts)
        self.connection = connection
        self.relation = "codes join words using (id)" if description.words else "codes"

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any) -> Iterator[_Codes]:
        place = str(source) if isinstance(source, str | os.PathLike) else "SQLite"
        errors = _apsw().Error, UnicodeDecodeError
        with tables.opened(source, connect, place, *errors) as connection:
            yield cls(connection, place)

    def run(self, statement: str, values: Sequence[Any]) -> Any:
        return self.connection.execute(statement, tuple(values)).fetchall()

    def packed(self, codes: list[bytes]) -> bytes:
        return to_blob(np.frombuffer(b"".join(codes), np.uint8))  # to the order of embits

    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        rows = super().rows(field, value)
        for table in ("codes", "words") if self.description.words and field is None else ():
            if self.run(f"select count(*) from {table}", []) != [(len(rows.codes),)]:
                raise FormatError(f"{self.place}: damaged: words and codes do not match")
        return rows

    def search(self, code: Codes, k: int, where: str | None, params: Sequence[Any]) -> Any:
        if k > MAX_K:
            return self.by_distance(distance(code), where, params, k)
        match = f"where code match vec_bit(x'{to_blob(code).hex()}') and k = {k}"
        if where is not None:
            # sqlite-vec applies `id in (…)` while it searches; a condition on a joined table
            # would filter what the search has found.
            table = "words" if self.description.words else "codes"
            match += f" and codes.id in (select id from {table} where ({where}\n))"
        return self.run(self.select("distance", match), params)


nearest, read = _Codes.nearest, _Codes.read


def _open(path: str | os.PathLike[str], mode: str) -> Any:
    apsw, extension = _apsw(), package("sqlite_vec", "searching codes in SQLite", "sqlite")
    address = f"file:{quote(os.path.realpath(path))}?mode={mode}"
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(address, flags=flags)
    connection.enable_load_extension(True)
    extension.load(connection)
    connection.enable_load_extension(False)
    connection.execute("pragma trusted_schema = off")
    return connection


def _apsw() -> Any:
    """SQLite that can load extensions, which Python's own often cannot."""
    return package("apsw", "SQLite with extensions", "sqlite")


def _is_ours(path: str | os.PathLike[str]) -> bool:
    with named_if_missing(path), Path(path).open("rb") as file:
        header = file.read(100)
    is_sqlite = header[:16] == b"SQLite format 3\0"
    return is_sqlite and header[68:72] == _APPLICATION.to_bytes(4, "big")


def _check_replaceable(path: Path) -> None:
    if not _is_ours(path):
        raise InputError(f"{path} is not a database that embits wrote; choose another file")
    with _Codes.opened(path) as codes:
        select = "select type, name from sqlite_master where type <> 'index'"
        for kind, name in codes.run(select, []):
            if not _OURS.fullmatch(name):
                raise InputError(f"{path} has the {kind} {name!r} of someone else; move it away")
