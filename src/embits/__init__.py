"""embits: float embeddings into bits that keep their meaning, searched at the speed of memory.

>>> import numpy as np, embits
>>> coder = embits.PaperAutoencoder(n_bits=64, epochs=1).fit(np.eye(8))
>>> coder.transform(np.eye(8)).shape
(8, 8)
"""

from typing import TYPE_CHECKING, Any

from embits import search
from embits._version import __version__
from embits.binary_vectors import BinaryVectors, load
from embits.coders import (
    ITQ,
    Coder,
    NearLossless,
    PaperAutoencoder,
    RandomHyperplanes,
    SignBits,
    SparseBits,
    search_lambda,
)
from embits.errors import (
    EmbitsError,
    FormatError,
    HubError,
    InputError,
    MissingExtraError,
    NotFittedError,
    ReadError,
    ReadWarning,
    TrainingError,
    TrainingWarning,
    UnknownWordError,
)
from embits.jobs import binarize
from embits.vectors import WordVectors
from embits.words.subwords import Subwords

if TYPE_CHECKING:
    from embits.readers import read_vectors
    from embits.readers.sample import sample_vectors
    from embits.streaming import binarize_to_file, encode_to_file
    from embits.writers import write_vectors

__all__ = [
    "ITQ",
    "BinaryVectors",
    "Coder",
    "EmbitsError",
    "FormatError",
    "HubError",
    "InputError",
    "MissingExtraError",
    "NearLossless",
    "NotFittedError",
    "PaperAutoencoder",
    "RandomHyperplanes",
    "ReadError",
    "ReadWarning",
    "SignBits",
    "SparseBits",
    "Subwords",
    "TrainingError",
    "TrainingWarning",
    "UnknownWordError",
    "WordVectors",
    "__version__",
    "binarize",
    "binarize_to_file",
    "encode_to_file",
    "load",
    "read_vectors",
    "sample_vectors",
    "search",
    "search_lambda",
    "write_vectors",
]

# Reading and writing floats draws in archives and parsers that a program which only opens a
# file of bits never needs: they are imported at the first use of their name.
_LAZY = {
    "binarize_to_file": "embits.streaming",
    "encode_to_file": "embits.streaming",
    "read_vectors": "embits.readers",
    "sample_vectors": "embits.readers.sample",
    "write_vectors": "embits.writers",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'embits' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
