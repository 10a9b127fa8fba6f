"""A matrix whose rows are read when they are indexed; `fit` takes it as it takes an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Take: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class LazyRows:
    """Finite float32 rows of shape (n, dims) that are stored elsewhere.

    A slice is a LazyRows again and reads nothing. An index of row numbers, a single row or
    `np.asarray` reads. These are the only parts of NumPy's indexing that the coders' `fit` uses.

    Args:
        take: Returns the rows of the given numbers, float32 of shape (len(numbers), dims).
        n_rows: How many rows there are.
        dims: Dimensions of a row.

    Example:
        >>> squares = LazyRows(lambda rows: (rows[:, None] ** 2).astype(np.float32), 100, 1)
        >>> squares[10::30].shape, squares[10::30][1:][0].tolist()
        ((3, 1), [1600.0])
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, take: Take, n_rows: int, dims: int) -> None:
        self._take = take
        self._rows = range(n_rows)
        self.dims = dims

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions."""
        return len(self._rows), self.dims

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            part = LazyRows(self._take, 0, self.dims)
            part._rows = self._rows[rows]
            return part
        if isinstance(rows, int | np.integer):
            return self._take(np.array([self._rows[int(rows)]], np.int64))[0]
        return self._take(self._rows.start + self._rows.step * np.asarray(rows, np.int64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        numbers = np.arange(self._rows.start, self._rows.stop, self._rows.step, dtype=np.int64)
        return self._take(numbers).astype(dtype or np.float32, copy=False)

    def astype(self, dtype: Any) -> NDArray[Any]:
        """The rows, read, as another type."""
        return self.__array__(dtype)
