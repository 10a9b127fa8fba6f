"""Arithmetic of runs of different lengths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers [start, start + count) of each range, one after the other.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + counts, counts)


def parts(counts: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Slices whose counts add up to `most` at most, or that hold a single count.

    Example:
        >>> [(part.start, part.stop) for part in parts(np.array([3, 1, 9, 1]), 4)]
        [(0, 2), (2, 3), (3, 4)]
    """
    sums = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(sums[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(sums, before + most, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end
