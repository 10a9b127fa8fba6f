"""A file of vectors read in blocks: what it holds need never be in memory at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.readers.rows import decode_run, shown, warn_of_bad, warn_of_escapes
from embits.readers.source import Source

BLOCK_BYTES = 4 << 20  # of the floats of a block


class Position(NamedTuple):
    """Where a block starts, so that reading can begin again there.

    Attributes:
        offset: Byte of the file, unpacked; or the row in it, where its rows are counted.
        place: What the first row is called in messages: its line, byte or number.
        rows: Good rows before it.
        bad: Bad rows before it, left out.
    """

    offset: int = 0
    place: int = 1
    rows: int = 0
    bad: int = 0


class Block(NamedTuple):
    """Good rows that follow each other.

    Attributes:
        start: Where it begins.
        end: Where the next one begins.
        matrix: Finite float32 of shape (n, dims).
        words: Their words, where they were asked for.
        places: Line, byte or number of each row, int64.
    """

    start: Position
    end: Position
    matrix: NDArray[np.float32]
    words: list[str] | None
    places: NDArray[np.int64]


@dataclass
class Findings:
    """What is to be said of a file once it was read to its end.

    Attributes:
        n_bad: Rows left out, and `bad` (where, what) the first of them.
        n_escaped: Words that are not UTF-8, and `escaped` (where, word) the first of them.
        notes: Anything else.
    """

    n_bad: int = 0
    bad: tuple[str, str] = ("", "")
    n_escaped: int = 0
    escaped: tuple[str, str] = ("", "")
    notes: list[str] = field(default_factory=list)

    def add_bad(self, n: int, where: str, found: str) -> None:
        """Count rows that were left out."""
        if n and self.n_bad == 0:
            self.bad = where, found
        self.n_bad += n

    def warn(self, source: Source) -> None:
        """Say each thing once."""
        for note in self.notes:
            source.warn(note)
        if self.n_bad:
            warn_of_bad(source, self.n_bad, *self.bad)
        if self.n_escaped:
            warn_of_escapes(source, self.n_escaped, *self.escaped)


class Blocks(ABC):
    """A file that can be read in blocks, as often as wanted and from any block on.

    Attributes:
        source: The file and what was asked of it.
        dims: Dimensions of a vector.
        n_rows: How many good rows there are, where that is known before they are read.
        named: Whether rows have words.
        unit: What `Position.place` counts: "line", "byte" or "row".
        findings: What a reading of the whole file has found.
    """

    source: Source
    dims: int
    n_rows: int | None = None
    named: bool = True
    unit: str = "row"

    def __init__(self, source: Source, dims: int) -> None:
        self.source = source
        self.dims = dims
        self.findings = Findings()

    @abstractmethod
    def start(self) -> Position:
        """Where the first block begins."""

    @abstractmethod
    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on; with their words, if asked for.

        Raises:
            ReadError: A bad row, or the end of the file where none is expected.
        """

    def parsed(self, start: Position, size: int, rows: _core.Rows, words: bool) -> Block:
        """A block of what a native parser has gathered from `size` bytes."""
        findings = self.findings
        end = Position(
            start.offset + size, rows.next_place, start.rows + len(rows), start.bad + rows.n_bad
        )
        if rows.n_bad:
            place, found, expected = rows.first_bad
            said = f"{shown(found)}, expected {shown(expected)}"
            findings.add_bad(rows.n_bad, f"{self.unit} {place}", said)
        places = rows.take_places()
        run = rows.take_words()
        if not words or not len(places):
            return Block(start, end, rows.take_matrix(), [] if words else None, places)
        decoded, escaped = decode_run(self.source, run[:-1], len(places))
        if escaped and findings.n_escaped == 0:
            findings.escaped = f"{self.unit} {places[escaped[0]]}", decoded[escaped[0]]
        findings.n_escaped += len(escaped)
        return Block(start, end, rows.take_matrix(), decoded, places)


def rows_at_once(dims: int) -> int:
    """How many rows make a block."""
    return max(1, BLOCK_BYTES // (4 * dims))


class CountedBlocks(Blocks):
    """Blocks of a file whose rows are counted beforehand and may be read from any of them on."""

    def __init__(
        self, source: Source, dims: int, n_rows: int, words: Sequence[str] | None, named: bool
    ) -> None:
        super().__init__(source, dims)
        self._n_rows = n_rows
        self._words = words
        self.named = named
        if n_rows == 0 or dims == 0:
            raise source.refusal(f"a matrix of shape {(n_rows, dims)}", "at least one row")
        if words is not None:
            n_words = min(len(words), n_rows) if source.limit is not None else len(words)
            if n_words != n_rows:
                raise source.refusal(f"{n_words} words for {n_rows} rows", "one word a row")
        if source.on_bad == "raise":
            self.n_rows = n_rows

    def start(self) -> Position:
        """The first row."""
        return Position()

    def block(self, start: Position, matrix: NDArray[np.float32], words: list[str] | None) -> Block:
        """A block of the rows that are finite."""
        finite = np.isfinite(matrix).all(axis=1)
        places = start.place + np.arange(len(matrix), dtype=np.int64)
        n_passed = start.offset + len(matrix)
        if not finite.all():
            first = f"row {places[int(finite.argmin())]}"
            if self.source.on_bad == "raise":
                raise self.source.refusal("nan or inf", "finite float32 values", first)
            self.findings.add_bad(int((~finite).sum()), first, "nan or inf")
            matrix, places = matrix[finite], places[finite]
            words = None if words is None else [words[i] for i in np.flatnonzero(finite)]
        n_good = start.rows + len(matrix)
        if n_passed == self._n_rows and n_good == 0:
            raise self.source.refusal("no finite row", "at least one")
        self.source.report(n_passed, self._n_rows)
        end = Position(n_passed, n_passed + 1, n_good, n_passed - n_good)
        return Block(start, end, matrix, words, places)

    def words_at(self, start: int, stop: int) -> list[str] | None:
        """The words of some rows, where they were given apart from the vectors."""
        return None if self._words is None else list(self._words[start:stop])
