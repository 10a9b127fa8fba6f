"""Whole numbers of a fixed number of bits, one after another, the lowest bit first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS_AT_ONCE = 1 << 16  # a multiple of 8: each batch fills whole bytes


def packed_size(n: int, width: int) -> int:
    """Bytes of n numbers of `width` bits."""
    return -(-n * width // 8)


def pack_numbers(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Pack numbers below 2^width.

    >>> pack_numbers(np.array([1, 2, 3]), 4).tolist()
    [33, 3]
    """
    shifts = np.arange(width, dtype=np.uint64)
    one = np.uint64(1)
    batches = [
        np.packbits(batch.astype(np.uint64)[:, np.newaxis] >> shifts & one, bitorder="little")
        for batch in np.split(numbers, range(_NUMBERS_AT_ONCE, len(numbers), _NUMBERS_AT_ONCE))
    ]
    return np.concatenate(batches)


def unpack_numbers(packed: NDArray[np.uint8], width: int, rows: slice) -> NDArray[np.int64]:
    """Numbers `rows.start` to `rows.stop` of a packed array, which holds them.

    >>> unpack_numbers(np.array([33, 3], np.uint8), 4, slice(1, 3)).tolist()
    [2, 3]
    """
    if width == 0:
        return np.zeros(rows.stop - rows.start, np.int64)
    numbers = np.empty(rows.stop - rows.start, np.int64)
    shifts = np.arange(width, dtype=np.int64)
    for start in range(rows.start, rows.stop, _NUMBERS_AT_ONCE):
        stop = min(start + _NUMBERS_AT_ONCE, rows.stop)
        first, last = start * width, stop * width
        bits = np.unpackbits(packed[first // 8 : -(-last // 8)], bitorder="little")
        own = bits[first % 8 : first % 8 + last - first].reshape(-1, width)
        numbers[start - rows.start : stop - rows.start] = own @ (np.int64(1) << shifts)
    return numbers
