"""embits: float embeddings as binary codes that keep their meaning, and fast search over them.

>>> import numpy as np, embits
>>> bits = embits.binarize(np.eye(8), n_bits=64, method="lsh")
>>> bits.search(np.eye(8)[3], k=1).rows
array([3])
"""

from typing import TYPE_CHECKING

from embits import _interrupt as _interrupt  # the first: the others take a while
from embits import errors, search
from embits._lazy import lazy_names
from embits._version import __version__
from embits.binary_vectors import BinaryVectors, concat
from embits.coders import (
    ITQ,
    Coder,
    NearLossless,
    Neural,
    PaperAutoencoder,
    RandomHyperplanes,
    SignBits,
    SparseBits,
    register_coder,
)
from embits.collection import load
from embits.errors import EmbitsError, FormatError, InputError, ReadError, UnknownWordError
from embits.search.cells import Probes
from embits.search.plan import Rescore
from embits.vectors import WordVectors

if TYPE_CHECKING:
    from embits import evaluation as evaluation
    from embits import integrations as integrations
    from embits.collection import Collection, open_collection
    from embits.jobs.encode import binarize, binarize_to_file, encode_to_collection, encode_to_file
    from embits.readers import read_vectors, sample_vectors
    from embits.text.encoder import TextEncoder
    from embits.writers import write_vectors

__all__ = [
    "ITQ",
    "BinaryVectors",
    "Coder",
    "Collection",
    "EmbitsError",
    "FormatError",
    "InputError",
    "NearLossless",
    "Neural",
    "PaperAutoencoder",
    "Probes",
    "RandomHyperplanes",
    "ReadError",
    "Rescore",
    "SignBits",
    "SparseBits",
    "TextEncoder",
    "UnknownWordError",
    "WordVectors",
    "__version__",
    "binarize",
    "binarize_to_file",
    "concat",
    "encode_to_collection",
    "encode_to_file",
    "load",
    "open_collection",
    "read_vectors",
    "register_coder",
    "sample_vectors",
    "search",
    "write_vectors",
]

# A program that only opens and searches a file needs none of these: they are imported at the first
# use of their name.
__getattr__ = lazy_names(
    "embits",
    {
        "Collection": "embits.collection",
        "TextEncoder": "embits.text.encoder",
        "binarize": "embits.jobs",
        "binarize_to_file": "embits.jobs",
        "encode_to_collection": "embits.jobs",
        "encode_to_file": "embits.jobs",
        "evaluation": "embits.evaluation",
        "integrations": "embits.integrations",
        "open_collection": "embits.collection",
        "read_vectors": "embits.readers",
        "sample_vectors": "embits.readers",
        "write_vectors": "embits.writers",
    },
    deprecated={
        name: "embits.errors" for name in vars(errors) if name.endswith(("Error", "Warning"))
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
