"""Vectors before their neighborhoods are computed: centered, and with a flatter spectrum.

Embeddings share a common part. Word vectors lean to one side, and a few directions hold much
of the variance; those say little about meaning (Mu & Viswanath 2018) and cost bits. So rows of
unit norm are centered, and the variance λ of a principal direction is brought nearer to the
others', to λ^(1-γ):

    x̃ = s A (x/‖x‖ - μ),    A = V diag(λ^(-γ/2)) Vᵀ,    s: so that rows have norm √dims

γ = 0 keeps raw cosines and γ = 1 whitens. All of it is linear: it folds into the code's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.coders.backend import product

SMALLEST = 1e-3  # of the mean variance: directions under it are noise, not to be blown up further
SPREADLESS = 1e-10  # mean variance of unit rows under which they are one point up to rounding


class Target(NamedTuple):
    """What codes are trained to keep."""

    flatten: float  # γ
    drop: int  # how many of the first directions are removed
    searched: bool  # a search for the best rebuilt vector would bring a removed direction back


TARGETS = {"neighbors": Target(0.25, 0, True), "similarity": Target(0.5, 1, False)}
Wide = NDArray[np.float64]


@dataclass(frozen=True)
class Shaping:
    """Center and linear map of the rows."""

    mean: Wide  # μ, (dims,)
    matrix: Wide  # s A, symmetric, (dims, dims)
    axes: Wide  # principal directions of the shaped rows, most variance first

    @classmethod
    def fit(cls, unit: NDArray[np.float32], target: Target) -> Shaping:
        """Learn from rows of norm 1 (or 0), shape (n, dims)."""
        dims = unit.shape[1]
        mean = unit.mean(axis=0, dtype=np.float64)
        centered = unit - mean.astype(np.float32)
        gram = np.zeros((dims, dims))
        for part in blocks(len(unit)):
            gram += product(centered[part].T, centered[part])
        variances, axes = np.linalg.eigh(gram / len(unit))
        variances, axes = variances[::-1], axes[:, ::-1]
        average = float(variances.mean())
        if average * dims < SPREADLESS:
            # One point: centered it would be rounding noise, and so would its bits.
            return cls(np.zeros(dims), np.eye(dims) * dims**0.5, np.eye(dims))
        gains = np.maximum(variances, SMALLEST * average) ** (-target.flatten / 2)
        gains[: min(target.drop, dims - 1)] = 0
        matrix = (axes * gains) @ axes.T
        matrix *= (dims / max(float((variances * gains**2).sum()), 1e-12)) ** 0.5
        order = np.argsort(-variances * gains**2, kind="stable")
        return cls(mean, _rounded(matrix), axes[:, order])

    def apply(self, unit: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The given rows of unit norm, shaped: (len(rows), dims)."""
        centered = unit[rows]
        centered -= self.mean.astype(np.float32)  # in the copy: a sample may be a hundred megabytes
        shaped: NDArray[np.float32] = product(centered, self.matrix.astype(np.float32))
        return shaped

    def fold(self, weights: Wide, bias: Wide) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(W, t) on raw vectors, so that W x - t ‖x‖ has the sign of weights x̃ + bias."""
        W = _rounded(weights) @ self.matrix  # few enough bits for sums to be exact
        return W.astype(np.float32), ((W * self.mean).sum(axis=1) - bias).astype(np.float32)

    def unfold(self, W: NDArray[np.float32], t: NDArray[np.float32]) -> tuple[Wide, Wide]:
        """The (weights, bias) on shaped rows that fold to (W, t)."""
        wide = W.astype(np.float64)
        return wide @ np.linalg.pinv(self.matrix, rcond=1e-4, hermitian=True), wide @ self.mean - t


def _rounded(matrix: Wide, bits: int = 20) -> Wide:
    """Round to `bits` bits of the largest element: LAPACK's last digits depend on threads."""
    places = bits - int(np.frexp(np.abs(matrix).max(initial=0))[1])
    rounded: Wide = np.ldexp(np.rint(np.ldexp(matrix, places)), -places)
    return rounded
