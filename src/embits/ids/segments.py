"""The ids of several segments, one after the other, without removed rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import FormatError, UnknownWordError
from embits.ids.keys import Ids, RowNumbers, Rows, Run, bounds, encoded_words
from embits.ids.vocabulary import Vocabulary
from embits.search.stored import RowMap


class SegmentIds(Ids):
    """The ids of segments. No index is built: an id is looked up in each segment.

    An id appears once in the rows that are left. If the ids are `numbered`, `names` returns int64.
    """

    def __init__(self, segments: Sequence[Ids], rows: RowMap, numbered: bool = False) -> None:
        self.segments, self.rows, self.numbered = list(segments), rows, numbered

    def __len__(self) -> int:
        return len(self.rows)

    def _words_of(self, rows: Rows) -> list[str]:
        parts = self.rows.by_segment(self.rows.stored(rows))
        return [word for place, _, own in parts for word in self.segments[place]._words_of(own)]

    def find_run(self, run: Run) -> Rows:
        found = np.full(len(run[1]), -1, np.int64)
        for segment, start in zip(self.segments, self.rows.starts.tolist(), strict=False):
            stored = segment.find_run(run)
            here = np.flatnonzero(stored >= 0)
            if len(here):
                found[here] = np.maximum(self.rows.live(stored[here] + start), found[here])
        return found

    def names(self, rows: Rows) -> NDArray[Any]:
        """The ids of rows, in their shape: `str` objects, or int64 if the ids are numbers."""
        names = super().names(rows)
        try:
            return names.astype(np.int64) if self.numbered else names
        except (ValueError, OverflowError):
            raise FormatError("damaged: the ids of a numbered collection are words") from None

    def suggest(self, word: str, most: int = 3) -> list[str]:
        near = dict.fromkeys(each for ids in self.segments for each in ids.suggest(word))
        return list(islice((each for each in near if each in self), most))

    def unknown(self, key: Any) -> UnknownWordError:
        if self.numbered:
            return UnknownWordError(str(key), [], "the ids are the numbers of the rows as added")
        return super().unknown(key)

    def starting_with(self, prefix: str, most: int) -> list[str]:
        most_stored = most + len(self.rows.removed)
        found = (each for ids in self.segments for each in ids.starting_with(prefix, most_stored))
        return list(islice((each for each in found if each in self), most))

    @property
    def byte_sizes(self) -> tuple[int, int]:
        text, order = zip(*(ids.byte_sizes for ids in self.segments), strict=True)
        return sum(text), sum(order)

    def merged(self) -> Ids:
        """The same ids in one; numbers that follow each other need not be stored."""
        if len(self.segments) == 1 and not len(self.rows.removed):
            return self.segments[0]
        runs = [
            ids.first + np.arange(len(ids)) for ids in self.segments if isinstance(ids, RowNumbers)
        ]
        if len(runs) == len(self.segments):
            numbers = np.concatenate(runs)[self.rows.stored(np.arange(len(self)))]
            if (np.diff(numbers) == 1).all():
                return RowNumbers(len(self), int(numbers[0]) if len(numbers) else 0)
        return Vocabulary.from_run(*self._run())[0]

    def _run(self) -> Run:
        """The UTF-8 of all ids, and where each ends."""
        texts, sizes = [np.empty(0, np.uint8)], [np.empty(0, np.int64)]
        for place, ids in enumerate(self.segments):
            if isinstance(ids, Vocabulary):
                text, ends = ids.text, ids.ends.astype(np.uint64)
            else:
                text, ends = encoded_words(ids)
            _, lengths = bounds(ends)
            if (lengths < 0).any() or lengths.sum() != len(text):
                raise FormatError("damaged: the words' ends do not fit their text")
            removed = self.rows.removed_in(place)
            if len(removed):
                kept = np.isin(np.arange(len(lengths)), removed, invert=True)
                text, lengths = text[np.repeat(kept, lengths)], lengths[kept]
            texts.append(text)
            sizes.append(lengths)
        return np.concatenate(texts), np.cumsum(np.concatenate(sizes)).astype(np.uint64)
