"""A file of vectors, read in blocks of rows or whole."""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import blocks
from embits.checks import MAX_WEIGHT, is_usual
from embits.errors import InputError
from embits.ids.subwords import Subwords
from embits.readers.source import Source
from embits.readers.words import NO_IDS, MatrixWords
from embits.vectors import WordVectors

BLOCK_BYTES = 4 << 20  # of the floats of a block of a matrix or table
_WORD_BYTES_AT_ONCE = 1 << 16
_ROWS_AT_ONCE = 1 << 14  # moved or checked at a time, so that a matrix is never copied as a whole


class Position(NamedTuple):
    """Where a block starts, so that reading can resume there."""

    offset: int = 0  # byte of the unpacked file; or the row, where their number is known
    place: int = 1  # what the first row is called in messages: its line, byte or number
    rows: int = 0  # good rows before it
    bad: int = 0  # bad rows before it, which were left out


class Block(NamedTuple):
    """Consecutive good rows."""

    start: Position
    end: Position  # where the next one begins
    matrix: NDArray[np.float32]  # finite, of shape (n, dims)
    words: list[str] | None  # if requested, and the rows have any
    places: NDArray[np.int64]  # line, byte or number of each row


@dataclass
class Findings:
    """What to warn of at the end of a file."""

    n_bad: int = 0  # rows left out
    bad: Sequence[str] = ()  # where the first is, and what it holds
    n_escaped: int = 0  # words that are not UTF-8
    escaped: Sequence[str] = ()  # where the first is, and the word
    is_numbered: bool = False  # whether rows without words keep their numbers as ids
    notes: list[str] = field(default_factory=list)

    def add_bad(self, n: int, where: str, found: str) -> None:
        self.bad = self.bad or (where, found)
        self.n_bad += n

    def warn(self, source: Source) -> None:
        for note in self.notes:
            source.warn(note)
        if self.n_bad:
            ids = "; the other rows have their numbers in the file as ids" * self.is_numbered
            first = "left out, the first at {}: found {}".format(*self.bad)
            source.warn(f"{_counted(self.n_bad, 'row')} {first}{ids}")
        if self.n_escaped:
            what = f"{_counted(self.n_escaped, 'word')} not in valid {source.encoding.upper()}"
            first = "and escaped, the first at {}: {!r}".format(*self.escaped)
            source.warn(f"{what} {first} (encoding=, --encoding names another encoding)")


