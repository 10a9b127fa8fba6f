"""Tables of codes in other engines: what they hold, rows in and out, queries, and errors."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import Progress, blocks, check_padding, packed_width
from embits.binary_vectors import BinaryVectors
from embits.bounded_json import parse_json
from embits.checks import packed_queries, whole
from embits.coders import Coder, coder_checksum
from embits.errors import DatabaseError, EmbitsError, FormatError, InputError, UnknownWordError
from embits.file.overwrite import OVERWRITE
from embits.ids.vocabulary import Vocabulary

BLOCK_BYTES = 32 << 20  # of a block of rows: small enough for a message to a server
Query: TypeAlias = str | int | NDArray[Any]
Codes: TypeAlias = NDArray[np.uint8]
Place: TypeAlias = str | os.PathLike[str] | Any  # a file or address, or an open connection
Rows: TypeAlias = tuple[Any, Codes, list[str] | None]  # numbers, codes, ids


class Neighbor(NamedTuple):
    """A row that a search found, and its Hamming distance to the query."""

    word: str
    distance: int
    row: int


Search: TypeAlias = Callable[[Codes, int], list[Neighbor]]


@dataclasses.dataclass(frozen=True)
class Description:
    """What the codes of a table are: stored beside them, it marks the table as ours."""

    embits: str  # the version that wrote them
    rows: int
    bits: int
    dims: int
    method: str
    words: bool  # whether the rows have ids of their own
    coder: str | None = None  # its checksum; tables of early versions have none
    index: str = "none"

    @classmethod
    def of(cls, bits: BinaryVectors, index: str = "none") -> Self:
        method, coder = bits.coder.method, coder_checksum(bits.coder)
        named = ids_of(bits) is not None
        return cls(__version__, len(bits), bits.n_bits, bits.dims, method, named, coder, index)

    @classmethod
    def parse(cls, found: str | bytes | Mapping[str, Any] | None) -> Self | None:
        """What `to_json` wrote, or its fields; None if it is anything else."""
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            facts = found if isinstance(found, Mapping) else parse_json(found or "")
            names = (field.name for field in dataclasses.fields(cls))
            read = cls(**{name: facts[name] for name in names if facts.get(name) is not None})
            if type(read.words) is bool and type(read.bits) is int and read.bits > 0:
                return read
        return None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


class Table(abc.ABC):
    """A table of codes. An engine says how it finds and returns rows; the rest is here."""

    def __init__(self, place: str, found: Description | None) -> None:
        self.place, self.description = place, check_ours(place, found)
        self.fields = ["id", "word"] if self.description.words else ["id"]

    @abc.abstractmethod
    def find(self, word: str) -> int | None:
        """The row number of an id, if it is there."""

    @abc.abstractmethod
    def code(self, row: int) -> Codes | None:
        """The packed code of a row."""

    @abc.abstractmethod
    def rows(self) -> Rows:
        """All rows in any order: their numbers, codes, and ids if they have any."""

    def neighbor(self, found: Mapping[str, Any], distance: float) -> Neighbor:
        """A row that consists of `fields`, at this distance."""
        return Neighbor(found.get("word", str(found["id"])), int(distance), found["id"])

    def nearest(
        self, query: Query, k: int, coder: Coder | None, search: Search, most: int | None = None
    ) -> list[Neighbor]:
        """Find the k nearest rows by Hamming distance, ties in row order.

        Args:
            query: A word or row number, which is left out; a packed code (uint8 of shape
                (width,)); or a float vector of shape (dims,).
            k: The number of neighbors; fewer come back if there are fewer rows.
            coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
            search: Returns the nearest rows of a code, ties by row or in any order.
            most: How many rows it can return, if ties are in any order: it is asked for more until
                it has all rows of the last distance.

        Raises:
            UnknownWordError: The word is not in the table.
            InputError: There is no such table or row, or the query or the coder does not fit.
            DatabaseError: The engine reports an error, such as one in `where`.
        """
        row, code = self._row_and_code(query, coder)
        k = min(whole("k", k), 2**62)
        wanted = k + (row is not None)
        if not wanted:
            return []
        size = wanted if most is None else min(wanted + 16, most)
        while True:
            found = sorted(search(code, size), key=lambda each: (each.distance, each.row))
            is_all = most is None or size == most or len(found) < size
            if is_all or found[-1].distance > found[wanted - 1].distance:
                return [each for each in found if each.row != row][:k]
            size = min(4 * size, most or size)

    def read(self, coder: Coder) -> BinaryVectors:
        """Read all rows back, in the order of their numbers.

        `coder` made the codes: `embits.load(file).coder` of the exported file. Raises as `nearest`
        does, and FormatError if the rows do not match their description.
        """
        check_coder(coder, self.description.bits, self.description.coder, self.place)
        found, codes, words = self.rows()
        numbers = np.asarray(found, dtype=np.int64)
        order = np.argsort(numbers, kind="stable")
        ids: Any = numbers[order]
        if words is not None:
            ids = [words[at] for at in order.tolist()]
        elif np.array_equal(ids, np.arange(len(ids))):  # others after rows were removed
            ids = None
        try:
            return from_codes(codes[order], coder, ids)
        except InputError as error:
            raise FormatError(f"{self.place} is damaged: {error}") from None

    def _row_and_code(self, query: Query, coder: Any) -> tuple[int | None, Codes]:
        if isinstance(query, str):
            query = self._row_of(query)
        if isinstance(query, int | np.integer):
            stored = self.code(int(query))
            if stored is None:
                raise InputError(f"there is no row {query} in {self.place}")
            return int(query), stored
        n_bits, query = self.description.bits, np.asarray(query)
        if query.ndim != 1:
            raise InputError(f"the query has {query.ndim} dimensions, expected one code or vector")
        if query.dtype != np.uint8:
            if coder is None:
                raise InputError("the query is a float vector: pass the coder of the codes too")
            check_coder(coder, n_bits, self.description.coder, self.place)
            query = coder.encode(query[np.newaxis])[0]
        code = packed_queries(query, packed_width(n_bits))
        check_padding(code, n_bits)
        return None, code

    def _row_of(self, word: str) -> int:
        if not self.description.words:  # ids are row numbers
            if len(word) <= 18 and word.isdecimal() and str(int(word)) == word:
                return int(word)
            raise UnknownWordError(word, [])
        row = self.find(word)
        if row is None:
            cases = sorted({word.lower(), word.upper(), word.capitalize(), word.title()} - {word})
            raise UnknownWordError(word, [each for each in cases if self.find(each) is not None])
        return row


class SqlTable(Table):
    """A table that is asked in SQL."""

    relation: str  # the table
    columns: str  # of a code
    mark = "?"  # stands for a value

    @abc.abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""

    @abc.abstractmethod
    def packed(self, found: list[tuple[Any, ...]]) -> Codes:
        """The packed codes of rows that consist of `columns`."""

    def find(self, word: str) -> int | None:
        found = self.run(f"select id from {self.relation} where word = {self.mark}", [word])
        return found[0][0] if found else None

    def code(self, row: int) -> Codes | None:
        select = f"select {self.columns} from {self.relation} where id = {self.mark}"
        found = self.run(select, [row])
        return self.packed(found)[0] if found else None

    def rows(self) -> Rows:
        n = len(self.fields)
        found = self.run(f"select {', '.join(self.fields)}, {self.columns} from {self.relation}")
        words = [row[1] for row in found] if n == 2 else None
        return [row[0] for row in found], self.packed([row[n:] for row in found]), words

    def neighbors(self, distance: str, rest: str, params: Sequence[Any]) -> list[Neighbor]:
        """The rows of a query with this distance, and with this after the name of the table."""
        word = "word" if self.description.words else "cast(id as text) as word"
        found = self.run(f"select {word}, {distance}, id from {self.relation} {rest}", params)
        return [Neighbor(word, int(value), row) for word, value, row in found]

    def by_distance(
        self, distance: str, where: str | None, params: Sequence[Any], k: int, then: str = ", id"
    ) -> list[Neighbor]:
        """The k rows of the smallest distance, an expression in SQL."""
        rest = f"{where_clause(where)} order by distance{then} limit {k}"
        return self.neighbors(f"{distance} as distance", rest, params)


def check_ours(place: str, found: Description | None, overwrite: bool = True) -> Description:
    """Refuse a table that is there: without `overwrite`, and always if embits did not write it."""
    if found is None:
        raise InputError(f"{place} is not one that embits wrote; choose another name")
    if not overwrite:
        raise InputError(f"{place} exists: choose another name, or {OVERWRITE}")
    return found


@contextlib.contextmanager
def nothing_new_if_it_fails(*places: Path) -> Iterator[None]:
    """Remove the files or folders that were not there before, if something is raised."""
    new = [place for place in places if not place.exists()]
    try:
        yield
    except BaseException:
        for place in new:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            place.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def one_line_errors(place: Any, *kinds: type[Exception]) -> Iterator[None]:
    """Raise an engine's errors as DatabaseError, in one line that names the place."""
    try:
        yield
    except EmbitsError:
        raise
    except kinds as error:
        said = " ".join(str(getattr(error, "message", "") or error).split())
        raise DatabaseError(f"{place}: {said[:500]}") from None


