"""Float vectors out to a file, in the formats that readers/ reads back."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, MissingExtraError
from embits.file.atomic import atomic_write
from embits.vectors import WordVectors

Rows: TypeAlias = Iterable[NDArray[np.float32]]
RowWriter: TypeAlias = Callable[[BinaryIO, Sequence[str], int, Rows], None]
VectorWriter: TypeAlias = Callable[[BinaryIO, Sequence[str], WordVectors], None]
Writer = TypeVar("Writer", RowWriter, VectorWriter)


def write_vectors(path: str | os.PathLike[str], vectors: WordVectors) -> None:
    """Write vectors in the format that the path's suffix names, whole or not at all.

    Args:
        path: `.txt` or `.vec` (word2vec text, with `.gz` compressed), `.bin` (word2vec
            binary), `.npz` or `.parquet`; `.npy` and `.safetensors` hold the matrix, and a
            `.words` file beside them the words.
        vectors: What to write; rows without words go by their number.

    Raises:
        InputError: Another suffix, or a word that the format cannot hold.
        OSError: The disk said no.
    """
    path = Path(path)
    writer = _by_suffix(path, _WRITERS)
    words = [str(row) for row in range(len(vectors))] if vectors.words is None else vectors.words
    if path.suffix.lower() in (".npy", ".safetensors") and vectors.words is not None:
        write_words(path.with_suffix(".words"), words)
    with atomic_write(path) as file:
        writer(file, words, vectors)


def write_words(path: Path, words: Sequence[str]) -> None:
    """Write one word a line, whole or not at all."""
    _refuse(r"[\r\n]", words, "a file of one word a line")
    with atomic_write(path) as file:
        file.writelines(word.encode() + b"\n" for word in words)


def write_word2vec(
    path: Path, words: Sequence[str], dims: int, rows: Iterable[NDArray[np.float32]]
) -> None:
    """Write word2vec text or binary row by row, so that the matrix need not be in memory.

    Args:
        path: `.txt`, `.vec`, either with `.gz`, or `.bin`.
        words: The words, as many as there are rows.
        dims: Numbers of a row.
        rows: The rows, each of shape (dims,).

    Raises:
        InputError: Another suffix, or a word that the format cannot hold.
        OSError: The disk said no.
    """
    writer = _by_suffix(path, _ROW_WRITERS)
    with atomic_write(path) as file:
        writer(file, words, dims, rows)


def _by_suffix(path: Path, writers: Mapping[str, Writer]) -> Writer:
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    writer = writers.get(suffix.lower())
    if writer is None:
        raise InputError(
            f"{path}: cannot tell the format from {suffix or 'no suffix'!r}; take one of "
            f"{', '.join(writers)}"
        )
    return writer


def _write_text(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    _refuse(r"[\r\n]|^\s|\s$|^$", words, "a text file of vectors")
    file.write(f"{len(words)} {dims}\n".encode())
    row_format = " ".join(["%.9g"] * dims) + "\n"  # 9 digits give every float32 back
    for word, row in zip(words, rows, strict=True):
        file.write(f"{word} {row_format % tuple(row.tolist())}".encode())


def _write_gzip(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    # mtime=0 and no name: the same vectors give the same bytes.
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
        _write_text(io.BufferedWriter(compressed), words, dims, rows)


def _write_binary(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    _refuse(r"[ \n]|^$", words, "a word2vec .bin file")
    file.write(f"{len(words)} {dims}\n".encode())
    for word, row in zip(words, rows, strict=True):
        file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")


def _write_npy(file: BinaryIO, words: Sequence[str], vectors: WordVectors) -> None:
    np.save(file, vectors.matrix, allow_pickle=False)


def _write_npz(file: BinaryIO, words: Sequence[str], vectors: WordVectors) -> None:
    # NumPy's strings drop NULs at the end of a word, so such a word would not come back.
    _refuse(r"\0$", words, "an .npz file")
    np.savez(file, words=np.array(list(words)), matrix=vectors.matrix)


def _write_safetensors(file: BinaryIO, words: Sequence[str], vectors: WordVectors) -> None:
    matrix = np.ascontiguousarray(vectors.matrix, dtype="<f4")
    entry = {"dtype": "F32", "shape": list(matrix.shape), "data_offsets": [0, matrix.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    file.write(matrix.data)


def _write_parquet(file: BinaryIO, words: Sequence[str], vectors: WordVectors) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    flat = pa.array(np.ascontiguousarray(vectors.matrix).ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, vectors.dims)
    pyarrow.parquet.write_table(pa.table({"word": list(words), "vector": lists}), file)


def _refuse(pattern: str, words: Sequence[str], what: str) -> None:
    found = re.compile(pattern)
    for row, word in enumerate(words):
        if found.search(word):
            raise InputError(f"the word {word!r} of row {row} cannot be written to {what}")


def _from_matrix(write_rows: RowWriter) -> VectorWriter:
    return lambda file, words, vectors: write_rows(file, words, vectors.dims, vectors.matrix)


_ROW_WRITERS: dict[str, RowWriter] = {
    ".txt": _write_text,
    ".vec": _write_text,
    ".txt.gz": _write_gzip,
    ".vec.gz": _write_gzip,
    ".bin": _write_binary,
}
_WRITERS: dict[str, VectorWriter] = {
    **{suffix: _from_matrix(writer) for suffix, writer in _ROW_WRITERS.items()},
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
}
