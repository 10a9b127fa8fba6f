"""The rule for doubtful bits: those whose score is so near zero that rounding could change them.

A bit is 1 where its score is 0 or more. How a score is rounded depends on the number of rows, the
threads and the processor, and codes must not. So a score that is no further from zero than its
possible error is computed again, with more digits. There are three estimates of that error: a
proven bound for a matrix product (`product_errors`), and two measured ones where no tight bound is
known: for a product in float64 on a GPU (`device_errors`), and for the sparse coder's iterations
(`ITERATED_ERROR`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import namespace

# Of a row's root mean square score. On a GPU the errors at 1,000 dimensions are a tenth of it; the
# proven bound would send one row in ten back to the CPU.
DEVICE_ERROR = 2e-5
# Scores of the sparse coder are at most about 1; on GloVe, those of float32 are within 2e-7 of
# those of float64.
ITERATED_ERROR = 2e-6
_FLOAT32 = np.finfo(np.float32)


def doubtful_rows(scores: Any, errors: Any) -> Any:
    """Which rows have a doubtful bit, bool of shape (n,).

    Args:
        scores: Shape (n, n_bits), of NumPy or another array API library.
        errors: The possible error of the scores of each row, shape (n, 1), or one number.
    """
    xp = namespace(scores)
    return xp.any(xp.abs(scores) <= errors, axis=1)


def device_errors(scores: Any) -> Any:
    """The possible errors of scores computed on a GPU, shape (n, 1)."""
    xp = namespace(scores)
    return DEVICE_ERROR * xp.sqrt(xp.mean(scores * scores, axis=1, keepdims=True))


def product_errors(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """A bound on the error of `rows @ weights.T` in float32, for each row: shape (n,).

    |error| ≤ k u Σ|x||w| ≤ k u ‖x‖ ‖w‖ with u = 2⁻²⁴, in whatever order the k products are summed
    (Higham, 2002, section 3.1), and k times the smallest float where they underflow; doubled for
    the rounding of this bound itself.
    """
    k = rows.shape[1]
    with np.errstate(over="ignore"):
        lengths = _lengths(rows)
        longest = _lengths(weights).max(initial=0)
        errors: NDArray[np.float32] = lengths * (longest * np.float32(2 * k * 2.0**-24))
        errors += 2 * k * _FLOAT32.tiny
    errors[np.isinf(lengths)] = np.inf  # beyond float32, every score is doubtful
    return errors


def _lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Lengths of rows, not too short even where squares underflow."""
    squares = np.einsum("ij,ij->i", rows, rows)
    squares += rows.shape[1] * _FLOAT32.tiny
    lengths: NDArray[np.float32] = np.sqrt(squares)
    return lengths
