"""The decoder of searched codes, by least squares: x ≈ D b + o with b in {-1, 1}ᵐ.

Vectors are taken as whole numbers, so that all sums over rows are exact and the decoder does not
depend on the number of threads of a matrix library.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import blocks
from embits.bits import unpack

UNIT = 1 << 13  # the length of a vector in whole numbers
BLOCK_ROWS = 1 << 10  # sums of this many whole numbers up to UNIT are exact in float32
RIDGE = 1e-3  # of the number of rows; the offset is not shrunk


class Decoder(NamedTuple):
    """D of shape (bits, columns), o of shape (columns,), and the mean |D b + o|², in float64."""

    D: NDArray[np.float64]
    o: NDArray[np.float64]
    length: float


class Sums(NamedTuple):
    """Sums over rows of bits b and vectors x, exact: of b bᵀ, b xᵀ, b and x, and the rows."""

    bb: NDArray[np.float64]
    bx: NDArray[np.float64]
    b: NDArray[np.float64]
    x: NDArray[np.float64]
    rows: int


def whole_numbers(unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of norm 1, or numbers up to 1, as whole numbers up to UNIT, still float32."""
    whole: NDArray[np.float32] = np.rint(unit * np.float32(UNIT))
    return whole


def signs(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.float32]:
    """Packed codes as a matrix of -1 and 1, shape (n, n_bits)."""
    return 2 * unpack(codes, n_bits) - 1


def least_squares(codes: NDArray[np.uint8], whole: NDArray[np.float32], n_bits: int) -> Decoder:
    """The decoder that rebuilds rows of `whole_numbers` best, in units of the rows before."""
    sums = _sums(codes, whole, n_bits)
    mean_b, mean_x = sums.b / sums.rows, sums.x / sums.rows
    matrix = sums.bb - sums.rows * np.multiply.outer(mean_b, mean_b)
    matrix.flat[:: n_bits + 1] += RIDGE * sums.rows
    D = sums.bx - sums.rows * np.multiply.outer(mean_b, mean_x)
    _core.solve_positive(matrix, D)
    D /= UNIT
    o = mean_x / UNIT - (mean_b[:, None] * D).sum(axis=0)
    # Least squares makes the mean of |y|² that of x · y.
    along = (D * sums.bx).sum() + (o * sums.x).sum()
    return Decoder(D, o, max(float(along) / sums.rows / UNIT, 0.0))


def norm_decoder(codes: NDArray[np.uint8], norms: NDArray[np.float32], n_bits: int) -> Decoder:
    """The decoder of the norms of vectors: one column."""
    largest = float(norms.max())
    D, o, length = least_squares(codes, whole_numbers(norms[:, None] / norms.max()), n_bits)
    return Decoder(D * largest, o * largest, length)


def _sums(codes: NDArray[np.uint8], whole: NDArray[np.float32], n_bits: int) -> Sums:
    columns = whole.shape[1]
    sums = Sums(
        np.zeros((n_bits, n_bits)),
        np.zeros((n_bits, columns)),
        np.zeros(n_bits),
        np.zeros(columns),
        len(whole),
    )
    for rows in blocks(len(whole), BLOCK_ROWS):
        b, x = signs(codes[rows], n_bits), whole[rows]
        sums.bb[:] += b.T @ b
        sums.bx[:] += b.T @ x
        sums.b[:] += b.sum(axis=0)
        sums.x[:] += x.sum(axis=0)
    return sums
