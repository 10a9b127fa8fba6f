"""Rows outside the fit: a coder is fitted on a part of the rows and measured on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

ALL_ROWS = np.iinfo(np.int64).max
"""As a number of rows to fit on: all of them."""
_MIN_ROWS = 8  # fewer are not divided
_SEED = 0  # the same rows for all methods and seeds of a comparison


@dataclass(frozen=True)
class RowSplit:
    """The rows of a matrix that a coder is fitted on, and the others; both ascending."""

    fitted: NDArray[np.int64]
    unseen: NDArray[np.int64]


def split_rows(n: int, fit_rows: int | None, *, has_words: bool) -> RowSplit | None:
    """Divide n rows at random; None if all rows are fitted on.

    Args:
        n: Number of rows.
        fit_rows: Number of rows to fit on, `ALL_ROWS` for all. None is half of the rows, or all
            rows of word vectors: a vocabulary is known in advance, and it is coded as a whole.
        has_words: Whether these are word vectors.

    Raises:
        InputError: `fit_rows` is less than 1.

    Example:
        >>> split = split_rows(10, None, has_words=False)
        >>> len(split.fitted), len(split.unseen)
        (5, 5)
        >>> split_rows(10, None, has_words=True) is None
        True
    """
    if fit_rows is None:
        fit_rows = ALL_ROWS if has_words or n < _MIN_ROWS else n // 2
    if fit_rows < 1:
        raise InputError(f"fit_rows is {fit_rows}, expected a number of rows from 1")
    if fit_rows >= n:
        return None
    order = np.random.default_rng(_SEED).permutation(n)
    return RowSplit(np.sort(order[:fit_rows]), np.sort(order[fit_rows:]))
