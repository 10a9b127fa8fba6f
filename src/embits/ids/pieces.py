"""The ids of rows in several pieces, of which some rows may be removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from embits.errors import FormatError, UnknownWordError
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import LazyVocabulary, Vocabulary, encoded_words
from embits.search.pieces import LiveRows

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
