"""Ids, codes and a coder, held together: codes by id or row, and floats back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embits.arrays import to_numpy
from embits.bits import check_padding
from embits.coders import Coder
from embits.coders.checks import check_dims
from embits.errors import InputError
from embits.ids.keys import Keys, RowNumbers, WordRows
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.search.pieces import CodePieces
from embits.search.results import NO_ROW
from embits.vectors import WordVectors, as_words

Scalar = TypeVar("Scalar", bound=np.generic)
Key: TypeAlias = str | int | NDArray[np.uint8]

_ROWS_AT_ONCE = 65_536  # of an iteration: pieces of a collection are joined a part at a time


class Codes:
    """Packed codes with the ids of their rows, and the coder that made them."""

    def __init__(
        self,
        words: Keys | Sequence[str] | Sequence[int] | NDArray[Any] | None,
        codes: NDArray[np.uint8] | CodePieces,
        coder: Coder,
        subwords: Subwords | None = None,
    ) -> None:
        if not isinstance(coder, Coder):
            raise InputError(f"coder is {shortened(coder)}, expected a fitted coder")
        if not isinstance(codes, CodePieces):
            codes = coder.check_codes(codes)
        # CodePieces and PieceWords stand in for one array and one vocabulary: they are used alike.
        self.codes = cast("NDArray[np.uint8]", codes)
        self.words = cast("Vocabulary | RowNumbers", _as_ids(words, len(self.codes)))
        self.coder = coder
        self.subwords = subwords

    @classmethod
    def encoded(cls, vectors: WordVectors, coder: Coder) -> Self:
        """The codes that a fitted coder gives these vectors."""
        return cls(vectors.words, coder.encode(vectors.matrix), coder, vectors.subwords)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.coder.n_bits_

    @property
    def dims(self) -> int:
        """Dimensions of the float vectors behind the codes."""
        return self.coder.n_features_in_

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """Id -> row, as in gensim; no dictionary is built for it."""
        return WordRows(self.words)

    def ids(self, rows: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The ids of rows that `search` returned, in the same shape.

        Args:
            rows: Row numbers of any shape. Row -1 is no row, as in the results of queries with
                filters of their own.
            dtype: The type to convert the ids to, such as `int` for ids that are whole numbers.

        Returns:
            The ids as `str` objects, which all methods take as ids; they take whole numbers as row
            numbers. Rows without ids have their row numbers as ids, as text. Row -1 has the id "",
            or -1 if `dtype` is a type of signed integers.

        Raises:
            InputError: Rows that do not exist, or ids that cannot be converted to `dtype`.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> bits.ids([[2, 0], [1, 1]])
            array([['c', 'a'],
                   ['b', 'b']], dtype=object)
        """
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu" and rows.size:
            raise InputError(f"rows are {rows.dtype}, expected row numbers")
        if rows.size and not NO_ROW <= rows.min() <= rows.max() < len(self):
            wrong = rows.min() if rows.min() < NO_ROW else rows.max()
            raise InputError(f"there is no row {wrong}: there are {len(self):,} rows")
        names = self._names(rows.astype(np.int64))
        if dtype is None:
            return names
        if np.dtype(dtype).kind == "i":
            names[rows == NO_ROW] = str(NO_ROW)
        try:
            return names.astype(dtype)
        except ValueError as error:
            raise InputError(f"the ids cannot be converted to {np.dtype(dtype)}: {error}") from None

    def _names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows as `str` objects; "" for row -1."""
        names = np.full(rows.shape, "", dtype=object)
        there = rows != NO_ROW
        names[there] = list(map(str, self.words.names(rows[there]).tolist()))
        return names

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} × {self.n_bits} bits, {self.coder!r}>"

    # -- codes and floats ------------------------------------------------------------------------

    def __getitem__(self, key: Key | Sequence[Key] | slice) -> NDArray[np.uint8]:
        """Packed codes.

        Args:
            key: An id, a row number or a packed code gives shape (width,); several of them, or a
                slice of rows, give (n, width).

        Raises:
            UnknownWordError: There is no such id, and no subwords to make it from.
            InputError: There is no such row, or the key is something else.
        """
        if isinstance(key, slice):
            return self._slice(key)
        if isinstance(key, str | int | np.integer) or (
            isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype == np.uint8
        ):
            return self._code(key)
        if not isinstance(key, Sequence | np.ndarray) or getattr(key, "ndim", 1) == 0:
            raise _wrong_key(key)
        return np.stack([self._code(each) for each in key]) if len(key) else self.codes[:0]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """The packed code of each row, in order."""
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self.codes[start : start + _ROWS_AT_ONCE]

    def _slice(self, rows: slice) -> NDArray[np.uint8]:
        try:
            return self.codes[rows]
        except (TypeError, ValueError):
            raise InputError(f"the key is {rows}, expected a slice of row numbers") from None

    def _code(self, key: Any) -> NDArray[np.uint8]:
        if isinstance(key, str):
            found = self.words.find(key)
            if found is None:
                return self._unknown(key)
            row = found
        elif isinstance(key, int | np.integer):
            row = int(key)
            if not 0 <= row < len(self):
                raise InputError(f"there is no row {row}: there are {len(self):,} rows")
        elif isinstance(key, np.ndarray) and key.dtype == np.uint8:
            codes = self.coder.check_codes(key[np.newaxis])
            check_padding(codes, self.n_bits)
            return single(codes)
        else:
            raise _wrong_key(key)
        return single(self.codes[row : row + 1])

    def _unknown(self, word: str) -> NDArray[np.uint8]:
        if self.subwords is not None and self.subwords.rows(word):
            return self.encode(self.subwords.vector(word))
        raise self.words.unknown(word)

    def encode(self, vectors: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """Codes of new vectors: (width,) for one vector, (n, width) for several.

        `device` may be a GPU such as "cuda" (the extra `gpu`); the codes are the same.
        """
        if not getattr(vectors, "is_cuda", False):  # what is on a GPU is encoded there
            vectors = to_numpy(vectors)
        check_dims(vectors, self.dims)
        if vectors.ndim == 1:
            return single(self.coder.encode(vectors[np.newaxis], device=device))
        return self.coder.encode(vectors, device=device)

    def decode(self, keys: Key | Sequence[Key] | slice | None = None) -> NDArray[np.float32]:
        """Floats rebuilt from codes.

        Args:
            keys: An id, row or code gives shape (dims,); several, or codes of shape (n, width),
                give (n, dims); None decodes everything.
        """
        if keys is None:
            return self.coder.inverse_transform(self.codes)
        if isinstance(keys, np.ndarray) and keys.ndim == 2:
            return self.coder.inverse_transform(keys)
        codes = self[keys]
        if codes.ndim == 1:
            return single(self.coder.inverse_transform(codes[np.newaxis]))
        return self.coder.inverse_transform(codes)


def _as_ids(ids: Any, n: int) -> Keys:
    """Ids of n rows, as an index of them.

    Raises:
        InputError: They are not strings or whole numbers, not n, or one appears twice.
    """
    if ids is None:
        return RowNumbers(n)
    index: Keys = ids if isinstance(ids, Keys) else Vocabulary.from_words(as_words(ids))
    if len(index) != n:
        raise InputError(f"{len(index)} ids for {n} codes")
    return index


def _wrong_key(key: Any) -> InputError:
    return InputError(
        f"the key is {shortened(key)}, expected an id, a row number, a packed code (uint8), or "
        "several of them"
    )


def single(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """The single row of a matrix."""
    return rows.reshape(rows.shape[1])
