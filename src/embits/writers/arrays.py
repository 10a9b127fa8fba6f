"""NumPy .npy and .npz, and safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from embits.writers.words import check_words


def write_npy(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """The matrix alone."""
    np.save(file, matrix, allow_pickle=False)


def write_npz(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """The arrays `words` and `matrix`."""
    # Strings in NumPy lose NULs at their end.
    check_words(words, r"\0$", "an .npz file")
    np.savez(file, words=np.array(list(words)), matrix=matrix)


def write_safetensors(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """The matrix alone, as the tensor `embeddings`."""
    matrix = np.ascontiguousarray(matrix, dtype="<f4")
    entry = {"dtype": "F32", "shape": list(matrix.shape), "data_offsets": [0, matrix.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    file.write(matrix.data)
