"""A file of vectors, read in blocks of rows or whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import InputError
from embits.ids.subwords import Subwords
from embits.readers.rows import (
    as_text,
    decode_run,
    keep_rows,
    warn_of_bad,
    warn_of_escapes,
    warn_of_repeats,
)
from embits.readers.source import Source
from embits.vectors import WordVectors


class Position(NamedTuple):
    """Where a block starts, so that reading can resume there.

    Attributes:
        offset: Byte of the unpacked file; or the row, where the number of rows is known.
        place: What the first row is called in messages: its line, byte or number.
        rows: Good rows before it.
        bad: Bad rows before it, which were left out.
    """

    offset: int = 0
    place: int = 1
    rows: int = 0
    bad: int = 0


class Block(NamedTuple):
    """Consecutive good rows.

    Attributes:
        start: Where it begins.
        end: Where the next one begins.
        matrix: Finite float32 of shape (n, dims).
        words: Their words, if requested and the rows have any.
        places: Line, byte or number of each row, int64.
    """

    start: Position
    end: Position
    matrix: NDArray[np.float32]
    words: list[str] | None
    places: NDArray[np.int64]


@dataclass
class Findings:
    """What to warn of once a file was read to its end.

    Attributes:
        n_bad: Rows left out, and `bad` (where, what) the first of them.
        n_escaped: Words that are not UTF-8, and `escaped` (where, word) the first of them.
        is_numbered: Whether the rows have no words: the others keep their numbers as ids.
        notes: Other warnings.
    """

    n_bad: int = 0
    bad: tuple[str, str] = ("", "")
    n_escaped: int = 0
    escaped: tuple[str, str] = ("", "")
    is_numbered: bool = False
    notes: list[str] = field(default_factory=list)

    def add_bad(self, n: int, where: str, found: str) -> None:
        """Count rows that were left out."""
        if n and self.n_bad == 0:
            self.bad = where, found
        self.n_bad += n

    def add_escaped(self, n: int, where: str, word: str) -> None:
        """Count words that are not UTF-8."""
        if n and self.n_escaped == 0:
            self.escaped = where, word
        self.n_escaped += n

    def warn(self, source: Source) -> None:
        """Warn once of each kind."""
        for note in self.notes:
            source.warn(note)
        if self.n_bad:
            warn_of_bad(source, self.n_bad, *self.bad, is_numbered=self.is_numbered)
        if self.n_escaped:
            warn_of_escapes(source, self.n_escaped, *self.escaped)


class Blocks(ABC):
    """A file that is read in blocks, any number of times and from any block on; or whole.

    Attributes:
        source: The file and the caller's options.
        dims: Dimensions of a vector.
        n_rows: How many good rows there are, if that is known before they are read.
        named: Whether rows have words.
        words_apart: Whether the words are not in the file itself, but were given or lie beside it.
        words_file: The file of such words, if they came from one.
        unit: What `Position.place` counts: "line", "byte", "entry" or "row".
        findings: What reading the file has found so far.
        subwords: Those of a fastText model, which `whole` passes on.
    """

    source: Source
    dims: int
    n_rows: int | None = None
    named: bool = True
    words_apart: bool = False
    words_file: Path | None = None
    unit: str = "row"
    subwords: Subwords | None = None

    def __init__(self, source: Source, dims: int) -> None:
        self.source = source
        self.dims = dims
        self.findings = Findings()

    @abstractmethod
    def start(self) -> Position:
        """Where the first block begins."""

    @abstractmethod
    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on, with their words if requested.

        Raises:
            ReadError: A bad row, or an unexpected end of the file.
        """

    def whole(self) -> WordVectors:
        """All rows in memory: the blocks collected, less rows that repeat a word.

        Raises:
            ReadError: As `read`.
        """
        matrix = _core.FloatRun() if self.n_rows is None else _FullMatrix(self.n_rows, self.dims)
        words: list[str] = []
        places: list[NDArray[np.int64]] = []
        for block in self.read(self.start(), words=self.named):
            matrix.append(block.matrix)
            words += block.words or ()
            places.append(block.places)
        self.findings.warn(self.source)
        place = np.concatenate(places)
        if not self.named:
            numbers = list(map(str, place.tolist())) if self.findings.n_bad else None
            return WordVectors(numbers, matrix.take(self.dims))
        return self.unique(words, matrix.take(self.dims), lambda row: f"{self.unit} {place[row]}")

    def unique(
        self, words: Sequence[str], matrix: NDArray[np.float32], where: Callable[[int], str]
    ) -> WordVectors:
        """WordVectors of the first row of each word; `where(row)` is its place in a message.

        Raises:
            ReadError: A word repeats and repeats are refused.
        """
        try:
            return WordVectors(words, matrix, self.subwords)
        except InputError:
            first: dict[str, int] = {}
            repeats = [row for row, word in enumerate(words) if first.setdefault(word, row) != row]
            if not repeats:
                raise
        self.report_repeats(len(repeats), where(repeats[0]), words[repeats[0]])
        kept = np.fromiter(first.values(), np.int64, len(first))
        return WordVectors(list(first), keep_rows(matrix, kept), self.subwords)

    def report_repeats(self, n_repeats: int, where: str, word: str) -> None:
        """Warn of rows that are left out because their word repeats, or refuse them.

        Words of another file or of the caller are refused by default: without the repeats, rows
        would no longer have the numbers that they have in the matrix.

        Raises:
            ReadError: They are refused.
        """
        if self.source.repeats == "refuse" or (self.source.repeats is None and self.words_apart):
            hint = 'repeats="first", or --repeats first, keeps the first row of each'
            found = f"the word {word!r} again"
            if self.words_file is not None:
                found += f" in {self.words_file}"
            raise self.source.read_error(found, f"each word once ({hint})", where)
        warn_of_repeats(self.source, n_repeats, where, word)