def where_clause(where: str | None) -> str:
    """The SQL of a condition, which is run as it is, or nothing without one."""
    # After a new line, because the condition may end in a comment.
    return "" if where is None else f"where ({where}\n)"


def ids_of(bits: BinaryVectors) -> Vocabulary | None:
    """The ids of the rows; None if they only have numbers."""
    return bits.words if isinstance(bits.words, Vocabulary) else None


def id_sizes(bits: BinaryVectors) -> NDArray[np.int64]:
    """The bytes of each id, or [0] without ids."""
    ids = ids_of(bits)
    ends = ids.ends.astype(np.int64) if ids else np.zeros(1, np.int64)
    sizes: NDArray[np.int64] = np.diff(ends, prepend=0)
    return sizes


def check_ids(bits: BinaryVectors, most: int) -> None:
    """Refuse ids of more than so many bytes."""
    sizes = id_sizes(bits)
    if sizes.max() > most:
        found = f"the id of row {sizes.argmax()} has {sizes.max():,} bytes"
        raise InputError(f"{found}, expected at most {most:,} in this engine")


def check_name(pattern: str, expected: str, what: str, name: Any) -> str:
    """A name that matches a regular expression, which `expected` says in words."""
    if not isinstance(name, str) or not re.fullmatch(pattern, name, re.ASCII):
        raise InputError(f"{what} is {name!r}, expected {expected}")
    return name


