"""Reconstruction error of the float vectors rebuilt from codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from embits.arrays import blocks, row_cosines
from embits.errors import InputError
from embits.evaluation.spaces import FloatSpace


def evaluate_reconstruction(raw: FloatSpace, rebuilt: FloatSpace) -> dict[str, Any]:
    """The mean cosine of raw and rebuilt rows, and the mean squared error per value.

    Returns:
        `{"cosine", "mse"}`.
    """
    if raw.matrix.shape != rebuilt.matrix.shape:
        raise InputError(
            f"raw vectors of shape {raw.matrix.shape}, rebuilt of {rebuilt.matrix.shape}"
        )
    cosine = squares = 0.0
    for rows in blocks(len(raw)):
        x, y = raw.matrix[rows].astype(np.float64), rebuilt.matrix[rows].astype(np.float64)
        cosine += float(row_cosines(x, y).sum())
        squares += float(((x - y) ** 2).sum())
    return {"cosine": cosine / max(1, len(raw)), "mse": squares / max(1, raw.matrix.size)}
