"""How far bits are searched, and what a float query weighs, chosen on held-out queries.

encoder.py gives the error that a search makes small. Its linear term is

    W x - t = (κ D x - D o) + ρ / 2m (z(x) / σ)

where z are the scores of the trained thresholds and σ their standard deviation; how PLANS are tried
is in docs/near-lossless.md. A decoder is solved for by least squares: x ≈ D b + o with b in
{-1, 1}ᵐ. Nothing here depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import blocks, unit_rows, unpack
from embits.coders.backend import product
from embits.coders.linear import pack_signs
from embits.coders.near_lossless.encoder import Encoder
from embits.coders.near_lossless.sampling import ENOUGH_ROWS, Split
from embits.search import asymmetric_top_k, top_k

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]
Unit = NDArray[np.float32]


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
FEW_PLANS = (Plan(MIDDLE, MIDDLE),)  # for fewer rows than four for each bit: too few to choose by
PULL = 2.0  # μ
FEWEST_BITS = 96  # of a search: fewer, and fewer than a quarter of the dimensions, gain nothing
TOLERANCE, TOLERANCE_QUERIES = 0.008, 500  # about the standard error of a recall of so many queries
MIN_ROWS, MIN_ROWS_A_BIT = 200, 1.5  # fewer leave no rows to solve for a decoder and to check it
TRY_ROUNDS, TRY_ROWS = 3, 8192  # of search and least squares for a plan
LAST_ROUNDS, MAX_ROWS = 3, 32_768  # ... and for the best one
SPREAD_ROWS = 2048  # rows that σ is computed from
AMONG = 16_384  # rows among which held-out queries are searched
NEIGHBORS = 10  # of a held-out query
MIXES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # share of the thresholds' scores in a float query
MIXES_STEP = 2  # plans are compared by each second one

UNIT = 1 << 13  # the length of a vector in whole numbers
BLOCK_ROWS = 1 << 10  # sums of this many whole numbers up to UNIT are exact in float32
RIDGE = 1e-3  # of the number of rows; the offset is not shrunk


class Decoder(NamedTuple):
    """D of shape (bits, columns), o of shape (columns,), and the mean |D b + o|², in float64."""

    D: Floats
    o: Floats
    length: float

    def rebuild(self, codes: Codes) -> Unit:
        """Directions D b + o of packed codes."""
        vectors: Unit = product(signs(codes, len(self.D)), self.D.astype(np.float32))
        vectors += self.o.astype(np.float32)
        return vectors


def signs(codes: Codes, n_bits: int) -> NDArray[np.float32]:
    """Packed codes as a matrix of -1 and 1, shape (n, n_bits)."""
    return 2 * unpack(codes, n_bits) - 1


def least_squares(codes: Codes, unit: NDArray[np.float32], n_bits: int) -> Decoder:
    """The decoder that rebuilds rows best; they have norm 1, or values up to 1."""
    n, columns = unit.shape
    bb, bx = np.zeros((n_bits, n_bits)), np.zeros((n_bits, columns))
    sum_b, sum_x = np.zeros(n_bits), np.zeros(columns)
    for rows in blocks(n, BLOCK_ROWS):
        b, x = signs(codes[rows], n_bits), np.rint(unit[rows] * np.float32(UNIT))
        bb += b.T @ b
        bx += b.T @ x
        sum_b += b.sum(axis=0)
        sum_x += x.sum(axis=0)
    mean_b, mean_x = sum_b / n, sum_x / n
    matrix = bb - n * np.multiply.outer(mean_b, mean_b)
    matrix.flat[:: n_bits + 1] += RIDGE * n
    D = bx - n * np.multiply.outer(mean_b, mean_x)
    _core.solve_positive(matrix, D)
    D /= UNIT
    o = mean_x / UNIT - (mean_b[:, None] * D).sum(axis=0)
    # Least squares makes the mean of |y|² that of x · y.
    along = (D * bx).sum() + (o * sum_x).sum()
    return Decoder(D, o, max(float(along) / n / UNIT, 0.0))


@dataclass(frozen=True)
class Thresholds:
    """Scores of trained thresholds over their standard deviation, W x - t for x of norm 1."""

    W: Floats
    t: Floats

    @classmethod
    def scaled(cls, W: NDArray[Any], t: NDArray[Any], unit: Unit) -> Thresholds:
        """Divide by the standard deviation over the first rows of a sample."""
        # einsum adds in one order; a matrix library's depends on its threads.
        scores = np.einsum("ij,kj->ik", unit[:SPREAD_ROWS].astype(np.float64), W.astype(np.float64))
        spread = scores.std(axis=0) + 1e-12
        return cls(W / spread[:, None], t / spread)

    def encode(self, unit: Unit) -> Codes:
        """Packed codes of unit rows."""
        rows = np.concatenate([unit, np.ones((len(unit), 1), np.float32)], axis=1)
        return pack_signs(rows, np.c_[self.W, -self.t].astype(np.float32))


@dataclass(frozen=True)
class Searched:
    """A decoder, and the encoder that its codes are searched with."""

    W: NDArray[np.float32]  # linear term of the error, (bits, dims)
    t: NDArray[np.float32]  # (bits,)
    decoder: Decoder
    shares: list[tuple[float, float]]  # of D and W in the weights of a query, for each of MIXES

    @classmethod
    def at(cls, setting: Setting, decoder: Decoder, thresholds: Thresholds) -> Searched:
        """The linear term of a setting."""
        D, o, _ = decoder
        share = setting.hold / 2 / len(D)
        W = setting.along * D + share * thresholds.W
        t = (D * o).sum(axis=1) + share * thresholds.t
        shares, sizes = [], (_size(D), _size(thresholds.W))
        for mix in MIXES:  # of D and the thresholds at one size; these are (W - κ D) less a factor
            of_thresholds = mix / sizes[1] * 2 * len(D) / setting.hold
            shares.append(((1 - mix) / sizes[0] - of_thresholds * setting.along, of_thresholds))
        return cls(W.astype(np.float32), t.astype(np.float32), decoder, shares)

    def weights(self) -> list[Floats]:
        """Weights of float queries to choose from."""
        return [of_D * self.decoder.D + of_W * self.W for of_D, of_W in self.shares]

    def encode(self, unit: Unit) -> Codes:
        """Packed codes of unit rows."""
        D, o, length = self.decoder
        return Encoder.of(self.W, self.t, 2 * D, o - D.sum(axis=0), length, PULL).encode(unit)

    def own_score(self, shares: tuple[float, float], unit: Floats, bits: Floats) -> float:
        """The mean score of vectors against their own bits."""
        D, o, _ = self.decoder
        weights = shares[0] * D + shares[1] * self.W
        scores = (unit * (np.einsum("ij,jk->ik", bits, weights) + shares[0] * o)).sum(axis=1)
        return max(float(scores.mean()), 1e-6)


def _size(weights: Floats) -> float:
    return float(np.sqrt((weights * weights).sum())) + 1e-12


class Recalls(NamedTuple):
    """Recall of the nearest rows by Hamming distance, by float query and by decoded query."""

    hamming: float
    query: float
    decoded: float

    @property
    def score(self) -> float:
        """What a search is chosen by: the Hamming distance, the default metric, counts most."""
        return 4 * self.hamming + 2 * self.query + self.decoded


class HeldOut:
    """Unit rows that no training has used, and their nearest among other rows."""

    def __init__(self, queries: Unit, rows: Unit) -> None:
        self.queries = queries
        self.rows = rows
        self._k = max(1, min(NEIGHBORS, len(rows) // 2))
        cosines = product(queries, np.ascontiguousarray(rows.T))
        nearest = np.argpartition(cosines, -self._k, axis=1)[:, -self._k :]
        self._is_near = np.zeros(cosines.shape, dtype=bool)
        np.put_along_axis(self._is_near, nearest, True, axis=1)

    def recalls(
        self, encoder: Thresholds | Searched, decoder: Decoder, weights: Sequence[Floats]
    ) -> Recalls:
        """Recall by three metrics; of the weights of float queries, the best count."""
        queries, rows = encoder.encode(self.queries), encoder.encode(self.rows)
        by_query = max(self.recall(rows, self.queries, each) for each in weights)
        by_decoded = self.recall(rows, decoder.rebuild(queries), decoder.D)
        return Recalls(self.by_hamming(rows, queries), by_query, by_decoded)

    def by_hamming(self, rows: Codes, queries: Codes) -> float:
        return self.share(top_k(rows, queries, self._k).rows)

    def recall(self, rows: Codes, queries: Unit, weights: Floats) -> float:
        """Recall by float queries, multiplied by weights of shape (bits, dims)."""
        projections = product(queries, weights.T.astype(np.float32))
        return self.share(asymmetric_top_k(rows, projections, self._k).rows)

    def nearest(self, similarities: Unit) -> float:
        """Recall of the rows with the largest similarities, (queries, rows)."""
        return self.share(np.argpartition(-similarities, self._k, axis=1))

    def share(self, rows: NDArray[np.int64]) -> float:
        """The share of the first rows of each query that are its nearest: the recall."""
        return float(np.take_along_axis(self._is_near, rows[:, : self._k], axis=1).mean())


def search_bits(
    unit: Unit, split: Split, W: Unit, t: Unit, rng: np.random.Generator
) -> tuple[Searched, list[float]] | None:
    """The best search for rows of norm 1 and thresholds W x - t, and what `query_shares` gives.

    None if every plan loses to the thresholds, or if there are too few bits, or rows not zero.
    """
    few = len(unit) < min(4 * len(W), ENOUGH_ROWS)
    coarse = len(W) < FEWEST_BITS and 4 * len(W) < unit.shape[1]
    if coarse or len(unit) < MIN_ROWS or (few and len(unit) < MIN_ROWS_A_BIT * len(W)):
        return None
    train = unit[rng.permutation(split.train)[:MAX_ROWS]]
    held_out = HeldOut(unit[split.check[: split.queries]], train[:AMONG])
    thresholds = Thresholds.scaled(W, t, train)

    def rounds(n: int, setting: Setting, rows: Unit, decoder: Decoder) -> Decoder:
        """Search codes of rows and solve for their decoder, in turns."""
        for _ in range(n):
            codes = Searched.at(setting, decoder, thresholds).encode(rows)
            decoder = least_squares(codes, rows, len(t))
        return decoder

    first = least_squares(thresholds.encode(train[:TRY_ROWS]), train[:TRY_ROWS], len(t))
    # Few bits rebuild vectors poorly, whatever the search: there the trained thresholds count.
    plans = NARROW_PLANS if 2 * len(W) < unit.shape[1] else FEW_PLANS if few else PLANS
    tolerance = TOLERANCE * max(1, TOLERANCE_QUERIES / split.queries) ** 0.5
    tried = {
        setting: rounds(TRY_ROUNDS, setting, train[:TRY_ROWS], first)
        for setting in dict.fromkeys(plan.solve for plan in plans)
    }
    least = held_out.recalls(thresholds, tried[plans[0].solve], [thresholds.W])
    scores: dict[Plan, float] = {}
    for plan in plans:
        searched = Searched.at(plan.encode, tried[plan.solve], thresholds)
        recalls = held_out.recalls(searched, searched.decoder, searched.weights()[::MIXES_STEP])
        if all(now >= low - tolerance for now, low in zip(recalls, least, strict=True)):
            scores[plan] = recalls.score
    if not scores:
        return None
    best = max(scores, key=scores.__getitem__)
    decoder = rounds(LAST_ROUNDS, best.solve, train, tried[best.solve])
    if decoder.length == 0:  # the rows are zero, and there is nothing to rebuild
        return None
    searched = Searched.at(best.encode, decoder, thresholds)
    return searched, query_shares(searched, held_out)


def query_shares(searched: Searched, held_out: HeldOut) -> list[float]:
    """The shares of D and W, for float queries and for decoded ones, with the best held-out recall.

    A vector's score against its own code is then roughly its cosine with the rebuilt vector.
    """
    decoder, rows = searched.decoder, searched.encode(held_out.rows)
    of_rows = rows[:SPREAD_ROWS]
    unit = held_out.rows[:SPREAD_ROWS].astype(np.float64)
    again = unit_rows(decoder.rebuild(of_rows).astype(np.float64))
    bits = signs(of_rows, len(decoder.D)).astype(np.float64)
    cosine = float((unit * again).sum(axis=1).mean())
    decoded = decoder.rebuild(searched.encode(held_out.queries))
    weights = searched.weights()
    chosen: list[float] = []
    for queries, vectors, target in ((held_out.queries, unit, cosine), (decoded, again, 1.0)):
        recalls = [held_out.recall(rows, queries, each) for each in weights]
        shares = searched.shares[int(np.argmax(recalls))]
        scale = target / searched.own_score(shares, vectors, bits)
        chosen += [share * scale for share in shares]
    return chosen
