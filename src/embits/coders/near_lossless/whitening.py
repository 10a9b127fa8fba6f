"""Vectors before their neighborhoods are computed: centered, and with a flatter spectrum.

Embeddings share a common part. Word vectors lean to one side, and a few directions hold much
of the variance; those say little about meaning (Mu & Viswanath 2018) and cost bits. So rows of
unit norm are centered, and the variance λ of a principal direction is brought nearer to the
others', to λ^(1-γ):

    x̃ = s A (x/‖x‖ - μ),    A = V diag(λ^(-γ/2)) Vᵀ,    s: so that rows have norm √dims

γ = 0 keeps raw cosines and γ = 1 whitens. All of it is linear: it folds into the code's weights.
The target "similarity" first whitens rows to A (x/‖x‖ - μ) at norm 1, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.coders.backend import product
from embits.coders.near_lossless.encoder import rounded_integers
from embits.coders.near_lossless.sampling import ENOUGH_ROWS
from embits.errors import FormatError

SMALLEST = 1e-3  # of the mean variance: directions under it are noise, not to be blown up further
NO_VARIANCE = 1e-7  # of the largest variance: rounding
SPREADLESS = 1e-10  # mean variance of unit rows under which they are one point up to rounding


class Target(NamedTuple):
    """What codes are trained to keep."""

    flatten: float  # γ of the first weights
    whiten: float  # γ of the rows themselves


TARGETS = {"neighbors": Target(0.25, 0), "similarity": Target(0.5, 0.5)}
PLACES = 20  # binary places of rows and of A in whole numbers
FEW_PLACES = 8  # of directions that training starts from: hardly a last digit is left that counts
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
        mean, variances, axes = _principal_directions(unit)
        if variances.sum() < SPREADLESS:
            # One point: centered it would be rounding noise, and so would its bits.
            return cls(np.zeros(dims), np.eye(dims) * dims**0.5, np.eye(dims))
        gains = _gains(variances, target.flatten)
        matrix = (axes * gains) @ axes.T
        matrix *= (dims / max(float((variances * gains**2).sum()), 1e-12)) ** 0.5
        order = np.argsort(-variances * gains**2, kind="stable")
        return cls(mean, rounded(matrix), rounded(axes[:, order], FEW_PLACES))

    def apply(self, unit: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The given rows of unit norm, shaped: (len(rows), dims)."""
        centered = unit[rows]
        centered -= self.mean.astype(np.float32)  # in the copy: a sample may be a hundred megabytes
        shaped: NDArray[np.float32] = product(centered, self.matrix.astype(np.float32))
        return shaped

    def fold(self, weights: Wide, bias: Wide) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(W, t) on raw vectors, so that W x - t ‖x‖ has the sign of weights x̃ + bias."""
        W = rounded(weights) @ self.matrix  # few enough bits for sums to be exact
        return W.astype(np.float32), ((W * self.mean).sum(axis=1) - bias).astype(np.float32)

    def unfold(self, W: NDArray[np.float32], t: NDArray[np.float32]) -> tuple[Wide, Wide]:
        """The (weights, bias) on shaped rows that fold to (W, t)."""
        wide = W.astype(np.float64)
        return wide @ np.linalg.pinv(self.matrix, rcond=1e-4, hermitian=True), wide @ self.mean - t


# -- rows whitened for good ------------------------------------------------------------------------


def fit(unit: NDArray[np.float32], flatten: float) -> NDArray[np.float32]:
    """μ, then A, of rows of norm 1: shape (dims + 1, dims); no rows if they are one point."""
    mean, variances, axes = _principal_directions(unit)
    if variances.sum() < SPREADLESS:
        return unit[:0]
    gains = _gains(variances, flatten)
    matrix = (axes * (gains / gains.mean())) @ axes.T
    return np.vstack([rounded(mean), rounded(matrix)]).astype(np.float32)


def apply(x: NDArray[np.float32], whitening: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows x, (n, dims), whitened and of norm 1; a row of zeros stays one."""
    mean, matrix = _parts(whitening)
    mean, matrix = np.rint(np.ldexp(mean, PLACES)), rounded_integers(matrix)[0]
    unit = np.empty(x.shape, np.float32)
    for rows in blocks(len(x)):
        wide = np.rint(np.ldexp(_exact_unit(x[rows]), PLACES))
        wide[wide.any(axis=1)] -= mean
        unit[rows] = _exact_unit(wide @ matrix.T)
    return unit


