"""Words and their rows, looked up in a mapped file without building an index.

A vocabulary is three arrays: `text`, the UTF-8 of all words in row order; `ends`, where each word
ends in it; `order`, the rows sorted by the bytes of their words, for binary search. Together they
take the text plus 8 bytes a word; a list of strings would take five times as much.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Self, TypeAlias, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import FormatError, InputError, UnknownWordError
from embits.ids.keys import Keys, RowNumbers
from embits.search.pieces import LiveRows

_WORDS_AT_ONCE = 1 << 14
_BYTES_AT_ONCE = 1 << 20
_NEWLINE = ord("\n")


class WordRun(Sequence[str]):
    """Words that lie one after another in an array of bytes.

    Args:
        text: The UTF-8 of all words, uint8 of shape (n_bytes,).
        ends: Where each word ends, unsigned of shape (n,).
        separator: What is between two words, and in no word: a newline for lines.

    Example:
        >>> words = WordRun.from_lines(b"up\\ndown\\n")
        >>> len(words), words[-1], list(words)
        (2, 'down', ['up', 'down'])
    """

    _separator = b""

    def __init__(self, text: NDArray[Any], ends: NDArray[Any], separator: bytes = b"") -> None:
        self.text, self.ends, self._separator = text, ends, separator

    @classmethod
    def from_lines(cls, content: bytes) -> Self:
        """The lines of a text file, with any line ends. `content` is not copied if they are \\n."""
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").removesuffix(b"\r")
        text = np.frombuffer(content, np.uint8)
        found = [
            start + np.flatnonzero(text[start : start + _BYTES_AT_ONCE] == _NEWLINE)
            for start in range(0, len(text), _BYTES_AT_ONCE)
        ]
        if not content.endswith(b"\n"):
            found.append(np.array([len(content)]))
        return cls(text, narrowed(np.concatenate(found), len(content)), separator=b"\n")

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return list(self._words(range(*row.indices(len(self)))))
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} words")
        return self._word(row % len(self))

    def __iter__(self) -> Iterator[str]:
        return self._words(range(len(self)))

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a word; `row` is 0 or more."""
        start = int(self.ends[row - 1]) + len(self._separator) if row else 0
        end = int(self.ends[row])
        if not start <= end <= len(self.text):
            raise FormatError(f"damaged: word {row} lies at bytes {start} to {end}")
        return self.text[start:end].tobytes()

    def _words(self, rows: range) -> Iterator[str]:
        """Words that follow each other take a tenth of the time that one by one takes."""
        if rows.step != 1:
            yield from map(self._word, rows)
            return
        for start in range(rows.start, rows.stop, _WORDS_AT_ONCE):
            yield from self._batch(range(start, min(start + _WORDS_AT_ONCE, rows.stop)))

    def _batch(self, rows: range) -> list[str]:
        gap = len(self._separator)
        first = int(self.ends[rows.start - 1]) + gap if rows.start else 0
        ends = self.ends[rows.start : rows.stop].astype(np.int64)
        run = self.text[first : max(first, ends[-1])]
        is_damaged = (np.diff(ends, prepend=first - gap) < gap).any() or ends[-1] > len(self.text)
        if is_damaged or (not gap and (run == _NEWLINE).any()):
            return [self._word(row) for row in rows]  # this raises if they are damaged
        if not gap:
            run = np.insert(run, ends[:-1] - first, _NEWLINE)  # for `split`: one call in all
        try:
            return run.tobytes().decode().split("\n")
        except UnicodeDecodeError:
            return [self._word(row) for row in rows]  # this raises with the row

    def _word(self, row: int) -> str:
        try:
            return self.encoded(row).decode()
        except UnicodeDecodeError:
            raise FormatError(f"damaged: word {row} is not valid UTF-8") from None


