"""Parquet: a column of words and a column of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from embits.errors import MissingExtraError


def write_parquet(file: BinaryIO, words: Sequence[str], matrix: NDArray[np.float32]) -> None:
    """The columns `word`, of strings, and `vector`, of lists of floats."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    flat = pa.array(np.ascontiguousarray(matrix).ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])
    pyarrow.parquet.write_table(pa.table({"word": list(words), "vector": lists}), file)
