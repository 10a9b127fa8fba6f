"""The training of thresholds: first weights, the loss and its gradient, and the descent.

The first weights are principal directions, rotated close to signs: iterative quantization (Gong &
Lazebnik 2011) with steps that are cheap and do not depend on threads. Training from there needs a
third of the steps that it needs from random rotations.

For a batch of shaped rows x, of directions x̂ = x/‖x‖, and codes of m bits, the loss is

    z = W x + t,   b = sign(z) ∈ {-1, 1}ᵐ,   ẑ = z/‖z‖
    P_ij = softmax_j(x̂_i·x̂_j / τ)                    who is near whom among the floats
    Q_ij = softmax_j(α b_i·b_j / m)                   ... among the codes (Hamming distance)
    R_ij = softmax_j(β ẑ_i·b_j / √m)                  ... between float queries and codes
    L = 1/q Σ_i KL(P_i ‖ Q_i) + KL(P_i ‖ R_i)         j = i left out; W, t, α, β are learned

The first q rows are the queries (i), and all rows are candidates (j).

A step function has no slope, so sign passes the slope of tanh(z/s) back instead (the
straight-through estimator); s is a fixed share of the standard deviation of the bit's scores. All
of it is array-API code without autograd.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.coders.backend import Backend, product
from embits.coders.near_lossless.sampling import ASKING, ENOUGH_ROWS, Batches, HeldOut
from embits.coders.near_lossless.whitening import FEW_PLACES, rounded
from embits.errors import TrainingError

Matrix = NDArray[np.float32]
Start = tuple[NDArray[np.float64], NDArray[np.float64]]  # weights and bias on shaped rows


class Weights(NamedTuple):
    """What is learned, or its gradient."""

    W: Any  # (n_bits, dims)
    t: Any  # (n_bits,)
    log_alpha: Any  # (1,)
    log_beta: Any  # (1,)


class Budget(NamedTuple):
    """Steps of a training, and rows of a batch."""

    steps: int
    batch_size: int


START_ROWS = 8192  # of the sample, that rotations are learned on
ROTATION_STEPS = 10
STRIDE = 3.0  # how far a step goes; endless would be iterative quantization itself
ROOT_STEPS = 14  # of Newton and Schulz's iteration

TEMPERATURE = 0.05  # τ: the nearest few dozen of a batch of unit vectors share most of P
SURROGATE_WIDTH = 0.6  # s over the standard deviation of a bit's scores: see docs/near-lossless.md
FIRST_SCALE = 12.0  # α and β at the start; they end between 13 (64 bits) and 30 (512)
FAR_BELOW = 1e4  # subtracted from the logit of a row with itself: its probability becomes 0

LEARNING_RATES = Weights(3e-3, 3e-3, 0.02, 0.02)
WARM_UP = 30  # steps in which the learning rate rises
CHECKS = 4  # of the held-out recall in a fit

GPU_BUDGET = Budget(3000, 2048)  # ten seconds
CPU_BATCH = 1024
CPU_WORK = 260 * 10**9  # multiplications: four seconds on two cores
MIN_STEPS, MAX_STEPS = 100, 1000
FULL_ROWS = 10_000  # fewer rows need fewer steps


def budget(n_bits: int, dims: int, n: int, device: str) -> Budget:
    """How long to train on a sample of n rows."""
    few = min(n, ENOUGH_ROWS)  # a training on few rows learns them by heart
    if device != "cpu":
        return GPU_BUDGET._replace(steps=GPU_BUDGET.steps * few // ENOUGH_ROWS)
    asking = CPU_BATCH // ASKING
    a_step = 2 * CPU_BATCH * dims * n_bits + asking * CPU_BATCH * (dims + 6 * n_bits)
    steps = CPU_WORK * min(n, FULL_ROWS) // FULL_ROWS // a_step
    return Budget(max(MIN_STEPS * few // ENOUGH_ROWS, min(MAX_STEPS, steps)), CPU_BATCH)


def first_weights(
    x: Matrix, axes: NDArray[np.float64], n_bits: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Weights of shape (n_bits, dims) for shaped rows; of many rows, START_ROWS of them count.

    Every bit carries the same share of the variance. Bits beyond the dimensions come from
    further rotations of the whole space. The columns of `axes` are the principal directions of
    the rows, most variance first.
    """
    x = x[:: -(-len(x) // START_ROWS)]
    weights: list[Matrix] = []
    while (left := n_bits - sum(map(len, weights))) > 0:
        projected = (axes if weights else axes[:, :left]).astype(np.float32)
        rotation = closest_to_signs(product(x, projected), rng)
        weights.append(product(projected, rotation).T[:left])
    return np.concatenate(weights).astype(np.float64)


def closest_to_signs(z: Matrix, rng: np.random.Generator) -> Matrix:
    """A rotation R of shape (width, width) that makes |sign(z R) - z R|² small."""
    rows, width = z.shape
    stride = STRIDE * min(rows, width)  # fewer rows than columns say nothing of most directions
    rotation = np.linalg.qr(rng.normal(size=(width, width)))[0]
    rotation = rounded(rotation, FEW_PLACES).astype(np.float32)
    for _ in range(ROTATION_STEPS):
        towards = product(z.T, signs(np, product(z, rotation)))
        along = float((towards * rotation).sum())
        if along <= 0:  # rows of zeros
            break
        rotation = orthogonal(rotation + towards * np.float32(stride / along))
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


def loss_and_gradient(
    xp: Any,
    weights: Weights,
    x: Any,
    not_self: Any,
    *,
    temperature: float = TEMPERATURE,
    smooth_width: Any = None,
) -> tuple[Any, Weights]:
    """L and ∂L/∂(W, t, log α, log β) on a batch of shaped rows, (n, dims), of namespace xp.

    `not_self` (q, n) is zero, and -FAR_BELOW on the diagonal. With `smooth_width`, b is
    tanh(z / smooth_width), so that the gradient is exact and can be checked against differences.
    """
    n_bits, asking = weights.W.shape[0], not_self.shape[0]
    z = product(x, weights.W.T)
    z += weights.t
    width = smooth_width
    if width is None:
        width = xp.std(z, axis=0) * SURROGATE_WIDTH + 1e-6
    soft = xp.tanh(z / width)
    b = signs(xp, z) if smooth_width is None else soft
    z_norm = _row_norms(xp, z[:asking, :])
    z_unit, b_asking = z[:asking, :] / z_norm, b[:asking, :]
    x_unit = x / _row_norms(xp, x)

    cosines = product(x_unit[:asking, :], x_unit.T)
    P = softmax(xp, logits(cosines, 1 / temperature, not_self))[0]
    by_code = xp.exp(weights.log_alpha) / n_bits
    by_query = xp.exp(weights.log_beta) / n_bits**0.5
    of_codes = logits(product(b_asking, b.T), by_code, not_self)
    of_queries = logits(product(z_unit, b.T), by_query, not_self)
    hamming, G, grad_log_alpha = cross_entropy(xp, of_codes, P)
    asymmetric, H, grad_log_beta = cross_entropy(xp, of_queries, P)

    # ∂L/∂b = α/m (G b for rows that ask, + Gᵀ b of those) + β/√m Hᵀ ẑ,   ∂L/∂ẑ = β/√m H b
    G *= by_code
    H *= by_query
    grad_b = product(G.T, b_asking)
    grad_b += product(H.T, z_unit)
    grad_b[:asking, :] += product(G, b)
    grad_z_unit = product(H, b)
    # through tanh(z/s), and through ẑ = z/‖z‖: (g - ẑ ⟨ẑ, g⟩) / ‖z‖
    grad_z = grad_b * (1 - soft * soft) / width
    along = xp.sum(grad_z_unit * z_unit, axis=1, keepdims=True)
    grad_z[:asking, :] += (grad_z_unit - z_unit * along) / z_norm
    grad_W = product(grad_z.T, x)
    gradient = Weights(grad_W, xp.sum(grad_z, axis=0), grad_log_alpha, grad_log_beta)
    return hamming + asymmetric, gradient


def logits(similarities: Any, scale: Any, not_self: Any) -> Any:
    similarities *= scale
    similarities += not_self
    return similarities


def softmax(xp: Any, logits: Any) -> tuple[Any, Any]:
    """Softmax of each row, and the logarithm of its denominator, (n, 1)."""
    top = xp.max(logits, axis=1, keepdims=True)
    weights = xp.exp(logits - top)
    total = xp.sum(weights, axis=1, keepdims=True)
    weights /= total
    return weights, xp.log(total) + top


def cross_entropy(xp: Any, logits: Any, P: Any) -> tuple[Any, Any, Any]:
    """-1/n Σ P log softmax(logits); its gradient by the logits; by the logarithm of their scale."""
    n = logits.shape[0]
    G, log_total = softmax(xp, logits)
    loss = xp.sum(log_total) / n - xp.sum(P * logits) / n
    G -= P
    G /= n
    return loss, G, xp.reshape(xp.sum(G * logits), (1,))


def signs(xp: Any, z: Any) -> Any:
    return 2 * xp.astype(z >= 0, z.dtype) - 1  # 20 times as fast as NumPy's `where`


def _row_norms(xp: Any, x: Any) -> Any:
    return xp.sqrt(xp.sum(x * x, axis=1, keepdims=True)) + 1e-12


class Adam:
    """Adam (Kingma & Ba 2015) on a tuple of arrays, in place; `decay` shrinks all of two axes."""

    def __init__(self, xp: Any, weights: Any, rates: Any, decay: float = 0.0) -> None:
        self._xp = xp
        self._rates = rates
        self._decay = decay
        self._first = [xp.zeros_like(w) for w in weights]
        self._second = [xp.zeros_like(w) for w in weights]
        self._steps = 0

    def step(self, weights: Any, gradient: Any, share: float) -> None:
        """One step against `gradient`, at `share` of the learning rates."""
        beta1, beta2 = 0.9, 0.99
        self._steps += 1
        unbias1, unbias2 = 1 - beta1**self._steps, 1 - beta2**self._steps
        for w, g, m, v, rate in zip(
            weights, gradient, self._first, self._second, self._rates, strict=True
        ):
            m *= beta1
            m += (1 - beta1) * g
            v *= beta2
            v += (1 - beta2) * (g * g)
            if self._decay and w.ndim == 2:
                w *= 1 - share * rate * self._decay
            w -= (share * rate / unbias1) * m / (self._xp.sqrt(v / unbias2) + 1e-8)


def descend(
    x: Matrix,
    held_out: HeldOut,
    start: Start,
    steps: int,
    batch_size: int,
    rate: float = 1.0,
    *,
    on: Backend,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Start, NDArray[np.float64]]:
    """Descend from `start` on shaped rows; the rate falls from a share `rate` of the usual to zero.

    Returns:
        The weights and bias with the best held-out recall, and a row of steps, loss and
        recall for each look.
    """
    xp, size = on.xp, min(batch_size, len(x))
    # Few bits gain by closer neighborhoods; with more, pairs that are less near count too.
    batches = Batches(x, rng, among_all=2 * len(start[0]) < x.shape[1])
    there = on.put(x)
    not_self = on.put(-FAR_BELOW * np.eye(-(-size // ASKING), size, dtype=np.float32))
    scale = np.full(1, math.log(FIRST_SCALE), np.float32)
    first = (*(part.astype(np.float32) for part in start), scale, scale.copy())
    weights = Weights(*map(on.put, first))
    adam = Adam(xp, weights, LEARNING_RATES)
    best, best_recall = start, held_out.recall(*start)
    curve: list[tuple[float, float, float]] = []
    looks = np.linspace(0, steps, min(steps, CHECKS) + 1).astype(int).tolist()
    rates = np.linspace(rate, 0, len(looks)).tolist()
    for (begin, end), (high, low) in zip(pairwise(looks), pairwise(rates), strict=True):
        total = 0.0
        for step in range(end - begin):
            rows = batches.draw(size)
            batch = xp.take(there, on.put(rows), axis=0)
            mask = not_self[: len(rows), : len(rows)]
            loss, gradient = loss_and_gradient(xp, weights, batch, mask)
            share = high + (low - high) * step / (end - begin)
            adam.step(weights, gradient, share * min(1, (begin + step + 1) / WARM_UP))
            total = loss + total
        mean = float(total) / (end - begin)
        if not math.isfinite(mean):
            raise TrainingError(f"training diverged (loss {mean}) before step {end}")
        W, t = (on.get(part).astype(np.float64) for part in (weights.W, weights.t))
        recall = held_out.recall(W, t)
        curve.append((end, mean, recall))
        if recall > best_recall:
            best, best_recall = (W, t), recall
        if progress is not None:
            progress(end, steps)
    return best, np.array(curve).reshape(-1, 3)