_NEAR = 64  # near spellings among which the likeliest are chosen


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
        """An index of words; InputError if one appears twice, or cannot be written as UTF-8."""
        index, repeated = cls.with_repeats(words)
        if repeated:
            word = index[repeated[0]]
            raise InputError(
                f"the id {word!r} appears twice: in rows {index.row(word)} and {repeated[0]}"
            )
        return index

    @classmethod
    def with_repeats(cls, words: Iterable[str]) -> tuple[Vocabulary, list[int]]:
        """As `from_run`, of strings. Files hold no repeats."""
        return cls.from_run(*encoded_words(words))

    @classmethod
    def from_run(
        cls, text: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> tuple[Vocabulary, list[int]]:
        """As `from_words`, of one run of UTF-8; and the rows that repeat an earlier word."""
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
        """Words spelled like `word`: other letter case first, then the likeliest.

        Few edits and an early row count for a word, because words are usually in the order of
        their frequency; another first letter counts against it.
        """
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
        """The first `most` words, in row order, that start with `prefix`.

        >>> Vocabulary.from_words(["queue", "king", "queen", "quiet"]).starting_with("que", 5)
        ['queue', 'queen']
        """
        low = prefix.encode(errors="replace")
        # UTF-8 has no byte 255, so all words that start with the prefix are below.
        rows = np.sort(self._rows_between(low, low + b"\xff"))
        return [self[row] for row in rows[:most].tolist()]

    def verify(self) -> None:
        """Check all words."""
        ends = self.ends.astype(np.int64)
        if len(self) and ((np.diff(ends) < 0).any() or ends[0] < 0):
            raise FormatError("damaged: the words' ends run backwards")
        if (int(ends[-1]) if len(self) else 0) != len(self.text):
            raise FormatError("damaged: the words' ends do not fit their text")
        for _ in self:  # decoding checks the UTF-8
            pass
        index, repeated = Vocabulary.from_run(self.text, self.ends.astype(np.uint64))
        if repeated or not np.array_equal(index.order, self.order):
            raise FormatError("damaged: the words are not in order, or one repeats")

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

    def unpack(self) -> None:
        """Make the arrays of the text: slices are faster from then on."""
        _ = self.ends

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _run(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """The UTF-8 of all words, and where each ends."""

    def _order(self) -> NDArray[Any]:
        """The rows sorted by their words."""
        return Vocabulary.from_run(self.text, self.ends.astype(np.uint64))[0].order

    def __iter__(self) -> Iterator[str]:
        return iter(WordRun(*self._run()))

    def _words(self, rows: range) -> Iterator[str]:
        if "ends" in self.__dict__:  # the run is there: words that follow each other are fast
            return super()._words(rows)
        return iter(self._words_of(np.arange(rows.start, rows.stop, rows.step)))

    def _word(self, row: int) -> str:
        return self._words_of(np.array([row]))[0]

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a word; `row` is 0 or more."""
        return self._word(row).encode()

    def find_all(self, word: str) -> list[int]:
        """The row of a word in a list, which is empty if it is not there."""
        row = self.find(word)
        return [] if row is None else [row]


PieceIds: TypeAlias = Vocabulary | RowNumbers


class PieceWords(LazyVocabulary):
    """The ids of several pieces, one after the other, without removed rows.

    No index is built: an id is looked up in the pieces. The arrays of a single vocabulary are made
    when they are first used.

    Args:
        pieces: The ids of each piece. No id may appear twice in rows that are not removed.
        removed: The removed rows, ascending, counted over all pieces.
        numbered: The ids are whole numbers: `names` returns them as int64.

    Example:
        >>> ids = PieceWords([Vocabulary.from_words(["a", "b"]), Vocabulary.from_words(["a"])],
        ...                  removed=np.array([0]))
        >>> list(ids), ids.find("a"), ids.find_many(["b", "c"]).tolist()
        (['b', 'a'], 1, [0, -1])
    """

    def __init__(
        self,
        pieces: Sequence[PieceIds],
        removed: NDArray[np.int64] | None = None,
        *,
        numbered: bool = False,
    ) -> None:
        self.pieces = list(pieces)
        self.starts = np.cumsum([0, *(len(piece) for piece in pieces)])
        self.rows = LiveRows(int(self.starts[-1]), removed)
        self.are_numbers = numbered

    def __len__(self) -> int:
        return len(self.rows)

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        stored = self.rows.stored(rows)
        owners = np.searchsorted(self.starts, stored, side="right") - 1
        words = np.empty(len(rows), object)
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            words[mine] = self.pieces[owner]._words_of(stored[mine] - self.starts[owner])
        return words.tolist()

    def find(self, word: str) -> int | None:
        """The row of a word, or None."""
        row = int(self.find_many([word])[0])
        return None if row < 0 else row

    def find_many(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The row of each word; -1 if it is not there."""
        wanted = list(words)
        # Sorted, the words that follow each other are looked up in the same part of a piece.
        order = sorted(range(len(wanted)), key=wanted.__getitem__)
        ordered = [wanted[place] for place in order]
        run = encoded_words(ordered, errors="surrogatepass")  # never found
        found = np.full(len(wanted), -1, np.int64)
        for piece, start in zip(self.pieces, self.starts.tolist(), strict=False):
            stored = piece.find_encoded(*run)
            here = np.flatnonzero(stored >= 0)
            if len(here):
                found[here] = np.maximum(self.rows.live(stored[here] + start), found[here])
        rows = np.empty_like(found)
        rows[order] = found
        return rows

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows, in their shape: `str` objects, or int64 if the ids are numbers."""
        names = super().names(rows)
        try:
            return names.astype(np.int64) if self.are_numbers else names
        except (ValueError, OverflowError):
            raise FormatError("damaged: the ids of a numbered collection are words") from None

    def suggest(self, word: str, most: int = 3) -> list[str]:
        """Words spelled alike."""
        near = dict.fromkeys(each for piece in self.pieces for each in piece.suggest(word))
        return list(islice((each for each in near if each in self), most))

    def unknown(self, word: str) -> UnknownWordError:
        """The error for an id that is not there."""
        if self.are_numbers:
            return UnknownWordError(word, [], "the ids are the numbers of the rows as added")
        return super().unknown(word)

    def starting_with(self, prefix: str, most: int) -> list[str]:
        """The first `most` words, in row order, that start with `prefix`."""
        most_stored = most + len(self.rows.removed)
        found = (each for p in self.pieces for each in p.starting_with(prefix, most_stored))
        return list(islice((each for each in found if each in self), most))

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the text and of the order, in all pieces."""
        text, order = zip(*(piece.byte_sizes for piece in self.pieces), strict=True)
        return sum(text), sum(order)

    def merged(self) -> PieceIds:
        """The same ids as a single piece."""
        if len(self.pieces) == 1 and not len(self.rows.removed):
            return self.pieces[0]
        if (first := self._consecutive()) is not None:
            return RowNumbers(len(self), first)
        return Vocabulary(self.text, self.ends, self.order)

    def _run(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """The UTF-8 of all ids, and where each ends."""
        texts, ends, offset = [np.empty(0, np.uint8)], [np.empty(0, np.uint64)], 0
        for piece, start in zip(self.pieces, self.starts.tolist(), strict=False):
            removed = self.rows.removed_in(start, start + len(piece))
            text, own_ends = _run_without(piece, removed)
            texts.append(text)
            ends.append(own_ends + np.uint64(offset))
            offset += len(text)
        return np.concatenate(texts), np.concatenate(ends)

    def _consecutive(self) -> int | None:
        """The first id, if the ids are numbers that follow each other and need not be stored."""
        runs = [np.arange(p.first, p.first + len(p)) for p in self.pieces if is_numbers(p)]
        if len(runs) < len(self.pieces):
            return None
        left = np.concatenate(runs)[self.rows.stored(np.arange(len(self)))]
        if (left[1:] != left[:-1] + 1).any():
            return None
        return int(left[0]) if len(left) else 0


def is_numbers(ids: PieceIds) -> TypeGuard[RowNumbers]:
    """Whether the rows of a piece have no ids but their numbers."""
    return isinstance(ids, RowNumbers)


def _run_without(
    piece: PieceIds, removed: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """The UTF-8 of the ids of a piece without some rows, and where each ends."""
    if not isinstance(piece, Vocabulary):
        text, ends = encoded_words(piece)
    else:
        text, ends = piece.text, piece.ends.astype(np.uint64)
    lengths = np.diff(ends, prepend=np.uint64(0)).astype(np.int64)
    if (lengths < 0).any() or lengths.sum() != len(text):
        raise FormatError("damaged: the words' ends do not fit their text")
    if not len(removed):
        return text, ends
    kept = np.ones(len(lengths), bool)
    kept[removed] = False
    return text[np.repeat(kept, lengths)], np.cumsum(lengths[kept]).astype(np.uint64)


def narrowed(numbers: NDArray[Any], largest: int) -> NDArray[Any]:
    """Numbers of 0 to `largest` as uint32, or uint64 if they do not fit."""
    return numbers.astype(np.uint32 if largest < 2**32 else np.uint64)


def encoded_words(
    words: Iterable[str], errors: str = "strict"
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """The UTF-8 of words in one run, and where each ends."""
    try:
        encoded = [word.encode(errors=errors) for word in words]
    except UnicodeEncodeError as error:
        raise InputError(f"the id {error.object!r} cannot be written as UTF-8") from None
    except AttributeError:
        raise InputError("ids must be strings or whole numbers") from None
    ends = np.cumsum([len(word) for word in encoded], dtype=np.uint64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends
