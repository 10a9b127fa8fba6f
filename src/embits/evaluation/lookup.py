"""Word lookup with case folding, the same for every task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MISSING = -1


class Lookup:
    """Maps words to rows, with or without case folding.

    An exact match comes first. Otherwise the lookup returns the first row that is equal after
    `str.upper`; in files sorted by frequency that is the most frequent spelling. gensim always
    returns that first row: in an unsorted file "poetry" then finds "Poetry", which costs ten points
    of similarity. The two gensim-compatible functions do the same (`exact_first=False`).

    Args:
        words: The words in row order.
        restrict_vocab: Use only this many first rows; None uses all. (gensim's default is
            300,000.)
        case_insensitive: Fold letter case.
        exact_first: Prefer an exact match to the first row that matches after folding.

    Example:
        >>> lookup = Lookup(["the", "Apple", "apple", "APPLE"])
        >>> lookup.find("apple"), lookup.find("aPPle"), lookup.find("pear"), lookup.spellings(2)
        (2, 1, None, [2, 1, 3])
    """

    def __init__(
        self,
        words: Iterable[str],
        restrict_vocab: int | None = None,
        case_insensitive: bool = True,
        exact_first: bool = True,
    ) -> None:
        self.case_insensitive = case_insensitive
        self._firsts: dict[str, int] = {}  # the first row of each folded word
        self._later: dict[str, int] = {}  # the rows of later spellings
        self._first_of: dict[int, int] = {}  # row of a later spelling -> row of the first one
        self._others: dict[int, list[int]] = {}  # the other direction
        self.size = 0
        for row, word in enumerate(words):
            if row == restrict_vocab:
                break
            first = self._firsts.setdefault(self.fold(word), row)
            if first != row:
                self._first_of[row] = first
                self._others.setdefault(first, []).append(row)
                if exact_first:
                    self._later.setdefault(word, row)
            self.size = row + 1

    def fold(self, word: str) -> str:
        """The folded form of a word."""
        return word.upper() if self.case_insensitive else word

    def find(self, word: str) -> int | None:
        """The row of a word, or None."""
        row = self._later.get(word)
        return self._firsts.get(self.fold(word)) if row is None else row

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Rows of words; -1 for unknown words."""
        found = (self.find(word) for word in words)
        return np.array([MISSING if row is None else row for row in found], dtype=np.int64)

    def spellings(self, row: int) -> list[int]:
        """All rows that fold to the same word as `row`, itself first."""
        first = self._first_of.get(row, row)
        return [row, *(other for other in (first, *self._others.get(first, ())) if other != row)]

    def all_spellings(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The spellings of each line of `rows` (n, m), padded with -1: shape (n, most)."""
        lists = [[other for row in line for other in self.spellings(row)] for line in rows.tolist()]
        return _padded(lists)


def _padded(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    padded = np.full((len(lists), max(map(len, lists), default=0)), MISSING, dtype=np.int64)
    for line, values in zip(padded, lists, strict=True):
        line[: len(values)] = values
    return padded
