"""Queries to a database that `sqlite.export` wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.bits import packed_width
from embits.coders import Coder
from embits.errors import FormatError, InputError
from embits.integrations.codes import check_coder, from_codes
from embits.integrations.databases import (
    Neighbor,
    Query,
    number_ids,
    where_clause,
)
from embits.integrations.sqlite.database import (
    CODER,
    MAX_BITS,
    connect,
    engine,
    reverse_bits,
    to_blob,
)
from embits.integrations.tables import nearest_neighbors

MAX_K = 1024  # beyond, sqlite-vec is slower than a scan of all rows; its own limit is 4096


class Facts(NamedTuple):
    """What the table `embits` says of the codes."""

    bits: int
    words: bool
    coder: str | None


class CodeTable:
    """The codes of a database.

    Raises:
        FormatError: The table `embits` is damaged.
    """

    place = "the database"

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        facts = dict(connection.execute("select name, value from embits").fetchall())
        most = {"rows": 2**63, "bits": MAX_BITS, "words": 1}
        whole = all(type(facts.get(name)) is int for name in most)
        if not whole or not all(0 <= facts[name] <= most[name] for name in most):
            raise FormatError("damaged: the table embits does not describe the codes")
        self.description = Facts(facts["bits"], bool(facts["words"]), facts.get(CODER))

    def find(self, words: list[str]) -> dict[str, int]:
        """The row numbers of those words that are there."""
        select = "select word, id from words where word = ?"
        rows = (self.connection.execute(select, (word,)).fetchone() for word in words)
        return {word: int(row) for word, row in filter(None, rows)}

    def code(self, row: int) -> NDArray[np.uint8] | None:
        """The packed code of a row."""
        select = "select code from codes where id = ?"
        found = self.connection.execute(select, (row,)).fetchone()
        return None if found is None else reverse_bits(np.frombuffer(found[0], dtype=np.uint8))

    def word(self, row: int) -> str:
        """The word of a row, or its number.

        Raises:
            FormatError: It has none.
        """
        if not self.description.words:
            return str(row)
        found = self.connection.execute("select word from words where id = ?", (row,)).fetchone()
        if found is None:
            raise FormatError(f"damaged: row {row} has no word")
        return str(found[0])


def nearest(
    source: str | os.PathLike[str] | Any,
    query: Query,
    k: int = 10,
    *,
    where: str | None = None,
    params: Sequence[Any] = (),
    coder: Coder | None = None,
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The file, or a connection from `connect`, which is faster for many queries.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors; fewer come back if there are fewer rows.
        where: A condition in SQL on `id` and `word`, and on whatever subqueries name; rows are
            filtered before the search. It is run as it is: pass values of others through `params`.
        params: The values of the `?` in `where`.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the database.
        InputError: The query does not have the width of the codes, there is no such row, the
            coder is not the one that made the codes, or SQLite cannot run `where`.
        FormatError: `export` did not write the database, or it is damaged.
    """
    with _reading(source) as connection:
        table = CodeTable(connection)
        condition = _condition(table, where, params)

        def closest(code: NDArray[np.uint8], k: int) -> list[Neighbor]:
            found = _closest(connection, to_blob(code), k, condition, tuple(params))
            return [Neighbor(table.word(row), int(distance), row) for distance, row in found]

        return nearest_neighbors(table, query, k, coder, closest)


def read(source: str | os.PathLike[str] | Any, coder: Coder) -> BinaryVectors:
    """Read a whole database back.

    Args:
        source: The file, or a connection from `connect`.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.

    Raises:
        InputError: Another coder made the codes.
        FormatError: `export` did not write the database, or it is damaged.
    """
    with _reading(source) as connection:
        table = CodeTable(connection)
        facts = table.description
        check_coder(coder, facts.bits, facts.coder, table.place)
        found = connection.execute("select id, code from codes order by id").fetchall()
        numbers = [row[0] for row in found]
        blob = b"".join(row[1] for row in found)
        width = packed_width(facts.bits)
        if len(blob) != width * len(found):
            raise FormatError(f"damaged: {len(blob)} bytes of codes for {len(found)} rows")
        codes = reverse_bits(np.frombuffer(blob, dtype=np.uint8).reshape(-1, width))
        try:
            return from_codes(codes, coder, _ids(connection, facts, numbers))
        except InputError as error:
            raise FormatError(f"damaged: {error}") from None


def _ids(connection: Any, facts: Facts, numbers: list[int]) -> Any:
    """Return the ids of the rows of these numbers; None if they are the row numbers."""
    if not facts.words:
        return number_ids(numbers)
    found = connection.execute("select id, word from words order by id").fetchall()
    if [row[0] for row in found] != numbers:
        raise FormatError(f"damaged: {len(found)} words do not match {len(numbers)} codes")
    return [row[1] for row in found]


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


def _condition(table: CodeTable, where: str | None, params: Sequence[Any]) -> str:
    """Return the rows that a condition lets through, as a condition on `id`.

    sqlite-vec looks at `id in (…)` while it searches. A condition on a joined table filters only
    what the search has found.

    Raises:
        InputError: SQLite cannot run it.
    """
    if where is None:
        return ""
    name = "words" if table.description.words else "codes"
    rows = f"select id from {name} {where_clause(where)}"
    try:
        table.connection.execute(f"{rows} limit 0", tuple(params)).fetchall()
    except engine().Error as error:
        raise InputError(f"the condition {where!r} cannot be run: {error}") from None
    return f" and id in ({rows})"


def _closest(
    connection: Any, code: bytes, k: int, condition: str, params: tuple[Any, ...]
) -> list[tuple[float, int]]:
    """Return the k smallest (distance, row).

    sqlite-vec breaks ties in any order. The query is repeated with a larger k until it returns all
    rows at the last distance; if there are too many, every row is compared.
    """
    size = k + 16
    while size <= MAX_K:
        select = "select distance, id from codes where code match vec_bit(?) and k = ?" + condition
        found = sorted(connection.execute(select, (code, size, *params)).fetchall())
        if len(found) < size or found[-1][0] > found[k - 1][0]:
            return found[:k]
        size *= 4
    select = (
        "select vec_distance_hamming(code, vec_bit(?)) as d, id from codes where true"
        f"{condition} order by 1, 2 limit ?"
    )
    return connection.execute(select, (code, *params, k)).fetchall()  # type: ignore[no-any-return]
