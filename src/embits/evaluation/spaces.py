"""Words with their float vectors or codes, behind one interface for the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits._lazy import LazyProperty
from embits.arrays import row_cosines, to_numpy, unit_rows, unpack
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.vectors import WordVectors

Rows: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]
MISSING = -1


class Lookup:
    """Maps words to rows, with or without case folding.

    An exact match comes first, then the first row that is equal after `str.upper`. gensim always
    takes the latter (`exact_first=False`): in an unsorted file "poetry" then matches "Poetry".

    Args:
        words: The words in row order.
        restrict_vocab: Use only this many first rows; None uses all.
        case_insensitive: Fold letter case.
        exact_first: Prefer an exact match to the first row that matches after folding.

    Example:
        >>> lookup = Lookup(["the", "Apple", "apple", "APPLE"])
        >>> lookup.rows(["apple", "aPPle", "pear"]).tolist(), lookup.spellings(2)
        ([2, 1, -1], [2, 1, 3])
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

    def fold(self, word: str) -> str:
        """The folded form of a word."""
        return word.upper() if self.case_insensitive else word

    def rows(self, words: Iterable[str]) -> Rows:
        """Rows of words; -1 for unknown words."""
        words = list(words)
        rows = self._exact.find_many(words)
        other = np.flatnonzero(rows == MISSING)
        rows[other] = self._folded.find_many(self.fold(words[i]) for i in other)
        return rows

    def spellings(self, row: int) -> list[int]:
        """All rows that fold to the same word as `row`, itself first."""
        return [row, *(other for other in self._folded.find_all(self._folded[row]) if other != row)]

    def all_spellings(self, rows: Rows) -> Rows:
        """The spellings of each line of `rows` (n, m), padded with -1: shape (n, most)."""
        spellings = {row: self.spellings(row) for row in np.unique(rows).tolist()}
        lists = [[each for row in line for each in spellings[row]] for line in rows.tolist()]
        padded = np.full((len(lists), max(map(len, lists), default=0)), MISSING, dtype=np.int64)
        for line, values in zip(padded, lists, strict=True):
            line[: len(values)] = values
        return padded


class FloatSpace:
    """Float vectors (n, dims) compared by cosine; without a `lookup` of the words, one is built."""

    def __init__(self, words: Sequence[str], matrix: Floats, lookup: Lookup | None = None) -> None:
        self.words, self.matrix, self.lookup = words, matrix, lookup or Lookup(words)
        self.dims = int(matrix.shape[1])
        self.n_bits = 32 * self.dims

    @classmethod
    def of(cls, vectors: WordVectors, lookup: Lookup | None = None) -> FloatSpace:
        """The space of float vectors; rows without words are identified by their number."""
        words = RowNumbers(len(vectors)) if vectors.words is None else vectors.words
        return cls(words, vectors.matrix, lookup)

    def __len__(self) -> int:
        return len(self.matrix)

    @LazyProperty
    def unit(self) -> Floats:
        """The rows scaled to length 1; zero rows stay zero."""
        return unit_rows(self.matrix)

    def similarities(self, a: Rows, b: Rows) -> NDArray[np.float64]:
        """Cosines of pairs of rows."""
        return row_cosines(self.matrix[a], self.matrix[b])

    def features(self, rows: Rows) -> Floats:
        """The features of these rows for a classifier: the vectors."""
        return self.matrix[rows]


class BitSpace:
    """Codes compared by Sokal-Michener similarity, the share of equal bits."""

    def __init__(self, bits: BinaryRows, lookup: Lookup | None = None) -> None:
        self.bits, self.words, self.n_bits = bits, bits.words, bits.n_bits
        self.codes = np.ascontiguousarray(bits.codes)
        self.lookup = lookup or Lookup(bits.words)
        self._rebuilt: FloatSpace | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def similarities(self, a: Rows, b: Rows) -> NDArray[np.float64]:
        """Sokal-Michener similarities of pairs of rows."""
        differing = np.bitwise_count(self.codes[a] ^ self.codes[b]).sum(axis=1, dtype=np.int64)
        agreeing: NDArray[np.float64] = 1 - differing / self.n_bits
        return agreeing

    def features(self, rows: Rows) -> Floats:
        """The features of these rows for a classifier: the bits as 0.0 and 1.0."""
        return unpack(self.codes[rows], self.n_bits)

    def rebuilt(self) -> FloatSpace:
        """The float vectors that the coder rebuilds from the codes."""
        if self._rebuilt is None:
            self._rebuilt = FloatSpace(self.words, self.bits.decode(), self.lookup)
        return self._rebuilt


Space: TypeAlias = FloatSpace | BitSpace
Scorable: TypeAlias = BinaryVectors | WordVectors | Space | ArrayLike


def as_space(vectors: Scorable, lookup: Lookup | None = None) -> Space:
    """The space of WordVectors, BinaryVectors or a matrix; a space is returned unchanged.

    Rows without words are identified by their number.
    """
    if isinstance(vectors, FloatSpace | BitSpace):
        return vectors
    if isinstance(vectors, BinaryRows):
        return BitSpace(vectors, lookup)
    if not isinstance(vectors, WordVectors):
        vectors = WordVectors(None, to_numpy(vectors))
    return FloatSpace.of(vectors, lookup)


def same_words(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two vocabularies have the same words in the same rows."""
    if isinstance(a, Vocabulary) and isinstance(b, Vocabulary):
        return bool(np.array_equal(a.text, b.text) and np.array_equal(a.ends, b.ends))
    return len(a) == len(b) and all(x == y for x, y in zip(a, b, strict=True))
