"""Encoders that score bits by one matrix product: codes that do not depend on the batch size.

A matrix library sums a product in an order that depends on the number of rows, on its threads and
on the processor. Scores then differ in their last digits, and a score next to zero may change its
sign: of 22,528,000 bits of GloVe, one did between blocks of 1 row and of 2,048. So doubtful bits
(`rounding`) are computed again, exactly: the code of a vector is a function of the vector and the
weights alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import blocks
from embits.bits import packed_width
from embits.coders.base import Coder
from embits.coders.rounding import product_errors


class LinearlyEncoded(Coder):
    """A coder whose scores are `rows @ weights.T`."""

    @abstractmethod
    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Rows (n, k), each made of its vector alone, and weights (n_bits, k)."""

    def project(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of shape (n, n_bits): the product of the two factors."""
        rows, weights = self.factors(X)
        with np.errstate(over="ignore", invalid="ignore"):  # those who use the scores check them
            scores: NDArray[np.float32] = rows @ weights.T
        return scores

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes: a bit is 1 where its score, without rounding, is 0 or more."""
        return pack_signs(*self.factors(X))


def pack_signs(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The signs of `rows @ weights.T` as if it were computed without rounding, packed.

    Args:
        rows: Shape (n, k).
        weights: Shape (n_bits, k).

    Returns:
        Shape (n, ceil(n_bits / 8)): a bit is 1 where the exact product is 0 or more.

    Example:
        >>> rows, weights = np.float32([[1, 1e-8, -1]]), np.float32([[1, 1, 1], [1, -1, 1]])
        >>> np.unpackbits(pack_signs(rows, weights), axis=1, count=2)
        array([[1, 0]], dtype=uint8)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # scores of such rows are doubtful
        scores = np.ascontiguousarray(rows @ weights.T)
    errors = product_errors(rows, weights)
    codes = np.empty((len(rows), packed_width(len(weights))), dtype=np.uint8)
    doubtful = np.empty_like(codes)
    if _core.pack_signs(scores, errors, codes, doubtful):
        places = np.flatnonzero(doubtful.ravel())
        byte, bit = np.nonzero(np.unpackbits(doubtful.ravel()[places, None], axis=1))
        line, column = np.divmod(places[byte], codes.shape[1])
        column = 8 * column + bit
        signs = _exact_signs(rows, line, weights, column)
        wrong = np.where(signs != (scores[line, column] >= 0), 128 >> bit, 0).astype(np.uint8)
        np.bitwise_xor.at(codes.ravel(), places[byte], wrong)
    return codes


def _exact_signs(
    rows: NDArray[np.float32],
    line: NDArray[np.int64],
    weights: NDArray[np.float32],
    column: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Where Σ x w is 0 or more, for pairs of a row and a weight vector, exactly."""
    signs = np.empty(len(line), dtype=bool)
    for part in blocks(len(line)):
        x, w = rows[line[part]].astype(np.float64), weights[column[part]].astype(np.float64)
        sums = np.einsum("ij,ij->i", x, w)
        signs[part] = sums >= 0
        # Products of float32 are exact in float64: only sums round (the bound of `product_errors`).
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", w, w))
        unsure = np.flatnonzero(np.abs(sums) <= lengths * (2 * x.shape[1] * 2.0**-53))
        for at in unsure[x[unsure].any(axis=1)]:  # rows of zeros have no sum to round
            signs[part.start + at] = math.fsum(x[at] * w[at]) >= 0
    return signs
