"""Scores of float queries in float64, as the native search sums them.

The native search orders rows by sums in float64 and returns them as float32, in which different
sums may be equal. Results of several searches are merged by the sums themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embits.bits import unpack

_ROWS_AT_ONCE = 1 << 14


def exact_scores(codes: NDArray[np.uint8], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """The score of each code by its own weights.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        weights: What each bit adds if it is 1, or takes away if it is 0, (n, n_bits).

    Returns:
        float64 of shape (n,).

    Example:
        >>> exact_scores(np.packbits([[1, 1, 0], [1, 0, 1]], axis=1),
        ...              np.array([[2.0, -1.0, 0.5], [2.0, -1.0, 0.5]])).tolist()
        [0.5, 3.5]
    """
    scores = np.empty(len(codes))
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        scores[part] = _summed(codes[part], weights[part])
    return scores


def _summed(codes: NDArray[np.uint8], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sums of four bits, added up from first to last, as the tables of the native search are."""
    n_bits = weights.shape[1]
    signed = np.zeros((len(codes), 8 * codes.shape[1]))
    signed[:, :n_bits] = np.where(unpack(codes, n_bits), weights, -weights)
    a, b, c, d = np.moveaxis(signed.reshape(len(codes), -1, 4), 2, 0)
    fours = ((a + b) + c) + d
    total = np.zeros(len(codes))
    for place in range(fours.shape[1]):
        total += fours[:, place]
    return total