class Blocks(ABC):
    """A file that is read in blocks, any number of times and from any block on; or whole."""

    n_rows: int | None = None  # good rows, if their number is known before they are read
    has_words: bool  # whether rows have words, and these are read
    words_are_ids: bool = False  # whether words are ids of rows, which may not repeat
    words_file: Path | None = None  # the file of such words, if they came from one
    unit: str = "row"  # what `Position.place` counts: "line", "byte", "entry" or "row"
    subwords: Subwords | None = None  # those of a fastText model, which `whole` passes on

    def __init__(self, source: Source, dims: int, first: Position) -> None:
        self.source, self.dims, self.first = source, dims, first  # where the first block begins
        self.findings, self.has_words = Findings(), source.ids is not False

    @abstractmethod
    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on, with their words if requested."""

    def read_all(self) -> tuple[list[str], NDArray[np.float32], NDArray[np.int64]]:
        """The words of all rows, none if they have none; the matrix; and their places."""
        run, full = _core.FloatRun(), None
        if self.n_rows is not None:  # NumPy allocates large pages: filling them is twice as fast
            full = np.empty((self.n_rows, self.dims), np.float32)
        words: list[str] = []
        places: list[NDArray[np.int64]] = []
        for block in self.read(self.first, words=self.has_words):
            if full is None:
                run.append(block.matrix)
            else:
                full[block.start.rows : block.end.rows] = block.matrix
            words += block.words or ()
            places.append(block.places)
        self.findings.warn(self.source)
        return words, run.take(self.dims) if full is None else full, np.concatenate(places)

    def whole(self) -> WordVectors:
        """All rows in memory, without those that repeat a word."""
        words, matrix, places = self.read_all()
        if self.has_words:
            return self.unique(words, matrix, lambda row: int(places[row]))
        return WordVectors(list(map(str, places)) if self.findings.is_numbered else None, matrix)

    def unique(
        self, words: Sequence[str], matrix: NDArray[np.float32], place: Callable[[int], int]
    ) -> WordVectors:
        """WordVectors of the first row of each word; `place(row)` is where it is in the file."""
        try:
            return WordVectors(words, matrix, self.subwords)
        except InputError:
            first: dict[str, int] = {}
            repeats = [row for row, word in enumerate(words) if first.setdefault(word, row) != row]
            if not repeats:
                raise
        self.report_repeats(len(repeats), place(repeats[0]), words[repeats[0]])
        kept = np.fromiter(first.values(), np.int64, len(first))
        return WordVectors(list(first), _keep_rows(matrix, kept), self.subwords)

    def locate(self, place: int) -> tuple[Source, str]:
        """The file of a row, and what the row is called in messages."""
        return self.source, f"{self.unit} {place}"

    def report_repeats(self, n_repeats: int, place: int, word: str) -> None:
        """Warn of rows that are left out because their word repeats, or refuse them."""
        file, where = self.locate(place)
        # Without them, rows would no longer have the numbers that they have in a matrix.
        if self.source.repeats == "refuse" or (self.source.repeats is None and self.words_are_ids):
            hint = 'repeats="first", or --repeats first, keeps the first row of each'
            if self.words_file is not None and self.source.words is None:  # found beside it
                hint = f"{hint}; {NO_IDS}"
            beside = "" if self.words_file is None else f" in {self.words_file}"
            found = f"the word {word!r} again{beside}"
            raise file.read_error(found, f"each word once ({hint})", where)
        repeats = _counted(n_repeats, "repeated word")
        where = where if file is self.source else f"{file.name}, {where}"
        self.source.warn(f"{repeats} left out, the first at {where}: {word!r}")


# -- text, word2vec binary and JSON ----------------------------------------------------------------


class ParsedBlocks(Blocks):
    """Blocks that a native parser makes of bytes."""

    def new_rows(self, start: Position, limit: int | None) -> _core.Rows:
        """An empty collection of rows from `start` on, which a native parser fills."""
        most = sys.maxsize if limit is None else limit - start.rows
        return _core.Rows(self.dims, most, self.source.on_bad == "skip", start.place)

    def parsed(
        self, start: Position, size: int, rows: _core.Rows, *, words: bool, hint: str = ""
    ) -> Block:
        """The block of the rows that a parser made of `size` bytes; raises if it met a bad one."""
        if rows.n_bad or rows.lost:
            place, *texts = rows.first_bad
            where = f"{self.unit} {place}"
            found, expected = (text.decode(errors="backslashreplace") for text in texts)
            if rows.lost or self.source.on_bad == "raise":
                raise self.source.read_error(found, expected + hint, where)
            self.findings.add_bad(rows.n_bad, where, f"{found}, expected {expected}")
        n_bad, place = start.bad + rows.n_bad, rows.next_place
        run, places = rows.take_words(), rows.take_places()
        end = Position(start.offset + size, place, start.rows + len(places), n_bad)
        block_words = None
        if words:
            where_is = lambda row: f"{self.unit} {places[row]}"  # noqa: E731
            block_words = decoded_words(self.source, self.findings, run[:-1], len(places), where_is)
        return Block(start, end, rows.take_matrix(), block_words, places)

    def end(self, start: Position, expected: str = "at least one row") -> None:
        """Refuse a file that ended without a good row."""
        if start.rows == 0:
            self.findings.warn(self.source)
            raise self.source.read_error("no vectors", expected)


def decoded_words(
    source: Source, findings: Findings, run: bytes, n_words: int, where: Callable[[int], str]
) -> list[str]:
    """Words separated by newlines. Invalid ones are escaped, and added to `findings`."""
    words: list[str] = []
    escaped: list[int] = []
    start = 0
    while start <= len(run) and n_words:
        # In pieces: one letter outside Latin-1 makes a decoded piece two or four times as large.
        cut = run.find(b"\n", start + _WORD_BYTES_AT_ONCE)
        piece = run[start : cut if cut >= 0 else len(run)]
        try:
            words += piece.decode(source.encoding).split("\n")
        except UnicodeDecodeError:
            for word in piece.split(b"\n"):
                words.append(word.decode(source.encoding, "backslashreplace"))
                if words[-1].encode(source.encoding) != word:
                    escaped.append(len(words) - 1)
        start += len(piece) + 1
    if len(words) != n_words:
        raise source.read_error("a newline within a word", "words without line ends")
    if escaped:
        findings.escaped = findings.escaped or (where(escaped[0]), words[escaped[0]])
        findings.n_escaped += len(escaped)
    return words


# -- matrices and tables ---------------------------------------------------------------------------


class GoodRows(NamedTuple):
    """The rows of a matrix that are vectors."""

    matrix: NDArray[np.float32]  # of shape (n, dims), finite, in memory of its own
    bad: NDArray[np.int64]  # the numbers of the other rows, ascending
    found: str = ""  # what is wrong with the first of them


def good_rows(values: NDArray[Any], not_finite: str = "nan or inf") -> GoodRows:
    """The rows of a matrix of numbers that are finite, and whose squares fit into float32."""
    with np.errstate(over="ignore", invalid="ignore"):  # too large: refused as infinite
        matrix = np.array(values, dtype=np.float32, order="C")
        if is_usual(matrix):
            return GoodRows(matrix, np.empty(0, np.int64))
        usual = (np.abs(matrix) <= MAX_WEIGHT).all(axis=1)
    bad = np.flatnonzero(~usual)
    first = values[bad[0]]
    if np.isfinite(first).all():
        largest = first[np.abs(first).argmax()]
        not_finite = f"{largest:g}, too large for float32 (at most {MAX_WEIGHT:g})"
    return GoodRows(matrix[usual], bad, not_finite)


class CountedBlocks(Blocks):
    """Blocks of a file whose number of rows is known, and which can be read from any row on."""

    def __init__(self, source: Source, dims: int, n_rows: int, found: MatrixWords) -> None:
        super().__init__(source, dims, Position(place=0))
        self.size = self._n_rows = n_rows  # good rows and bad ones
        self._words, self.words_file = words, _ = found
        self.has_words = self.words_are_ids = words is not None
        if (n_rows == 0 and not source.is_part) or (n_rows and dims == 0):
            raise source.read_error(f"a matrix of shape {(n_rows, dims)}", "at least one row")
        n_words = n_rows if words is None else len(words)
        of_words = Source(self.words_file) if self.words_file else source
        expected = f"one word per row; {NO_IDS}"
        if n_words < n_rows or (n_words > n_rows and source.limit is None):
            found_words = f"{n_words} words for {n_rows} rows of {source.name}"
            raise of_words.read_error(found_words, expected)
        if words is not None and "" in words and (self.words_file or source.words is not None):
            raise of_words.read_error("an empty word", expected, f"row {list(words).index('')}")
        if source.on_bad == "raise":
            self.n_rows = n_rows
        self.rows_at_once = max(1, BLOCK_BYTES // (4 * max(dims, 1)))  # of a block

    def block(self, start: Position, n: int, rows: GoodRows, words: list[str] | None) -> Block:
        """A block of the good ones among `n` rows."""
        matrix, bad, found = rows
        places = start.place + np.arange(n, dtype=np.int64)
        n_passed = start.offset + n
        if len(bad):
            first = f"row {places[bad[0]]}"
            if self.source.on_bad == "raise":
                raise self.source.read_error(found, f"{self.dims} finite float32 numbers", first)
            self.findings.add_bad(len(bad), first, found)
            self.findings.is_numbered = not self.has_words and self.source.keeps_numbers
            if words is not None:
                words = np.delete(np.array(words, object), bad).tolist()
            places = np.delete(places, bad)
        n_good = start.rows + len(matrix)
        if n_passed == self._n_rows and n_good == 0 and not self.source.is_part:
            raise self.source.read_error("no finite row", "at least one")
        self.source.report(n_passed, self._n_rows)
        end = Position(n_passed, n_passed, n_good, n_passed - n_good)
        return Block(start, end, matrix, words, places)

    def words_at(self, start: int, stop: int) -> list[str] | None:
        """The words of some rows, where they are separate from the vectors."""
        return None if self._words is None else list(self._words[start:stop])


class ArrayBlocks(CountedBlocks):
    """Blocks of a matrix; pages of a mapped file are released as soon as they were copied."""

    def __init__(
        self,
        source: Source,
        array: NDArray[Any],
        found: MatrixWords,
        widen: Callable[[NDArray[Any]], NDArray[Any]] = np.asanyarray,  # of rows to floats
    ) -> None:
        n_rows = source.rows_wanted(len(array))
        super().__init__(source, array.shape[1], n_rows, found)
        self._array, self._widen = array[:n_rows], widen
        self._mapped = getattr(array, "_mmap", None)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        while start.offset < self._n_rows:
            stop = min(start.offset + self.rows_at_once, self._n_rows)
            part = self._widen(self._array[start.offset : stop])
            part_words = self.words_at(start.offset, stop) if words else None
            block = self.block(start, len(part), good_rows(part), part_words)
            if self._mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
                self._mapped.madvise(mmap.MADV_DONTNEED)
            yield block
            start = block.end

    def whole(self) -> WordVectors:
        """The matrix itself if it is float32 and finite, which stays mapped; else its blocks."""
        array, parts = self._array, blocks(len(self._array), _ROWS_AT_ONCE)
        is_usable = array.dtype == np.float32 and array.flags.c_contiguous
        if not is_usable or not all(is_usual(array[part]) for part in parts):
            return super().whole()
        self.findings.warn(self.source)
        words = self.words_at(0, self._n_rows)
        if words is None:
            return WordVectors(None, array)
        return self.unique(words, array, int)


def _keep_rows(matrix: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Some rows, ascending; moved within the matrix if it is writable."""
    if not matrix.flags.writeable:
        return matrix[rows]
    for part in blocks(len(rows), _ROWS_AT_ONCE):
        matrix[part] = matrix[rows[part]]  # rows only move up: none still needed is overwritten
    return matrix[: len(rows)]


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
