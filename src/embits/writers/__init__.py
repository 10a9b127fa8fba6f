"""Write float vectors to a file, in the formats that `embits.readers` reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.vectors import WordVectors
from embits.writers.formats import FORMATS, Format
from embits.writers.words import write_words

__all__ = ["write_vectors", "write_word2vec", "write_words"]


def write_vectors(
    path: str | os.PathLike[str], vectors: WordVectors, *, overwrite: bool = False
) -> None:
    """Write vectors in the format of the path's suffix. The file is replaced atomically.

    Args:
        path: `.txt` or `.vec` (word2vec text, with `.gz` compressed), `.bin` (word2vec
            binary), `.npz` or `.parquet`. `.npy` and `.safetensors` hold only the matrix; the words
            are written to a `.words` file beside it.
        vectors: The vectors; without words, the row numbers are written in their place.
        overwrite: Replace files that exist.

    Raises:
        InputError: The suffix is unknown, the format cannot hold a word, or a file exists.
        OSError: The file could not be written.
    """
    path = Path(path)
    form = _format_of(path, FORMATS)
    words = [str(row) for row in range(len(vectors))] if vectors.words is None else vectors.words
    sidecar = (
        path.with_suffix(".words") if form.words_beside and vectors.words is not None else None
    )
    for target in (path, sidecar):
        if target is not None:
            check_target(target, overwrite=overwrite)
    if sidecar is not None:
        write_words(sidecar, words)
    with atomic_write(path) as file:
        if form.write_matrix is not None:
            form.write_matrix(file, words, vectors.matrix)
        elif form.write_rows is not None:
            form.write_rows(file, words, vectors.dims, vectors.matrix)


def write_word2vec(
    path: Path, words: Sequence[str], dims: int, rows: Iterable[NDArray[np.float32]]
) -> None:
    """Write word2vec text or binary row by row, without the whole matrix in memory.

    Args:
        path: `.txt`, `.vec`, either with `.gz`, or `.bin`.
        words: The words, one for each row.
        dims: Numbers in a row.
        rows: The rows, each of shape (dims,).

    Raises:
        InputError: The suffix is unknown, or the format cannot hold a word.
        OSError: The file could not be written.
    """
    form = _format_of(path, [form for form in FORMATS if form.write_rows is not None])
    with atomic_write(path) as file:
        if form.write_rows is not None:
            form.write_rows(file, words, dims, rows)


def _format_of(path: Path, formats: Sequence[Format]) -> Format:
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    for form in formats:
        if suffix.lower() in form.suffixes:
            return form
    known = ", ".join(each for form in formats for each in form.suffixes)
    reason = f"from {suffix!r}" if suffix else "without a suffix"
    raise InputError(f"{path}: cannot tell the format {reason}: use one of {known}")
