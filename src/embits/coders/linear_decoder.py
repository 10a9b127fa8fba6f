"""A decoder in closed form, for coders that have none of their own.

Least squares from bits to floats: x ≈ D b + o. One solve on a sample, and it rebuilds better
than any decoder that is tied to the encoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import as_float32, blocks
from embits.bits import unpack
from embits.coders.base import Coder
from embits.coders.checks import check_size

SAMPLE_ROWS = 100_000  # rows the decoder is fitted on: far above any usual number of bits


def decoder_step(n: int) -> int:
    """Of n rows, the decoder is fitted on every so many."""
    return max(1, -(-n // SAMPLE_ROWS))


class LinearlyDecoded(Coder):
    """A coder whose `inverse_transform` is the least-squares linear map.

    Attributes:
        decoder_: D, shape (n_bits, dims), float32.
        offset_: o, shape (dims,), float32.
    """

    decoder_: NDArray[np.float32]
    offset_: NDArray[np.float32]

    def rows_for_fit(self, n: int, dims: int) -> NDArray[np.int64] | None:
        """Those that the decoder is fitted on, where the encoder learns from no others."""
        return np.arange(0, n, decoder_step(n), dtype=np.int64)

    def _fit_decoder(self, X: NDArray[Any]) -> None:
        """Solve for D and o on rows of `X` spread evenly; the encoder must be ready.

        Raises:
            InputError: The values are too large to be squared.
        """
        sample = X[:: decoder_step(len(X))]
        size = self.n_bits_ + 1
        gram = np.zeros((size, size))
        target = np.zeros((size, self._decoder_targets(as_float32(sample[:1])).shape[1]))
        for rows in blocks(len(sample)):
            x = as_float32(sample[rows])
            check_size(x)
            b = np.ones((len(x), size), dtype=np.float32)  # the last column of ones is for o
            b[:, :-1] = self.project(x) >= 0
            gram += b.T @ b
            target += b.T @ self._decoder_targets(x)
        # A touch of ridge: bits that never vary, or fewer rows than bits, leave it singular.
        gram.flat[:: size + 1] += 1e-6 * len(sample) + 1e-6
        solution = np.linalg.solve(gram, target).astype(np.float32)
        self.decoder_, self.offset_ = solution[:-1].copy(), solution[-1].copy()

    def _decoder_targets(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """What is solved for: the vectors themselves, unless a coder takes another form of them."""
        return x

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """D b + o for each packed code, shape (n, dims)."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        for rows in blocks(len(codes)):
            np.matmul(unpack(codes[rows], self.n_bits_), self.decoder_, out=vectors[rows])
            vectors[rows] += self.offset_
        return vectors
