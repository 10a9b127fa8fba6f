"""Tables of codes in other engines: queries, results and rows that come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import FormatError, InputError, UnknownWordError
from embits.ids.vocabulary import Vocabulary
from embits.integrations.codes import check_coder, from_codes
from embits.integrations.databases import (
    Neighbor,
    Query,
    number_ids,
    other_cases,
    query_code,
    row_number,
)
from embits.search.arguments import wanted_rows

BLOCK_BYTES = 32 << 20  # of a block of rows: small enough for a message to a server


class Rows(NamedTuple):
    """All rows of a table, in the order of their numbers."""

    numbers: NDArray[np.int64]
    codes: NDArray[np.uint8]
    words: list[str] | None

    @classmethod
    def in_order(cls, numbers: Any, codes: NDArray[np.uint8], words: list[str] | None) -> Rows:
        """Rows that came in any order."""
        numbers = np.asarray(numbers, dtype=np.int64)
        order = np.argsort(numbers, kind="stable")
        ordered = None if words is None else [words[at] for at in order.tolist()]
        return cls(numbers[order], codes[order], ordered)


class Coded(Protocol):
    """What a search needs to know of the codes: a `Description`, or what an engine has of it."""

    @property
    def bits(self) -> int:
        """Bits of a code."""

    @property
    def coder(self) -> str | None:
        """The checksum of the coder, None if it is not known."""

    @property
    def words(self) -> bool:
        """Whether the rows have ids of their own."""


class Table(Protocol):
    """What a search needs of an engine's table."""

    place: str

    @property
    def description(self) -> Coded:
        """What the codes are."""

    def find(self, words: list[str]) -> dict[str, int]:
        """The row numbers of those words that are there."""

    def code(self, row: int) -> NDArray[np.uint8] | None:
        """The packed code of a row."""


def nearest_neighbors(
    table: Table,
    query: Query,
    k: int,
    coder: Coder | None,
    closest: Callable[[NDArray[np.uint8], int], list[Neighbor]],
) -> list[Neighbor]:
    """Search a table: `closest` returns the nearest rows of a packed code, nearest first.

    Raises:
        UnknownWordError: The query is an id that is not in the table.
        InputError: There is no such row, or the query does not have the width of the codes.
    """
    row, code = _row_and_code(table, query, coder)
    wanted = wanted_rows(k, np.iinfo(np.int64).max - 1) + (row is not None)
    found = closest(code, wanted) if wanted else []
    return [each for each in found if each.row != row][:k]


def _row_and_code(
    table: Table, query: Query, coder: Coder | None
) -> tuple[int | None, NDArray[np.uint8]]:
    facts = table.description
    if not isinstance(query, str | int | np.integer):
        return None, query_code(query, facts.bits, coder, facts.coder)
    if isinstance(query, str):
        row = _find(table, query) if facts.words else row_number(query)
    else:
        row = int(query)
    code = table.code(row)
    if code is None:
        raise InputError(f"there is no row {row} in {table.place}")
    return row, code


def _find(table: Table, word: str) -> int:
    found = table.find([word])
    if word in found:
        return found[word]
    raise UnknownWordError(word, sorted(table.find(other_cases(word)))[:3])


def in_tie_order(
    search: Callable[[int], list[Neighbor]], k: int, most: int, extra: int = 16
) -> list[Neighbor]:
    """Return the k nearest with ties in row order, from a search that orders ties in any way.

    The search is repeated with a larger k until it returns all rows at the last distance, or
    `most` rows.
    """
    size = min(k + extra, most)
    while True:
        found = sorted(search(size), key=lambda each: (each.distance, each.row))
        complete = len(found) < size or found[-1].distance > found[min(k, size) - 1].distance
        if complete or size == most:
            return found[:k]
        size = min(4 * size, most)


def binary_vectors(rows: Rows, table: Table, coder: Coder) -> BinaryVectors:
    """Return the rows of a table as BinaryVectors.

    Raises:
        InputError: Another coder made the codes.
        FormatError: The rows do not match their description.
    """
    facts = table.description
    check_coder(coder, facts.bits, facts.coder, table.place)
    ids = number_ids(rows.numbers) if rows.words is None else rows.words
    try:
        return from_codes(rows.codes, coder, ids)
    except InputError as error:
        raise FormatError(f"{table.place} is damaged: {error}") from None


def row_blocks(bits: BinaryVectors, max_rows: int, max_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices that cut the rows into blocks of limited size; a larger row is a block of its own."""
    start = 0
    for sizes in _row_sizes(bits, max_rows):
        ends = np.cumsum(sizes)
        first, done = start, 0
        while done < len(ends):
            before = int(ends[done - 1]) if done else 0
            fits = int(np.searchsorted(ends, before + max_bytes, side="right"))
            done, begin = max(done + 1, fits), done
            yield slice(first + begin, first + done)
        start += len(ends)


def _row_sizes(bits: BinaryVectors, max_rows: int) -> Iterator[NDArray[np.int64]]:
    """The bytes of rows, for `max_rows` rows at a time."""
    for start in range(0, len(bits), max_rows):
        stop = min(start + max_rows, len(bits))
        sizes = np.full(stop - start, bits.codes.shape[1] + 16, dtype=np.int64)
        if isinstance(bits.words, Vocabulary):
            first = int(bits.words.ends[start - 1]) if start else 0
            ends = bits.words.ends[start:stop].astype(np.int64)
            sizes += np.asarray(np.diff(ends, prepend=first), dtype=np.int64)
        yield sizes


def longest_word(bits: BinaryVectors) -> tuple[int, int]:
    """Return the row of the longest id and its bytes; (0, 0) if there are none."""
    if not isinstance(bits.words, Vocabulary) or not len(bits):
        return 0, 0
    sizes = np.diff(bits.words.ends.astype(np.int64), prepend=0)
    return int(sizes.argmax()), int(sizes.max())
