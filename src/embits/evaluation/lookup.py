"""Word lookup with case folding, the same for every task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from embits.ids.vocabulary import Vocabulary

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
        words = list(islice(words, restrict_vocab))
        self.size = len(words)
        self._folded, _ = Vocabulary.with_repeats(map(self.fold, words))
        self._exact = self._folded
        if exact_first and case_insensitive:
            self._exact, _ = Vocabulary.with_repeats(words)
        self._found: dict[str, int] = {}

    def fold(self, word: str) -> str:
        """The folded form of a word."""
        return word.upper() if self.case_insensitive else word

    def find(self, word: str) -> int | None:
        """The row of a word, or None."""
        if word not in self._found:
            self.find_ahead([word])
        row = self._found[word]
        return None if row == MISSING else row

    def find_ahead(self, words: Iterable[str]) -> None:
        """Look up words in one batch for later calls of `find`: 50 times as fast."""
        words = list(words)
        self._found.update(zip(words, self.rows(words).tolist(), strict=True))

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """Rows of words; -1 for unknown words."""
        words = list(words)
        rows = self._exact.find_many(words)
        other = np.flatnonzero(rows == MISSING)
        rows[other] = self._folded.find_many(self.fold(words[i]) for i in other)
        return rows

    def spellings(self, row: int) -> list[int]:
        """All rows that fold to the same word as `row`, itself first."""
        return [row, *(other for other in self._folded.find_all(self._folded[row]) if other != row)]

    def all_spellings(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The spellings of each line of `rows` (n, m), padded with -1: shape (n, most)."""
        spellings = {row: self.spellings(row) for row in np.unique(rows).tolist()}
        return _padded(
            [[each for row in line for each in spellings[row]] for line in rows.tolist()]
        )


def _padded(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    padded = np.full((len(lists), max(map(len, lists), default=0)), MISSING, dtype=np.int64)
    for line, values in zip(padded, lists, strict=True):
        line[: len(values)] = values
    return padded
