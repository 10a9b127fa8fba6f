"""Words and their rows, looked up in a mapped file without building an index.

A vocabulary is three arrays: `text`, the UTF-8 of all words in row order; `ends`, where each word
ends in it; `order`, the rows sorted by the bytes of their words, for binary search. Together they
take the text plus 8 bytes a word.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import FormatError, InputError
from embits.ids.keys import Keys
from embits.ids.run import WordRun, encoded_words, narrowed


class Vocabulary(WordRun, Keys):
    """An immutable list of words that finds the row of each; in files, no word repeats.

    Example:
        >>> words = Vocabulary.from_words(["the", "queen", "of", "Zürich"])
        >>> words[1], words.row("Zürich"), "king" in words, len(words)
        ('queen', 3, False, 4)
        >>> words.suggest("quen")
        ['queen']

    Attributes:
        is_stored: The arrays are those of a file.
    """

    is_stored = False

    def __init__(self, text: NDArray[Any], ends: NDArray[Any], order: NDArray[Any]) -> None:
        unsigned = all(array.dtype.kind == "u" and array.ndim == 1 for array in (text, ends, order))
        if not unsigned or text.dtype != np.uint8 or len(ends) != len(order):
            raise FormatError(
                f"the vocabulary's arrays do not fit: text {text.dtype} {text.shape}, "
                f"ends {ends.dtype} {ends.shape}, order {order.dtype} {order.shape}"
            )
        super().__init__(text, ends)
        self.order = order

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Vocabulary:
        """Build the three arrays.

        Raises:
            InputError: A word appears twice, or cannot be written as UTF-8.
        """
        index, repeated = cls.with_repeats(words)
        if repeated:
            word = index[repeated[0]]
            raise InputError(
                f"the id {word!r} appears twice: in rows {index.row(word)} and {repeated[0]}"
            )
        return index

    @classmethod
    def with_repeats(cls, words: Iterable[str]) -> tuple[Vocabulary, list[int]]:
        """As `from_run`, of words as strings.

        Raises:
            InputError: A word cannot be written as UTF-8.
        """
        return cls.from_run(*encoded_words(words))

    @classmethod
    def from_run(
        cls, text: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> tuple[Vocabulary, list[int]]:
        """Build the order of words that are one run of UTF-8 already.

        Returns:
            The vocabulary, and the rows, ascending, that repeat the word of an earlier row. Only a
            vocabulary without repeats may be written to a file.
        """
        order = np.empty(len(ends), dtype=np.uint64)
        _core.word_order(text, ends, order)
        repeated = _core.repeated_words(text, ends, order)
        largest = max(len(text), len(ends))
        return cls(text, narrowed(ends, largest), narrowed(order, largest)), repeated

    def find(self, word: str) -> int | None:
        """The row of a word, the first if it repeats; or None."""
        try:
            wanted = word.encode()
        except UnicodeEncodeError:
            return None
        place = bisect_left(range(len(self)), wanted, key=self._sorted_bytes)
        if place < len(self) and self._sorted_bytes(place) == wanted:
            return int(self.order[place])
        return None

    def find_many(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The row of each word, the first if it repeats; -1 if it is not there.

        >>> Vocabulary.from_words(["up", "down"]).find_many(["down", "left"]).tolist()
        [1, -1]
        """
        return self.find_encoded(*encoded_words(words, errors="surrogatepass"))  # never found

    def find_encoded(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """As `find_many`, of words that are one run of UTF-8 already. Sorted ones are faster."""
        rows = np.empty(len(ends), np.int64)
        own_ends = np.ascontiguousarray(self.ends).view(np.uint8)
        order = np.ascontiguousarray(self.order, dtype=self.ends.dtype).view(np.uint8)
        _core.find_words(self.text, own_ends, order, self.ends.itemsize, wanted, ends, rows)
        return rows

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the text with its ends, and of the order."""
        return self.text.nbytes + self.ends.nbytes, self.order.nbytes

    def find_all(self, word: str) -> list[int]:
        """All rows of a word that may repeat, ascending.

        >>> Vocabulary.with_repeats(["A", "B", "A"])[0].find_all("A")
        [0, 2]
        """
        wanted = word.encode(errors="replace")
        rows: list[int] = self._rows_between(wanted, wanted + b"\0").tolist()
        return rows

    def suggest(self, word: str, most: int = 3) -> list[str]:
        """Words spelled like `word`: other letter case first, then by edits, then by row."""
        other_cases = {word.lower(), word.upper(), word.capitalize(), word.title()} - {word}
        rows = sorted(row for case in other_cases if (row := self.find(case)) is not None)
        raw = word.encode(errors="replace")
        edits = 1 if len(raw) <= 4 else 2
        if 0 < len(raw) <= 64:
            rows += [row for row in self._near(raw, edits, most) if row not in rows]
        return [self[row] for row in rows[:most]]

    def _near(self, word: bytes, edits: int, most: int) -> list[int]:
        """The rows of the words at most so many edits away, the fewest first, then by row."""
        return _core.near_spellings(self.text, self.ends.astype(np.uint64), word, edits, most)

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` words, in row order, that start with `prefix`.

        >>> Vocabulary.from_words(["queue", "king", "queen", "quiet"]).starting_with("que", 5)
        ['queue', 'queen']
        """
        low = prefix.encode(errors="replace")
        # UTF-8 has no byte 255, so all words that start with the prefix are below.
        rows = np.sort(self._rows_between(low, low + b"\xff"))
        return [self[row] for row in rows[:most].tolist()]

    def verify(self) -> None:
        """Check all words.

        Raises:
            FormatError: The ends decrease, a word is not UTF-8, or the order is wrong.
        """
        ends = self.ends.astype(np.int64)
        if len(self) and ((np.diff(ends) < 0).any() or ends[0] < 0):
            raise FormatError("damaged: the words' ends run backwards")
        if (int(ends[-1]) if len(self) else 0) != len(self.text):
            raise FormatError("damaged: the words' ends do not fit their text")
        order = self.order.astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(self))):
            raise FormatError("damaged: the words' order is not a permutation of the rows")
        in_order = [self[row].encode() for row in order.tolist()]
        if any(a >= b for a, b in pairwise(in_order)):
            raise FormatError("damaged: the words are not in order")

    def _sorted_bytes(self, place: int) -> bytes:
        row = int(self.order[place])
        if row >= len(self):
            raise FormatError(f"damaged: the vocabulary points at row {row} of {len(self)}")
        return self.encoded(row)

    def _rows_between(self, low: bytes, high: bytes) -> NDArray[Any]:
        """The rows of the words from `low` on, up to and without `high`, in order of the words."""
        places = range(len(self))
        start = bisect_left(places, low, key=self._sorted_bytes)
        rows = self.order[start : bisect_left(places, high, lo=start, key=self._sorted_bytes)]
        if (rows >= len(self)).any():
            raise FormatError(f"damaged: the vocabulary points at row {rows.max()} of {len(self)}")
        return rows
