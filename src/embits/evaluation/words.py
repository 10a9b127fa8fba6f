"""Which row answers for a word: one rule for every task, and it is gensim's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MISSING = -1


class Lookup:
    """Words -> rows, letter case folded or not.

    Folded as gensim folds: by `str.upper`, and of several spellings the first row answers, which
    in files sorted by frequency is the most frequent one.

    Args:
        words: The words in row order.
        restrict_vocab: Only the first rows count, this many; None takes all. (gensim's own
            default is 300,000.)
        case_insensitive: Fold letter case.

    Example:
        >>> lookup = Lookup(["the", "Apple", "apple", "APPLE"])
        >>> lookup.find("apple"), lookup.find("pear"), lookup.spellings(1)
        (1, None, [1, 2, 3])
    """

    def __init__(
        self,
        words: Iterable[str],
        restrict_vocab: int | None = None,
        case_insensitive: bool = True,
    ) -> None:
        self.case_insensitive = case_insensitive
        self._rows: dict[str, int] = {}
        self._others: dict[int, list[int]] = {}
        self.size = 0
        for row, word in enumerate(words):
            if row == restrict_vocab:
                break
            first = self._rows.setdefault(self.fold(word), row)
            if first != row:
                self._others.setdefault(first, []).append(row)
            self.size = row + 1

    def fold(self, word: str) -> str:
        """The form of a word that is looked up."""
        return word.upper() if self.case_insensitive else word

    def find(self, word: str) -> int | None:
        """The row that answers for a word, or None."""
        return self._rows.get(self.fold(word))

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Rows of words, -1 where a word is not there."""
        get, fold = self._rows.get, self.fold
        return np.array([get(fold(word), MISSING) for word in words], dtype=np.int64)

    def spellings(self, row: int) -> list[int]:
        """All rows that fold to the same word as `row`, which answers for it; itself first."""
        return [row, *self._others.get(row, ())]

    def all_spellings(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The spellings of each line of `rows` (n, m), padded with -1: shape (n, most)."""
        lists = [[other for row in line for other in self.spellings(row)] for line in rows.tolist()]
        return _padded(lists)


def _padded(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    padded = np.full((len(lists), max(map(len, lists), default=0)), MISSING, dtype=np.int64)
    for line, values in zip(padded, lists, strict=True):
        line[: len(values)] = values
    return padded
