"""Write float vectors to a file, in the formats that `embits.readers` reads."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, from_extra
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.vectors import WordVectors

__all__ = ["write_vectors", "write_word2vec", "write_words"]

Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = Iterable[Floats]


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
    """
    path = Path(path)
    write = _writer(path, _BY_ROW | _WHOLE)
    words = [str(row) for row in range(len(vectors))] if vectors.words is None else vectors.words
    word_files = [] if vectors.words is None else files_of(path)[1:]
    for target in (path, *word_files):
        check_target(target, overwrite=overwrite)
    for target in word_files:
        write_words(target, words)
    with atomic_write(path) as file:
        write(file, words, vectors.dims, vectors.matrix)


def files_of(path: Path) -> list[Path]:
    """The file of vectors, and one of their words if the format of its suffix cannot hold them."""
    has_none = path.suffix.lower() in (".npy", ".safetensors")
    return [path, path.with_suffix(".words")] if has_none else [path]


def write_word2vec(path: Path, words: Sequence[str], dims: int, rows: Rows) -> None:
    """Write word2vec text or binary row by row, without the whole matrix in memory.

    The suffix is `.txt`, `.vec`, either with `.gz`, or `.bin`; each row has the shape (dims,).
    """
    write = _writer(path, _BY_ROW)
    with atomic_write(path) as file:
        write(file, words, dims, rows)


def write_words(path: Path, words: Sequence[str]) -> None:
    """Write one word a line. The file is replaced atomically."""
    check_words(words, r"[\r\n]", "a file of one word a line")
    with atomic_write(path) as file:
        file.writelines(word.encode() + b"\n" for word in words)


def check_words(words: Sequence[str], forbidden: str, what: str) -> None:
    """Refuse words that match the pattern of what a format, named `what`, cannot hold."""
    pattern = re.compile(forbidden)
    for row, word in enumerate(words):
        if pattern.search(word):
            raise InputError(f"the word {word!r} of row {row} cannot be written to {what}")


def _write_text(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """A header line, then for each row a line with the word and its numbers."""
    check_words(words, r"[\r\n]|^\s|\s$|^$", "a text file of vectors")
    file.write(f"{len(words)} {dims}\n".encode())
    row_format = " ".join(["%.9g"] * dims) + "\n"  # 9 digits restore every float32 exactly
    for word, row in zip(words, rows, strict=True):
        file.write(f"{word} {row_format % tuple(row.tolist())}".encode())


def _write_gzip(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """Text, compressed. The same vectors give the same bytes."""
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
        _write_text(io.BufferedWriter(compressed), words, dims, rows)


def _write_binary(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """A header line, then for each row the word, a space and raw float32."""
    check_words(words, r"[ \n]|^$", "a word2vec .bin file")
    file.write(f"{len(words)} {dims}\n".encode())
    for word, row in zip(words, rows, strict=True):
        file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")


def _write_npz(file: BinaryIO, words: Sequence[str], dims: int, matrix: Floats) -> None:
    check_words(words, r"\0$", "an .npz file")  # strings in NumPy lose NULs at their end
    np.savez(file, words=np.array(list(words)), matrix=matrix)


def _write_safetensors(file: BinaryIO, words: Sequence[str], dims: int, matrix: Floats) -> None:
    """The matrix alone, as the tensor `embeddings`."""
    matrix = np.ascontiguousarray(matrix, dtype="<f4")
    entry = {"dtype": "F32", "shape": list(matrix.shape), "data_offsets": [0, matrix.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    file.write(matrix.data)


def _write_parquet(file: BinaryIO, words: Sequence[str], dims: int, matrix: Floats) -> None:
    """The columns `word`, of strings, and `vector`, of lists of floats."""
    with from_extra("writing Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(matrix).ravel()), dims)
    pyarrow.parquet.write_table(pa.table({"word": list(words), "vector": lists}), file)


Writer: TypeAlias = Callable[[BinaryIO, Sequence[str], int, Any], None]  # file, words, dims, rows
_BY_ROW: dict[str, Writer] = {  # rows may be any iterable
    ".txt": _write_text,
    ".vec": _write_text,
    ".txt.gz": _write_gzip,
    ".vec.gz": _write_gzip,
    ".bin": _write_binary,
}
_WHOLE: dict[str, Writer] = {  # rows are a matrix
    ".npy": lambda file, words, dims, matrix: np.save(file, matrix, allow_pickle=False),
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
}


def _writer(path: Path, formats: dict[str, Writer]) -> Writer:
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if suffix.lower() in formats:
        return formats[suffix.lower()]
    reason = f"from {suffix!r}" if suffix else "without a suffix"
    raise InputError(f"{path}: cannot tell the format {reason}: use one of {', '.join(formats)}")
