"""Codes in a single SQLite file, searched by sqlite-vec.

The file has three tables: `codes`, a vec0 table of `id` (the row number) and `code`; `words` of
`id` and `word`, left out where rows go by their number; and `embits`, what the codes are.

sqlite-vec keeps the first bit of a byte lowest, where ours is highest, and widths that are
multiples of 8: codes are turned around as they go in and out, and narrower ones end in zeros.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import FormatError, InputError, UnknownWordError
from embits.file.atomic import atomic_write
from embits.integrations import Facts
from embits.integrations._neighbors import Neighbor, Query, other_cases, query_code
from embits.integrations._sqlite_file import (
    APPLICATION,
    engine,
    is_ours,
    open_database,
    refuse_others,
    to_blob,
    turned,
)
from embits.search.arguments import wanted_rows
from embits.words.vocabulary import RowNumbers, Vocabulary

__all__ = ["connect", "export", "nearest", "read", "to_blob"]

_MOST_BITS = 8192  # sqlite-vec's limit
_MOST_K = 1024  # beyond, its search is slower than reading every row; its own limit is 4096
_BLOCK_ROWS = 10_000


def export(bits: BinaryVectors, target: str, *, progress: Progress | None = None) -> Facts:
    """Write a database, whole or not at all.

    Args:
        bits: What to write.
        target: The file. One that an export wrote before is replaced, any other is refused.
        progress: Called with (done, total) as rows are written.

    Raises:
        InputError: The codes are too wide, or the file is not ours or in use.
        MissingExtraError: sqlite-vec is not installed.
        OSError: The disk said no; a file that was there before is still there.
    """
    path = Path(target)
    if bits.n_bits > _MOST_BITS:
        raise InputError(
            f"sqlite-vec holds at most {_MOST_BITS:,} bits, the codes have {bits.n_bits:,}"
        )
    refuse_others(path)
    with atomic_write(path) as file:
        try:
            # Its place beside the target, the flush and the rename make it whole: no journal.
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


def connect(path: str | os.PathLike[str]) -> Any:
    """Open a database that `export` wrote, to read only, with sqlite-vec at hand.

    Returns:
        A connection of the standard `sqlite3`; of `apsw` where Python's own cannot load
        extensions. Both have `execute`.

    Raises:
        FormatError: It is not a database that `export` wrote.
        OSError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    with path.open("rb"):  # SQLite's own message would not say why
        pass
    if not is_ours(path):
        raise FormatError(f"{path}: not a database that embits wrote")
    try:
        return open_database(path, "ro")
    except engine().Error as error:
        raise FormatError(f"{path}: {error}") from None


def nearest(
    source: str | os.PathLike[str] | Any, query: Query, k: int = 10, *, coder: Coder | None = None
) -> list[Neighbor]:
    """The k nearest rows by Hamming distance, exact, ties in row order.

    Args:
        source: The file, or what `connect` returned: many questions are quicker with that.
        query: A word or a row number, which is left out of the answer; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: How many; more than there are gives all.
        coder: What makes a code of a float vector: `embits.load(file).coder`.

    Returns:
        Neighbors (word, distance, row), best first; where rows go by number, that is the word.

    Raises:
        UnknownWordError: The word is not in the database.
        InputError: The query does not fit it.
        FormatError: It is not a database that `export` wrote, or it is damaged.
    """
    with _reading(source) as connection:
        facts = _facts(connection)
        row, code = _asked(connection, facts, query, coder)
        wanted = wanted_rows(k, facts["rows"]) + (row is not None)
        found = _closest(connection, code, wanted)
        found = [(distance, each) for distance, each in found if each != row][:k]
        return [Neighbor(_word(connection, facts, each), int(d), each) for d, each in found]


