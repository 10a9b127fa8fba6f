"""Codes in several arrays, of which some rows may be removed: read as one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.checks import packed_codes
from embits.search.cells import Cells, Centers
from embits.search.filters import Filters, Selection, parse_filters, select

_NO_ROWS = np.empty(0, np.int64)
_NO_NUMBERS = np.empty(0, np.uint32)


class LiveRows:
    """The rows that are left of `n_stored` without the `removed` ones, ascending; without gaps."""

    def __init__(self, n_stored: int, removed: NDArray[np.int64] | None = None) -> None:
        self.n_stored = n_stored
        self.removed = _NO_ROWS if removed is None else removed.astype(np.int64)

    def __len__(self) -> int:
        return self.n_stored - len(self.removed)

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
        return np.where(is_removed | (rows < 0), -1, rows - places)

    def removed_in(self, start: int, stop: int) -> NDArray[np.int64]:
        """The removed rows from `start` up to and without `stop`, counted from `start`."""
        first, last = np.searchsorted(self.removed, [start, stop])
        return self.removed[first:last] - start

    def kept(self) -> NDArray[np.int64]:
        """All rows that are left."""
        return np.delete(np.arange(self.n_stored), self.removed)


class CodePieces:
    """The packed codes of several pieces, one after the other, without removed rows.

    It is indexed as a matrix is, and `np.asarray` copies it into one. `top_k` and
    `asymmetric_top_k` search the pieces where they are.

    Args:
        arrays: Packed codes, uint8 (n, width) each, of one width; may be mapped.
        removed: The removed rows, ascending, counted over all pieces.
        cells: The cells of each array that is stored in their order; None for others. Rows are
            numbered as without cells.

    Attributes:
        shape: Rows that are left, and bytes of a code.
        stored_shape: The same with removed rows.
    """

    ndim = 2
    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        arrays: Sequence[NDArray[np.uint8]],
        removed: NDArray[np.int64] | None = None,
        cells: Sequence[Cells | None] | None = None,
    ) -> None:
        self.arrays = list(arrays)
        self.cells = [None] * len(self.arrays) if cells is None else list(cells)
        n, width = sum(map(len, self.arrays)), int(self.arrays[0].shape[1])
        self.rows = LiveRows(n, removed)
        self.shape, self.stored_shape = (len(self.rows), width), (n, width)

    @classmethod
    def of(cls, codes: Any) -> CodePieces:
        """Pieces as they are, or a matrix of packed codes as one piece; InputError if it is not."""
        if isinstance(codes, CodePieces):
            return codes
        pieces = cls([packed_codes(codes)])
        pieces.native = pieces.arrays[0]
        return pieces

    @LazyProperty
    def starts(self) -> NDArray[np.int64]:
        """The first stored row of each piece, and the number of all."""
        return np.cumsum([0, *map(len, self.arrays)])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that are left."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        if key is None or key is Ellipsis:
            return np.asarray(self)[key]
        if isinstance(key, tuple):
            return np.asarray(self[key[0]][:, *key[1:]])
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            first = int(np.searchsorted(self.starts, start, side="right")) - 1
            is_whole = step == 1 and not len(self.rows.removed) and first < len(self.arrays)
            if is_whole and self.cells[first] is None and stop <= self.starts[first + 1]:
                begin = self.starts[first]  # a view of one piece
                return self.arrays[first][start - begin : max(start, stop) - begin]
            return self._gathered(np.arange(start, stop, step))
        rows = np.asarray(key)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        gathered = self._gathered(rows.ravel().astype(np.int64))
        return gathered.reshape(*rows.shape, self.shape[1])

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.uint8]:
        if self.is_plain:
            return np.array(self.arrays[0], dtype, copy=copy)
        parts = []
        for array, cells, start in zip(self.arrays, self.cells, self.starts.tolist(), strict=False):
            in_rows = array if cells is None else array[cells.places]
            removed = self.rows.removed_in(start, start + len(array))
            parts.append(np.delete(in_rows, removed, axis=0) if len(removed) else in_rows)
        return np.concatenate(parts).astype(dtype or np.uint8, copy=False)

    @LazyProperty
    def native(self) -> NDArray[np.uint8] | _core.CodePieces:
        """The codes as the native searches read them, with removed rows."""
        arrays = [np.ascontiguousarray(array) for array in self.arrays]
        if len(arrays) == 1 and self.cells[0] is None:
            return arrays[0]
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

    def with_centers(self, centers: Centers) -> CodePieces:
        """The same codes with another curve of their cells."""
        cells = [
            each if each is None or each.centers.digest != centers.digest
            else replace(each, centers=centers)
            for each in self.cells
        ]  # fmt: skip
        return CodePieces(self.arrays, self.rows.removed, cells)

    def _is_ours(self, cells: Cells | None) -> TypeGuard[Cells]:
        ours = self.centers
        return cells is not None and ours is not None and cells.centers.digest == ours.digest

    def _in_cells(self) -> list[tuple[Cells, NDArray[np.uint8], int]]:
        """The cells, codes and first row of each piece that has these centers."""
        parts = zip(self.cells, self.arrays, self.starts.tolist(), strict=False)
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

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the codes of rows are stored, all pieces one after the other; both with removed."""
        if not any(self.cells):
            return rows
        places, owners = rows.copy(), np.searchsorted(self.starts, rows, side="right") - 1
        for owner, cells in enumerate(self.cells):
            if cells is not None:
                mine, start = owners == owner, self.starts[owner]
                places[mine] = cells.places[rows[mine] - start] + start
        return places

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

    def _gathered(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        if rows.size and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self)} codes")
        stored = self.places(self.rows.stored(np.where(rows < 0, rows + len(self), rows)))
        if len(self.arrays) == 1:
            return self.arrays[0][stored]
        owners = np.searchsorted(self.starts, stored, side="right") - 1
        codes = np.empty((len(rows), self.shape[1]), np.uint8)
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            codes[mine] = self.arrays[owner][stored[mine] - self.starts[owner]]
        return codes
