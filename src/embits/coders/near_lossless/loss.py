"""The loss of NearLossless, its gradient, and the descent: array-API code without autograd.

For a batch of shaped rows x, of directions x̂ = x/‖x‖, and codes of m bits:

    z = W x + t,   b = sign(z) ∈ {-1, 1}ᵐ,   ẑ = z/‖z‖
    P_ij = softmax_j(x̂_i·x̂_j / τ)                    who is near whom among the floats
    Q_ij = softmax_j(α b_i·b_j / m)                   ... among the codes (Hamming distance)
    R_ij = softmax_j(β ẑ_i·b_j / √m)                  ... between float queries and codes
    L = 1/q Σ_i KL(P_i ‖ Q_i) + KL(P_i ‖ R_i)         j = i left out; W, t, α, β are learned

The first q rows ask (i), and all rows are asked for (j).

A step function has no slope, so sign passes the slope of tanh(z/s) back instead (the
straight-through estimator); s is a fixed share of the standard deviation of the bit's scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from embits.coders.products import product

TEMPERATURE = 0.05  # τ: the nearest few dozen of a batch of unit vectors share most of P
SURROGATE_WIDTH = 0.6  # s over the standard deviation of a bit's scores: see docs/near-lossless.md
FIRST_SCALE = 12.0  # α and β at the start; they end between 13 (64 bits) and 30 (512)
FAR_BELOW = 1e4  # taken from the logit of a row with itself: its probability becomes 0


class Weights(NamedTuple):
    """What is learned, or its gradient.

    Attributes:
        W: Shape (n_bits, dims).
        t: Shape (n_bits,).
        log_alpha: Shape (1,).
        log_beta: Shape (1,).
    """

    W: Any
    t: Any
    log_alpha: Any
    log_beta: Any


def loss_and_gradient(
    xp: Any,
    weights: Weights,
    x: Any,
    not_self: Any,
    *,
    temperature: float = TEMPERATURE,
    smooth_width: Any = None,
) -> tuple[Any, Weights]:
    """L and ∂L/∂(W, t, log α, log β) on a batch.

    Args:
        xp: The namespace of the arrays.
        weights: W, t, log α, log β.
        x: Shaped rows, (n, dims).
        not_self: Zero, and `-FAR_BELOW` on the diagonal, (q, n).
        temperature: τ.
        smooth_width: Take tanh(z / smooth_width) for b, so that the gradient is exact and can be
            checked against differences. None takes the sign.
    """
    n_bits, asking = weights.W.shape[0], not_self.shape[0]
    z = product(x, weights.W.T)
    z += weights.t
    width = _spread(xp, z) if smooth_width is None else smooth_width
    soft = xp.tanh(z / width)
    b = _signs(xp, z) if smooth_width is None else soft
    z_norm = _row_norms(xp, z[:asking, :])
    z_unit, b_asking = z[:asking, :] / z_norm, b[:asking, :]
    x_unit = x / _row_norms(xp, x)

    cosines = product(x_unit[:asking, :], x_unit.T)
    P = _softmax(xp, _logits(cosines, 1 / temperature, not_self))[0]
    by_code = xp.exp(weights.log_alpha) / n_bits
    by_query = xp.exp(weights.log_beta) / n_bits**0.5
    of_codes = _logits(product(b_asking, b.T), by_code, not_self)
    of_queries = _logits(product(z_unit, b.T), by_query, not_self)
    hamming, G, grad_log_alpha = _cross_entropy(xp, of_codes, P)
    asymmetric, H, grad_log_beta = _cross_entropy(xp, of_queries, P)

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


def _logits(similarities: Any, scale: Any, not_self: Any) -> Any:
    similarities *= scale
    similarities += not_self
    return similarities


def _softmax(xp: Any, logits: Any) -> tuple[Any, Any]:
    """Softmax of each row, and the logarithm of its denominator, (n, 1)."""
    top = xp.max(logits, axis=1, keepdims=True)
    weights = xp.exp(logits - top)
    total = xp.sum(weights, axis=1, keepdims=True)
    weights /= total
    return weights, xp.log(total) + top


def _cross_entropy(xp: Any, logits: Any, P: Any) -> tuple[Any, Any, Any]:
    """-1/n Σ P log softmax(logits); its gradient by the logits; by the logarithm of their scale."""
    n = logits.shape[0]
    G, log_total = _softmax(xp, logits)
    loss = xp.sum(log_total) / n - _dot(xp, P, logits) / n
    G -= P
    G /= n
    return loss, G, xp.reshape(_dot(xp, G, logits), (1,))


def _dot(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(a * b)


def _signs(xp: Any, z: Any) -> Any:
    ones = xp.ones_like(z)
    return xp.where(z >= 0, ones, -ones)


def _spread(xp: Any, z: Any) -> Any:
    return xp.std(z, axis=0) * SURROGATE_WIDTH + 1e-6


def _row_norms(xp: Any, x: Any) -> Any:
    return xp.sqrt(xp.sum(x * x, axis=1, keepdims=True)) + 1e-12


class Adam:
    """Adam (Kingma & Ba 2015) on a tuple of arrays, in place."""

    def __init__(self, xp: Any, weights: Weights, rates: Weights) -> None:
        self._xp = xp
        self._rates = rates
        self._first = [xp.zeros_like(w) for w in weights]
        self._second = [xp.zeros_like(w) for w in weights]
        self._steps = 0

    def step(self, weights: Weights, gradient: Weights, share: float) -> None:
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
            w -= (share * rate / unbias1) * m / (self._xp.sqrt(v / unbias2) + 1e-8)
