"""embits: float embeddings into bits that keep their meaning, searched at the speed of memory.

>>> import numpy as np, embits
>>> coder = embits.PaperAutoencoder(n_bits=64, epochs=1).fit(np.eye(8))
>>> coder.transform(np.eye(8)).shape
(8, 8)
"""

from embits import search
from embits._version import __version__
from embits.coders import Coder, PaperAutoencoder, RandomHyperplanes, SignBits
from embits.errors import (
    EmbitsError,
    FormatError,
    InputError,
    MissingExtraError,
    NotFittedError,
    ReadError,
    ReadWarning,
    TrainingError,
    UnknownWordError,
)
from embits.vectors import WordVectors

__all__ = [
    "Coder",
    "EmbitsError",
    "FormatError",
    "InputError",
    "MissingExtraError",
    "NotFittedError",
    "PaperAutoencoder",
    "RandomHyperplanes",
    "ReadError",
    "ReadWarning",
    "SignBits",
    "TrainingError",
    "UnknownWordError",
    "WordVectors",
    "__version__",
    "search",
]
