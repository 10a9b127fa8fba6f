"""Words and their rows, looked up in a mapped file without building an index.

A vocabulary is three arrays: `text`, the UTF-8 of all words in row order; `ends`, where each word
ends in it; `order`, the rows sorted by the bytes of their words, for binary search.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.arrays import blocks
from embits.errors import FormatError, InputError
from embits.ids.keys import Bytes, Ids, Rows, Run, Words, encoded_words

_BYTES_AT_ONCE = 1 << 20
_NEWLINE = ord("\n")


class WordRun(Words):
    """Words one after another in an array of bytes, and where each ends; a separator or none."""

    _separator = b""

    def __init__(self, text: NDArray[Any], ends: NDArray[Any], separator: bytes = b"") -> None:
        self.text, self.ends, self._separator = text, ends, separator

    @classmethod
    def from_lines(cls, content: bytes) -> Self:
        """The lines of a text file, with any line ends. `content` is not copied if they are \\n."""
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").removesuffix(b"\r")
        text = np.frombuffer(content, np.uint8)
        parts = blocks(len(text), _BYTES_AT_ONCE)
        found = [part.start + np.flatnonzero(text[part] == _NEWLINE) for part in parts]
        if not content.endswith(b"\n"):
            found.append(np.array([len(content)]))
        return cls(text, narrowed(np.concatenate(found), len(content)), separator=b"\n")

    def __len__(self) -> int:
        return len(self.ends)

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a word; `row` is 0 or more."""
        start = int(self.ends[row - 1]) + len(self._separator) if row else 0
        end = int(self.ends[row])
        if not start <= end <= len(self.text):
            raise FormatError(f"damaged: word {row} lies at bytes {start} to {end}")
        return self.text[start:end].tobytes()

    def _words_of(self, rows: Rows) -> list[str]:
        ends = _as_bytes(self.ends)
        words = _core.words_at(self.text, ends, self.ends.itemsize, len(self._separator), rows)
        # The slow way says which word is damaged.
        return [self._word(row) for row in rows.tolist()] if words is None else words

    def _word(self, row: int) -> str:
        try:
            return self.encoded(row).decode()
        except UnicodeDecodeError:
            raise FormatError(f"damaged: word {row} is not valid UTF-8") from None


_NEAR = 64  # near spellings among which the likeliest are chosen
# A hash table takes as long to build as looking so many words up one by one: a share of all words.
_INDEXED = 1 / 16


