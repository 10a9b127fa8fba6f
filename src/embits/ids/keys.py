"""Ids of rows: what all kinds of them have in common, row numbers, and a mapping of ids to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from embits.errors import UnknownWordError

MAX_NUMBER = 2**64 - 1


class Keys(Sequence[str], ABC):
    """The ids of rows: what a vocabulary of words and plain row numbers have in common.

    Attributes:
        are_numbers: The rows have no words: their ids are numbers.
        lacks_subwords: The file had subwords, which were left out.
    """

    are_numbers = False
    lacks_subwords = False

    @abstractmethod
    def find(self, word: str) -> int | None:
        """The row of a word, or None."""

    def find_many(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The row of each word; -1 if it is not there."""
        rows = (self.find(word) for word in words)
        return np.array([-1 if row is None else row for row in rows], np.int64)

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the text of the words, and of their order."""
        return 0, 0

    @abstractmethod
    def suggest(self, word: str) -> list[str]:
        """Words spelled alike."""

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The words of rows, in their shape: an array of `str` objects."""
        flat, places = rows.ravel(), None
        if (flat[1:] <= flat[:-1]).any():  # each row once, in order
            flat, places = np.unique(flat, return_inverse=True)
        words = np.empty(len(flat), dtype=object)
        words[:] = self._words_of(flat)
        return (words if places is None else words[places]).reshape(rows.shape)

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        """The words of rows that are there."""
        return [self[row] for row in rows.tolist()]

    @abstractmethod
    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` words, in row order, that start with `prefix`."""

    def row(self, word: str) -> int:
        """The row of a word."""
        row = self.find(word)
        if row is None:
            raise self.unknown(word)
        return row

    def unknown(self, word: str) -> UnknownWordError:
        """The error for a word that is not there, with near spellings."""
        hint = "subwords, which make codes of unknown words, were left out of this file"
        return UnknownWordError(word, self.suggest(word), hint if self.lacks_subwords else "")

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None


class RowNumbers(Keys):
    """The ids of a matrix without words: the row numbers.

    Args:
        n: How many rows.
        first: The number of row 0. It is 0 but for the later pieces of a collection.

    Example:
        >>> rows = RowNumbers(3)
        >>> rows[2], rows.find("2"), rows.find("3"), "02" in rows
        ('2', 2, None, False)
    """

    are_numbers = True

    def __init__(self, n: int, first: int = 0) -> None:
        self._numbers = range(first, first + n)
        self.first = first

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        numbers = self._numbers[row]
        return str(numbers) if isinstance(numbers, int) else [str(i) for i in numbers]

    def find(self, word: str) -> int | None:
        """The row with a number, or None."""
        is_number = word.isascii() and word.isdigit() and len(word) < 20
        number = int(word) if is_number else -1
        return number - self.first if number in self._numbers and str(number) == word else None

    def find_encoded(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The row of each number of a run of UTF-8; -1 if it is not there."""
        numbers, are_numbers = number_keys(wanted, ends)
        rows = numbers - np.uint64(self.first)  # below the first, this is a very large number
        return np.where(are_numbers & (rows < len(self)), rows, -1).astype(np.int64)

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The numbers of the rows."""
        return rows + self.first if self.first else rows

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        return list(map(str, (rows + self.first).tolist()))

    def suggest(self, word: str) -> list[str]:
        """Nothing: numbers have no near spellings."""
        return []

    def unknown(self, word: str) -> UnknownWordError:
        """The error for a number that is not there, or for a word."""
        last = self.first + len(self) - 1
        numbers = f"a row number from {self.first} to {last}" if len(self) else "a file with rows"
        return UnknownWordError(word, [], f"the rows have no words: give {numbers}")

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` numbers that start with `prefix`."""
        return list(islice((row for row in self if row.startswith(prefix)), most))


class WordRows(Mapping[str, int]):
    """A vocabulary as a mapping word -> row, like `key_to_index` in gensim but without a dict."""

    def __init__(self, vocabulary: Keys) -> None:
        self._vocabulary = vocabulary

    def __getitem__(self, word: str) -> int:
        return self._vocabulary.row(word)

    def __iter__(self) -> Iterator[str]:
        return iter(self._vocabulary)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self._vocabulary


def number_keys(
    text: NDArray[np.uint8], ends: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Words of a run of UTF-8 as whole numbers below 2^64, and whether each is one.

    >>> numbers, are_numbers = number_keys(np.frombuffer(b"707x", np.uint8), np.array([1, 3, 4]))
    >>> numbers[are_numbers].tolist(), are_numbers.tolist()
    ([7], [True, False, False])
    """
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


def bounds(ends: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where words start, and their sizes."""
    stops = ends.astype(np.int64)
    starts = np.concatenate((stops[:0], [0], stops[:-1]))[: len(stops)]
    return starts, stops - starts
