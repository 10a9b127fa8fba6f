"""Ids that are whole numbers or UUIDs, stored as numbers of a fixed size."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import FormatError
from embits.ids.lazy import LazyVocabulary
from embits.ids.packed_numbers import packed_size, unpack_numbers
from embits.ids.run import encoded_words

NUMBERS, UUIDS = "word_numbers", "word_uuids"
MAX_NUMBER = 2**64 - 1
_NUMBER = re.compile("0|[1-9][0-9]{0,19}", re.ASCII)
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class FixedIds(LazyVocabulary):
    """Ids of a fixed size in row order. A prefix or a spelling is looked up in their text.

    Args:
        tensors: The tensors of the ids, by name.
        n: How many ids.

    Raises:
        FormatError: The tensors do not fit together.
    """

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        self._n, self.tensors = n, dict(tensors)
        self._keys = self._own_keys()
        self._rows = tensors.get("word_rows")
        self._width = max(0, n - 1).bit_length()
        if self._rows is not None:
            expected = packed_size(n, self._width)
            if self._rows.dtype != np.uint8 or self._rows.shape != (expected,):
                raise FormatError(
                    f"damaged: word_rows has {self._rows.nbytes} bytes, expected {expected}"
                )

    @abstractmethod
    def _own_keys(self) -> NDArray[Any]:
        """The sortable keys of the rows."""

    @abstractmethod
    def _key(self, word: str) -> Any:
        """An id as a key, or None."""

    @abstractmethod
    def _text_of(self, row: int) -> str:
        """The id of a row."""

    def __len__(self) -> int:
        return self._n

    def _run(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        return encoded_words(map(self._text_of, range(self._n)))

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        return [self._text_of(row) for row in rows.tolist()]

    def find(self, word: str) -> int | None:
        """The row of an id, or None."""
        key = self._key(word)
        if key is None:
            return None
        place = self._place(key)
        if place == self._n:
            return None
        row = self._row_at(place)
        return row if self._text_of(row) == word else None

    def _place(self, key: Any) -> int:
        if self._rows is None:
            return int(np.searchsorted(self._keys, self._keys.dtype.type(key)))
        return bisect_left(range(self._n), key, key=lambda place: self._key_at(place))

    def _key_at(self, place: int) -> Any:
        return self._key(self._text_of(self._row_at(place)))

    def _row_at(self, place: int) -> int:
        if self._rows is None:
            return place
        row = int(unpack_numbers(self._rows, self._width, slice(place, place + 1))[0])
        if row >= self._n:
            raise FormatError(f"damaged: the ids point at row {row} of {self._n}")
        return row

    def find_encoded(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """The row of each id of a run of UTF-8; -1 if it is not there."""
        starts = np.concatenate(([0], ends[:-1].astype(np.int64))) if len(ends) else ends
        run = wanted.tobytes()
        words = (
            run[start:end].decode(errors="replace")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        )
        rows = (self.find(word) for word in words)
        return np.array([-1 if row is None else row for row in rows], np.int64)

    def find_all(self, word: str) -> list[int]:
        """The row of an id in a list, which is empty if it is not there."""
        row = self.find(word)
        return [] if row is None else [row]

    @property
    def byte_sizes(self) -> tuple[int, int]:
        """Bytes of the ids, and of their order."""
        order = 0 if self._rows is None else self._rows.nbytes
        return sum(array.nbytes for array in self.tensors.values()) - order, order

    def verify(self) -> None:
        """Check all ids.

        Raises:
            FormatError: They are not in order, or the order is not one.
        """
        keys = self._keys
        if self._rows is not None:
            rows = unpack_numbers(self._rows, self._width, slice(0, self._n))
            if not np.array_equal(np.sort(rows), np.arange(self._n)):
                raise FormatError("damaged: the ids' order is not a permutation of the rows")
            keys = keys[rows]
        if (keys[1:] <= keys[:-1]).any():
            raise FormatError("damaged: the ids are not in order")


class NumberIds(FixedIds):
    """Whole numbers below 2^64; one number in the file: the ids count up from it.

    Example:
        >>> ids = NumberIds({"word_numbers": np.array([5], np.uint32)}, 3)
        >>> list(ids), ids.find("6"), ids.find("06")
        (['5', '6', '7'], 1, None)
    """

    def _own_keys(self) -> NDArray[Any]:
        numbers = self.tensors[NUMBERS]
        if numbers.dtype.kind != "u" or numbers.dtype.itemsize < 4 or numbers.ndim != 1:
            raise FormatError(f"damaged: the ids are {numbers.dtype} {numbers.shape}")
        if len(numbers) not in (1, self._n) or (self._n == 0 and len(numbers)):
            raise FormatError(f"damaged: {len(numbers)} ids for {self._n} codes")
        self._first = int(numbers[0]) if len(numbers) == 1 else None
        if self._first is not None and self._first + self._n - 1 > MAX_NUMBER:
            raise FormatError(f"damaged: {self._n} ids count up from {self._first}")
        return numbers

    def _key(self, word: str) -> int | None:
        number = int(word) if _NUMBER.fullmatch(word) else -1
        return number if 0 <= number <= MAX_NUMBER else None

    def _text_of(self, row: int) -> str:
        return str(int(self._keys[row]) if self._first is None else self._first + row)

    def _place(self, key: int) -> int:
        if self._first is not None:
            place = key - self._first
            return place if 0 <= place < self._n else self._n
        if key > np.iinfo(self._keys.dtype).max:
            return self._n
        return super()._place(key)


class UuidIds(FixedIds):
    """UUIDs in lower case with hyphens."""

    def _own_keys(self) -> NDArray[Any]:
        uuids = self.tensors[UUIDS]
        if uuids.dtype != np.uint8 or uuids.shape != (self._n, 16):
            raise FormatError(f"damaged: the ids are {uuids.dtype} {uuids.shape}")
        self._uuids = uuids
        return np.ascontiguousarray(uuids).view("S16").ravel()

    @staticmethod
    def key_of(word: str) -> bytes | None:
        """The 16 bytes of a UUID, or None."""
        return bytes.fromhex(word.replace("-", "")) if _UUID.fullmatch(word) else None

    def _key(self, word: str) -> bytes | None:
        return self.key_of(word)

    def _text_of(self, row: int) -> str:
        digits = self._uuids[row].tobytes().hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
