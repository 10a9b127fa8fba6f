"""How far codes are searched, and what a float query weighs, chosen on held-out queries.

encoder.py gives the error that a search makes small. Its linear term is

    W x - t = (κ D x - D o) + ρ / 2m (z(x) / σ)

where z are the scores of the trained thresholds and σ their standard deviation. A small κ and ρ
rebuild vectors best, which serves float queries and decoded queries. A large one keeps the codes
of near vectors alike, which serves the Hamming distance. PLANS are tried on queries that no
training has seen. The one with the best recall wins, among those that lose to the thresholds by
no way to ask; where there is none, bits are not searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.coders.linear_encoder import pack_signs
from embits.coders.near_lossless.encoder import Encoder
from embits.coders.near_lossless.held_out import Codes, HeldOut, rebuilt
from embits.coders.near_lossless.rebuilding import (
    Decoder,
    least_squares,
    signs,
    whole_numbers,
)
from embits.coders.near_lossless.sampling import Split

Floats = NDArray[np.float64]


class Setting(NamedTuple):
    """κ and ρ."""

    along: float
    hold: float


class Plan(NamedTuple):
    """The setting that a decoder is solved with, and the one that codes are searched with."""

    solve: Setting
    encode: Setting


CLOSE, MIDDLE, STEADY = Setting(1.2, 0.5), Setting(1.6, 1.0), Setting(1.0, 3.0)
PLANS = (
    Plan(CLOSE, CLOSE),
    Plan(MIDDLE, Setting(1.2, 0.3)),
    Plan(MIDDLE, MIDDLE),
    Plan(STEADY, STEADY),
)
NARROW_PLANS = (Plan(STEADY, STEADY),)  # for fewer bits than half the dimensions
PULL = 2.0  # μ
TOLERANCE = 0.008  # of a recall: about its standard error on the held-out queries
MIN_ROWS = 200  # fewer leave no held-out rows to choose a search by
TRY_ROUNDS, TRY_ROWS = 3, 8192  # of search and least squares for a plan
LAST_ROUNDS, MAX_ROWS = 3, 32_768  # ... and for the best one
SPREAD_ROWS = 2048  # rows that σ is taken from
AMONG = 16_384  # rows that held-out queries are looked up among
MIXES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # share of the thresholds' scores in a float query
MIXES_STEP = 2  # plans are compared by each second one


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


class Alternation:
    """Searches codes of rows and solves for their decoder, in turns."""

    def __init__(self, unit: NDArray[np.float32], thresholds: Thresholds) -> None:
        self._unit = unit[:MAX_ROWS]
        self._whole = whole_numbers(self._unit)
        self._thresholds = thresholds
        self._first = self._solve(thresholds.encode(unit[:TRY_ROWS]))

    def run(
        self, setting: Setting, rounds: int, rows: int, decoder: Decoder | None = None
    ) -> Decoder:
        """Some rounds on the first rows, from a decoder or from that of the thresholds."""
        decoder = decoder or self._first
        for _ in range(rounds):
            searched = Searched.at(setting, decoder, self._thresholds)
            decoder = self._solve(searched.encode(self._unit[:rows]))
        return decoder

    def _solve(self, codes: NDArray[np.uint8]) -> Decoder:
        return least_squares(codes, self._whole[: len(codes)], len(self._thresholds.t))


class Found(NamedTuple):
    """A search, and the shares of D and W in the weights of float queries and decoded ones."""

    searched: Searched
    shares: tuple[float, ...]


def search(
    unit: NDArray[np.float32],
    split: Split,
    W: NDArray[np.float32],
    t: NDArray[np.float32],
    rng: np.random.Generator,
) -> Found | None:
    """The best plan for rows of norm 1 and thresholds W x - t, trained on `split.train`.

    Returns:
        None where every plan loses to the thresholds, rows are too few, or those of the fit
        are zero.
    """
    if len(unit) < MIN_ROWS:
        return None
    train = unit[rng.permutation(split.train)[:MAX_ROWS]]
    held_out = HeldOut(unit[split.check[: split.queries]], train[:AMONG])
    thresholds = Thresholds.scaled(W, t, train)
    alternation = Alternation(train, thresholds)
    # Few bits rebuild vectors poorly, whatever the search: there the trained thresholds count.
    plans = NARROW_PLANS if 2 * len(W) < unit.shape[1] else PLANS
    tried = {
        setting: alternation.run(setting, TRY_ROUNDS, TRY_ROWS)
        for setting in dict.fromkeys(plan.solve for plan in plans)
    }
    plan = _best(plans, held_out, tried, thresholds)
    if plan is None:
        return None
    decoder = alternation.run(plan.solve, LAST_ROUNDS, MAX_ROWS, tried[plan.solve])
    if decoder.length == 0:  # the rows are zero, and there is nothing to rebuild
        return None
    best = Searched.at(plan.encode, decoder, thresholds)
    return Found(best, _query_shares(best, held_out, thresholds))


def _best(
    plans: Sequence[Plan],
    held_out: HeldOut,
    decoders: dict[Setting, Decoder],
    thresholds: Thresholds,
) -> Plan | None:
    """The plan with the best recall, among those that lose by no way to ask."""
    codes = _codes(thresholds, held_out)
    least = held_out.ask(codes, decoders[plans[0].solve], [thresholds.W])
    kept: dict[Plan, float] = {}
    for plan in plans:
        searched = Searched.at(plan.encode, decoders[plan.solve], thresholds)
        mixes = searched.mixes(thresholds)[::MIXES_STEP]
        recalls = held_out.ask(_codes(searched, held_out), searched.decoder, mixes)
        if all(now >= low - TOLERANCE for now, low in zip(recalls, least, strict=True)):
            kept[plan] = recalls.score
    return max(kept, key=lambda plan: kept[plan]) if kept else None


def _query_shares(
    searched: Searched, held_out: HeldOut, thresholds: Thresholds
) -> tuple[float, ...]:
    """Shares of D and W, for float queries and for decoded ones, at the scale of cosines.

    Those with the best held-out recall: a vector against its own code scores the cosine of its
    rebuilt vector, and a rebuilt vector scores 1.
    """
    decoder = searched.decoder
    codes = _codes(searched, held_out)
    shares = [searched.weights(thresholds, mix) for mix in MIXES]
    weights = searched.mixes(thresholds)
    by_query = [held_out.query_recall(codes, each) for each in weights]
    by_code = [held_out.decoded_recall(codes, decoder, each) for each in weights]
    unit, of_rows = held_out.rows[:SPREAD_ROWS].astype(np.float64), codes.rows[:SPREAD_ROWS]
    bits = signs(of_rows, len(decoder.D)).astype(np.float64)
    again = unit_rows(rebuilt(of_rows, decoder).astype(np.float64))
    query, code = shares[int(np.argmax(by_query))], shares[int(np.argmax(by_code))]
    cosine = float((unit * again).sum(axis=1).mean())
    of_query = cosine / _own_score(searched, query, unit, bits)
    of_code = 1 / _own_score(searched, code, again, bits)
    return query[0] * of_query, query[1] * of_query, code[0] * of_code, code[1] * of_code


def _codes(encoder: Thresholds | Searched, held_out: HeldOut) -> Codes:
    return Codes(encoder.encode(held_out.queries), encoder.encode(held_out.rows))


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
