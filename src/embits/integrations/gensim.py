"""gensim's KeyedVectors: to bits, and decoded floats back."""

from __future__ import annotations

from typing import Any

from embits.binary_vectors import BinaryRows
from embits.integrations import package
from embits.readers.gensim_models import from_keyed_vectors

__all__ = ["from_keyed_vectors", "to_keyed_vectors"]


def to_keyed_vectors(bits: BinaryRows) -> Any:
    """Return the floats that the codes decode to, as a `gensim.models.KeyedVectors`.

    It has the words in row order, without subwords, and 4 bytes per word and dimension.

    Example:
        >>> import numpy as np, embits
        >>> from embits.integrations.gensim import to_keyed_vectors
        >>> vectors = embits.WordVectors(["up", "down"], np.array([[1, 0.5], [-1, 0.5]]))
        >>> keyed = to_keyed_vectors(embits.binarize(vectors, 64, method="lsh"))
        >>> keyed.index_to_key, keyed.vectors.shape
        (['up', 'down'], (2, 2))
    """
    keyed = package("gensim.models", "KeyedVectors", "gensim").KeyedVectors(bits.dims)
    # Filled as gensim's own loaders do: `add_vectors` would copy the matrix three times.
    keyed.vectors = bits.decode()
    keyed.index_to_key = list(bits.words)
    keyed.key_to_index = {word: row for row, word in enumerate(keyed.index_to_key)}
    keyed.next_index = len(bits)
    return keyed
