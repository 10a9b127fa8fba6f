"""`binarize_to_file` and `encode_to_file`: from a file of vectors to a file of bits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embits.binary_vectors import BinaryVectors
from embits.coders import DEFAULT_METHOD, Coder, new_coder
from embits.collection import load
from embits.file.overwrite import check_target
from embits.jobs.arguments import fitted_coder, input_file
from embits.jobs.in_memory import binarize_in_memory

if TYPE_CHECKING:
    from embits.readers.source import OnBad, Repeats, Words
    from embits.streaming.steps import StepProgress


def binarize_to_file(
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    n_bits: int | None = None,
    method: str = DEFAULT_METHOD,
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    repeats: Repeats | None = None,
    sample: int | None = None,
    subwords: bool = True,
    overwrite: bool = False,
    progress: StepProgress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Binarize a file of vectors of any size into a file of bits.

    The result is that of `binarize(read_vectors(vectors)).save(target)`, byte for byte. A file
    over 64 MiB is read in blocks, several times, and progress is kept in a folder `.NAME.partial`
    beside the target: after an interrupt or a kill, the same call resumes. `.npz` and
    fastText `.bin` are read whole.

    Args:
        vectors: The file to read.
        target: The file to write, atomically. A file of codes is replaced.
        n_bits: As for `binarize`.
        method: As for `binarize`.
        limit: Read only this many rows from the start.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        repeats: "first" keeps the first row of a word that repeats, "refuse" refuses the file; None
            refuses it only if the words are not in the file itself.
        sample: As for `binarize`.
        subwords: Keep fastText's subwords.
        overwrite: Replace any other existing file as well; never an input.
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
    source = input_file(vectors, limit, words, on_bad, repeats)
    path, steps = Path(target), Steps(progress)
    check_target(path, source.paths(), overwrite, codes=True)
    blocks = source.open_blocks(steps, coder)
    if blocks is None:
        floats = source.read(steps.start("reading"))
        binary = binarize_in_memory(floats, coder, sample, steps.start("fitting"))
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
    repeats: Repeats | None = None,
    overwrite: bool = False,
    progress: StepProgress | None = None,
) -> BinaryVectors:
    """Encode a file of vectors of any size with a fitted coder, into a file of bits.

    Args:
        coder: The coder, or what holds one: BinaryVectors, or the path of their file.
        vectors: The file to read.
        target: The file to write, atomically.
        limit: Read the first rows only, this many.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        repeats: "first" keeps the first row of a word that repeats, "refuse" refuses the file; None
            refuses it only if the words are not in the file itself.
        overwrite: Replace any other existing file as well; never an input.
        progress: Called as progress(step, done, total).

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

    source = input_file(vectors, limit, words, on_bad, repeats)
    path, steps = Path(target), Steps(progress)
    fitted, name, read = fitted_coder(coder)
    check_target(path, [*source.paths(), *read], overwrite, codes=True)
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
