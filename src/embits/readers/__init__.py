"""Read vectors from files. The format is detected from the content, not from the name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.errors import InputError, MissingFileError, ReadError, named_if_missing
from embits.readers.blocks import Blocks
from embits.readers.formats import recognize
from embits.readers.gensim_models import downloaded, model_name
from embits.readers.source import OnBad, Repeats, Source, Words
from embits.vectors import WordVectors, as_words

__all__ = ["open_blocks", "read_rows", "read_vectors"]


def read_vectors(
    path: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: Progress | None = None,
    repeats: Repeats | None = None,
) -> WordVectors:
    """Read word vectors, or a plain matrix of embeddings, in any common format.

    Text (word2vec, GloVe, fastText `.vec`), word2vec `.bin` and JSON `{word: [numbers]}`, also
    inside a `.gz`, `.xz` or a `.zip` of one file; fastText `.bin` with its subwords, `.npy`,
    `.npz`, safetensors and Parquet. The words of a `.npy` or safetensors matrix are read from a
    file beside it, if there is one.

    Args:
        path: The file; or "gensim:NAME", a model of `gensim.downloader`, which is downloaded if
            necessary.
        limit: Read only this many rows, from the start of the file.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        progress: Called as progress(done, total) from time to time, in bytes (Parquet: rows).
        repeats: "first" keeps the first row of a word that repeats and warns; "refuse" refuses the
            file. None is "first" for words in the file itself, and "refuse" for words given by
            `words` or in a file beside it, because the other rows would change their numbers.

    Returns:
        WordVectors of n words and a float32 matrix of shape (n, dims); a float32 `.npy` or
        safetensors matrix is mapped, not read.

    Raises:
        ReadError: The file cannot be read; the message is one line with the file, the line or
            byte, what was found there and what was expected.
        MissingExtraError: The format needs a package that is not installed.
        InputError: An argument is wrong.

    Warns:
        ReadWarning: Once for each kind of repair: repeated words, words that are not UTF-8, a
            wrong count in a header, rows left out.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "tiny.vec")
        >>> _ = path.write_text("2 3\\nking 0.5 0.25 -1\\nqueen 0.5 0.75 1e-3\\n")
        >>> vectors = read_vectors(path)
        >>> vectors.words, vectors.matrix.shape
        (['king', 'queen'], (2, 3))
        >>> folder.cleanup()
    """
    source = _source(path, limit, words, on_bad, progress, repeats)
    with _os_errors(path):
        vectors = recognize(source).open(source).whole()
        source.report(source.size, source.size)
    return vectors


def open_blocks(
    path: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: Progress | None = None,
    repeats: Repeats | None = None,
) -> Blocks | None:
    """Open a file of vectors to read it in blocks; None if its format can only be read whole.

    All formats but fastText `.bin` and `.npz` are read in blocks. The arguments and errors are
    those of `read_vectors`. Rows that repeat a word are not left out.
    """
    source = _source(path, limit, words, on_bad, progress, repeats)
    with _os_errors(path):
        form = recognize(source)
        return form.open(source) if form.is_streamed else None


def read_rows(
    path: str | os.PathLike[str], words: Words | None = None
) -> tuple[list[str], NDArray[np.float32]]:
    """Read all rows of a file of vectors; unlike in `read_vectors`, words may repeat.

    The arguments and errors are those of `read_vectors`.

    Returns:
        The words, none if the file has no words, and the matrix of shape (n, dims).
    """
    source = _source(path, None, words, "raise", None, None)
    with _os_errors(path):
        blocks = recognize(source).open(source)
        names: list[str] = []
        parts = [np.empty((0, blocks.dims), np.float32)]
        for block in blocks.read(blocks.start(), words=blocks.named):
            names += block.words or ()
            parts.append(block.matrix)
        blocks.findings.warn(source)
    return names, np.concatenate(parts)


def holds_words(path: str | os.PathLike[str]) -> bool:
    """Whether the format of a file always has words in it, so that `words` is refused."""
    source = Source(located(path))
    with _os_errors(path):
        return recognize(source).has_words


@contextmanager
def _os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the operating system into ReadError."""
    try:
        with named_if_missing(path):
            yield
    except MissingFileError:
        raise
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error


def _source(
    path: str | os.PathLike[str],
    limit: int | None,
    words: Words | None,
    on_bad: OnBad,
    progress: Progress | None,
    repeats: Repeats | None,
) -> Source:
    is_whole = isinstance(limit, int | np.integer) and not isinstance(limit, bool)
    if limit is not None and not (is_whole and limit >= 1):
        raise InputError(f"limit is {limit!r}, expected 1 or more, or None for all rows")
    if on_bad not in ("raise", "skip"):
        raise InputError(f'on_bad is {on_bad!r}, expected "raise" or "skip"')
    if repeats not in (None, "first", "refuse"):
        raise InputError(f'repeats is {repeats!r}, expected "first", "refuse" or None')
    if words is not None and not isinstance(words, str | os.PathLike):
        words = as_words(words)
    return Source(located(path), limit, on_bad, progress, words, repeats)


def located(path: str | os.PathLike[str]) -> Path:
    """The path itself, or the file of a gensim model that is given by name."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{type(path).__name__} is not a path, expected the path of a file")
    name = model_name(path)
    return Path(path) if name is None else Path(downloaded(name))
