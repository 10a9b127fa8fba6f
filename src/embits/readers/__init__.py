"""Read vectors from the files people have. What a file is, its content says, not its name."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

from embits.arrays import Progress
from embits.errors import InputError, ReadError
from embits.readers.blocks import Blocks
from embits.readers.gensim_models import downloaded, model_name
from embits.readers.source import DAMAGED_ARCHIVE, OnBad, Source, Stream
from embits.readers.words_sidecar import Words
from embits.vectors import WordVectors

__all__ = ["open_blocks", "read_vectors"]

_HEAD_BYTES = 1 << 16
# A tag that goes on, or is closed and followed by anything but a number: `<html>` may be a word.
_HTML = re.compile(rb"\s*<(?:!doctype\b|\?xml\b|html(?:>\s*[^-+.\d\s]|\s+[a-z]))", re.IGNORECASE)
_NOT_VECTORS = {
    b"version https://git-lfs": "a Git LFS pointer, not the file itself (git lfs pull brings it)",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x80\x02": "a Python pickle, which can run code",
    b"\x80\x03": "a Python pickle, which can run code",
    b"\x80\x04": "a Python pickle, which can run code",
    b"\x80\x05": "a Python pickle, which can run code",
    b"BZh": "a bzip2 archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"\x89HDF": "an HDF5 file",
}


def read_vectors(
    path: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: Progress | None = None,
) -> WordVectors:
    """Read word vectors, or a plain matrix of embeddings, of any common format.

    Text (word2vec, GloVe, fastText `.vec`; also in `.gz`, `.xz` or a `.zip` of one file),
    word2vec `.bin`, fastText `.bin` with its subwords, `.npy`, `.npz`, safetensors, Parquet, and
    JSON `{word: [numbers]}`. Words of a `.npy` or safetensors matrix are looked for beside it.

    Args:
        path: The file; or "gensim:NAME", a model of `gensim.downloader`, which fetches it where
            it is not there yet.
        limit: Read the first rows only, this many.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        progress: Called as progress(done, total) now and then, in bytes (Parquet: rows).

    Returns:
        WordVectors of n words and a float32 matrix of shape (n, dims); mapped, not read, where
        the file already is one.

    Raises:
        ReadError: The file cannot be read; the message is one line that names the file, the line
            or byte, what was found there and what was expected.
        MissingExtraError: The format needs a package that is not installed.
        InputError: An argument is wrong.

    Warns:
        ReadWarning: Once for each kind of thing that was put right: repeated words, words that
            are not UTF-8, a wrong count in a header, rows left out.

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
    source = _source(path, limit, on_bad, progress)
    try:
        vectors = _read(source, words)
        source.report(source.size, source.size)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error
    return vectors


def open_blocks(
    path: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: Progress | None = None,
) -> Blocks | None:
    """Open a file of vectors to read it in blocks; None where its format is only read whole.

    Text, also packed, word2vec `.bin`, `.npy`, safetensors and Parquet are read in blocks. The
    arguments and errors are those of `read_vectors`; rows that repeat a word are not left out.
    """
    source = _source(path, limit, on_bad, progress)
    try:
        return _open(source, words)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}") from error


def _source(
    path: str | os.PathLike[str], limit: int | None, on_bad: OnBad, progress: Progress | None
) -> Source:
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit!r}, expected 1 or more, or None for all rows")
    if on_bad not in ("raise", "skip"):
        raise InputError(f'on_bad is {on_bad!r}, expected "raise" or "skip"')
    return Source(located(path), limit, on_bad, progress)


def located(path: str | os.PathLike[str]) -> Path:
    """The file behind a path, or behind the name of a model."""
    name = model_name(path)
    return Path(path) if name is None else Path(downloaded(name))


def _head(source: Source) -> bytes:
    """The first bytes, which say what a file is."""
    if source.path.is_dir():
        raise source.refusal("a directory", "a file")
    with source.path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise source.refusal("an empty file", "vectors")
    _refuse_what_is_known(source, head)
    return head


