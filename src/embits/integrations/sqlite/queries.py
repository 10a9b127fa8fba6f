"""Queries to a database that `sqlite.export` wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.bits import packed_width
from embits.coders import Coder
from embits.errors import FormatError, InputError, UnknownWordError
from embits.integrations.codes import from_codes
from embits.integrations.databases import Neighbor, Query, other_cases, query_code
from embits.integrations.sqlite.database import MAX_BITS, connect, engine, reverse_bits, to_blob
from embits.search.arguments import wanted_rows
from embits.words.vocabulary import RowNumbers

MAX_K = 1024  # beyond, sqlite-vec is slower than a scan of all rows; its own limit is 4096


def nearest(
    source: str | os.PathLike[str] | Any, query: Query, k: int = 10, *, coder: Coder | None = None
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The file, or a connection from `connect`, which is faster for many queries.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors; fewer come back if there are fewer rows.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the database.
        InputError: The query does not have the width of the codes, or there is no such row.
        FormatError: `export` did not write the database, or it is damaged.
    """
    with _reading(source) as connection:
        facts = _facts(connection)
        row, code = _query_row_and_code(connection, facts, query, coder)
        wanted = wanted_rows(k, facts["rows"]) + (row is not None)
        found = _closest(connection, code, wanted)
        found = [(distance, each) for distance, each in found if each != row][:k]
        return [Neighbor(_word(connection, facts, each), int(d), each) for d, each in found]


def read(source: str | os.PathLike[str] | Any, coder: Coder) -> BinaryVectors:
    """Read a whole database back.

    Args:
        source: The file, or a connection from `connect`.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.

    Raises:
        InputError: The coder does not make codes of this width.
        FormatError: `export` did not write the database, or it is damaged.
    """
    with _reading(source) as connection:
        facts = _facts(connection)
        if coder.n_bits_ != facts["bits"]:
            raise InputError(
                f"the coder makes {coder.n_bits_} bits, the database holds {facts['bits']}"
            )
        blob = b"".join(row[0] for row in connection.execute("select code from codes order by id"))
        width = packed_width(facts["bits"])
        if len(blob) != width * facts["rows"]:
            raise FormatError(f"damaged: {len(blob)} bytes of codes for {facts['rows']} rows")
        codes = reverse_bits(np.frombuffer(blob, dtype=np.uint8).reshape(-1, width))
        words = None
        if facts["words"]:
            words = [row[0] for row in connection.execute("select word from words order by id")]
            if len(words) != len(codes):
                raise FormatError(f"damaged: {len(words)} words for {len(codes)} codes")
        try:
            return from_codes(codes, coder, words)
        except InputError as error:
            raise FormatError(f"damaged: {error}") from None


@contextlib.contextmanager
def _reading(source: Any) -> Iterator[Any]:
    """Yield a connection, closed at the end if opened here; SQLite's errors become FormatError."""
    is_path = isinstance(source, str | os.PathLike)
    connection = connect(source) if is_path else source
    try:
        with contextlib.closing(connection) if is_path else contextlib.nullcontext():
            yield connection
    except (FormatError, UnicodeDecodeError, engine().Error) as error:
        raise FormatError(f"{source if is_path else 'the database'}: {error}") from None


def _facts(connection: Any) -> dict[str, Any]:
    facts = dict(connection.execute("select name, value from embits").fetchall())
    most = {"rows": 2**63, "bits": MAX_BITS, "words": 1}
    if not all(type(facts.get(name)) is int and 0 <= facts[name] <= most[name] for name in most):
        raise FormatError("damaged: the table embits does not describe the codes")
    return facts


def _query_row_and_code(
    connection: Any, facts: dict[str, Any], query: Query, coder: Coder | None
) -> tuple[int | None, bytes]:
    """Return the row that the query names, if any, and the query's code for sqlite-vec."""
    if not isinstance(query, str | int | np.integer):
        return None, to_blob(query_code(query, facts["bits"], coder))
    row = _row(connection, facts, query)
    found = connection.execute("select code from codes where id = ?", (row,)).fetchone()
    if found is None:
        raise InputError(f"there is no row {row}: there are {facts['rows']:,} rows")
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
    """Return the k smallest (distance, row).

    sqlite-vec breaks ties in any order. The query is repeated with a larger k until it returns all
    rows at the last distance; if there are too many, every row is compared.
    """
    if k == 0:
        return []
    size = k + 16
    while size <= MAX_K:
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
