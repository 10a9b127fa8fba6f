"""Codes in a single SQLite file, searched by sqlite-vec.

The file has three tables: `codes`, a vec0 table of `id` (the row number) and `code`; `words` with
`id` and `word`, left out if the rows have no words; and `embits`, which describes the codes.

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

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import FormatError, InputError, named_if_missing
from embits.file.atomic import atomic_write
from embits.file.overwrite import OVERWRITE
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Description, Neighbor, Place, Query

__all__ = ["connect", "distance", "export", "nearest", "read", "to_blob"]

MAX_BITS = 8192  # sqlite-vec's limit
MAX_K = 1024  # beyond, sqlite-vec is slower than a scan of all rows; its own limit is 4096
_APPLICATION = 0x656D6274  # "embt", the application id in the header of our databases
_BLOCK_ROWS = 10_000
_OURS = re.compile(r"embits|words|codes(_(info|chunks|rowids|vector_chunks\d+))?|sqlite_.*")


def export(
    bits: BinaryVectors, target: str, *, progress: Progress | None = None, overwrite: bool = False
) -> Facts:
    """Write a database, atomically: see `integrations.export`.

    With `overwrite`, a database is replaced that embits wrote and that has no tables of others.
    """
    bits, path = tables.to_export(bits), Path(target)
    if bits.n_bits > MAX_BITS:
        raise InputError(f"sqlite-vec holds {MAX_BITS:,} bits, the codes have {bits.n_bits:,}")
    for suffix in ("-journal", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise InputError(f"{path} is in use: {path.name}{suffix} exists")
    if path.is_file() and path.stat().st_size:
        _check_replaceable(path, overwrite)
    with (
        atomic_write(path) as file,
        tables.one_line_errors(path, _apsw().Error),
        # The file is temporary until it is renamed: no journal and no locks are needed.
        contextlib.closing(_open(Path(file.name), "rw&nolock=1")) as connection,
    ):
        for statement in ("pragma journal_mode = off", "pragma synchronous = off", "begin"):
            connection.execute(statement)
        _write(connection, bits, progress)
        connection.execute("commit")
    return {"bytes": path.stat().st_size}


def connect(path: str | os.PathLike[str], *, writable: bool = False) -> Any:
    """Open a database that `export` wrote, as an `apsw.Connection` with sqlite-vec loaded.

    It is read-only unless it is to be `writable`. Raises FormatError if `export` did not write it,
    and OSError if there is no such file.
    """
    path = Path(path)
    with named_if_missing(path):
        if not _is_ours(path):
            raise FormatError(f"{path}: not a database that embits wrote")
    with tables.one_line_errors(path, _apsw().Error):
        return _open(path, "rw" if writable else "ro")


def nearest(
    source: Place, query: Query, k: int = 10, *, where: str | None = None,
    params: Sequence[Any] = (), coder: Coder | None = None,
) -> list[Neighbor]:  # fmt: skip
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The file, or a connection from `connect`, which is faster for many queries.
        query: See `table.Table.nearest`, also for `k`, `coder` and the errors.
        where: A condition in SQL on `id` and `word`, run unchanged before the search: pass
            untrusted values through `params`.
        params: The values of the `?` in `where`.
    """
    with _opened(source) as codes:

        def search(code: Codes, size: int) -> list[Neighbor]:
            if size > MAX_K:
                return codes.by_distance(distance(code), where, params, size)
            match = f"where code match vec_bit(x'{to_blob(code).hex()}') and k = {size}"
            if where is not None:
                # sqlite-vec applies `id in (…)` while it searches; a condition on a joined table
                # would filter what the search has found.
                table = "words" if codes.description.words else "codes"
                match += f" and codes.id in (select id from {table} {tables.where_clause(where)})"
            return codes.neighbors("distance", match, params)

        return codes.nearest(query, k, coder, search, most=max(MAX_K, k) + 1)


