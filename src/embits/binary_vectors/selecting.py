"""Rows that are chosen by number, id or mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.errors import InputError
from embits.ids.keys import Keys


def chosen_rows(words: Keys, rows: Any) -> NDArray[np.int64]:
    """Row numbers of rows that are given as numbers, ids or a mask.

    Raises:
        UnknownWordError: There is no such id.
        InputError: There is no such row, or the mask is of another length.
    """
    array = to_numpy(rows)
    if array.ndim != 1:
        raise InputError(f"rows of shape {array.shape}, expected a list of rows or ids, or a mask")
    if array.dtype == bool:
        if len(array) != len(words):
            raise InputError(f"a mask of {len(array):,} flags for {len(words):,} rows")
        return np.flatnonzero(array)
    if array.dtype.kind in "iu":
        if array.size and not 0 <= array.min() <= array.max() < len(words):
            wrong = array.min() if array.min() < 0 else array.max()
            raise InputError(f"there is no row {wrong}: there are {len(words):,} rows")
        return array.astype(np.int64)
    if array.size == 0:
        return np.empty(0, np.int64)
    ids = array.tolist()
    if not all(isinstance(each, str) for each in ids):
        raise InputError(f"rows are {array.dtype}, expected row numbers, ids or a mask")
    found = words.find_many(ids)
    if (found < 0).any():
        raise words.unknown(ids[int((found < 0).argmax())])
    return found
