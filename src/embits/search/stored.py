"""Codes as they are stored: in segments, perhaps cell by cell, with rows that were removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.checks import packed_codes
from embits.search.cells import Cells, Centers
from embits.search.filters import Filters, Selection, parse_filters, select

_NO_ROWS = np.empty(0, np.int64)
_NO_NUMBERS = np.empty(0, np.uint32)


class RowMap:
    """Row numbers of several segments, one after the other, and the same without removed rows.

    A stored row counts the removed rows too; live rows are numbered without gaps.

    Args:
        sizes: The rows of each segment.
        removed: The stored rows that are removed, ascending.

    Attributes:
        starts: The first stored row of each segment, and the number of all.
        n_stored: The number of all stored rows.
    """

    def __init__(self, sizes: Sequence[int], removed: NDArray[np.int64] | None = None) -> None:
        self.starts = np.cumsum([0, *sizes])
        self.removed = _NO_ROWS if removed is None else removed.astype(np.int64)
        self.n_stored = int(self.starts[-1])
        self._n = self.n_stored - len(self.removed)

    @classmethod
    def of_segments(cls, sizes: Sequence[int], removed: Sequence[NDArray[np.int64]]) -> RowMap:
        """The rows of segments whose removed rows are counted from the start of each."""
        starts = np.cumsum([0, *sizes])
        stored = (rows + start for rows, start in zip(removed, starts, strict=False))
        return cls(sizes, np.concatenate([_NO_ROWS, *stored]))

    def __len__(self) -> int:
        return self._n

    @LazyProperty
    def _live_before(self) -> NDArray[np.int64]:
        return self.removed - np.arange(len(self.removed))

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
        live: NDArray[np.int64] = np.where(is_removed | (rows < 0), -1, rows - places)
        return live

    def removed_in(self, segment: int) -> NDArray[np.int64]:
        """The removed rows of a segment, counted from its start."""
        start, stop = self.starts[segment : segment + 2]
        first, last = np.searchsorted(self.removed, [start, stop])
        removed: NDArray[np.int64] = self.removed[first:last] - start
        return removed

    def live_in(self, segment: int) -> NDArray[np.int64]:
        """The rows of a segment that are left, counted from its start."""
        size = int(self.starts[segment + 1] - self.starts[segment])
        return np.delete(np.arange(size), self.removed_in(segment))

    def owners(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """The segment of each stored row."""
        owners: NDArray[np.int64] = np.searchsorted(self.starts, stored, side="right") - 1
        return owners

    def by_segment(self, stored: NDArray[np.int64]) -> Iterator[tuple[int, Any, NDArray[np.int64]]]:
        """For each segment that has some of the stored rows: its number, where its rows are among
        them, and its rows, counted from its start."""
        if len(self.starts) == 2:
            yield 0, slice(None), stored
            return
        owners = self.owners(stored)
        for segment in np.unique(owners).tolist():
            places = np.flatnonzero(owners == segment)
            yield segment, places, stored[places] - self.starts[segment]


class StoredCodes:
    """The packed codes of several segments, one after the other. Rows are live row numbers.

    Args:
        arrays: Packed codes, uint8 (n, width) each, of one width; may be mapped.
        rows: Their rows; None is all.
        cells: The cells of each array that is stored in their order; None for others. Rows are
            numbered as without cells.

    Attributes:
        width: Bytes of a code.
    """

    def __init__(
        self,
        arrays: Sequence[NDArray[np.uint8]],
        rows: RowMap | None = None,
        cells: Sequence[Cells | None] | None = None,
    ) -> None:
        self.arrays = list(arrays)
        self.cells = [None] * len(self.arrays) if cells is None else list(cells)
        self.rows = RowMap([len(array) for array in self.arrays]) if rows is None else rows
        self.width = int(self.arrays[0].shape[1])

    @classmethod
    def of(cls, codes: Any) -> StoredCodes:
        """As they are, or a matrix of packed codes; InputError if it is not."""
        if isinstance(codes, StoredCodes):
            return codes
        return cls([packed_codes(codes)])

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Any) -> NDArray[np.uint8]:
        """The codes of rows, (..., width): of row numbers of any shape, a slice, or a mask."""
        if isinstance(rows, slice):
            if self.is_plain:
                return self.arrays[0][rows]
            rows = np.arange(len(self))[rows]
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        flat = rows.ravel().astype(np.int64)
        if flat.size and not -len(self) <= flat.min() <= flat.max() < len(self):
            raise IndexError(f"rows {flat.min()} to {flat.max()} of {len(self)} codes")
        stored = self.places(self.rows.stored(np.where(flat < 0, flat + len(self), flat)))
        codes = np.empty((len(flat), self.width), np.uint8)
        for segment, places, own in self.rows.by_segment(stored):
            codes[places] = self.arrays[segment][own]
        return codes.reshape(*rows.shape, self.width)

    def in_row_order(self) -> NDArray[np.uint8]:
        """The codes of all rows as one array: the stored one where there is just one, in order."""
        if self.is_plain:
            return self.arrays[0]
        parts = []
        for segment, (array, cells) in enumerate(zip(self.arrays, self.cells, strict=True)):
            in_rows = array if cells is None else array[cells.places]
            removed = self.rows.removed_in(segment)
            parts.append(np.delete(in_rows, removed, axis=0) if len(removed) else in_rows)
        return np.concatenate(parts)

    @LazyProperty
    def native(self) -> NDArray[np.uint8] | _core.CodePieces:
        """The codes as the native searches read them, with removed rows."""
        if len(self.arrays) == 1 and self.cells[0] is None:
            return np.ascontiguousarray(self.arrays[0])
        arrays = [np.ascontiguousarray(array) for array in self.arrays]
        orders = [_NO_NUMBERS if cells is None else cells.order for cells in self.cells]
        starts = [cells.starts if self._is_ours(cells) else _NO_NUMBERS for cells in self.cells]
        return _core.CodePieces(arrays, orders, starts)

    @property
    def is_plain(self) -> bool:
        """Whether this is one array in row order, without removed rows."""
        return len(self.arrays) == 1 and self.cells[0] is None and not len(self.rows.removed)

    @LazyProperty
    def centers(self) -> Centers | None:
        """The centers of the cells of the largest piece that has some. Others are read whole."""
        sizes = [0 if cells is None else len(cells.order) for cells in self.cells]
        cells = self.cells[int(np.argmax(sizes))] if sizes else None
        return None if cells is None else cells.centers

    def with_centers(self, centers: Centers) -> StoredCodes:
        """The same codes with another curve of their cells."""
        cells = [
            each if each is None or each.centers.digest != centers.digest
            else replace(each, centers=centers)
            for each in self.cells
        ]  # fmt: skip
        return StoredCodes(self.arrays, self.rows, cells)

    def _is_ours(self, cells: Cells | None) -> TypeGuard[Cells]:
        ours = self.centers
        return cells is not None and ours is not None and cells.centers.digest == ours.digest

    def _in_cells(self) -> list[tuple[Cells, NDArray[np.uint8], int]]:
        """The cells, codes and first row of each piece that has these centers."""
        parts = zip(self.cells, self.arrays, self.rows.starts.tolist(), strict=False)
        return [part for part in parts if self._is_ours(part[0])]  # type: ignore[misc]

    def cell_sizes(self) -> NDArray[np.int64]:
        sizes = np.zeros(len(self.centers or ()), np.int64)
        for cells, _, _ in self._in_cells():
            starts = cells.starts.astype(np.int64)
            sizes += starts[1:] - starts[:-1]
        return sizes

    def cell_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each row; -1 in a piece without cells."""
        stored, found = self.rows.stored(rows), np.full(len(rows), -1, np.int64)
        for cells, array, start in self._in_cells():
            mine = (stored >= start) & (stored < start + len(array))
            places = cells.places[stored[mine] - start]
            found[mine] = np.searchsorted(cells.starts, places, side="right") - 1
        return found

    def longest(self, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
        """The greatest of the lengths of stored codes in each cell."""
        longest = np.zeros(len(self.centers or ()), np.float32)
        for cells, array, start in self._in_cells():
            some = np.flatnonzero(np.diff(cells.starts))
            first = cells.starts[some].astype(np.int64)
            own = lengths[start : start + len(array)]
            longest[some] = np.maximum(longest[some], np.maximum.reduceat(own, first))
        return longest

    def places(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the codes of stored rows are, all segments one after the other."""
        if not any(self.cells):
            return stored
        found = stored.copy()
        for segment, places, own in self.rows.by_segment(stored):
            if (cells := self.cells[segment]) is not None:
                found[places] = cells.places[own] + self.rows.starts[segment]
        return found

    def stored_lengths(self, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
        """The length of each code where it is stored; rows that are removed have length 0."""
        if self.is_plain:
            return lengths
        stored = np.zeros(self.rows.n_stored, np.float32)
        stored[self.places(self.rows.stored(np.arange(len(self))))] = lengths
        return stored

    def filters(self, shape: tuple[int, ...], where: Any, exclude: Any) -> Filters:
        """`where` and `exclude` as filters of all stored rows. Raises as `parse_filters` does."""
        filters = parse_filters(len(self.rows), shape, where, exclude)
        if not len(self.rows.removed):
            return filters
        if filters is None:
            return self._left
        if isinstance(filters, list):
            return [self._stored(each) for each in filters]
        return self._stored(filters)

    @LazyProperty
    def _left(self) -> Selection:
        return select(self.rows.n_stored, exclude=self.rows.removed)

    @LazyProperty
    def _known(self) -> WeakKeyDictionary[Selection, Selection]:
        """Selections that were searched with, as selections of the stored rows."""
        return WeakKeyDictionary()

    def _stored(self, selection: Selection) -> Selection:
        n, stored = self.rows.n_stored, self._known.get(selection)
        if stored is None:
            if len(selection) < n // 16:
                stored = Selection(n, rows=self.rows.stored(selection.rows))
            else:
                flags = np.ones(n, bool)
                flags[self.rows.removed] = False
                flags[flags] = selection.flags(0, selection.n)
                stored = select(n, where=flags)
            self._known[selection] = stored
        return stored
