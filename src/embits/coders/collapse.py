"""A warning for codes that hardly distinguish the vectors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import as_float32
from embits.errors import TrainingWarning

if TYPE_CHECKING:
    from embits.coders.base import Coder

SAMPLE_ROWS = 1_024  # rows that are encoded for the check
MIN_ROWS = 64  # different ones; with fewer, good codes can look alike by chance
MAX_CONSTANT = 0.25  # share of bits that are the same for all rows
MIN_DISTINCT = 0.1  # codes for each row, among codes of MIN_ROWS bits or more


def warn_if_collapsed(coder: Coder, X: NDArray[Any]) -> None:
    """Warn, once for a fit, of bits that are constant and of codes that most rows share.

    Args:
        coder: A fitted coder.
        X: The vectors it was fitted on, shape (n, dims), of which a sample is encoded.
    """
    rows = coder.rows_for_fit(*X.shape)
    if rows is None:
        rows = np.arange(len(X))
    sample = as_float32(X[rows[:: -(-len(rows) // SAMPLE_ROWS)]])
    n_rows = len(np.unique(sample, axis=0))
    if n_rows == 1 and len(sample) >= MIN_ROWS:
        kind = "equal" if sample[0].any() else "zero"
        warnings.warn(
            f"method {coder.method!r}: all of {len(sample):,} rows are {kind}, and have one code",
            TrainingWarning,
            stacklevel=3,
        )
    if n_rows < MIN_ROWS:
        return
    codes = coder.encode_rows(sample)
    differing = np.bitwise_or.reduce(codes ^ codes[0], axis=0)
    n_constant = coder.n_bits_ - int(np.unpackbits(differing).sum())
    n_codes = len(np.unique(codes, axis=0))
    if n_constant > MAX_CONSTANT * coder.n_bits_:
        found = f"{n_constant} of {coder.n_bits_} bits are the same for all of {len(codes):,} rows"
    elif coder.n_bits_ >= MIN_ROWS and n_codes < MIN_DISTINCT * n_rows:
        found = f"{n_rows:,} different rows have only {n_codes:,} different codes"
    else:
        return
    warnings.warn(
        f"method {coder.method!r}: {found}; searches will find few true neighbors. "
        "Subtract the mean of the vectors, or take another method",
        TrainingWarning,
        stacklevel=3,
    )