class _FullMatrix:
    """A matrix of known size. NumPy allocates large pages: filling them is twice as fast."""

    def __init__(self, n_rows: int, dims: int) -> None:
        self._matrix = np.empty((n_rows, dims), np.float32)
        self._n_filled = 0

    def append(self, rows: NDArray[np.float32]) -> None:
        stop = self._n_filled + len(rows)
        self._matrix[self._n_filled : stop] = rows
        self._n_filled = stop

    def take(self, dims: int) -> NDArray[np.float32]:
        return self._matrix


class ParsedBlocks(Blocks):
    """Blocks that a native parser makes of bytes: of text, word2vec binary and JSON."""

    def parsed(self, start: Position, size: int, rows: _core.Rows, *, words: bool) -> Block:
        """The block of the rows that a parser made of `size` bytes."""
        if rows.n_bad:
            place, found, expected = rows.first_bad
            message = f"{as_text(found)}, expected {as_text(expected)}"
            self.findings.add_bad(rows.n_bad, f"{self.unit} {place}", message)
        n_bad, place = start.bad + rows.n_bad, rows.next_place
        run, places = rows.take_words(), rows.take_places()
        end = Position(start.offset + size, place, start.rows + len(places), n_bad)
        named = self._decoded(run, places) if words else None
        return Block(start, end, rows.take_matrix(), named, places)

    def end(self, start: Position) -> None:
        """Refuse a file that ended without a good row.

        Raises:
            ReadError: There is none.
        """
        if start.rows == 0:
            self.findings.warn(self.source)
            raise self.source.read_error("no vectors", "at least one row")

    def _decoded(self, run: bytes, places: NDArray[np.int64]) -> list[str]:
        if not len(places):
            return []
        words, escaped = decode_run(self.source, run[:-1], len(places))
        if escaped:
            first = escaped[0]
            self.findings.add_escaped(len(escaped), f"{self.unit} {places[first]}", words[first])
        return words
