"""Ids of rows: what all kinds of them have in common, row numbers, and a mapping of ids to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import ROWS_BY_NAME, InputError, UnknownWordError
from embits.vectors import is_id

MAX_NUMBER = 2**64 - 1
WORDS_AT_ONCE = 1 << 14

Bytes: TypeAlias = NDArray[np.uint8]
Rows: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.uint64]
Run: TypeAlias = tuple[Bytes, Numbers]
"""Words that lie one after another: their UTF-8, and where each ends."""


class Words(Sequence[str], ABC):
    """Words in row order; a kind of them may have a faster `_word`."""

    @abstractmethod
    def _words_of(self, rows: Rows) -> list[str]:
        """The words of rows that are there, which ascend."""

    def _word(self, row: int) -> str:
        return self._words_of(np.array([row]))[0]

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            start, stop, step = row.indices(len(self))
            rows = np.arange(start, stop, step)
            return self._words_of(rows) if step > 0 else self._words_of(rows[::-1].copy())[::-1]
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} words")
        return self._word(row % len(self))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), WORDS_AT_ONCE):
            yield from self._words_of(np.arange(start, min(start + WORDS_AT_ONCE, len(self))))


class Ids(Words):
    """The ids of rows: words, numbers, or those of several segments."""

    lacks_subwords = False  # whether the file had subwords, which were left out

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the text of the words, and of their order."""
        return 0, 0

    @abstractmethod
    def find_run(self, run: Run) -> Rows:
        """As `find_many`, of words that are encoded already."""

    def find_many(self, words: Iterable[str]) -> Rows:
        """The row of each word, the first if it repeats; -1 if it is not there."""
        return self.find_run(encoded_words(words, errors="surrogatepass"))  # never found

    def find(self, word: str) -> int | None:
        """The row of a word, the first if it repeats; or None."""
        row = int(self.find_many([word])[0])
        return None if row < 0 else row

    def row(self, word: str) -> int:
        row = self.find(word)
        if row is None:
            raise self.unknown(word)
        return row

    def names(self, rows: Rows) -> NDArray[Any]:
        """The words of rows, in their shape: an array of `str` objects."""
        flat, places = rows.ravel(), None
        if (flat[1:] <= flat[:-1]).any():  # each row once, in order
            flat, places = np.unique(flat, return_inverse=True)
        words = np.empty(len(flat), dtype=object)
        words[:] = self._words_of(flat)
        return (words if places is None else words[places]).reshape(rows.shape)

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` words, in row order, that start with `prefix`."""
        return list(islice((word for word in self if word.startswith(prefix)), most))

    def suggest(self, word: str, most: int = 3) -> list[str]:
        """Words spelled alike; numbers have none."""
        return []

    def unknown(self, key: Any) -> UnknownWordError:
        """The error for an id that is not there, with near spellings."""
        if isinstance(key, int | np.integer):
            return UnknownWordError(str(key), [], ROWS_BY_NAME)
        hint = "subwords, which make codes of unknown words, were left out of this file"
        word = str(key)
        return UnknownWordError(word, self.suggest(word), hint if self.lacks_subwords else "")

    def __contains__(self, key: object) -> bool:
        return is_id(key) and self.find(str(key)) is not None


class RowNumbers(Ids):
    """The ids of a matrix without words: row numbers, from `first` in a piece of a collection."""

    def __init__(self, n: int, first: int = 0) -> None:
        self._n, self.first = n, first

    def __len__(self) -> int:
        return self._n

    def find(self, word: str) -> int | None:
        is_number = word.isascii() and word.isdigit() and len(word) < 20
        row = int(word) - self.first if is_number else -1
        return row if 0 <= row < len(self) and str(row + self.first) == word else None

    def find_run(self, run: Run) -> Rows:
        numbers, are_numbers = number_keys(*run)
        return np.where(are_numbers, rows_from(self.first, len(self), numbers), -1)

    def names(self, rows: Rows) -> NDArray[Any]:
        """The rows as numbers."""
        return rows + self.first if self.first else rows

    def _words_of(self, rows: Rows) -> list[str]:
        return _core.number_words((rows + self.first).astype(np.uint64))

    def unknown(self, key: Any) -> UnknownWordError:
        last = self.first + len(self) - 1
        numbers = f"a row number from {self.first} to {last}" if len(self) else "a file with rows"
        return UnknownWordError(str(key), [], f"the rows have no words: give {numbers}")


class WordRows(Mapping[str, int]):
    """A vocabulary as a mapping word -> row, like `key_to_index` in gensim but without a dict."""

    def __init__(self, vocabulary: Ids) -> None:
        self._vocabulary = vocabulary

    def __getitem__(self, word: str) -> int:
        return self._vocabulary.row(word)

    def __iter__(self) -> Iterator[str]:
        return iter(self._vocabulary)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self._vocabulary


def encoded_words(words: Iterable[str], errors: str = "strict") -> Run:
    words = list(words)
    run: Run | None = _core.words_run(words)
    if run is not None:
        return run
    try:
        encoded = [word.encode(errors=errors) for word in words]
    except UnicodeEncodeError as error:
        raise InputError(f"the id {error.object!r} cannot be written as UTF-8") from None
    except AttributeError:
        raise InputError("ids must be strings or whole numbers") from None
    ends = np.cumsum([len(word) for word in encoded], dtype=np.uint64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def number_keys(text: Bytes, ends: NDArray[Any]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Words of a run of UTF-8 as whole numbers below 2^64, and whether each is one."""
    starts, sizes = bounds(ends)
    are_numbers = (sizes > 0) & (sizes <= len(str(MAX_NUMBER)))
    numbers = np.zeros(len(ends), np.uint64)
    for place in range(int(sizes[are_numbers].max(initial=0))):
        here = np.flatnonzero(are_numbers & (sizes > place))
        digits = text[starts[here] + place] - np.uint8(ord("0"))  # of no digit, 10 or more
        is_long = sizes[here] == len(str(MAX_NUMBER))
        is_zero = (digits == 0) & (sizes[here] > 1)
        are_numbers[here] = (digits < 10) & ((place > 0) | ~(is_zero | is_long & (digits > 1)))
        numbers[here] = numbers[here] * np.uint64(10) + digits
    # 20 digits that start with 1 and are too large have become a small number.
    are_numbers &= (sizes < len(str(MAX_NUMBER))) | (numbers >= np.uint64(10**19))
    return numbers, are_numbers


def rows_from(first: int, n: int, numbers: NDArray[np.uint64]) -> Rows:
    """The rows of numbers, if n of them count up from `first`; -1 for others."""
    rows = numbers - np.uint64(first)  # below the first, this is a very large number
    return np.where(rows < n, rows.astype(np.int64), -1)


def bounds(ends: NDArray[Any]) -> tuple[Rows, Rows]:
    """Where words start, and their sizes."""
    stops = ends.astype(np.int64)
    starts = np.concatenate((stops[:0], [0], stops[:-1]))[: len(stops)]
    return starts, stops - starts
