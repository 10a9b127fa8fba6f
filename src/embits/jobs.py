"""`binarize`: from float vectors to BinaryVectors in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.coders import DEFAULT_METHOD, Coder, coder_class
from embits.coders.base import check_n_bits
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
    sample: int | None = None,
    coder: Coder | None = None,
    progress: Progress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Fit a coder on vectors and encode them.

    A large file is read in blocks: codes and words come into memory, floats do not.

    Args:
        vectors: WordVectors; gensim's `KeyedVectors`, or a model that has them as `wv`; a
            matrix of shape (n, dims), of NumPy, PyTorch or a column of a data frame; or the path of
            a file, or "gensim:NAME", that `read_vectors` reads.
        n_bits: Bits of a code; None is 256, or for "sign" the dimensions of the input.
        method: The coder: "near-lossless", "paper", "lsh", "sign", "itq" or "sparse".
        ids: The ids of a matrix's rows, strings or whole numbers; None lets rows go by their
            number. `bits.ids(rows)` tells them of rows that a search found.
        sample: Fit on this many rows drawn at random; None on all, of which most coders look at
            a sample of their own.
        coder: A coder to fit, in place of `n_bits`, `method` and `params`.
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
    if coder is None:
        coder = new_coder(method, n_bits, params)
    if isinstance(vectors, str | os.PathLike) and ids is None:
        from embits.streaming import binarize_in_blocks

        if (binary := binarize_in_blocks(vectors, coder, sample, progress)) is not None:
            return binary
    vectors = _word_vectors(vectors)
    if ids is not None:
        vectors = replace(vectors, words=ids)
    rows = sample_of(len(vectors), sample, coder)
    coder.fit(vectors.matrix if rows is None else vectors.matrix[rows], progress=progress)
    return BinaryVectors.encoded(vectors, coder)


def new_coder(method: str, n_bits: int | None, params: Mapping[str, Any]) -> Coder:
    """A coder of the method, not fitted.

    Raises:
        InputError: There is no such method, or it has no such parameter.
    """
    maker = coder_class(method)
    settings = dict(params) if n_bits is None else {**params, "n_bits": check_n_bits(n_bits)}
    try:
        return maker(**settings)
    except TypeError:
        raise InputError(
            f"method {method!r} takes {', '.join(maker.param_names())}, not "
            f"{', '.join(sorted(set(settings) - set(maker.param_names())))}"
        ) from None


def sample_of(n: int, sample: int | None, coder: Coder) -> NDArray[np.int64] | None:
    """Numbers of `sample` rows out of n, ascending, drawn by the coder's seed; None for all."""
    if sample is None:
        return None
    if isinstance(sample, bool) or not isinstance(sample, int | np.integer) or sample < 1:
        raise InputError(f"sample is {sample!r}, expected a number of rows from 1, or None")
    if sample >= n:
        return None
    rng = np.random.default_rng(getattr(coder, "random_state", 0))
    return np.sort(rng.choice(n, sample, replace=False, shuffle=False))


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
