"""Scale vectors to the size that the paper's model was made for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

USUAL_SIZE = 0.4  # root mean square of the values of GloVe
MAX_SCALE_LOG2 = 30  # of equal rows, only rounding errors are left by the centering
SAMPLE_ROWS = 10_000  # rows that the mean and the scale are taken from


def mean_and_scale(X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What to subtract from rows, shape (dims,), and to multiply them by, shape (1,).

    Zero and one, unless the values are less than about two thirds of the size of GloVe's. The
    scale is a power of two: it multiplies floats without rounding.

    Example:
        >>> unit = np.eye(1536)[:500]
        >>> mean_and_scale(unit)[1], mean_and_scale(20 * unit)[1]
        (array([16.], dtype=float32), array([1.], dtype=float32))
    """
    sample = np.asarray(X[np.arange(0, len(X), -(-len(X) // SAMPLE_ROWS))], dtype=np.float64)
    mean = np.zeros(sample.shape[1], dtype=np.float32)
    scale = _scale_to_usual(sample)
    if scale > 1:
        mean = sample.mean(axis=0).astype(np.float32)
        scale = _scale_to_usual(sample - mean)
    return mean, np.array([scale], dtype=np.float32)


def _scale_to_usual(values: NDArray[np.float64]) -> float:
    """The power of two, 1 or more, that brings the values closest to the usual size."""
    size = math.sqrt(np.mean(values * values))
    if not size > 0:
        return 1.0
    return 2.0 ** min(max(0, round(math.log2(USUAL_SIZE / size))), MAX_SCALE_LOG2)
