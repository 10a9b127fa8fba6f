"""The jobs: from float vectors to bits, in memory or from file to file, in one call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors, load
from embits.coders import DEFAULT_METHOD, Coder, draw_rows, new_coder
from embits.errors import InputError
from embits.file.contents import read_coder
from embits.file.overwrite import check_target
from embits.vectors import WordVectors, as_words

if TYPE_CHECKING:
    from embits.readers.gensim_models import KeyedVectors
    from embits.readers.source import OnBad, Words
    from embits.streaming.input import Input
    from embits.streaming.steps import StepProgress

# Readers and streaming are imported inside functions: a program that only searches needs neither.


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
        ids: The ids of a matrix's rows, strings or whole numbers, each once; None uses row
            numbers. `bits.ids(rows)` gives the ids of rows that a search found.
        sample: Fit on this many rows drawn at random; None uses all, of which most coders look at
            a sample of their own.
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
    coder = _chosen(coder, n_bits, method, params)
    if isinstance(vectors, str | os.PathLike) and ids is None:
        return _binarize_file(vectors, coder, sample, progress)
    vectors = _word_vectors(vectors)
    if ids is not None:
        if len(ids := as_words(ids)) != len(vectors):
            raise InputError(f"{len(ids)} ids for {len(vectors)} rows of vectors")
        vectors = replace(vectors, words=ids)
    return _binarize_in_memory(vectors, coder, sample, progress)


def binarize_to_file(
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    n_bits: int | None = None,
    method: str = DEFAULT_METHOD,
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    sample: int | None = None,
    subwords: bool = True,
    overwrite: bool = False,
    progress: StepProgress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Binarize a file of vectors of any size into a file of bits.

    The result is that of `binarize(read_vectors(vectors)).save(target)`, byte for byte. A file
    over 64 MiB is read in blocks, several times, and progress is kept in a folder `.NAME.partial`
    beside the target: after an interrupt or a kill, the same call resumes. JSON, `.npz` and
    fastText's `.bin` are read whole.

    Args:
        vectors: The file to read.
        target: The file to write, atomically. A file that embits wrote is replaced.
        n_bits: As for `binarize`.
        method: As for `binarize`.
        limit: Read only this many rows from the start.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        sample: As for `binarize`.
        subwords: Keep fastText's subwords.
        overwrite: Replace a target that embits did not write as well; never an input.
        progress: Called as progress(step, done, total), where step is a word.
        params: Parameters of the coder, such as `random_state`.

    Returns:
        The file, opened: mapped, not read.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: An argument is wrong, the target may not be replaced, or another process is
            writing it.
        OSError: The file could not be written; progress is kept.

    Example:
        >>> import pathlib, tempfile, numpy as np
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "rows.npy")
        >>> np.save(path, np.random.default_rng(0).normal(size=(500, 20)))
        >>> bits = binarize_to_file(path, path.with_suffix(".bits"), n_bits=64, method="lsh")
        >>> len(bits), bits.n_bits
        (500, 64)
        >>> folder.cleanup()
    """
    from embits.streaming.passes import scan_words
    from embits.streaming.steps import Steps, checkpoint_beside, fit_once, write_file

    coder = new_coder(method, n_bits, params)
    source, path, steps = _input(vectors, limit, words, on_bad), Path(target), Steps(progress)
    check_target(path, source.paths(), overwrite)
    blocks = source.open_blocks(steps)
    if blocks is None:
        floats = source.read(steps.start("reading"))
        binary = _binarize_in_memory(floats, coder, sample, steps.start("fitting"))
        if not subwords:
            binary.subwords = None
        binary.save(path, overwrite=overwrite)
        return binary
    job = {"verb": "binarize", "coder": [method, coder.get_params()], "sample": sample}
    with checkpoint_beside(path, source, job) as checkpoint:
        scan = scan_words(checkpoint, blocks)
        coder = fit_once(checkpoint, blocks, scan, coder, sample, steps)
        write_file(checkpoint, blocks, path, scan, coder, steps)
    return load(path)