def read(
    source: str | os.PathLike[str] | Any,
) -> tuple[list[str] | None, NDArray[np.uint8]]:
    """A database back as words (None where rows go by their number) and packed codes.

    Raises:
        FormatError: It is not a database that `export` wrote, or it is damaged.
    """
    with _reading(source) as connection:
        facts = _facts(connection)
        blob = b"".join(row[0] for row in connection.execute("select code from codes order by id"))
        width = -(-facts["bits"] // 8)
        if len(blob) != width * facts["rows"]:
            raise FormatError(f"damaged: {len(blob)} bytes of codes for {facts['rows']} rows")
        codes = turned(np.frombuffer(blob, dtype=np.uint8).reshape(-1, width))
        if not facts["words"]:
            return None, codes
        words = [row[0] for row in connection.execute("select word from words order by id")]
        if len(words) != len(codes):
            raise FormatError(f"damaged: {len(words)} words for {len(codes)} codes")
        return words, codes


def _write(connection: Any, bits: BinaryVectors, progress: Progress | None) -> None:
    width = bits.codes.shape[1]
    connection.execute(f"pragma application_id = {APPLICATION}")
    connection.execute("create table embits (name text primary key, value) without rowid")
    facts = {
        "version": __version__,
        "rows": len(bits),
        "bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
        "words": int(isinstance(bits.words, Vocabulary)),
    }
    connection.executemany("insert into embits values (?, ?)", list(facts.items()))
    connection.execute(
        f"create virtual table codes using vec0(id integer primary key, code bit[{8 * width}])"
    )
    if facts["words"]:
        connection.execute("create table words (id integer primary key, word text not null)")
    for start in range(0, len(bits), _BLOCK_ROWS):
        rows = range(start, min(start + _BLOCK_ROWS, len(bits)))
        blob = to_blob(bits.codes[start : rows.stop])
        codes = (blob[at : at + width] for at in range(0, len(blob), width))
        insert = "insert into codes (id, code) values (?, vec_bit(?))"
        connection.executemany(insert, zip(rows, codes, strict=True))
        if facts["words"]:
            words = zip(rows, bits.words[start : rows.stop], strict=True)
            connection.executemany("insert into words values (?, ?)", words)
        if progress is not None:
            progress(rows.stop, len(bits))
    if facts["words"]:
        connection.execute("create unique index words_by_word on words (word)")


@contextlib.contextmanager
def _reading(source: Any) -> Iterator[Any]:
    """A connection, closed at the end if it was opened here; what SQLite says is damage."""
    is_path = isinstance(source, str | os.PathLike)
    connection = connect(source) if is_path else source
    try:
        with contextlib.closing(connection) if is_path else contextlib.nullcontext():
            yield connection
    except (FormatError, UnicodeDecodeError, engine().Error) as error:
        raise FormatError(f"{source if is_path else 'the database'}: {error}") from None


def _facts(connection: Any) -> dict[str, Any]:
    facts = dict(connection.execute("select name, value from embits").fetchall())
    most = {"rows": 2**63, "bits": _MOST_BITS, "words": 1}
    if not all(type(facts.get(name)) is int and 0 <= facts[name] <= most[name] for name in most):
        raise FormatError("damaged: the table embits does not say what the codes are")
    return facts


def _asked(
    connection: Any, facts: dict[str, Any], query: Query, coder: Coder | None
) -> tuple[int | None, bytes]:
    """The row that is asked about, if it is one, and its code as sqlite-vec has it."""
    if not isinstance(query, str | int | np.integer):
        return None, to_blob(query_code(query, facts["bits"], coder))
    row = _row(connection, facts, query)
    found = connection.execute("select code from codes where id = ?", (row,)).fetchone()
    if found is None:
        raise InputError(f"row {row} of {facts['rows']} codes")
    return row, bytes(found[0])


def _row(connection: Any, facts: dict[str, Any], query: str | int | np.integer[Any]) -> int:
    if not isinstance(query, str):
        return int(query)
    if not facts["words"]:
        return RowNumbers(facts["rows"]).row(query)
    select = "select id from words where word = ?"
    found = connection.execute(select, (query,)).fetchone()
    if found is not None:
        return int(found[0])
    others = [word for word in other_cases(query) if connection.execute(select, (word,)).fetchone()]
    raise UnknownWordError(query, others[:3])


def _closest(connection: Any, code: bytes, k: int) -> list[tuple[float, int]]:
    """The k smallest (distance, row).

    Among rows of one distance sqlite-vec keeps any, so more are asked for until those of the
    last distance are all there; where they are too many, every row is compared.
    """
    if k == 0:
        return []
    size = k + 16
    while size <= _MOST_K:
        select = "select distance, id from codes where code match vec_bit(?) and k = ?"
        found = sorted(connection.execute(select, (code, size)).fetchall())
        if len(found) < size or found[-1][0] > found[k - 1][0]:
            return found[:k]
        size *= 4
    select = (
        "select vec_distance_hamming(code, vec_bit(?)) as d, id from codes order by 1, 2 limit ?"
    )
    return connection.execute(select, (code, k)).fetchall()  # type: ignore[no-any-return]


def _word(connection: Any, facts: dict[str, Any], row: int) -> str:
    if not facts["words"]:
        return str(row)
    found = connection.execute("select word from words where id = ?", (row,)).fetchone()
    if found is None:
        raise FormatError(f"damaged: row {row} has no word")
    return str(found[0])
