"""A small sample of real word vectors that comes with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from embits.vectors import WordVectors


def sample_vectors() -> WordVectors:
    """Return 2,000 frequent English words with vectors of 50 dimensions, to try embits on.

    The vectors are GloVe 6B 50d (Pennington, Socher and Manning 2014; public domain, PDDL 1.0),
    rounded to multiples of 0.5 to keep the package small. The words are the most frequent ones of
    three letters or more, in order of frequency.

    Returns:
        WordVectors of 2,000 words and a float32 matrix of shape (2000, 50).

    Example:
        >>> import embits
        >>> vectors = embits.sample_vectors()
        >>> vectors.matrix.shape
        (2000, 50)
        >>> "music" in vectors.words
        True
    """
    path = files("embits.readers") / "sample.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        words = stored["words"].tobytes().decode().split("\n")
        return WordVectors(words, stored["steps"] * stored["step"])
