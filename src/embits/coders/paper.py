"""The model of *Near-lossless Binarization of Word Embeddings* (AAAI 2019), to the letter.

    b = h(W x)                                   eq. 1   h: Heaviside, W: (n_bits, dims)
    y = tanh(Wᵀ b + c)                           eq. 2   the same W: encoder and decoder are tied
    ℓ_rec = 1/m Σ (x - y)²                       eq. 3
    ℓ_reg = 1/2 ‖WᵀW - I‖²                       eq. 4
    L = Σ ℓ_rec + λ ℓ_reg                        eq. 5

The gradient runs through the decoder and the regularizer alone (∂Φ/∂W = 0), by SGD with
momentum. Where the paper is silent: the loss is summed over a batch, rows are shuffled every
epoch, W starts from a normal distribution and c from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, as_float32, blocks, namespace
from embits.bits import unpack
from embits.coders.base import Shapes, check_n_bits
from embits.coders.linear_encoder import LinearlyEncoded
from embits.errors import InputError, TrainingError


class PaperAutoencoder(LinearlyEncoded):
    """The paper's autoencoder.

    Args:
        n_bits: Bits of a code: any number from 1, also above the dimensions of the input.
        lambda_reg: λ, the weight of the orthogonality loss; the paper takes 1 to 4.
        learning_rate: Step of the gradient descent.
        momentum: Momentum of the gradient descent.
        batch_size: Rows of a step.
        epochs: Passes over the rows; the paper takes 5 for GloVe and 10 for larger vocabularies.
        clip: Clip the input to [-1, 1], the range of the tanh decoder.
        random_state: Seed of the first W and of the shuffles.

    Attributes:
        W_: Shape (n_bits, dims), float32.
        c_: Shape (dims,), float32.
        loss_curve_: Shape (epochs, 2): the mean of ℓ_rec over an epoch, and ℓ_reg at its end.
        n_features_in_: Dimensions of the vectors it was fitted on.
        n_bits_: Bits of its codes.
        feature_names_in_: Column names of the data frame it was fitted on, if it was one.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(0, 0.4, (500, 20))
        >>> coder = PaperAutoencoder(n_bits=64, epochs=5).fit(X)
        >>> codes = coder.transform(X)
        >>> codes.shape, codes.dtype, coder.inverse_transform(codes).shape
        ((500, 8), dtype('uint8'), (500, 20))
    """

    method: ClassVar[str] = "paper"
    state_shapes: ClassVar[Shapes] = {
        "W": ("bits", "dims"),
        "c": ("dims",),
        "loss_curve": ("any", 2),
    }
    W_: NDArray[np.float32]
    c_: NDArray[np.float32]
    loss_curve_: NDArray[np.float64]

    def __init__(
        self,
        n_bits: int = 256,
        *,
        lambda_reg: float = 1.0,
        learning_rate: float = 0.001,
        momentum: float = 0.95,
        batch_size: int = 75,
        epochs: int = 5,
        clip: bool = True,
        random_state: int | None = 0,
    ) -> None:
        self.n_bits = n_bits
        self.lambda_reg = lambda_reg
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.epochs = epochs
        self.clip = clip
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn W and c from vectors `X` of shape (n, dims).

        Raises:
            InputError: Bad vectors or parameters.
            TrainingError: The descent diverged.
        """
        X = self.check_vectors(X, fitting=True)
        self._start()
        rng = np.random.default_rng(self.random_state)
        self._draw_weights(rng)
        for epoch in range(self.epochs):
            self._epoch(X, rng.permutation(len(X)))
            if progress is not None:
                progress(epoch + 1, self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One more pass over the rows of `X`, in their order, from where the last call ended."""
        if not hasattr(self, "W_"):
            X = self.check_vectors(X, fitting=True)
            self._start()
            self._draw_weights(np.random.default_rng(self.random_state))
        else:
            X = self.check_vectors(X)
            self._resume()
        self._epoch(X, np.arange(len(X)))
        return self

    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The clipped vectors and W: scores are W x, eq. 1 before the Heaviside step."""
        return namespace(X).clip(X, -1, 1) if self.clip else X, self.W_

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """tanh(Wᵀ b + c) for each packed code, shape (n, dims): eq. 2."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        for rows in blocks(len(codes)):
            np.tanh(unpack(codes[rows], self.n_bits_) @ self.W_ + self.c_, out=vectors[rows])
        return vectors

    # -- training ------------------------------------------------------------------------------

    def _start(self) -> None:
        self.n_bits_ = check_n_bits(self.n_bits)
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)!r}, expected 1 or more")
        if not self.learning_rate > 0 or self.lambda_reg < 0 or not 0 <= self.momentum < 1:
            raise InputError(
                f"learning_rate={self.learning_rate!r}, lambda_reg={self.lambda_reg!r}, "
                f"momentum={self.momentum!r}: expected > 0, >= 0 and in [0, 1)"
            )

    def _draw_weights(self, rng: np.random.Generator) -> None:
        shape = (self.n_bits_, self.n_features_in_)
        # 0.05 up to 400 bits or dimensions; beyond, WᵀW would start so far from I that the
        # first steps on ℓ_reg overshoot.
        scale = min(0.05, max(shape) ** -0.5)
        self.W_ = rng.normal(0, scale, shape).astype(np.float32)
        self.c_ = np.zeros(shape[1], dtype=np.float32)
        self.loss_curve_ = np.empty((0, 2))
        self._velocity_W = np.zeros_like(self.W_)
        self._velocity_c = np.zeros_like(self.c_)

    def _resume(self) -> None:
        """Make weights that came from a file (mapped, read-only, no velocity) trainable again."""
        if not hasattr(self, "_velocity_W"):
            self.W_, self.c_ = self.W_.copy(), self.c_.copy()
            self._velocity_W = np.zeros_like(self.W_)
            self._velocity_c = np.zeros_like(self.c_)

    def _epoch(self, X: NDArray[Any], order: NDArray[np.int64]) -> None:
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
            # Shuffled rows are gathered for many steps at once, a step takes a slice of them.
            for rows in blocks(len(order), 64 * self.batch_size):
                gathered = self._clipped(as_float32(X[order[rows]]))
                for step in blocks(len(gathered), self.batch_size):
                    total += self._step(gathered[step])
            gram = self.W_.T @ self.W_
            gram.flat[:: len(gram) + 1] -= 1
            losses = total / len(order), 0.5 * float(np.vdot(gram, gram))
        if not np.isfinite(losses).all():
            raise TrainingError(
                f"training diverged (loss {losses[0]:g} + {self.lambda_reg:g} x {losses[1]:g}): "
                "lower learning_rate or lambda_reg"
            )
        self.loss_curve_ = np.vstack([self.loss_curve_, losses])

    def _step(self, x: NDArray[np.float32]) -> float:
        """One step of gradient descent on a batch; returns its summed ℓ_rec."""
        W, c = self.W_, self.c_
        rate = self.learning_rate
        b = (x @ W.T >= 0).astype(np.float32)
        y = b @ W
        y += c
        np.tanh(y, out=y)
        delta = y - x
        loss = float(np.vdot(delta, delta)) / float(x.shape[1])
        # ∂ℓ_rec/∂(Wᵀb + c) = 2/m (y - x) (1 - y²), with the learning rate folded in
        np.multiply(y, y, out=y)
        np.subtract(np.float32(1), y, out=y)
        delta *= y
        delta *= np.float32(2 * rate / x.shape[1])
        # λ ∂ℓ_reg/∂W = 2 λ W (WᵀW - I) = 2 λ (W Wᵀ - I) W: through the smaller Gram matrix, on
        # which the scaling is cheap
        wide = W.shape[0] >= W.shape[1]
        gram = W.T @ W if wide else W @ W.T
        gram.flat[:: len(gram) + 1] -= 1
        gram *= np.float32(2 * self.lambda_reg * rate)
        self._velocity_W *= np.float32(self.momentum)
        self._velocity_W -= W @ gram if wide else gram @ W
        self._velocity_W -= b.T @ delta
        self._velocity_c *= np.float32(self.momentum)
        self._velocity_c -= delta.sum(axis=0)
        W += self._velocity_W
        c += self._velocity_c
        return loss

    def _clipped(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.minimum(np.maximum(X, np.float32(-1)), np.float32(1)) if self.clip else X


def search_lambda(
    X: Any,
    n_bits: int = 256,
    lambdas: Sequence[float] = (1.0, 2.0, 3.0, 4.0),
    *,
    sample: int = 50_000,
    **params: Any,
) -> tuple[float, dict[float, float]]:
    """The paper's grid search: the λ with the smallest reconstruction + regularization loss.

    The two losses are compared without their weight λ, or the smallest λ would always win.

    Args:
        X: Vectors of shape (n, dims).
        n_bits: Bits of a code.
        lambdas: The weights to try.
        sample: Fit on this many rows, spread evenly.
        params: Other parameters of `PaperAutoencoder`.

    Returns:
        The best λ, and the final loss of each.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(0, 0.4, (300, 20))
        >>> best, losses = search_lambda(X, n_bits=32, lambdas=(1, 4), epochs=2)
        >>> best in losses
        True
    """
    rows = np.asarray(X)[:: max(1, -(-len(X) // sample))]
    losses = {}
    for lambda_reg in lambdas:
        coder = PaperAutoencoder(n_bits, lambda_reg=lambda_reg, **params).fit(rows)
        losses[lambda_reg] = float(coder.loss_curve_[-1].sum())
    return min(losses, key=losses.__getitem__), losses