def row_blocks(
    bits: BinaryVectors, max_rows: int, progress: Progress | None, max_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[range, Codes, list[str] | None]]:
    """Yield blocks of row numbers, codes and ids, and report progress after each."""
    ids, largest = ids_of(bits), bits.codes.shape[1] + id_sizes(bits).max() + 16  # bytes of a row
    for rows in blocks(len(bits), max(1, min(max_rows, max_bytes // largest))):
        yield range(rows.start, rows.stop), bits.codes[rows], None if ids is None else ids[rows]
        if progress is not None:
            progress(rows.stop, len(bits))


def integers(codes: Codes) -> NDArray[np.uint64]:
    """Packed codes as integers of 64 bits, shape (n, ceil(n_bits / 64)), first bit highest.

    >>> [hex(number) for number in integers(np.array([[0x80, 0x01]], np.uint8))[0]]
    ['0x8001000000000000']
    """
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(">u8").astype(np.uint64)


def to_export(bits: Any) -> BinaryVectors:
    """What is to be exported, with all codes in one array and fast slices of its ids."""
    if not isinstance(bits, BinaryVectors):
        kind = type(bits).__name__
        raise InputError(f"bits is {kind}, expected BinaryVectors; embits.binarize makes them")
    merged = bits.merged()
    if isinstance(merged.words, Vocabulary):
        _ = merged.words.ends  # the words are unpacked: slices are faster from then on
    return merged


def from_codes(codes: NDArray[Any], coder: Coder, ids: Any = None) -> BinaryVectors:
    """Return packed codes, the coder that made them, and their ids as BinaryVectors."""
    checked = coder.check_codes(codes)
    check_padding(checked, coder.n_bits_)
    return BinaryVectors(ids, checked, coder)


def check_coder(coder: Coder, n_bits: int, checksum: str | None, place: str) -> None:
    """Refuse a coder of another width, or with another checksum than this one if it is known."""
    if coder.n_bits_ != n_bits:
        raise InputError(f"the coder makes {coder.n_bits_} bits, {place} holds {n_bits}")
    if checksum is not None and checksum != coder_checksum(coder):
        other = f"the coder (method {coder.method!r}) did not make the codes in {place}"
        raise InputError(f"{other}; pass the coder of the file that was exported")
