"""How far codes are searched, and what a float query weighs, chosen on held-out rows.

encoder.py gives the error that a search makes small. Its linear term is

    W x - t = (κ D x - D o) + ρ / 2m (z(x) / σ)

where z are the scores of the trained thresholds and σ their standard deviation. A small κ and ρ
rebuild vectors best, which serves float queries and decoded queries. A large one keeps the codes
of near vectors alike, which serves the Hamming distance. SETTINGS are tried on held-out rows. The
best mean recall of the three ways to ask wins, among the settings that lose to the thresholds by
none of the three; where there is none, bits are not searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.coders.linear_encoder import pack_signs
from embits.coders.near_lossless.encoder import Encoder
from embits.coders.near_lossless.held_out import HeldOut
from embits.coders.near_lossless.rebuilding import (
    Decoder,
    least_squares,
    signs,
    whole_numbers,
)
from embits.coders.near_lossless.sampling import HELD_OUT

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
TOLERANCE = 0.008  # of a recall: about its standard error on the held-out queries
MIN_ROWS = 200  # fewer leave no held-out rows to choose a search by
HELD_OUT_AMONG = 4096  # rows that held-out queries are looked up among
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

    def encode(self, unit: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes of unit rows."""
        rows = np.concatenate([unit, np.ones((len(unit), 1), np.float32)], axis=1)
        return pack_signs(rows, np.c_[self.W, -self.t].astype(np.float32))


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

    def mixes(self, thresholds: Thresholds) -> list[Floats]:
        """Weights of float queries to choose from: D with shares of the thresholds."""
        shares = [self.weights(thresholds, mix) for mix in MIXES]
        return [x * self.decoder.D + y * self.W for x, y in shares]

    def encode(self, unit: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes of unit rows."""
        D, o, length = self.decoder
        encoder = Encoder.of(self.W, self.t, 2 * D, o - D.sum(axis=0), length, PULL)
        return encoder.encode(unit)


def alternate(unit: NDArray[np.float32], thresholds: Thresholds) -> Decoder:
    """Search codes and solve for their decoder in turns."""
    whole = whole_numbers(unit)
    codes = thresholds.encode(unit[: ROUNDS[0]])
    decoder = least_squares(codes, whole[: len(codes)], len(thresholds.t))
    for rows in ROUNDS:
        codes = Searched.at(FIRST, decoder, thresholds).encode(unit[:rows])
        decoder = least_squares(codes, whole[:rows], len(thresholds.t))
    return decoder


class Found(NamedTuple):
    """A search, and the shares of D and W in the weights of float queries and decoded ones."""

    searched: Searched
    shares: tuple[float, ...]


def search(
    unit: NDArray[np.float32],
    W: NDArray[np.float32],
    t: NDArray[np.float32],
    rng: np.random.Generator,
) -> Found | None:
    """The best setting for rows of norm 1 and trained thresholds W x - t.

    Returns:
        None where no search keeps the Hamming recall of the thresholds, or rows are too few.
    """
    if len(unit) < MIN_ROWS:
        return None
    order = rng.permutation(len(unit))
    queries = min(HELD_OUT, len(unit) // 10)
    held_out = HeldOut(unit[order[: queries + HELD_OUT_AMONG]], queries)
    train = unit[order[queries : queries + MAX_ROWS]]
    thresholds = Thresholds.scaled(W, t, train)
    decoder = alternate(train, thresholds)
    best = _best(held_out, decoder, thresholds)
    return None if best is None else Found(best, _query_shares(best, held_out, thresholds))


def _best(held_out: HeldOut, decoder: Decoder, thresholds: Thresholds) -> Searched | None:
    """The setting with the best mean recall, among those that lose by no way to ask."""
    least = held_out.ask(thresholds.encode(held_out.unit), decoder, [thresholds.W])
    tried = [Searched.at(setting, decoder, thresholds) for setting in SETTINGS]
    asked = [held_out.ask(s.encode(held_out.unit), decoder, s.mixes(thresholds)) for s in tried]
    kept = [
        i
        for i, recalls in enumerate(asked)
        if all(recall >= low - TOLERANCE for recall, low in zip(recalls, least, strict=True))
    ]
    return tried[max(kept, key=lambda i: asked[i].mean)] if kept else None


def _query_shares(
    searched: Searched, held_out: HeldOut, thresholds: Thresholds
) -> tuple[float, ...]:
    """Shares of D and W, for float queries and for decoded ones, at the scale of cosines.

    Those with the best held-out recall: a vector against its own code scores the cosine of its
    rebuilt vector, and a rebuilt vector scores 1.
    """
    decoder = searched.decoder
    b = signs(searched.encode(held_out.unit), len(decoder.D))
    shares = [searched.weights(thresholds, mix) for mix in MIXES]
    weights = searched.mixes(thresholds)
    by_query = [held_out.query_recall(b, each) for each in weights]
    by_code = [held_out.decoded_recall(b, decoder, each) for each in weights]
    unit, bits = held_out.unit[:SPREAD_ROWS].astype(np.float64), b[:SPREAD_ROWS].astype(np.float64)
    rebuilt = unit_rows(np.einsum("ij,jk->ik", bits, decoder.D) + decoder.o)
    query, code = shares[int(np.argmax(by_query))], shares[int(np.argmax(by_code))]
    cosine = float((unit * rebuilt).sum(axis=1).mean())
    of_query = cosine / _own_score(searched, query, unit, bits)
    of_code = 1 / _own_score(searched, code, rebuilt, bits)
    return query[0] * of_query, query[1] * of_query, code[0] * of_code, code[1] * of_code


def _own_score(
    searched: Searched, shares: tuple[float, float], unit: Floats, bits: Floats
) -> float:
    """The mean score of vectors against their own bits."""
    D, o, _ = searched.decoder
    weights = shares[0] * D + shares[1] * searched.W
    scores = (unit * (np.einsum("ij,jk->ik", bits, weights) + shares[0] * o)).sum(axis=1)
    return max(float(scores.mean()), 1e-6)


def _size(weights: Floats) -> float:
    return float(np.sqrt((weights * weights).sum())) + 1e-12