def undo(unit: NDArray[np.float32], whitening: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows of norm 1 that `apply` brings to the given directions."""
    mean, matrix = _parts(whitening)
    try:
        rays = np.linalg.solve(matrix, unit.T.astype(np.float64)).T
    except np.linalg.LinAlgError:
        raise FormatError("damaged: the coder's whitening_ has no inverse") from None
    # The ray from the mean meets the sphere of unit vectors once: |μ + r ray| = 1.
    along, squares = rays @ mean, np.maximum((rays * rays).sum(axis=1), 1e-30)
    root = np.sqrt(np.maximum(along * along + squares * (1 - mean @ mean), 0))
    return np.asarray(mean + rays * ((root - along) / squares)[:, None], np.float32)


def _parts(whitening: NDArray[np.float32]) -> tuple[Wide, Wide]:
    return whitening[0].astype(np.float64), whitening[1:].astype(np.float64)


def _exact_unit(x: NDArray[np.floating]) -> Wide:
    """Rows of norm 1, rounded to PLACES bits of their largest element before."""
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0)
    whole = np.rint(np.ldexp(x.astype(np.float64), PLACES - np.frexp(largest)[1]))
    return np.asarray(whole / np.maximum(np.sqrt((whole * whole).sum(axis=1, keepdims=True)), 1))


def _principal_directions(unit: NDArray[np.float32]) -> tuple[Wide, Wide, Wide]:
    """The mean of rows, their variances, largest first, and the directions: columns."""
    mean = unit.mean(axis=0, dtype=np.float64)
    centered = unit - mean.astype(np.float32)
    gram = np.zeros((unit.shape[1], unit.shape[1]))
    for part in blocks(len(unit)):
        gram += product(centered[part].T, centered[part])
    variances, axes = np.linalg.eigh(gram / len(unit))
    variances, axes = variances[::-1], axes[:, ::-1]
    rank = int((variances > NO_VARIANCE * variances[0]).sum())
    if rank < len(mean) and len(unit) < ENOUGH_ROWS:
        # LAPACK's directions of no variance depend on its threads: these are random.
        random = np.random.default_rng(0).normal(size=(len(mean), len(mean) - rank))
        axes = rounded(np.linalg.qr(np.hstack([rounded(axes[:, :rank]), random]))[0])
    return *_shrunk(mean, variances, len(unit)), axes


def _shrunk(mean: Wide, variances: Wide, n: int) -> tuple[Wide, Wide]:
    """The mean and variances of all rows as guessed from n: fewer than ENOUGH_ROWS say less.

    Chance leaves the mean (James & Stein 1961), and variances are pulled to their average.
    """
    doubt, dims = 1 - min(n, ENOUGH_ROWS) / ENOUGH_ROWS, len(mean)
    chance = variances.sum() / max(n - 1, 1) / max(float(mean @ mean), 1e-12)
    share = doubt * dims / (dims + n)
    return mean * (1 - doubt * min(chance, 1)), variances + share * (variances.mean() - variances)


def _gains(variances: Wide, flatten: float) -> Wide:
    """Factors that bring variances λ to λ^(1-γ)."""
    return np.asarray(np.maximum(variances, SMALLEST * variances.mean()) ** (-flatten / 2))


def rounded(matrix: Wide, places: int = PLACES) -> Wide:
    """Round to so many bits of the largest element: LAPACK's last digits depend on threads."""
    places -= int(np.frexp(np.abs(matrix).max(initial=0))[1])
    whole: Wide = np.ldexp(np.rint(np.ldexp(matrix, places)), -places)
    return whole
