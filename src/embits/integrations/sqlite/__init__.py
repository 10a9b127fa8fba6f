"""Codes in a single SQLite file, searched by sqlite-vec.

The file has three tables: `codes`, a vec0 table of `id` (the row number) and `code`; `words` with
`id` and `word`, left out if the rows have no words; and `embits`, which describes the codes.

sqlite-vec stores the first bit of a byte lowest, embits highest, and sqlite-vec's widths are
multiples of 8. The bits of each byte are reversed on the way in and out, and narrower codes are
padded with zeros.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from embits._version import __version__
from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.coders.identity import coder_checksum
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.sqlite.database import (
    APPLICATION,
    CODER,
    DIGEST,
    FACTS,
    MAX_BITS,
    SCHEMA,
    check_replaceable,
    connect,
    engine,
    open_database,
    rows_digest,
    to_blob,
)
from embits.integrations.sqlite.queries import nearest, read

__all__ = ["connect", "export", "nearest", "read", "to_blob"]

_BLOCK_ROWS = 10_000


def export(bits: BinaryVectors, target: str, *, progress: Progress | None = None) -> Facts:
    """Write a database, atomically.

    Args:
        bits: What to write.
        target: The file. A database that an export wrote is replaced. Any other is refused, and so
            is one with tables, columns or rows that were added or changed since.
        progress: Called with (done, total) as rows are written.

    Raises:
        InputError: The codes are too wide, or the file may not be replaced or is in use.
        MissingExtraError: sqlite-vec is not installed.
        OSError: The file could not be written; an older file is unchanged.
    """
    bits, path = to_export(bits), Path(target)
    if bits.n_bits > MAX_BITS:
        raise InputError(
            f"sqlite-vec holds at most {MAX_BITS:,} bits, the codes have {bits.n_bits:,}"
        )
    check_replaceable(path)
    with atomic_write(path) as file:
        try:
            # The file is temporary until it is renamed: no journal and no locks are needed.
            connection = open_database(Path(file.name), "rw&nolock=1")
            with contextlib.closing(connection):
                connection.execute("pragma journal_mode = off")
                connection.execute("pragma synchronous = off")
                connection.execute("begin")
                _write(connection, bits, progress)
                connection.execute("commit")
        except engine().Error as error:
            raise OSError(errno.EIO, str(error), str(path)) from None
    return {"bytes": path.stat().st_size}


def _write(connection: Any, bits: BinaryVectors, progress: Progress | None) -> None:
    width = bits.codes.shape[1]
    connection.execute(f"pragma application_id = {APPLICATION}")
    connection.execute(SCHEMA["embits"])
    named = int(isinstance(bits.words, Vocabulary))
    values = (__version__, len(bits), bits.n_bits, bits.dims, bits.coder.method, named)
    facts = dict(zip(FACTS, values, strict=True))
    connection.executemany("insert into embits values (?, ?)", list(facts.items()))
    connection.execute(
        f"create virtual table codes using vec0(id integer primary key, code bit[{8 * width}])"
    )
    if named:
        connection.execute(SCHEMA["words"])
    insert = "insert into codes (id, code) values (?, vec_bit(?))"
    for rows in _blocks(bits):
        connection.executemany(insert, zip(rows, _blobs(bits, rows), strict=True))
        if named:
            words = zip(rows, bits.words[rows.start : rows.stop], strict=True)
            connection.executemany("insert into words values (?, ?)", words)
        if progress is not None:
            progress(rows.stop, len(bits))
    if named:
        connection.execute(SCHEMA["words_by_word"])
    codes = chain.from_iterable(_blobs(bits, rows) for rows in _blocks(bits))
    digest = rows_digest(enumerate(codes), enumerate(bits.words) if named else ())
    checksums = [(DIGEST, digest), (CODER, coder_checksum(bits.coder))]
    connection.executemany("insert into embits values (?, ?)", checksums)


def _blocks(bits: BinaryVectors) -> Iterator[range]:
    for start in range(0, len(bits), _BLOCK_ROWS):
        yield range(start, min(start + _BLOCK_ROWS, len(bits)))


def _blobs(bits: BinaryVectors, rows: range) -> list[bytes]:
    """The codes of rows as the bytes that `vec_bit(?)` takes."""
    blob, width = to_blob(bits.codes[rows.start : rows.stop]), bits.codes.shape[1]
    return [blob[at : at + width] for at in range(0, len(blob), width)]
