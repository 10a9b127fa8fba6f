"""word2vec text and binary, written row by row."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.writers.words import check_words

Rows: TypeAlias = Iterable[NDArray[np.float32]]


def write_text(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """A header line, then for each row a line with the word and its numbers."""
    check_words(words, r"[\r\n]|^\s|\s$|^$", "a text file of vectors")
    file.write(f"{len(words)} {dims}\n".encode())
    row_format = " ".join(["%.9g"] * dims) + "\n"  # 9 digits restore every float32 exactly
    for word, row in zip(words, rows, strict=True):
        file.write(f"{word} {row_format % tuple(row.tolist())}".encode())


def write_gzip(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """Text, compressed. The same vectors give the same bytes."""
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
        write_text(io.BufferedWriter(compressed), words, dims, rows)


def write_binary(file: BinaryIO, words: Sequence[str], dims: int, rows: Rows) -> None:
    """A header line, then for each row the word, a space and raw float32."""
    check_words(words, r"[ \n]|^$", "a word2vec .bin file")
    file.write(f"{len(words)} {dims}\n".encode())
    for word, row in zip(words, rows, strict=True):
        file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