def _open(source: Source, words: Words | None) -> Blocks | None:
    """Recognise the file by its first bytes, and open it where it can be read in blocks."""
    from embits.readers.fasttext_binary import MAGIC
    from embits.readers.safetensors_file import is_safetensors, open_safetensors

    head = _head(source)
    if head.startswith(b"\x93NUMPY"):
        from embits.readers.numpy_arrays import open_npy

        return open_npy(source, words)
    if head.startswith(b"PAR1"):
        from embits.readers.parquet import ParquetBlocks

        return ParquetBlocks(source, words)
    if is_safetensors(head, source.size):
        return open_safetensors(source, words)
    is_whole = head.startswith(MAGIC) or (head.startswith(b"PK\x03\x04") and _holds_arrays(source))
    return None if is_whole or words is not None else _open_stream(source)


def _open_stream(source: Source) -> Blocks | None:
    from embits.readers.json_file import is_json
    from embits.readers.text import HEAD_BYTES, TextBlocks
    from embits.readers.word2vec_binary import Word2VecBlocks, is_word2vec_binary

    with Stream(source) as stream:
        head = stream.peek(_HEAD_BYTES)
        if is_word2vec_binary(head):
            return Word2VecBlocks(source, stream)
        mark = 3 if head.startswith(b"\xef\xbb\xbf") else 0
        if not head or is_json(head[mark:]) or b"\0" in head:
            return None  # what is wrong with it, reading it whole says
        _refuse_what_is_known(source, head)
        return TextBlocks(source, stream.peek(mark + HEAD_BYTES)[mark:], mark)


def _read(source: Source, words: Words | None) -> WordVectors:
    """Recognise the file by its first bytes, and read it."""
    head = _head(source)
    if head.startswith(b"\x93NUMPY"):
        from embits.readers.numpy_arrays import read_npy

        return read_npy(source, words)
    if head.startswith(b"PK\x03\x04") and _holds_arrays(source):
        from embits.readers.numpy_arrays import read_npz

        return read_npz(source, words)
    if head.startswith(b"PAR1"):
        from embits.readers.parquet import read_parquet

        return read_parquet(source, words)
    from embits.readers.safetensors_file import is_safetensors, read_safetensors

    if is_safetensors(head, source.size):
        return read_safetensors(source, words)
    if words is not None:
        raise InputError(f"{source.path} holds its own words, expected no `words`")
    from embits.readers.fasttext_binary import MAGIC, read_fasttext_binary

    if head.startswith(MAGIC):
        return read_fasttext_binary(source)
    return _read_stream(source)


def _read_stream(source: Source) -> WordVectors:
    """Read the formats that may also lie in a .gz, .xz or .zip."""
    from embits.readers.json_file import is_json, read_json
    from embits.readers.text import read_text
    from embits.readers.word2vec_binary import is_word2vec_binary, read_word2vec_binary

    with Stream(source) as stream:
        head = stream.peek(_HEAD_BYTES)
        if not head:
            raise source.refusal("an empty file inside", "vectors")
        _refuse_what_is_known(source, head)
        if is_word2vec_binary(head):
            return read_word2vec_binary(source, stream)
        if head.startswith(b"\xef\xbb\xbf"):
            stream.skip(3)
            head = head[3:]
        if is_json(head):
            return read_json(source, stream)
        if b"\0" in head:
            raise source.refusal(
                "binary data of an unknown kind", "vectors", f"byte {head.index(0)}"
            )
        return read_text(source, stream)


def _refuse_what_is_known(source: Source, head: bytes) -> None:
    for magic, what in _NOT_VECTORS.items():
        if head.startswith(magic):
            raise source.refusal(what, "vectors")
    if _HTML.match(head):
        raise source.refusal("an HTML page (the download went wrong)", "vectors")


def _holds_arrays(source: Source) -> bool:
    try:
        with zipfile.ZipFile(source.path) as archive:
            names = archive.namelist()
    except DAMAGED_ARCHIVE as error:
        raise source.refusal(f"a damaged archive ({error})", "a whole file") from error
    return bool(names) and all(name.endswith(".npy") for name in names)
