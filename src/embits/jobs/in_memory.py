"""`binarize`: from float vectors to BinaryVectors in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.coders import Coder, draw_rows
from embits.errors import InputError
from embits.jobs.arguments import chosen_coder, holds_words, input_file, word_vectors
from embits.vectors import WordVectors, as_words, check_unique

if TYPE_CHECKING:
    from embits.readers.gensim_models import KeyedVectors


def binarize(
    vectors: WordVectors | KeyedVectors | NDArray[Any] | str | os.PathLike[str],
    n_bits: int | None = None,
    method: str | None = None,
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
        vectors: WordVectors; a mapping of words to vectors; gensim's `KeyedVectors`, or a model
            that has them as `wv`; a matrix of shape (n, dims), of NumPy, PyTorch or a column of a
            data frame; or the path of a file, or "gensim:NAME", that `read_vectors` reads.
        n_bits: Bits of a code; None is 256, or for "sign" the dimensions of the input.
        method: The coder: "near-lossless" (None), "paper", "lsh", "sign", "itq", "sparse", or the
            name of a coder that `register_coder` has registered.
        ids: The ids of the rows, strings or whole numbers, each once; they replace those in or
            beside a file. None uses those, or row numbers if there are none. `bits.ids(rows)`
            gives the ids of rows that a search found.
        sample: Number of rows, drawn at random, to fit on. None passes all rows to the coder;
            most coders then choose a sample themselves.
        coder: A coder to fit, in place of `n_bits`, `method` and `params`.
        progress: Called with (done, total) during the fit.
        params: Parameters of the coder, such as `random_state`.

    Returns:
        BinaryVectors, in memory; `save` writes them.

    Raises:
        InputError: An argument is wrong, or `coder` is given together with arguments it replaces.
        ReadError: The file cannot be read.

    Example:
        >>> import numpy as np, embits
        >>> vectors = embits.WordVectors(["up", "down"], np.array([[1, 0.5], [-1, 0.5]]))
        >>> bits = embits.binarize(vectors, n_bits=64)
        >>> bits.n_bits, len(bits), bits.most_similar("up", topn=1)[0][0]
        (64, 2, 'down')
    """
    coder = chosen_coder(coder, n_bits, method, params)
    if ids is not None:
        check_unique(ids := as_words(ids))
    if isinstance(vectors, str | os.PathLike) and (ids is None or not holds_words(vectors)):
        return _binarize_file(vectors, ids, coder, sample, progress)
    vectors = word_vectors(vectors)
    if ids is not None:
        if len(ids) != len(vectors):
            raise InputError(f"{len(ids)} ids for {len(vectors)} rows of vectors")
        vectors = replace(vectors, words=ids)
    return binarize_in_memory(vectors, coder, sample, progress)


def binarize_in_memory(
    vectors: WordVectors, coder: Coder, sample: int | None, progress: Progress | None
) -> BinaryVectors:
    """Fit a coder on vectors in memory, or on a sample of them, and encode all of them."""
    rows = draw_rows(len(vectors), sample, coder)
    coder.fit(vectors.matrix if rows is None else vectors.matrix[rows], progress=progress)
    return BinaryVectors.encoded(vectors, coder)


def _binarize_file(
    vectors: str | os.PathLike[str],
    ids: Sequence[str] | None,
    coder: Coder,
    sample: int | None,
    progress: Progress | None,
) -> BinaryVectors:
    """A file: read whole if it is small, in blocks otherwise, with the codes alone in memory."""
    from embits.streaming.checkpoint import Checkpoint
    from embits.streaming.passes import encode_file, read_vocabulary, scan_words
    from embits.streaming.steps import Steps, fit

    source = input_file(vectors, words=ids)
    steps = Steps(lambda step, *done: progress(*done) if progress and step == "fitting" else None)
    blocks = source.open_blocks(steps, coder)
    if blocks is None:
        return binarize_in_memory(source.read(), coder, sample, progress)
    with tempfile.TemporaryDirectory(prefix="embits-") as folder:
        checkpoint = Checkpoint(Path(folder, "checkpoint"), {})
        try:
            scan = scan_words(checkpoint, blocks)
            fit(checkpoint, blocks, scan, coder, sample, steps)
            codes = np.fromfile(encode_file(checkpoint, blocks, scan, coder), np.uint8)
            words = read_vocabulary(checkpoint, scan.n_rows)
            return BinaryVectors(words, codes.reshape(scan.n_rows, -1), coder)
        finally:
            checkpoint.remove()
