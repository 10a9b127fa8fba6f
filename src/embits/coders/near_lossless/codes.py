"""What a fitted NearLossless does with vectors and codes: encode, weigh queries, decode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, namespace
from embits.bits import unpack
from embits.coders.checks import too_large
from embits.coders.linear_encoder import LinearlyEncoded
from embits.coders.near_lossless.encoder import Encoder
from embits.errors import FormatError

TINY = 1e-30  # the norm of a row of zeros
SHORT = 1e-12  # squares of the values of shorter rows may underflow
SCALE = 2.0**100  # brings short rows to where their squares do not


class SearchedCodes(LinearlyEncoded):
    """Codes by thresholds W x - t ‖x‖, then by search; the learned arrays are NearLossless's."""

    W_: NDArray[np.float32]
    t_: NDArray[np.float32]
    decoder_: NDArray[np.float32]
    offset_: NDArray[np.float32]
    search_: NDArray[np.float64]

    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors with their norms, and W with -t: scores are W x - t ‖x‖."""
        # The norm rides along as one more dimension: a pass over the scores costs as much as
        # an eighth of the product at 300 dimensions.
        xp = namespace(X)
        X, norms = scaled_rows(X)
        rows = xp.concat([X, norms[:, None]], axis=1)
        return rows, xp.concat([self.W_, -self.t_[:, None]], axis=1)

    @property
    def is_threshold(self) -> bool:
        """Whether a code is the sign of `project`: bits are not searched."""
        return self.search_.size == 0

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes: thresholds, then the flips that lower the error of the rebuilt vector."""
        if self.is_threshold:
            return super().encode_rows(X)
        return self._encoder().encode(scaled_rows(X)[0])

    def _encoder(self) -> Encoder:
        if "_rounded" not in vars(self):
            if self.search_.shape != (6,) or not 0 < self.search_[0] < 1e6 > self.search_[1] >= 0:
                raise FormatError("damaged: the coder's search_ holds numbers that no fit gives")
            direction = self.decoder_[:, :-1], self.offset_[:-1]
            self._rounded = Encoder.of(self.W_, self.t_, *direction, *self.search_[:2].tolist())
        return self._rounded

    def query_weights(
        self, X: NDArray[np.float32], *, rebuilt: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights of bits for float queries: x · (D b + o), with a share of W x · b.

        Rebuilt vectors have a share of their own.
        """
        if self.is_threshold:
            return super().query_weights(X)
        unit = unit_of(X)
        D = self.decoder_[:, :-1] / 2
        shares = self.search_[4:] if rebuilt else self.search_[2:4]
        of_decoder, of_scores = (np.float32(share) for share in shares)
        weights = unit @ (of_decoder * D + of_scores * self.W_).T
        return weights, of_decoder * (unit @ (self.offset_[:-1] + D.sum(axis=0)))

    def state(self) -> dict[str, NDArray[Any]]:
        """The learned arrays by name; without `search` where bits are not searched."""
        state = super().state()
        if state and self.is_threshold:
            del state["search"]
        return state

    @classmethod
    def from_state(
        cls, params: Mapping[str, Any], state: Mapping[str, NDArray[Any]], dims: int, n_bits: int
    ) -> Self:
        """The fitted coder; files of version 0.1 have no `search`, and bits by thresholds."""
        return super().from_state(params, {"search": np.zeros(0), **state}, dims, n_bits)

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """The direction D b + o at the length that errs least, shape (n, dims)."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        for rows in blocks(len(codes)):
            decoded = unpack(codes[rows], self.n_bits_) @ self.decoder_ + self.offset_
            # In float64: weights of a file may be large enough for their squares to leave float32.
            norms = np.linalg.norm(decoded[:, :-1].astype(np.float64), axis=1, keepdims=True)
            lengths = np.maximum(decoded[:, -1:], 0) / np.maximum(norms, 1e-30)
            np.multiply(decoded[:, :-1], lengths, out=vectors[rows], casting="same_kind")
        return vectors


def norms_of(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Norms of rows; a row of zeros has a tiny one."""
    rows, norms = scaled_rows(x)
    return norms if rows is x else _not_zero(np.where(_lengths(x) < SHORT, norms / SCALE, norms))


def scaled_rows(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rows of the same directions whose squares do not underflow, and their norms.

    Short rows are multiplied by a power of two, which rounds nothing; the others stay as they are.
    A row of zeros has a tiny norm, so that it has a direction to be coded by.
    """
    xp = namespace(x)
    norms = _lengths(x)
    is_short = norms < SHORT
    if xp.any(is_short):
        ones = xp.ones_like(norms)
        x = x * xp.where(is_short, SCALE * ones, ones)[:, None]
        norms = _lengths(x)
    return x, _not_zero(norms)


def unit_of(x: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, norms = scaled_rows(x)
    return rows / norms[:, None]


def _lengths(x: NDArray[np.float32]) -> NDArray[np.float32]:
    xp = namespace(x)
    # NumPy's vector_norm makes a copy of all the squares first.
    norms = xp.sqrt(np.einsum("ij,ij->i", x, x)) if xp is np else xp.linalg.vector_norm(x, axis=1)
    if not xp.all(xp.isfinite(norms)):
        raise too_large()
    return norms  # type: ignore[no-any-return]


def _not_zero(norms: NDArray[np.float32]) -> NDArray[np.float32]:
    xp = namespace(norms)
    floored: NDArray[np.float32] = xp.where(norms > 0, norms, xp.full_like(norms, TINY))
    return floored
