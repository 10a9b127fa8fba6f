"""Words that become one run of text only when that is needed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from embits.ids.run import WordRun, narrowed
from embits.ids.vocabulary import Vocabulary


class LazyVocabulary(Vocabulary):
    """A vocabulary whose arrays `text`, `ends` and `order` are made when they are first used."""

    _separator, _gap = b"", 0
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

    @abstractmethod
    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        """The words of rows that are there."""

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            if "ends" in self.__dict__:  # the run is there: words that follow each other are fast
                return WordRun(self.text, self.ends)[row]
            return self._words_of(np.arange(*row.indices(len(self))))
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} words")
        return self._words_of(np.array([row % len(self)]))[0]

    def __iter__(self) -> Iterator[str]:
        return iter(WordRun(*self._run()))

    def encoded(self, row: int) -> bytes:
        """The UTF-8 of a word; `row` is 0 or more."""
        return self[row].encode()

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The words of rows, in their shape: an array of `str` objects."""
        different, places = np.unique(rows, return_inverse=True)
        words = np.empty(len(different), dtype=object)
        words[:] = self._words_of(different)
        return words[places.ravel()].reshape(rows.shape)