class Vocabulary(WordRun, Ids):
    """An immutable list of words that finds the row of each; in files, no word repeats.

    >>> words = Vocabulary.from_words(["the", "queen", "of", "Zürich"])
    >>> words[1], words.row("Zürich"), "king" in words, len(words)
    ('queen', 3, False, 4)
    >>> words.suggest("quen"), words.find_many(["of", "or"]).tolist()
    (['queen'], [2, -1])
    """

    is_stored = False  # whether the arrays are those of a file
    _n_wanted = 0  # words that were looked up so far

    def __init__(self, text: NDArray[Any], ends: NDArray[Any], order: NDArray[Any]) -> None:
        unsigned = all(array.dtype.kind == "u" and array.ndim == 1 for array in (text, ends, order))
        if not unsigned or text.dtype != np.uint8 or len(ends) != len(order):
            arrays = {"text": text, "ends": ends, "order": order}.items()
            found = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays)
            raise FormatError(f"the vocabulary's arrays do not fit: {found}")
        super().__init__(text, ends)
        self.order = order

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Vocabulary:
        """An index of words; InputError if one appears twice, or cannot be written as UTF-8."""
        index, repeated = cls.with_repeats(words)
        if repeated:
            word, row = index[repeated[0]], repeated[0]
            raise InputError(f"the id {word!r} appears twice: in rows {index.row(word)} and {row}")
        return index

    @classmethod
    def with_repeats(cls, words: Iterable[str]) -> tuple[Vocabulary, list[int]]:
        """As `from_run`, of strings. Files hold no repeats."""
        return cls.from_run(*encoded_words(words))

    @classmethod
    def from_run(cls, text: NDArray[Any], ends: NDArray[Any]) -> tuple[Vocabulary, list[int]]:
        """As `from_words`, of one run of UTF-8; and the rows that repeat an earlier word."""
        order = np.empty(len(ends), dtype=np.uint64)
        _core.word_order(text, ends, order)
        repeated = _core.repeated_words(text, ends, order)
        largest = max(len(text), len(ends))
        return cls(text, narrowed(ends, largest), narrowed(order, largest)), repeated

    def find_all(self, word: str) -> list[int]:
        """All rows of a word that may repeat, ascending."""
        wanted = word.encode(errors="surrogatepass")  # never found
        return [int(row) for row in self._rows_between(wanted, wanted + b"\0")]

    def find_run(self, run: Run) -> Rows:
        rows = np.empty(len(run[1]), np.int64)
        if self._is_worth_an_index(len(rows)):
            self._index.find(*run, rows)
        else:
            self._find(run, rows)
        return rows

    def _is_worth_an_index(self, n_wanted: int) -> bool:
        self._n_wanted += n_wanted
        return len(self) * _INDEXED < self._n_wanted and len(self) < 2**32 - 1

    def _find(self, run: Run, rows: Rows) -> None:
        """Look words up one by one."""
        order = np.ascontiguousarray(self._checked_order, self.ends.dtype)
        _core.find_words(
            self.text, _as_bytes(self.ends), _as_bytes(order), self.ends.itemsize, *run, rows
        )

    @LazyProperty
    def _index(self) -> _core.WordIndex:
        """A hash table of all words. Together with unpacked text it takes about 30 bytes a word."""
        self._check_ends()
        return _core.WordIndex(self.text, _as_bytes(self.ends), self.ends.itemsize)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_index"}

    @property
    def byte_sizes(self) -> tuple[int, int]:
        return self.text.nbytes + self.ends.nbytes, self.order.nbytes

    def suggest(self, word: str, most: int = 3) -> list[str]:
        """Words spelled like `word`: other letter case first, then the likeliest."""
        # Few edits and an early row count for a word, because words are usually in the order of
        # their frequency; another first letter counts against it.
        other_cases = {word.lower(), word.upper(), word.capitalize(), word.title()} - {word}
        cases = sorted(row for case in other_cases if (row := self.find(case)) is not None)
        raw = word.encode(errors="replace")
        costs: dict[int, int] = {}
        if 0 < len(raw) <= 64:
            for edits in (1,) if len(raw) <= 4 else (1, 2):
                for row in self._near(raw, edits, _NEAR):
                    differs = self[row].encode()[:1].lower() != raw[:1].lower()
                    costs.setdefault(row, 8 * edits + 12 * differs + (row + 1).bit_length())
        rows = cases + sorted(costs.keys() - set(cases), key=lambda row: (costs[row], row))
        return [self[row] for row in rows[:most]]

    def _near(self, word: bytes, edits: int, most: int) -> list[int]:
        """The rows of the words at most so many edits away, the fewest first, then by row."""
        return _core.near_spellings(self.text, self.ends.astype(np.uint64), word, edits, most)

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` words, in row order, that start with `prefix`."""
        low = prefix.encode(errors="replace")
        # UTF-8 has no byte 255, so all words that start with the prefix are below.
        rows = np.sort(self._rows_between(low, low + b"\xff"))
        return [self[row] for row in rows[:most].tolist()]

    def verify(self) -> None:
        order = self._checked_order
        for _ in self:  # decoding checks the UTF-8
            pass
        index, repeated = Vocabulary.from_run(self.text, self.ends.astype(np.uint64))
        if repeated or not np.array_equal(index.order, order):
            raise FormatError("damaged: the words are not in order, or one repeats")

    def _rows_between(self, low: bytes, high: bytes) -> NDArray[Any]:
        """The rows of the words from `low` on, up to and without `high`, in order of the words."""
        places, order = range(len(self)), self._checked_order
        start, stop = (
            bisect_left(places, word, key=lambda place: self.encoded(int(order[place])))
            for word in (low, high)
        )
        return order[start:stop]

    @LazyProperty
    def _checked_order(self) -> NDArray[Any]:
        """The order. All arrays are checked before the first look-up: a file may be damaged."""
        self._check_ends()
        n = len(self)
        if n and (last := int(self.order.max())) >= n:
            raise FormatError(f"damaged: the vocabulary points at row {last} of {n}")
        return self.order

    def _check_ends(self) -> None:
        ends = self.ends
        if (ends[1:] < ends[:-1]).any() or (int(ends[-1]) if len(ends) else 0) != len(self.text):
            raise FormatError("damaged: the words' ends do not fit their text")


class LazyVocabulary(Vocabulary):
    """A vocabulary whose arrays `text`, `ends` and `order` are made when they are first used."""

    is_stored = True

    def __getattr__(self, name: str) -> Any:
        if name in ("text", "ends"):
            self.text, ends = self._run()
            self.ends = narrowed(ends, max(len(self.text), len(ends)))
        elif name == "order":
            self.order = self._order()
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.__dict__[name]

    @abstractmethod
    def _run(self) -> Run:
        """The UTF-8 of all words, and where each ends."""

    def _order(self) -> NDArray[Any]:
        return Vocabulary.from_run(self.text, self.ends.astype(np.uint64))[0].order

    def __iter__(self) -> Iterator[str]:
        return iter(WordRun(*self._run()))

    _word = Words._word


def narrowed(numbers: NDArray[Any], largest: int) -> NDArray[Any]:
    """Numbers of 0 to `largest` as uint32, or uint64 if they do not fit."""
    return numbers.astype(np.uint32 if largest < 2**32 else np.uint64)


def _as_bytes(numbers: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(numbers).view(np.uint8)
