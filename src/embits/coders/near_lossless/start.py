"""First weights of a training: principal directions, rotated close to signs.

This is iterative quantization (Gong & Lazebnik 2011) on shaped rows, with steps that are cheap
and do not depend on threads. Training from there needs a third of the steps that it needs from
random rotations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embits.coders.products import product

ROWS = 8192  # of the sample, that rotations are learned on
STEPS = 10  # of a rotation
STRIDE = 3.0  # how far a step goes; endless would be iterative quantization itself
ROOT_STEPS = 14  # of Newton and Schulz's iteration

Matrix = NDArray[np.float32]


def first_weights(
    x: Matrix, axes: NDArray[np.float64], n_bits: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Weights of shape (n_bits, dims) for shaped rows; of many rows, ROWS of them count.

    Every bit carries the same share of the variance. Bits beyond the dimensions come from
    further rotations of the whole space.

    Args:
        x: Shaped rows, (n, dims).
        axes: Their principal directions, most variance first, (dims, dims).
        n_bits: Rows of the result.
        rng: Draws the rotations to begin with.
    """
    x = x[:: -(-len(x) // ROWS)]
    weights: list[Matrix] = []
    while (left := n_bits - sum(map(len, weights))) > 0:
        kept = (axes if weights else axes[:, :left]).astype(np.float32)
        rotation = closest_to_signs(product(x, kept), rng)
        weights.append(product(kept, rotation).T[:left])
    return np.concatenate(weights).astype(np.float64)


def closest_to_signs(z: Matrix, rng: np.random.Generator) -> Matrix:
    """A rotation R of shape (width, width) that makes |sign(z R) - z R|² small."""
    width = z.shape[1]
    rotation = np.linalg.qr(rng.normal(size=(width, width)))[0].astype(np.float32)
    for _ in range(STEPS):
        signs = np.where(product(z, rotation) >= 0, np.float32(1), np.float32(-1))
        towards = product(z.T, signs)
        along = float((towards * rotation).sum())
        if along <= 0:  # rows of zeros
            break
        rotation = orthogonal(rotation + towards * np.float32(STRIDE * width / along))
    return rotation


def orthogonal(matrix: Matrix) -> Matrix:
    """An orthogonal matrix close to a square one, by Newton and Schulz's iteration."""
    size = np.abs(matrix)
    # No singular value is larger than this.
    largest = np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max())
    matrix = matrix / np.maximum(largest, np.float32(1e-30))
    for _ in range(ROOT_STEPS):
        matrix = np.float32(1.5) * matrix - np.float32(0.5) * product(
            matrix, product(matrix.T, matrix)
        )
    return matrix
