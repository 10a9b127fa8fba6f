"""How far codes are searched, and what a float query weighs, chosen on held-out rows.

encoder.py gives the error that a search makes small. Its linear term is

    W x - t = (κ D x - D o) + ρ / 2m (z(x) / σ)

where z are the scores of the trained thresholds and σ their standard deviation. A small κ and ρ
rebuild vectors best, which serves float queries and decoded queries. A large one keeps the codes
of near vectors alike, which serves the Hamming distance. SETTINGS are tried on held-out rows. The
best mean recall of the three ways to ask wins among the settings whose Hamming recall is not
below that of the thresholds; where there is none, bits are not searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.coders.near_lossless.encoder import Encoder
from embits.coders.near_lossless.held_out import HeldOut
from embits.coders.near_lossless.rebuilding import (
    Decoder,
    least_squares,
    signs,
    whole_numbers,
)

Floats = NDArray[np.float64]


class Setting(NamedTuple):
    """κ and ρ."""

    along: float
    hold: float


FIRST = Setting(1.2, 0.3)  # the one that the decoder is solved with
SETTINGS = (
    Setting(1.0, 0.3),
    FIRST,
    Setting(1.4, 0.4),
    Setting(1.6, 0.5),
    Setting(1.6, 1.0),
    Setting(2.0, 0.5),
    Setting(1.0, 3.0),
    Setting(1.0, 10.0),
)
PULL = 2.0  # μ
ROUNDS = (8192, 8192, 32_768, 32_768, 32_768)  # rows of each round of search and least squares
MAX_ROWS = max(ROUNDS)
SPREAD_ROWS = 2048  # rows that σ is taken from
MIXES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # share of the thresholds' scores in a float query


@dataclass(frozen=True)
class Thresholds:
    """Scores of trained thresholds over their standard deviation, W x - t for x of norm 1."""

    W: Floats
    t: Floats

    @classmethod
    def scaled(
        cls, W: NDArray[np.float32], t: NDArray[np.float32], unit: NDArray[np.float32]
    ) -> Thresholds:
        """Divide by the standard deviation over the first rows of a sample."""
        # einsum adds in one order; a matrix library's depends on its threads.
        scores = np.einsum("ij,kj->ik", unit[:SPREAD_ROWS].astype(np.float64), W.astype(np.float64))
        spread = scores.std(axis=0) + 1e-12
        return cls(W / spread[:, None], t / spread)


@dataclass(frozen=True)
class Searched:
    """A decoder, and the encoder that its codes are searched with.

    Attributes:
        W: Linear term of the error, shape (bits, dims), float32.
        t: Shape (bits,), float32.
        decoder: D, o and c of the direction.
        setting: κ and ρ.
    """

    W: NDArray[np.float32]
    t: NDArray[np.float32]
    decoder: Decoder
    setting: Setting

    @classmethod
    def at(cls, setting: Setting, decoder: Decoder, thresholds: Thresholds) -> Searched:
        """The linear term of a setting."""
        D, o, _ = decoder
        share = setting.hold / 2 / len(D)
        W = setting.along * D + share * thresholds.W
        t = (D * o).sum(axis=1) + share * thresholds.t
        return cls(W.astype(np.float32), t.astype(np.float32), decoder, setting)

    def weights(self, thresholds: Thresholds, mix: float) -> tuple[float, float]:
        """The shares of D and of W in the weights of a float query.

        `mix` is the share of the thresholds, where both are of one size; they are (W - κ D) less
        a factor.
        """
        D = self.decoder.D
        of_decoder = (1 - mix) / _size(D)
        of_thresholds = mix / _size(thresholds.W) * 2 * len(D) / self.setting.hold
        return of_decoder - of_thresholds * self.setting.along, of_thresholds

    def encode(self, unit: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes of unit rows."""
        D, o, length = self.decoder
        encoder = Encoder.of(self.W, self.t, 2 * D, o - D.sum(axis=0), length, PULL)
        return encoder.encode(unit)


def alternate(
    unit: NDArray[np.float32], thresholds: Thresholds, codes: NDArray[np.uint8]
) -> Decoder:
    """Search codes and solve for their decoder in turns, from codes of the first rows."""
    whole = whole_numbers(unit)
    decoder = least_squares(codes, whole[: len(codes)], len(thresholds.t))
    for rows in ROUNDS:
        codes = Searched.at(FIRST, decoder, thresholds).encode(unit[:rows])
        decoder = least_squares(codes, whole[:rows], len(thresholds.t))
    return decoder


def search(
    unit: NDArray[np.float32],
    held_out: HeldOut,
    thresholds: Thresholds,
    codes: NDArray[np.uint8],
    held_out_codes: NDArray[np.uint8],
) -> tuple[Searched, tuple[float, float]] | None:
    """The best setting, and the shares of D and W in the weights of a float query.

    Args:
        unit: Rows of norm 1 to learn from.
        held_out: Rows to choose by.
        thresholds: Trained thresholds.
        codes: Codes of the first rows of `unit`, by thresholds alone.
        held_out_codes: The same of the held-out rows.

    Returns:
        None where no search keeps the Hamming recall of the thresholds.
    """
    decoder = alternate(unit, thresholds, codes)
    least = held_out.ask(held_out_codes, decoder, thresholds.W).hamming
    best, best_recall = None, 0.0
    for setting in SETTINGS:
        tried = Searched.at(setting, decoder, thresholds)
        asked = held_out.ask(tried.encode(held_out.unit), decoder, decoder.D)
        if asked.hamming >= least and asked.mean > best_recall:
            best, best_recall = tried, asked.mean
    return None if best is None else (best, _query_shares(best, held_out, thresholds))


def _query_shares(
    searched: Searched, held_out: HeldOut, thresholds: Thresholds
) -> tuple[float, float]:
    """Weights of a float query with the best held-out recall, at the scale of cosines."""
    D, o, _ = searched.decoder
    b = signs(searched.encode(held_out.unit), len(D))
    weights = [searched.weights(thresholds, mix) for mix in MIXES]
    recalls = [held_out.query_recall(b, x * D + y * searched.W) for x, y in weights]
    of_decoder, of_scores = weights[int(np.argmax(recalls))]
    # A vector against its own code scores what the rebuilt vector has as its cosine.
    unit, bits = held_out.unit[:SPREAD_ROWS].astype(np.float64), b[:SPREAD_ROWS].astype(np.float64)
    rebuilt = np.einsum("ij,jk->ik", bits, D) + o
    along = np.einsum("ij,ij->i", unit, rebuilt)
    cosines = along / np.maximum(np.sqrt((rebuilt * rebuilt).sum(axis=1)), 1e-12)
    scores = np.einsum(
        "ij,ij->i", unit, np.einsum("ij,jk->ik", bits, searched.W.astype(np.float64))
    )
    own = float((of_decoder * along + of_scores * scores).mean())
    scale = float(cosines.mean()) / own if own > 0 else 1.0
    return of_decoder * scale, of_scores * scale


def _size(weights: Floats) -> float:
    return float(np.sqrt((weights * weights).sum())) + 1e-12
