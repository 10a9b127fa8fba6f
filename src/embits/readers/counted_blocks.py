"""Blocks of matrices and tables: files whose number of rows is known before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.readers.blocks import Block, Blocks, Position
from embits.readers.rows import as_float32, what_is_not_finite
from embits.readers.source import Source
from embits.readers.words_sidecar import FoundWords

BLOCK_BYTES = 4 << 20  # of the floats of a block


def rows_at_once(dims: int) -> int:
    """How many rows a block has."""
    return max(1, BLOCK_BYTES // (4 * dims))


class CountedBlocks(Blocks):
    """Blocks of a file whose number of rows is known, and which can be read from any row on."""

    def __init__(self, source: Source, dims: int, n_rows: int, found: FoundWords) -> None:
        super().__init__(source, dims)
        self._n_rows = n_rows
        self._words, self.words_file = words, _ = found
        self.named = self.words_apart = words is not None
        if n_rows == 0 or dims == 0:
            raise source.read_error(f"a matrix of shape {(n_rows, dims)}", "at least one row")
        if words is not None:
            n_words = min(len(words), n_rows) if source.limit is not None else len(words)
            if n_words != n_rows:
                raise source.read_error(f"{n_words} words for {n_rows} rows", "one word per row")
        if source.on_bad == "raise":
            self.n_rows = n_rows

    def start(self) -> Position:
        """The first row: row 0."""
        return Position(place=0)

    def block(self, start: Position, values: NDArray[Any], words: list[str] | None) -> Block:
        """A block of the rows that are finite, as float32 in memory of its own."""
        matrix = as_float32(values, np.array)
        finite = np.isfinite(matrix).all(axis=1)
        places = start.place + np.arange(len(matrix), dtype=np.int64)
        n_passed = start.offset + len(matrix)
        if not finite.all():
            first = f"row {places[int(finite.argmin())]}"
            found = what_is_not_finite(values[int(finite.argmin())])
            if self.source.on_bad == "raise":
                raise self.source.read_error(found, "finite float32 values", first)
            self.findings.add_bad(int((~finite).sum()), first, found)
            self.findings.is_numbered = not self.named
            matrix, places = matrix[finite], places[finite]
            words = None if words is None else [words[i] for i in np.flatnonzero(finite)]
        n_good = start.rows + len(matrix)
        if n_passed == self._n_rows and n_good == 0:
            raise self.source.read_error("no finite row", "at least one")
        self.source.report(n_passed, self._n_rows)
        end = Position(n_passed, n_passed, n_good, n_passed - n_good)
        return Block(start, end, matrix, words, places)

    def words_at(self, start: int, stop: int) -> list[str] | None:
        """The words of some rows, where they are separate from the vectors."""
        return None if self._words is None else list(self._words[start:stop])
