"""Coders that score bits by one matrix product, and coders that decode by one.

A matrix library sums a product in an order that depends on the number of rows, on its threads and
on the processor, and a score next to zero may change its sign: of 22,528,000 bits of GloVe, one did
between blocks of 1 row and of 2,048. So a score that is no further from zero than its possible
error is computed again, exactly: a code is a function of the vector and the weights alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import as_float32, blocks, packed_width, unpack
from embits.checks import check_size, warn_if_collapsed
from embits.coders.base import Coder, Shapes

SAMPLE_ROWS = 100_000  # rows a decoder is fitted on: far above any usual number of bits
DECODER: Shapes = {"decoder": ("bits", "dims"), "offset": ("dims",)}  # learned by all of these
Floats: TypeAlias = NDArray[np.float32]
_TINY = np.finfo(np.float32).tiny


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


class LinearlyDecoded(Coder):
    """A coder whose `inverse_transform` is the least-squares map from bits to floats, x ≈ D b + o.

    Attributes:
        decoder_: D, shape (n_bits, dims), float32.
        offset_: o, shape (dims,), float32.
    """

    decoder_: NDArray[np.float32]
    offset_: NDArray[np.float32]

    def rows_for_fit(self, n: int, dims: int) -> NDArray[np.int64] | None:
        """Those that the decoder is fitted on, where the encoder learns from no others."""
        return np.arange(0, n, max(1, -(-n // SAMPLE_ROWS)), dtype=np.int64)

    def _with_decoder(self, X: NDArray[Any]) -> Self:
        """The end of a fit: solve for D and o on rows of `X` spread evenly, and check the codes."""
        sample = X[:: max(1, -(-len(X) // SAMPLE_ROWS))]
        size = self.n_bits_ + 1
        gram = np.zeros((size, size))
        target = np.zeros((size, self.n_features_in_))
        for rows in blocks(len(sample)):
            x = as_float32(sample[rows])
            check_size(x)
            b = np.ones((len(x), size), dtype=np.float32)  # the last column of ones is for o
            b[:, :-1] = self.project(x) >= 0
            gram += b.T @ b
            target += b.T @ x
        # A touch of ridge: bits that never vary, or fewer rows than bits, leave it singular.
        gram.flat[:: size + 1] += 1e-6 * len(sample) + 1e-6
        solution = np.linalg.solve(gram, target).astype(np.float32)
        self.decoder_, self.offset_ = solution[:-1].copy(), solution[-1].copy()
        warn_if_collapsed(self, X)
        return self

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """D b + o for each packed code, shape (n, dims)."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        for rows in blocks(len(codes)):
            np.matmul(unpack(codes[rows], self.n_bits_), self.decoder_, out=vectors[rows])
            vectors[rows] += self.offset_
        return vectors


def pack_signs(rows: Floats, weights: Floats) -> NDArray[np.uint8]:
    """The signs of `rows @ weights.T` as if it were computed without rounding, packed.

    A bit is 1 where the exact product of (n, k) and (n_bits, k) is 0 or more.

    >>> rows, weights = np.float32([[1, 1e-8, -1]]), np.float32([[1, 1, 1], [1, -1, 1]])
    >>> np.unpackbits(pack_signs(rows, weights), axis=1, count=2)
    array([[1, 0]], dtype=uint8)
    """
    rows, weights = as_float32(rows), as_float32(weights)  # files may hold others
    with np.errstate(over="ignore", invalid="ignore"):  # scores of such rows are doubtful
        scores = np.ascontiguousarray(rows @ weights.T)
    codes = np.empty((len(rows), packed_width(len(weights))), dtype=np.uint8)
    doubtful = np.empty_like(codes)
    if _core.pack_signs(scores, _product_errors(rows, weights), codes, doubtful):
        places = np.flatnonzero(doubtful.ravel())
        byte, bit = np.nonzero(np.unpackbits(doubtful.ravel()[places, None], axis=1))
        line, column = np.divmod(places[byte], codes.shape[1])
        column = 8 * column + bit
        signs = _exact_signs(rows, line, weights, column)
        wrong = np.where(signs != (scores[line, column] >= 0), 128 >> bit, 0).astype(np.uint8)
        np.bitwise_xor.at(codes.ravel(), places[byte], wrong)
    return codes


def _product_errors(rows: Floats, weights: Floats) -> Floats:
    """A bound on the error of `rows @ weights.T` in float32, for each row: shape (n,).

    |error| ≤ k u Σ|x||w| ≤ k u ‖x‖ ‖w‖ with u = 2⁻²⁴, in whatever order the k products are summed
    (Higham, 2002, section 3.1), and k times the smallest float where they underflow; doubled for
    the rounding of this bound itself.
    """
    k = rows.shape[1]
    with np.errstate(over="ignore"):
        lengths = _lengths(rows)
        longest = _lengths(weights).max(initial=0)
        errors: Floats = lengths * (longest * np.float32(2 * k * 2.0**-24))
        errors += 2 * k * _TINY
    errors[np.isinf(lengths)] = np.inf  # beyond float32, every score is doubtful
    return errors


def _lengths(rows: Floats) -> Floats:
    """Lengths of rows, not too short even where squares underflow."""
    squares: Floats = np.einsum("ij,ij->i", rows, rows)
    squares += rows.shape[1] * _TINY
    return np.sqrt(squares)


def _exact_signs(
    rows: Floats, line: NDArray[np.int64], weights: Floats, column: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Where Σ x w is 0 or more, for pairs of a row and a weight vector, exactly."""
    signs = np.empty(len(line), dtype=bool)
    for part in blocks(len(line)):
        x, w = rows[line[part]].astype(np.float64), weights[column[part]].astype(np.float64)
        sums = np.einsum("ij,ij->i", x, w)
        signs[part] = sums >= 0
        # Products of float32 are exact in float64: only sums round (the bound as above).
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", w, w))
        unsure = np.flatnonzero(np.abs(sums) <= lengths * (2 * x.shape[1] * 2.0**-53))
        for at in unsure[x[unsure].any(axis=1)]:  # rows of zeros have no sum to round
            signs[part.start + at] = math.fsum(x[at] * w[at]) >= 0
    return signs
