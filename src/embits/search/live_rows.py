"""Row numbers where some of the stored rows are removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class LiveRows:
    """The rows that are left of `n_stored`, numbered from 0 without gaps.

    Args:
        n_stored: Rows, with those that are removed.
        removed: The removed rows, ascending.

    Example:
        >>> rows = LiveRows(5, np.array([0, 2]))
        >>> len(rows), rows.stored(np.arange(3)).tolist(), rows.live(np.array([3, 2])).tolist()
        (3, [1, 3, 4], [1, -1])
    """

    def __init__(self, n_stored: int, removed: NDArray[np.int64] | None = None) -> None:
        self.n_stored = n_stored
        self.removed = np.empty(0, np.int64) if removed is None else removed.astype(np.int64)
        self._live_before = self.removed - np.arange(len(self.removed))

    def __len__(self) -> int:
        return self.n_stored - len(self.removed)

    def stored(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The stored rows of live ones."""
        if not len(self.removed):
            return rows
        return rows + np.searchsorted(self._live_before, rows, side="right")

    def live(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The live rows of stored ones; -1 for rows that are removed, and for -1."""
        if not len(self.removed):
            return rows
        places = np.searchsorted(self.removed, rows)
        is_removed = self.removed[np.minimum(places, len(self.removed) - 1)] == rows
        return np.where(is_removed | (rows < 0), -1, rows - places)

    def removed_in(self, start: int, stop: int) -> NDArray[np.int64]:
        """The removed rows from `start` up to and without `stop`, counted from `start`."""
        first, last = np.searchsorted(self.removed, [start, stop])
        return self.removed[first:last] - start

    def kept_in(self, start: int, stop: int) -> NDArray[np.int64]:
        """The rows that are left from `start` up to and without `stop`, counted from `start`."""
        kept = np.ones(stop - start, bool)
        kept[self.removed_in(start, stop)] = False
        return np.flatnonzero(kept)
