"""`binarize`: from float vectors to BinaryVectors in one call."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import DEFAULT_METHOD, coder_class
from embits.coders.base import Progress
from embits.errors import InputError
from embits.vectors import WordVectors

if TYPE_CHECKING:
    from embits.readers.gensim_models import KeyedVectors


def binarize(
    vectors: WordVectors | KeyedVectors | NDArray[Any] | str | os.PathLike[str],
    n_bits: int | None = None,
    method: str = DEFAULT_METHOD,
    *,
    ids: Any = None,
    progress: Progress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Fit a coder on vectors and encode them.

    Args:
        vectors: WordVectors; gensim's `KeyedVectors`, or a model that has them as `wv`; a
            matrix of shape (n, dims), of NumPy, PyTorch or a column of a data frame; or the path of
            a file, or "gensim:NAME", that `read_vectors` reads.
        n_bits: Bits of a code; None is 256, or for "sign" the dimensions of the input.
        method: The coder: "near-lossless", "paper", "lsh", "sign", "itq" or "sparse".
        ids: The ids of a matrix's rows, strings or whole numbers; None lets rows go by their
            number. `bits.ids(rows)` tells them of rows that a search found.
        progress: Called with (done, total) as the fit goes on.
        params: Parameters of the coder, such as `random_state`.

    Returns:
        BinaryVectors, in memory; `save` writes them.

    Example:
        >>> import numpy as np, embits
        >>> vectors = embits.WordVectors(["up", "down"], np.array([[1, 0.5], [-1, 0.5]]))
        >>> bits = embits.binarize(vectors, n_bits=64)
        >>> bits.n_bits, len(bits), bits.most_similar("up", topn=1)[0][0]
        (64, 2, 'down')
    """
    vectors = _word_vectors(vectors)
    if ids is not None:
        vectors = replace(vectors, words=ids)
    maker = coder_class(method)
    if n_bits is not None:
        params["n_bits"] = n_bits
    try:
        coder = maker(**params)
    except TypeError:
        raise InputError(
            f"method {method!r} takes {', '.join(maker.param_names())}, not "
            f"{', '.join(sorted(set(params) - set(maker.param_names())))}"
        ) from None
    coder.fit(vectors.matrix, progress=progress)
    return BinaryVectors.encoded(vectors, coder)


def _word_vectors(vectors: Any) -> WordVectors:
    """What `binarize` takes, as one thing. Readers are imported here: a search needs none."""
    if isinstance(vectors, WordVectors):
        return vectors
    if isinstance(vectors, str | os.PathLike):
        from embits.readers import read_vectors

        return read_vectors(vectors)
    if hasattr(vectors, "index_to_key") or hasattr(vectors, "wv"):
        from embits.readers.gensim_models import from_keyed_vectors

        return from_keyed_vectors(getattr(vectors, "wv", vectors))
    return WordVectors(None, vectors)
