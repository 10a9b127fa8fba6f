"""The words of a file of version 2: sorted, front-coded and Huffman-coded, read as they are.

`words` holds the bits, `word_codes` the three prefix codes, `word_starts` where each block of words
starts, `word_rows` the row of each place in sorted order and `word_links` shortcuts from a row to
its place. Together they take about 5 bytes a word (docs/file-format.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import FormatError
from embits.ids.lazy import LazyVocabulary
from embits.ids.packed_numbers import packed_size, unpack_numbers
from embits.ids.prefix_codes import check_codes
from embits.ids.run import WordRun, narrowed

BLOCK = 32  # words that are coded together
STEP = 31  # every STEP-th place has a link
N_CODES = 3
_TEXT = ("words", "word_codes", "word_starts")
_ORDER = ("word_rows", "word_links")

_EMPTY = np.empty(0, np.uint8)
_DAMAGED = -2
_MANY = 8  # of as many rows as an 8th of all, all words are unpacked


class PackedVocabulary(LazyVocabulary):
    """Words of a mapped file. A look-up decodes about 30 words, and nothing is built before it.

    Args:
        tensors: The tensors of the words, by name.
        n: How many words.

    Raises:
        FormatError: The tensors do not fit together.
    """

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        self._n, self.tensors = n, dict(tensors)
        self._width = width = max(0, n - 1).bit_length()
        try:
            text, codes, starts = (tensors[name] for name in _TEXT)
        except KeyError as error:
            raise FormatError(f"damaged: there are words, but no {error.args[0]}") from None
        rows, links = (tensors.get(name, _EMPTY) for name in _ORDER)
        offset_width = (8 * text.size).bit_length()
        _check_size("starts", starts, packed_size(-(-n // BLOCK), offset_width))
        if "word_rows" in self.tensors or "word_links" in self.tensors:
            _check_size("rows", rows, packed_size(n, width))
            _check_size("links", links, packed_size(-(-n // STEP), width))
        for array in (text, codes):
            if array.dtype != np.uint8 or array.ndim != 1:
                raise FormatError("damaged: the words' arrays have wrong types")
        check_codes(codes.tobytes(), N_CODES)
        self._rows = rows
        self._core = _core.PackedWords(text, codes, starts, rows, links, n)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"lacks_subwords": self.lacks_subwords}
        return type(self), (self.tensors, self._n), state

    def __len__(self) -> int:
        return self._n

    def _run(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        sizes = np.zeros(self._n, np.uint64)
        is_whole = self._core.unpack(sizes, _EMPTY)
        ends = np.cumsum(sizes, dtype=np.uint64)
        text = np.zeros(int(ends[-1]) if is_whole and self._n else 0, np.uint8)
        if not is_whole or (len(text) and not self._core.unpack(ends, text)):
            raise _damaged()
        return text, ends

    def _order(self) -> NDArray[Any]:
        return narrowed(self._rows_at(slice(0, self._n)), self._n)

    def _rows_at(self, places: slice) -> NDArray[np.int64]:
        if not len(self._rows):
            return np.arange(places.start, places.stop)
        return unpack_numbers(self._rows, self._width, places)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, int) and 0 <= row < self._n:
            return _decoded(row, self._core.word(row))
        return super().__getitem__(row)

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        if len(rows) * _MANY > self._n > 1000:
            words = WordRun(*self._run())
            return [words[row] for row in rows.tolist()]
        return [_decoded(row, self._core.word(row)) for row in rows.tolist()]

    def find(self, word: str) -> int | None:
        """The row of a word, or None."""
        try:
            row = self._core.find(word.encode())
        except UnicodeEncodeError:
            return None
        return int(_checked(row)) if row != -1 else None

    def find_encoded(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The row of each word of a run of UTF-8; -1 if it is not there."""
        rows = np.empty(len(ends), np.int64)
        self._core.find_many(wanted, ends, rows)
        if (rows == _DAMAGED).any():
            raise _damaged()
        return rows

    def find_all(self, word: str) -> list[int]:
        """The row of a word in a list, which is empty if it is not there."""
        row = self.find(word)
        return [] if row is None else [row]

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the text with its codes and starts, and of the order."""
        order = sum(self.tensors[n].nbytes for n in _ORDER if n in self.tensors)
        return sum(array.nbytes for array in self.tensors.values()) - order, order

    def _near(self, word: bytes, edits: int, most: int) -> list[int]:
        return self._core.near(word, edits, most)

    def _rows_between(self, low: bytes, high: bytes) -> NDArray[np.int64]:
        start, stop = (_checked(self._core.first_place(word)) for word in (low, high))
        rows = self._rows_at(slice(start, max(start, stop)))
        if (rows >= self._n).any():
            raise _damaged()
        return rows

    def verify(self) -> None:
        """Check all words.

        Raises:
            FormatError: A word cannot be decoded or is not UTF-8, or the order is wrong.
        """
        if not self._core.is_sorted():
            raise FormatError("damaged: the words cannot be decoded, or are not in order")
        rows = self._rows_at(slice(0, self._n))
        if not np.array_equal(np.sort(rows), np.arange(self._n)):
            raise FormatError("damaged: the words' order is not a permutation of the rows")
        links = self.tensors.get("word_links")
        if links is not None:
            found = unpack_numbers(links, self._width, slice(0, -(-self._n // STEP)))
            if not np.array_equal(found, cycle_links(rows)):
                raise FormatError("damaged: the links of the words do not match their order")
        for _ in self:  # decoding checks the UTF-8
            pass


def cycle_links(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each STEP-th place, the one before it on its cycle of the permutation `rows`."""
    links = np.zeros(-(-len(rows) // STEP), np.int64)
    at = np.arange(0, len(rows), STEP)
    before = at.copy()
    while len(at):  # all cycles at once
        at = rows[at]
        is_end = at % STEP == 0
        links[at[is_end] // STEP] = before[is_end]
        at, before = at[~is_end], before[~is_end]
    return links


def _check_size(name: str, array: NDArray[Any], size: int) -> None:
    if array.dtype != np.uint8 or array.shape != (size,):
        raise FormatError(
            f"damaged: word_{name} is {array.dtype} {array.shape}, expected {size} bytes"
        )


def _decoded(row: int, word: bytes | None) -> str:
    if word is None:
        raise FormatError(f"damaged: word {row} cannot be decoded")
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise FormatError(f"damaged: word {row} is not valid UTF-8") from None


def _checked(number: int) -> int:
    if number == _DAMAGED:
        raise _damaged()
    return number


def _damaged() -> FormatError:
    return FormatError("damaged: the words cannot be decoded")
