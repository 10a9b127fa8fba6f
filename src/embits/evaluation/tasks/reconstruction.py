"""Reconstruction error of the float vectors rebuilt from codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, row_cosines
from embits.errors import InputError
from embits.evaluation.resampling import Samples
from embits.evaluation.spaces import FloatSpace


def evaluate_reconstruction(
    raw: FloatSpace,
    rebuilt: FloatSpace,
    rows: NDArray[np.int64] | None = None,
    samples: Samples | None = None,
) -> dict[str, Any]:
    """The mean cosine of raw and rebuilt rows, and the mean squared error per value.

    Args:
        raw: The float vectors.
        rebuilt: The vectors rebuilt from their codes.
        rows: The rows to measure; None measures all.
        samples: Receives the values of each row.

    Returns:
        `{"cosine", "mse"}`.
    """
    if raw.matrix.shape != rebuilt.matrix.shape:
        raise InputError(
            f"raw vectors of shape {raw.matrix.shape}, rebuilt of {rebuilt.matrix.shape}"
        )
    rows = np.arange(len(raw)) if rows is None else rows
    cosines, errors = np.empty(len(rows)), np.empty(len(rows))
    for block in blocks(len(rows)):
        x, y = (space.matrix[rows[block]].astype(np.float64) for space in (raw, rebuilt))
        cosines[block] = row_cosines(x, y)
        errors[block] = ((x - y) ** 2).mean(axis=1)
    if not len(rows):
        return {"cosine": 0.0, "mse": 0.0}
    if samples is not None:
        samples.add_mean("reconstruction.cosine", cosines, "reconstruction")
        samples.add_mean("reconstruction.mse", errors, "reconstruction")
    return {"cosine": float(cosines.mean()), "mse": float(errors.mean())}
