"""The table of formats: the suffixes of each and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.writers import arrays, parquet, word2vec

RowWriter: TypeAlias = Callable[[BinaryIO, Sequence[str], int, Iterable[NDArray[np.float32]]], None]
MatrixWriter: TypeAlias = Callable[[BinaryIO, Sequence[str], NDArray[np.float32]], None]


@dataclass(frozen=True)
class Format:
    """A format of files of vectors. It has one of the two functions.

    Attributes:
        suffixes: The suffixes that choose it, in lower case.
        write_rows: Writes row by row: (file, words, dims, rows).
        write_matrix: Writes a matrix: (file, words, matrix).
        words_beside: Whether words go into a file of their own.
    """

    suffixes: tuple[str, ...]
    write_rows: RowWriter | None = None
    write_matrix: MatrixWriter | None = None
    words_beside: bool = False


FORMATS = (
    Format((".txt", ".vec"), write_rows=word2vec.write_text),
    Format((".txt.gz", ".vec.gz"), write_rows=word2vec.write_gzip),
    Format((".bin",), write_rows=word2vec.write_binary),
    Format((".npy",), write_matrix=arrays.write_npy, words_beside=True),
    Format((".npz",), write_matrix=arrays.write_npz),
    Format((".safetensors",), write_matrix=arrays.write_safetensors, words_beside=True),
    Format((".parquet",), write_matrix=parquet.write_parquet),
)
