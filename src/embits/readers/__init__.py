"""Read vectors from files. The format is detected from the content, not from the name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.errors import InputError, MissingFileError, ReadError
from embits.readers.blocks import Blocks
from embits.readers.formats import recognize
from embits.readers.gensim_models import download_model, model_name
from embits.readers.several import are_paths, vector_files
from embits.readers.source import IdColumn, OnBad, Paths, ReadOptions, Repeats, Source, Words
from embits.readers.words import read_words
from embits.remote import Fetched, is_address, shown
from embits.vectors import WordVectors, normalize_ids

__all__ = ["read_rows", "read_vectors", "sample_vectors"]


def read_vectors(
    path: Paths,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: Progress | None = None,
    repeats: Repeats | None = None,
    ids: IdColumn = None,
    column: str | None = None,
    encoding: str = "utf-8",
) -> WordVectors:
    """Read word vectors, or a plain matrix of embeddings, in any common format.

    Text (word2vec, GloVe, fastText `.vec`), word2vec `.bin` and JSON `{word: [numbers]}`, also
    inside a `.gz`, `.xz` or a `.zip` of one file; fastText `.bin` with its subwords, `.npy`,
    `.npz`, safetensors and Parquet. The words of a `.npy` or safetensors matrix are read from a
    file beside it, if there is one.

    Args:
        path: The file; a folder of `.npy` or Parquet files, which are read by name as if they
            were one, or a list of files; an address (https://, s3://, gs://, hf://, or another of
            fsspec), from which it is fetched; or "gensim:NAME", a model of `gensim.downloader`,
            which is download_model if necessary.
        limit: Read only this many rows, from the start of the file.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        progress: Called as progress(done, total) from time to time, in bytes (Parquet: rows).
        repeats: "first" keeps the first row of a word that repeats and warns; "refuse" refuses the
            file. None is "first" for words in a file of words, and "refuse" for ids of Parquet and
            words from elsewhere: the other rows would change their numbers.
        ids: The column of ids of a Parquet table; False reads no ids, also none beside a matrix.
            None takes the column `id`, `ids`, `_id`, `word` or `key`, if there is one.
        column: The column of vectors of a Parquet table, if there are several.
        encoding: How words are encoded in text, `.bin` and the file of `words`, such as "latin-1".

    Returns:
        WordVectors of n words and a float32 matrix of shape (n, dims); a float32 `.npy` or
        safetensors matrix is mapped, not read.

    Raises:
        ReadError: The file cannot be read; the message is one line that says where and why.
        MissingExtraError: The format needs a package that is not installed.
        InputError: An argument is wrong.

    Warns:
        ReadWarning: Once for each kind of repair, such as repeated words or rows left out.

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
    source = new_source(
        path, limit=limit, words=words, on_bad=on_bad, repeats=repeats, ids=ids, column=column,
        encoding=encoding,
    )  # fmt: skip
    return read_source(source, progress)


def new_source(path: Paths, **reading: Unpack[ReadOptions]) -> Source:
    """Files, one that is fetched or a model of gensim, and the options of `read_vectors`."""
    if not are_paths(path):
        raise InputError(f"{type(path).__name__} is not a path, expected the path of a file")
    if not isinstance(path, str | os.PathLike):
        if addresses := [each for each in path if is_address(each)]:
            raise InputError(f"{shown(addresses[0])} is one of several: expected one, or files")
        files = chain.from_iterable(vector_files(each) or [Path(each)] for each in path)
        folder = os.path.commonpath([Path(each).absolute() for each in path])
        return Source(Path(folder), files=tuple(files), **reading)
    words = reading.get("words")
    if words is not None and not isinstance(words, str | os.PathLike):
        reading["words"] = normalize_ids(words)
    elif is_address(words):
        reading["words"] = _fetched_words(words, reading)
    model = model_name(path)
    source = Source(Path(path) if model is None else download_model(model), **reading)
    source = replace(source, files=tuple(vector_files(path)))
    if not is_address(path):
        return source
    fetched = Fetched(path)
    return replace(source, path=fetched.path, fetched=fetched)


def _fetched_words(address: str, reading: ReadOptions) -> Sequence[str]:
    fetched = Fetched(address)
    with fetched.named():
        ids, encoding = reading.get("ids") or None, reading.get("encoding", "utf-8")
        return normalize_ids(list(read_words(fetched.path, ids, None, encoding, fetched)))


def read_source(source: Source, progress: Progress | None = None) -> WordVectors:
    """The vectors of a file, read whole; errors are those of `read_vectors`."""
    source = replace(source, progress=progress)
    with _os_errors(source):
        vectors = recognize(source).open(source).whole()
        source.report(source.size, source.size)
    return vectors


def open_blocks(source: Source) -> Blocks | None:
    """Open a file to read it in blocks, with repeated words; None: it can be read whole only."""
    with _os_errors(source):
        form = recognize(source)
        return form.open(source) if form.is_streamed else None


def read_rows(source: Source) -> tuple[list[str], NDArray[np.float32]]:
    """The words of all rows, if the file has any, and the matrix; here, words may repeat."""
    with _os_errors(source):
        return recognize(source).open(source).read_all()[:2]


def holds_words(source: Source) -> bool:
    """Whether the format of a file always has words in it, so that `words` is refused."""
    with _os_errors(source):
        return recognize(source).has_words


def sample_vectors() -> WordVectors:
    """Return 2,000 frequent English words with vectors of 50 dimensions, to try embits on.

    They are those of GloVe 6B 50d (Pennington, Socher and Manning 2014; public domain, PDDL 1.0),
    rounded to multiples of 0.5, of the most frequent words of three letters or more, in order.

    Example:
        >>> import embits
        >>> vectors = embits.sample_vectors()
        >>> vectors.matrix.shape
        (2000, 50)
        >>> "music" in vectors.words
        True
    """
    path = resources.files("embits.readers") / "sample.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        words = stored["words"].tobytes().decode().split("\n")
        return WordVectors(words, stored["steps"] * stored["step"])


@contextmanager
def _os_errors(source: Source) -> Iterator[None]:
    try:
        with source.fetched.named() if source.fetched else nullcontext():
            yield
    except MissingFileError:
        raise
    except OSError as error:
        raise ReadError(f"{source.name}: cannot be read: {error.strerror or error}") from error
