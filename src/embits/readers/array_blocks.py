"""A matrix that is mapped or in memory: read in blocks, or whole without a copy."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.readers.blocks import Block, Position
from embits.readers.counted_blocks import CountedBlocks, rows_at_once
from embits.readers.rows import as_float32, finite_rows
from embits.readers.source import Source
from embits.readers.words_sidecar import FoundWords
from embits.vectors import WordVectors


class ArrayBlocks(CountedBlocks):
    """Blocks of a matrix; pages of a mapped file are released as soon as they were copied.

    Args:
        source: The file.
        array: Numbers of shape (n, dims).
        found: The word of each row, or None, and their file.
        widen: Makes floats of rows, where they are stored as another type.
    """

    def __init__(
        self,
        source: Source,
        array: NDArray[Any],
        found: FoundWords,
        widen: Callable[[NDArray[Any]], NDArray[Any]] = np.asanyarray,
    ) -> None:
        n_rows = source.rows_wanted(len(array))
        super().__init__(source, array.shape[1], n_rows, found)
        self._array, self._widen = array, widen

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on."""
        while start.offset < self._n_rows:
            stop = min(start.offset + rows_at_once(self.dims), self._n_rows)
            part = self._widen(self._array[start.offset : stop])
            named = self.words_at(start.offset, stop) if words else None
            block = self.block(start, part, named)
            drop_pages(self._array)
            yield block
            start = block.end

    def whole(self) -> WordVectors:
        """The matrix itself where it is float32, which stays mapped; else its float32 values."""
        values = self._widen(self._array[: self._n_rows])
        words, matrix = finite_rows(
            self.source, self.words_at(0, self._n_rows), as_float32(values), values
        )
        if words is None:
            return WordVectors(None, matrix)
        return self.unique(words, matrix, lambda row: f"row {row}")


def check_matrix(source: Source, array: NDArray[Any]) -> NDArray[Any]:
    """The array, if it is a matrix of numbers.

    Raises:
        ReadError: It has another shape or type.
    """
    if array.ndim != 2:
        raise source.read_error(f"an array of shape {array.shape}", "a matrix: (rows, dims)")
    if array.dtype.kind not in "fiu":
        raise source.read_error(f"values of type {array.dtype}", "numbers")
    return array


def drop_pages(array: NDArray[Any]) -> None:
    """Release the pages of a mapped file that were read, so that the process takes less memory."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
