"""Words with their float vectors or codes, behind one interface for the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import row_cosines, unit_rows
from embits.binary_vectors import BinaryVectors
from embits.bits import unpack
from embits.evaluation.lookup import Lookup
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.vectors import WordVectors


class FloatSpace:
    """Float vectors compared by cosine.

    Args:
        words: The words in row order.
        matrix: Floats of shape (n, dims).
        lookup: The lookup of the words; None builds one.
    """

    def __init__(
        self, words: Sequence[str], matrix: NDArray[np.float32], lookup: Lookup | None = None
    ) -> None:
        self.words = words
        self.matrix = matrix
        self.lookup = Lookup(words) if lookup is None else lookup

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def n_bits(self) -> int:
        """Bits per vector: 32 per dimension."""
        return 32 * int(self.matrix.shape[1])

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """The rows scaled to length 1; zero rows stay zero."""
        return unit_rows(self.matrix)

    def similarities(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosines of pairs of rows."""
        return row_cosines(self.matrix[a], self.matrix[b])

    def features(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The features of these rows for a classifier: the vectors."""
        return self.matrix[rows]


class BitSpace:
    """Codes compared by Sokal-Michener similarity: the share of equal bits.

    Args:
        bits: The binary vectors.
        lookup: The lookup of the words; None builds one.
    """

    def __init__(self, bits: BinaryVectors, lookup: Lookup | None = None) -> None:
        self.bits = bits
        self.words = bits.words
        self.codes = np.ascontiguousarray(bits.codes)
        self.lookup = Lookup(bits.words) if lookup is None else lookup

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_bits(self) -> int:
        """Bits per code."""
        return self.bits.n_bits

    def similarities(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sokal-Michener similarities of pairs of rows."""
        differing = np.bitwise_count(self.codes[a] ^ self.codes[b]).sum(axis=1, dtype=np.int64)
        agreeing: NDArray[np.float64] = 1 - differing / self.n_bits
        return agreeing

    def features(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The features of these rows for a classifier: the bits as 0.0 and 1.0."""
        return unpack(self.codes[rows], self.n_bits)

    def rebuilt(self) -> FloatSpace:
        """The float vectors that the coder rebuilds from the codes."""
        return FloatSpace(self.words, self.bits.decode(), self.lookup)


Space: TypeAlias = FloatSpace | BitSpace


def as_space(vectors: Any, lookup: Lookup | None = None) -> Space:
    """The space of WordVectors, BinaryVectors or a matrix; a space is returned unchanged."""
    if isinstance(vectors, FloatSpace | BitSpace):
        return vectors
    if isinstance(vectors, BinaryVectors):
        return BitSpace(vectors, lookup)
    return float_space(
        vectors if isinstance(vectors, WordVectors) else WordVectors(None, vectors), lookup
    )


def float_space(vectors: WordVectors, lookup: Lookup | None = None) -> FloatSpace:
    """The space of word vectors; rows without words are named by their number."""
    words = RowNumbers(len(vectors)) if vectors.words is None else vectors.words
    return FloatSpace(words, vectors.matrix, lookup)


def same_words(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two vocabularies have the same words in the same rows."""
    if len(a) != len(b):
        return False
    if isinstance(a, Vocabulary) and isinstance(b, Vocabulary):
        return bool(np.array_equal(a.text, b.text) and np.array_equal(a.ends, b.ends))
    return all(x == y for x, y in zip(a, b, strict=True))
