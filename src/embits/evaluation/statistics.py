"""Correlation coefficients and their mean, with NumPy only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError


def ranks(values: Any) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of their ranks.

    Example:
        >>> ranks([10, 30, 10, 20]).tolist()
        [1.5, 4.0, 1.5, 3.0]
    """
    _, place, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: NDArray[np.float64] = (last - (counts - 1) / 2)[place]
    return shared


def pearson(a: Any, b: Any) -> float:
    """Pearson's correlation; NaN for fewer than two values or constant values."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"shapes {a.shape} and {b.shape}, expected two vectors of one length")
    if len(a) < 2:
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / scale)) if scale > 0 else math.nan


def spearman(a: Any, b: Any) -> float:
    """Spearman's rank correlation with mean ranks for ties, as scipy's `spearmanr`.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 3]), 4)
        0.6325
    """
    return pearson(ranks(a), ranks(b))


def fisher_mean(correlations: Iterable[float], weights: Iterable[float] | None = None) -> float:
    """The mean of correlations by Fisher's transformation: tanh of the mean of artanh.

    A correlation of exactly 1 would make the mean 1, so it counts as 1 - 1e-12. NaN is skipped.

    Args:
        correlations: The correlations.
        weights: A weight for each, such as its number of pairs; None weighs them equally.

    Example:
        >>> round(fisher_mean([0.8, 0.2]), 4), round(fisher_mean([0.8, 0.2], [3, 1]), 4)
        (0.5721, 0.7037)
    """
    values = list(correlations)
    given = [1.0] * len(values) if weights is None else list(weights)
    known = [(r, w) for r, w in zip(values, given, strict=True) if not math.isnan(r) and w > 0]
    if not known:
        return math.nan
    limit = 1 - 1e-12
    total = sum(w * math.atanh(max(-limit, min(limit, r))) for r, w in known)
    return math.tanh(total / sum(w for _, w in known))