def encode_to_file(
    coder: Coder | BinaryVectors | str | os.PathLike[str],
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    overwrite: bool = False,
    progress: StepProgress | None = None,
) -> BinaryVectors:
    """Encode a file of vectors of any size with a fitted coder, into a file of bits.

    Args:
        coder: The coder, or what holds one: BinaryVectors, or the path of their file.
        vectors: The file to read.
        target: The file to write, atomically.
        limit, words, on_bad, overwrite, progress: As for `binarize_to_file`.

    Returns:
        The file, opened: mapped, not read.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: They have other dimensions than the coder takes, or an argument is wrong.
        OSError: The file could not be written; progress is kept.
    """
    from embits.streaming.identity import coder_identity
    from embits.streaming.passes import scan_words
    from embits.streaming.steps import Steps, checkpoint_beside, write_file

    source, path, steps = _input(vectors, limit, words, on_bad), Path(target), Steps(progress)
    fitted, name, read = _fitted(coder)
    check_target(path, [*source.paths(), *read], overwrite)
    blocks = source.open_blocks(steps)
    if blocks is None:
        floats = source.read(steps.start("reading"))
        source.check_dims(floats.dims, fitted, name)
        binary = BinaryVectors.encoded(floats, fitted)
        binary.save(path, overwrite=overwrite)
        return binary
    source.check_dims(blocks.dims, fitted, name)
    job = {"verb": "encode", "coder": coder_identity(fitted)}
    with checkpoint_beside(path, source, job) as checkpoint:
        write_file(checkpoint, blocks, path, scan_words(checkpoint, blocks), fitted, steps)
    return load(path)


# -- the parts of a job ----------------------------------------------------------------------------


def _chosen(
    coder: Coder | None, n_bits: int | None, method: str | None, params: Mapping[str, Any]
) -> Coder:
    """The coder of the arguments of `binarize`."""
    if coder is None:
        return new_coder(DEFAULT_METHOD if method is None else method, n_bits, params)
    if not isinstance(coder, Coder):
        raise InputError(
            f"coder is {coder!r}, expected a coder such as embits.ITQ(n_bits=64); "
            "the name of a method is given as method="
        )
    given = {"n_bits": n_bits, "method": method, **params}
    if names := [name for name, value in given.items() if value is not None]:
        raise InputError(f"coder is given, so {', '.join(names)} would be ignored: leave it out")
    return coder


def _binarize_in_memory(
    vectors: WordVectors, coder: Coder, sample: int | None, progress: Progress | None
) -> BinaryVectors:
    rows = draw_rows(len(vectors), sample, coder)
    coder.fit(vectors.matrix if rows is None else vectors.matrix[rows], progress=progress)
    return BinaryVectors.encoded(vectors, coder)


def _binarize_file(
    vectors: str | os.PathLike[str], coder: Coder, sample: int | None, progress: Progress | None
) -> BinaryVectors:
    """A file: read whole if it is small, in blocks otherwise, with the codes alone in memory."""
    from embits.streaming.checkpoint import Checkpoint
    from embits.streaming.passes import encode_file, read_vocabulary, scan_words
    from embits.streaming.steps import Steps, fit

    source = _input(vectors)
    steps = Steps(lambda step, *done: progress(*done) if progress and step == "fitting" else None)
    blocks = source.open_blocks(steps)
    if blocks is None:
        return _binarize_in_memory(source.read(), coder, sample, progress)
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


def _input(
    vectors: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
) -> Input:
    from embits.readers import located
    from embits.streaming.input import Input

    if not isinstance(vectors, str | os.PathLike):
        raise InputError(f"vectors is {type(vectors).__name__}, expected the path of a file")
    return Input(located(vectors), limit, words, on_bad)


def _word_vectors(vectors: Any) -> WordVectors:
    """What `binarize` takes, other than a file, as one type."""
    if isinstance(vectors, WordVectors):
        return vectors
    if isinstance(vectors, str | os.PathLike):
        return _input(vectors).read()
    if isinstance(vectors, Mapping):
        return WordVectors(list(vectors), list(vectors.values()))  # type: ignore[arg-type]
    if hasattr(vectors, "index_to_key") or hasattr(vectors, "wv"):
        from embits.readers.gensim_models import from_keyed_vectors

        return from_keyed_vectors(getattr(vectors, "wv", vectors))
    return WordVectors(None, vectors)


def _fitted(coder: Any) -> tuple[Coder, str, list[Path]]:
    """A fitted coder, its name in messages, and the file it was read from."""
    if isinstance(coder, Coder | BinaryVectors):
        fitted = coder if isinstance(coder, Coder) else coder.coder
        fitted.check_fitted()
        return fitted, "the coder", []
    return read_coder(Path(coder)), f"the coder in {coder}", [Path(coder)]
