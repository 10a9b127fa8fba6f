"""The training of the net that decodes bits.

For rows x of norm 1 and their bits s in {-1, 1}ᵐ, the net is trained in floats on

    p = relu(A s' + a),   r = relu(G p + g),   y = D s + o + P p + R r,   loss |x - y|²

D and o start as the linear decoder, P and R at zero. A few bits of s' are flipped, and some units
of p and r left out (dropout); rows that are held out say when to stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, unit_rows
from embits.coders.backend import Backend, product
from embits.coders.near_lossless import training as ranking
from embits.coders.near_lossless.bit_search import Thresholds
from embits.coders.near_lossless.encoder import exact_unit
from embits.coders.near_lossless.training import Adam
from embits.coders.neural.net import Net, quantized
from embits.errors import TrainingError

Floats = NDArray[np.float32]
Source = Callable[[tuple[int, int]], Any]  # `Backend.uniform`

FLIPPED = 0.05  # of the input bits
DECAY = 0.02  # of the weights, in AdamW
BATCH = 512
WARM_UP = 50  # steps in which the learning rate rises
LOOK_EVERY = 3  # epochs
PATIENCE = 6  # looks without a gain, after which training stops
TOGETHER_BATCH = 512
FIRST_SCALE = 15.0  # of the agreement of codes in the ranking loss
NEIGHBORS = 7  # rows in a batch beside each of some anchors: a half of it are neighborhoods
NEAREST = 10  # rows that a row may be moved towards ...
MOVED, FARTHEST = 0.7, 0.6  # ... with this probability, by at most this share of the way
CLIPPED = 0.999  # of a unit's activations that the net in bytes tells apart


class Weights(NamedTuple):
    """The net in floats, or its gradient."""

    D: Any  # (bits, dims)
    o: Any  # (dims,)
    A: Any  # (hidden, bits)
    a: Any  # (hidden,)
    G: Any  # (hidden, hidden)
    g: Any  # (hidden,)
    P: Any  # (hidden, dims)
    R: Any  # (hidden, dims)


RATES = Weights(1e-4, 1e-4, *[1e-3] * 6)
TOGETHER_RATES = (3e-4, 3e-4, *[1e-3] * 11, 0.01)  # ... of an encoder, and the scale of agreement


def first_weights(D: Floats, o: Floats, hidden: int, rng: np.random.Generator) -> Weights:
    """A net that decodes as D s + o does."""
    bits, dims = D.shape
    A = rng.normal(size=(hidden, bits)) / bits**0.5
    G = rng.normal(size=(hidden, hidden)) * (2 / max(hidden, 1)) ** 0.5
    zeros, out = np.zeros(hidden), np.zeros((hidden, dims))
    parts = (D, o, A, zeros, G, zeros, out, out)
    return Weights(*(np.array(part, dtype=np.float32) for part in parts))


class Encoder(NamedTuple):
    """Scores of bits, W x - t + U relu(S x + u), in floats."""

    W: Any  # (bits, dims)
    t: Any  # (bits,)
    S: Any  # (hidden, dims)
    u: Any  # (hidden,)
    U: Any  # (bits, hidden)


class Dropped(NamedTuple):
    """What a step leaves out: signs of the input bits, and factors of p and r."""

    signs: Any  # (n, bits)
    p: Any  # (n, hidden)
    r: Any

    @classmethod
    def draw(
        cls, xp: Any, n: int, bits: int, hidden: int, share: float, uniform: Source
    ) -> Dropped:
        """At random."""
        flips = xp.astype(uniform((n, bits)) < FLIPPED, xp.float32)
        factors = (_factors(xp, (n, hidden), share, uniform) for _ in range(2))
        return cls(1 - 2 * flips, *factors)


def _factors(xp: Any, shape: tuple[int, int], share: float, uniform: Source) -> Any:
    """0 for a share of units; the others make up for them."""
    return xp.astype(uniform(shape) >= share, xp.float32) * (1 / (1 - share))


def forward(xp: Any, weights: Weights, s: Any) -> tuple[Any, Any, Any]:
    """p, r and y of signs (n, bits)."""
    p = _relu(xp, product(s, weights.A.T) + weights.a)
    r = _relu(xp, product(p, weights.G.T) + weights.g)
    y = product(s, weights.D) + weights.o + product(p, weights.P) + product(r, weights.R)
    return p, r, y


def loss_and_gradient(
    xp: Any, weights: Weights, s: Any, x: Any, dropped: Dropped
) -> tuple[Any, Weights, Any]:
    """The mean |x - y|² of rows, its gradient by the weights, and by s."""
    w, flipped = weights, s * dropped.signs
    p = _relu(xp, product(flipped, w.A.T) + w.a)
    r = _relu(xp, product(p, w.G.T) + w.g)
    p_kept, r_kept = p * dropped.p, r * dropped.r
    off = product(s, w.D) + w.o + product(p_kept, w.P) + product(r_kept, w.R) - x
    by_y = off * (2 / x.shape[0])
    by_r = product(by_y, w.R.T) * dropped.r * xp.astype(r > 0, r.dtype)
    by_p = product(by_y, w.P.T) * dropped.p + product(by_r, w.G)
    by_p = by_p * xp.astype(p > 0, p.dtype)
    gradient = Weights(
        product(s.T, by_y),
        xp.sum(by_y, axis=0),
        product(by_p.T, flipped),
        xp.sum(by_p, axis=0),
        product(by_r.T, p),
        xp.sum(by_r, axis=0),
        product(p_kept.T, by_y),
        product(r_kept.T, by_y),
    )
    by_s = product(by_y, w.D.T) + product(by_p, w.A) * dropped.signs
    return xp.sum(off * off) / x.shape[0], gradient, by_s


def _relu(xp: Any, z: Any) -> Any:
    return xp.maximum(z, xp.zeros_like(z))  # 20 times as fast as NumPy's `where`


def share_of_rate(step: int, steps: int) -> float:
    """The share of the learning rate at a step: it rises, then falls as a cosine does."""
    return min(1, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * min(1, step / steps)))


def train(
    weights: Weights,
    signs: Floats,
    unit: Floats,
    held_out: tuple[Floats, Floats],
    epochs: int,
    rate: float,
    share: float,
    *,
    on: Backend,
    rng: np.random.Generator,
    on_epoch: Callable[[], None] = lambda: None,
) -> Weights:
    """Train on the signs, (n, bits) in {-1, 1}, of unit rows; what rebuilds held-out rows best.

    `held_out` are signs and rows that say when to stop, `epochs` the most passes, `rate` a share of
    the usual learning rate, `share` that of the units that are left out in a step. `on_epoch` is
    called after each epoch.
    """
    xp, n, uniform = on.xp, len(unit), on.uniform(rng)
    there, rows, check = on.put(signs), on.put(unit), [on.put(part) for part in held_out]
    now = Weights(*(on.put(np.array(part)) for part in weights))
    adam = Adam(xp, now, Weights(*(rate * each for each in RATES)), DECAY)
    per_epoch = -(-n // BATCH)
    best, best_cosine, since = weights, -2.0, 0
    for epoch in range(epochs):
        order = on.put(rng.permutation(n))
        for batch in range(per_epoch):
            some = order[batch::per_epoch]
            sizes = some.shape[0], signs.shape[1], len(weights.a)
            dropped = Dropped.draw(xp, *sizes, share, uniform)
            s, x = (xp.take(part, some, axis=0) for part in (there, rows))
            loss, gradient, _ = loss_and_gradient(xp, now, s, x, dropped)
            adam.step(now, gradient, share_of_rate(epoch * per_epoch + batch, epochs * per_epoch))
        if not math.isfinite(float(loss)):
            raise TrainingError(f"training diverged (loss {float(loss)}) in epoch {epoch + 1}")
        on_epoch()
        if (epoch + 1) % LOOK_EVERY and epoch + 1 < epochs:
            continue
        cosine, since = _cosine(xp, forward(xp, now, check[0])[2], check[1]), since + 1
        if cosine > best_cosine:
            best, best_cosine, since = Weights(*(on.get(part).copy() for part in now)), cosine, 0
        if since == PATIENCE:
            break
    return best


def train_together(
    weights: Weights,
    thresholds: Thresholds,
    unit: Floats,
    check: Floats,
    epochs: int,
    share: float,
    ranking_share: float,
    *,
    on: Backend,
    rng: np.random.Generator,
    on_epoch: Callable[[], None] = lambda: None,
) -> tuple[Weights, Encoder]:
    """Train an encoder with a hidden layer together with the net that decodes its signs.

    It starts as the thresholds. The loss is |x - y|² and a share of the ranking loss by Hamming
    distance, both of near_lossless/training.py's making: signs pass the slope of tanh back. Rows
    are moved a part of the way to one of their neighbors, which stands for rows that nobody has
    seen. The weights that rebuild the held-out rows `check` best are returned.
    """
    xp, (n, dims), hidden = on.xp, unit.shape, len(weights.a)
    size, scale = min(TOGETHER_BATCH, n), dims**0.5  # with it, one learning rate serves W too
    rows, held_out, uniform = on.put(unit), on.put(check * np.float32(scale)), on.uniform(rng)
    near = _neighbors(on, rows)
    bits, S = len(thresholds.t), rng.normal(size=(hidden, dims)) / scale
    layer = S, np.zeros(hidden), np.zeros((bits, hidden))
    first = (*weights, thresholds.W / scale, thresholds.t, *layer, [math.log(FIRST_SCALE)])
    now = [on.put(np.array(part, dtype=np.float32)) for part in first]
    adam = Adam(xp, now, TOGETHER_RATES, DECAY)
    not_self = on.put(-ranking.FAR_BELOW * np.eye(size, dtype=np.float32))
    per_epoch, best, best_cosine = n // size, now, -2.0
    for epoch in range(epochs):
        order = rng.permutation(n)
        for step in range(per_epoch):
            some = _with_neighbors(order[step * size : (step + 1) * size], near, rng)
            x, n_some = _towards_neighbors(on, rows, some, near, rng), len(some)
            dropped = Dropped.draw(xp, n_some, bits, hidden, share, uniform)
            factors = _factors(xp, (n_some, hidden), share, uniform)
            mask = not_self[:n_some, :n_some]
            gradient = _together(xp, now, x, mask, (dropped, factors), ranking_share)
            adam.step(now, gradient, share_of_rate(epoch * per_epoch + step, epochs * per_epoch))
        on_epoch()
        if (epoch + 1) % LOOK_EVERY and epoch + 1 < epochs:
            continue
        signs = ranking.signs(xp, scores(xp, Encoder(*now[8:13]), held_out)[1])
        cosine = _cosine(xp, forward(xp, Weights(*now[:8]), signs)[2], held_out / scale)
        if not math.isfinite(cosine):
            raise TrainingError(f"training diverged in epoch {epoch + 1}")
        if cosine > best_cosine:
            best, best_cosine = [on.get(part).copy() for part in now], cosine
    encoder = Encoder(*best[8:13])
    factor = np.float32(scale)
    return Weights(*best[:8]), encoder._replace(W=encoder.W * factor, S=encoder.S * factor)


def scores(xp: Any, encoder: Encoder, x: Any, factors: Any = 1) -> tuple[Any, Any]:
    """The hidden layer, some of it left out, and the scores of rows x."""
    h = _relu(xp, product(x, encoder.S.T) + encoder.u) * factors
    return h, product(x, encoder.W.T) - encoder.t + product(h, encoder.U.T)


def _together(
    xp: Any,
    now: list[Any],
    x: Any,
    not_self: Any,
    dropped: tuple[Dropped, Any],
    ranking_share: float,
) -> list[Any]:
    """The gradient of the loss of `train_together` by its weights."""
    net, encoder, log_alpha = Weights(*now[:8]), Encoder(*now[8:13]), now[13]
    bits, scaled = encoder.W.shape[0], x * x.shape[1] ** 0.5
    h, z = scores(xp, encoder, scaled, dropped[1])
    width = xp.std(z, axis=0) * ranking.SURROGATE_WIDTH + 1e-6
    soft, b = xp.tanh(z / width), ranking.signs(xp, z)
    _, gradient, by_b = loss_and_gradient(xp, net, b, x, dropped[0])
    P = ranking.softmax(xp, ranking.logits(product(x, x.T), 1 / ranking.TEMPERATURE, not_self))[0]
    by_code = xp.exp(log_alpha) / bits
    of_codes = ranking.logits(product(b, b.T), by_code, not_self)
    _, G, by_log_alpha = ranking.cross_entropy(xp, of_codes, P)
    by_b = by_b + product(G + G.T, b) * (ranking_share * by_code)
    by_z = by_b * (1 - soft * soft) / width
    by_h = product(by_z, encoder.U) * dropped[1] * xp.astype(h > 0, h.dtype)
    of_encoder = Encoder(
        product(by_z.T, scaled),
        -xp.sum(by_z, axis=0),
        product(by_h.T, scaled),
        xp.sum(by_h, axis=0),
        product(by_z.T, h),
    )
    return [*gradient, *of_encoder, ranking_share * by_log_alpha]


def _neighbors(on: Backend, unit: Any) -> NDArray[np.int64]:
    """The nearest other rows of each row on the device, (n, NEAREST)."""
    xp, n = on.xp, unit.shape[0]
    near = np.empty((n, k := min(NEAREST, n - 1)), dtype=np.int64)
    for rows in blocks(n, 1024):
        cosines = product(unit[rows, :], unit.T)
        cosines[:, rows] -= on.put(3 * np.eye(rows.stop - rows.start, dtype=np.float32))
        order = np.argpartition(cosines, -k, axis=1) if xp is np else xp.argsort(cosines, axis=1)
        near[rows] = on.get(order[:, n - k :])
    return near


def _with_neighbors(
    some: NDArray[np.int64], near: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """About as many rows, each once: some of them, and neighbors of the first of these.

    Random rows alone hold few true neighbors of each other, and teach little about them.
    """
    beside = rng.permutation(near.shape[1])[:NEIGHBORS]
    anchors = len(some) // (2 * NEIGHBORS + 2)
    others = some[: len(some) - anchors * len(beside)]
    return np.unique(np.concatenate([others, near[some[:anchors]][:, beside].ravel()]))


def _towards_neighbors(
    on: Backend,
    unit: Any,
    some: NDArray[np.int64],
    near: NDArray[np.int64],
    rng: np.random.Generator,
) -> Any:
    """Rows of norm 1 on the device, most of them moved towards one of their neighbors."""
    towards = near[some, rng.integers(near.shape[1], size=len(some))]
    how_far = FARTHEST * rng.random(len(some)) * (rng.random(len(some)) < MOVED)
    x, neighbors = (on.xp.take(unit, on.put(each), axis=0) for each in (some, towards))
    moved = x + on.put(how_far[:, None].astype(np.float32)) * (neighbors - x)
    return exact_unit(moved) if on.xp is np else unit_rows(moved)


def _cosine(xp: Any, y: Any, x: Any) -> float:
    """The mean cosine of rebuilt rows with rows of norm 1."""
    norms = xp.sqrt(xp.sum(y * y, axis=1)) + 1e-12
    return float(xp.mean(xp.sum(x * y, axis=1) / norms))


def in_bytes(weights: Weights, signs: Floats) -> Net:
    """The net in bytes; `signs` are those of rows that the activations are measured on."""
    p, r, _ = forward(np, weights, signs)
    tops = (np.quantile(each, CLIPPED, axis=0).astype(np.float32) for each in (p, r))
    w = weights
    return quantized(w.D, w.o, (w.A, w.a, w.G, w.g), (w.P, w.R), tuple(tops))