def read(source: Place, coder: Coder) -> BinaryVectors:
    """Read a whole database back as BinaryVectors: see `table.Table.read`."""
    with _opened(source) as codes:
        return codes.read(coder)


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
    columns = "code"

    def __init__(self, connection: Any, place: str) -> None:
        facts = dict(connection.execute("select name, value from embits").fetchall())
        facts |= {"embits": facts.get("version"), "words": facts.get("words") == 1}
        found = Description.parse(facts)
        if found is None or found.bits > MAX_BITS:
            raise FormatError(f"{place}: damaged: the table embits does not describe the codes")
        super().__init__(place, found)
        self.connection = connection
        self.relation = "codes join words using (id)" if found.words else "codes"

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, tuple(values)).fetchall()  # type: ignore[no-any-return]

    def packed(self, found: list[tuple[Any, ...]]) -> Codes:
        blob, width = b"".join(row[0] for row in found), packed_width(self.description.bits)
        if len(blob) != width * len(found):
            raise FormatError(f"{self.place}: damaged: {len(blob)} bytes in {len(found)} rows")
        codes = to_blob(np.frombuffer(blob, dtype=np.uint8))  # to the order of embits
        return np.frombuffer(codes, dtype=np.uint8).reshape(-1, width)

    def rows(self) -> tables.Rows:
        numbers, codes, words = super().rows()
        for table in ("codes", "words") if self.description.words else ():
            if self.run(f"select count(*) from {table}") != [(len(codes),)]:
                raise FormatError(f"{self.place}: damaged: words and codes do not match")
        return numbers, codes, words


@contextlib.contextmanager
def _opened(source: Any) -> Iterator[_Codes]:
    is_path = isinstance(source, str | os.PathLike)
    connection, place = connect(source) if is_path else source, source if is_path else "SQLite"
    with (
        contextlib.closing(connection) if is_path else contextlib.nullcontext(),
        tables.one_line_errors(place, UnicodeDecodeError, _apsw().Error),
    ):
        yield _Codes(connection, str(place))


def _open(path: Path, mode: str) -> Any:
    apsw, extension = _apsw(), package("sqlite_vec", "searching codes in SQLite", "sqlite")
    address = f"file:{quote(str(path.resolve()))}?mode={mode}"
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


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(100)
    is_sqlite = header[:16] == b"SQLite format 3\0"
    return is_sqlite and header[68:72] == _APPLICATION.to_bytes(4, "big")


def _check_replaceable(path: Path, overwrite: bool) -> None:
    if not _is_ours(path):
        raise InputError(f"{path} is not a database that embits wrote; choose another file")
    if not overwrite:
        raise InputError(f"{path} exists: choose another output, or {OVERWRITE}")
    with _opened(path) as codes:
        for kind, name in codes.run("select type, name from sqlite_master where type <> 'index'"):
            if not _OURS.fullmatch(name):
                raise InputError(f"{path} has the {kind} {name!r} of someone else; move it away")


def _write(connection: Any, bits: BinaryVectors, progress: Progress | None) -> None:
    facts = dataclasses.asdict(Description.of(bits))
    facts |= {"words": int(facts["words"]), "version": facts.pop("embits")}
    del facts["index"]
    connection.execute(f"pragma application_id = {_APPLICATION}")
    connection.execute("create table embits (name text primary key, value) without rowid")
    connection.executemany("insert into embits values (?, ?)", list(facts.items()))
    width = bits.codes.shape[1]
    connection.execute(
        f"create virtual table codes using vec0(id integer primary key, code bit[{8 * width}])"
    )
    if facts["words"]:
        connection.execute("create table words (id integer primary key, word text not null)")
    insert = "insert into codes (id, code) values (?, vec_bit(?))"
    for rows, codes, words in tables.row_blocks(bits, _BLOCK_ROWS, progress):
        blob = to_blob(codes)
        blobs = [blob[at : at + width] for at in range(0, len(blob), width)]
        connection.executemany(insert, zip(rows, blobs, strict=True))
        if words is not None:
            connection.executemany("insert into words values (?, ?)", zip(rows, words, strict=True))
    if facts["words"]:
        connection.execute("create unique index words_by_word on words (word)")
