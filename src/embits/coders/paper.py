"""The model of *Near-lossless Binarization of Word Embeddings* (AAAI 2019).

    b = h(W x)                                   eq. 1   h: Heaviside, W: (n_bits, dims)
    y = tanh(Wᵀ b + c)                           eq. 2   the encoder and the decoder share W
    ℓ_rec = 1/m Σ (x - y)²                       eq. 3
    ℓ_reg = 1/2 ‖WᵀW - I‖²                       eq. 4
    L = Σ ℓ_rec + λ ℓ_reg                        eq. 5

The gradient goes through the decoder and the regularizer only (∂Φ/∂W = 0). It is followed by SGD
with momentum. Where the paper gives no details: the loss is summed over a batch, rows are shuffled
in every epoch, W starts from a normal distribution and c from zero.

One thing is added: vectors with smaller values than GloVe's, such as unit vectors, are centered and
multiplied by a power of two first, and decoding undoes both. Without this, the regularizer
outweighs the reconstruction, and most vectors with a large common mean get the same code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import LazyRows, Progress, as_float32, blocks, namespace, unpack
from embits.checks import check_n_bits, number, random_generator, warn_if_collapsed, whole
from embits.coders.base import Shapes
from embits.coders.linear import LinearlyEncoded
from embits.errors import FormatError, InputError, TrainingError

MAX_HELD_BYTES = 1 << 28  # of the rows of a file that a fit holds in memory
STEPS_AT_ONCE = 1_024  # between two of them, a fit can be interrupted
USUAL_SIZE = 0.4  # root mean square of the values of GloVe
MAX_SCALE_LOG2 = 30  # of equal rows, only rounding errors are left by the centering
SCALE_ROWS = 10_000  # rows that the mean and the scale are computed from


class PaperAutoencoder(LinearlyEncoded):
    """The paper's autoencoder.

    Args:
        n_bits: Bits of a code: any number, including more than the dimensions of the input.
        lambda_reg: λ, the weight of the orthogonality loss; the paper takes 1 to 4.
        learning_rate: Step size of the gradient descent.
        momentum: Momentum of the gradient descent.
        batch_size: Rows of a step.
        epochs: Passes over the rows; the paper takes 5 for GloVe and 10 for larger vocabularies.
        clip: Clip the scaled input to [-1, 1], the range of the tanh decoder.
        random_state: Seed of the first W and of the shuffles.

    Attributes:
        W_: Shape (n_bits, dims), float32.
        c_: Shape (dims,), float32.
        mean_: What is subtracted from the input, shape (dims,), float32: the mean of vectors
            with smaller values than GloVe's, 0 for others.
        scale_: What the difference is multiplied by, shape (1,), float32: a power of two that
            brings smaller values to the size of GloVe's, 1 for others.
        loss_curve_: Shape (epochs, 2): the mean of ℓ_rec over an epoch, and ℓ_reg at its end.

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
        "mean": ("dims",),
        "scale": (1,),
    }
    state_defaults: ClassVar[Mapping[str, float]] = {"mean": 0, "scale": 1}
    shuffles_rows: ClassVar[bool] = True
    W_: NDArray[np.float32]
    c_: NDArray[np.float32]
    mean_: NDArray[np.float32]
    scale_: NDArray[np.float32]
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
        self.n_bits, self.lambda_reg = n_bits, lambda_reg
        self.learning_rate, self.momentum = learning_rate, momentum
        self.batch_size, self.epochs = batch_size, epochs
        self.clip, self.random_state = clip, random_state

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn W and c from vectors `X` of shape (n, dims): the same for any number of threads.

        Raises:
            InputError: Bad vectors or parameters.
            TrainingError: The descent diverged.
        """
        X = self.check_vectors(X, fitting=True)
        if isinstance(X, LazyRows) and 4 * len(X) * X.dims <= MAX_HELD_BYTES:
            X = np.asarray(X)  # one by one, reading rows of a file is slow
        rng = self._start(X)
        for epoch in range(self.epochs):
            self._epoch(X, rng.permutation(len(X)))
            if progress is not None:
                progress(epoch + 1, self.epochs)
        warn_if_collapsed(self, X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One more pass over the rows of `X`, in their order, from where the last call ended."""
        is_first = not hasattr(self, "W_")
        X = self.check_vectors(X, fitting=is_first)
        if is_first:
            self._start(X)
        elif not hasattr(self, "_velocity_W"):  # weights of a file: mapped, and without velocities
            for name in ("W_", "c_", "mean_"):
                setattr(self, name, getattr(self, name).astype(np.float32))
            self._rest()
        self._epoch(X, np.arange(len(X)))
        return self

    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The scaled and clipped vectors, and W: scores are W x, eq. 1 before the Heaviside."""
        scaled = (X - self.mean_) * self._scale() if self._scale() != 1 else X
        return namespace(X).clip(scaled, -1, 1) if self.clip else scaled, self.W_

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """tanh(Wᵀ b + c) / scale + mean for each packed code, shape (n, dims): eq. 2."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        for rows in blocks(len(codes)):
            np.tanh(unpack(codes[rows], self.n_bits_) @ self.W_ + self.c_, out=vectors[rows])
        vectors /= np.float32(self._scale())
        vectors += self.mean_
        return vectors

    def check_learned(self) -> None:
        super().check_learned()
        self._scale()

    def _scale(self) -> float:
        scale = float(self.scale_[0])
        if not scale >= 1:
            raise FormatError(f"damaged: the coder's scale is {scale:g}, expected 1 or more")
        return scale

    def _start(self, X: NDArray[Any]) -> np.random.Generator:
        """Check the parameters and draw the first weights; returns the generator that drew them."""
        self.n_bits_ = check_n_bits(self.n_bits)
        whole("batch_size", self.batch_size, 1)
        whole("epochs", self.epochs, 1)
        number("lambda_reg", self.lambda_reg, least=0)
        if not number("learning_rate", self.learning_rate) > 0:
            raise InputError(f"learning_rate is {self.learning_rate!r}, expected more than 0")
        if not 0 <= number("momentum", self.momentum) < 1:
            raise InputError(f"momentum is {self.momentum!r}, expected 0 or more and less than 1")
        rng = random_generator(self.random_state)
        shape = (self.n_bits_, self.n_features_in_)
        # 0.05 up to 400 bits or dimensions. Beyond, WᵀW would start so far from I that the first
        # steps on ℓ_reg would overshoot.
        spread = min(0.05, max(shape) ** -0.5)
        self.W_ = rng.normal(0, spread, shape).astype(np.float32)
        self.c_ = np.zeros(shape[1], dtype=np.float32)
        self.mean_, self.scale_ = _mean_and_scale(X)
        self.loss_curve_ = np.empty((0, 2))
        self._rest()
        return rng

    def _rest(self) -> None:
        self._velocity_W, self._velocity_c = np.zeros_like(self.W_), np.zeros_like(self.c_)

    def _epoch(self, X: NDArray[Any], order: NDArray[np.int64]) -> None:
        in_place = isinstance(X, np.ndarray) and X.dtype == np.float32 and X.flags.c_contiguous
        total = 0.0
        for part in blocks(len(order), STEPS_AT_ONCE * self.batch_size):
            rows = order[part]
            at = rows if in_place else np.arange(len(rows))
            total += _core.train_paper(
                X if in_place else as_float32(X[rows]), at,
                self.W_, self.c_, self._velocity_W, self._velocity_c,
                batch_size=int(self.batch_size), learning_rate=float(self.learning_rate),
                momentum=float(self.momentum), lambda_reg=float(self.lambda_reg),
                mean=self.mean_, scale=self._scale(), clip=bool(self.clip), threads=0,
            )  # fmt: skip
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported below
            gram = self.W_.T @ self.W_
            gram.flat[:: len(gram) + 1] -= 1
            losses = total / len(order), 0.5 * float(np.vdot(gram, gram))
        if not np.isfinite(losses).all():
            loss = f"loss {losses[0]:g} + {self.lambda_reg:g} x {losses[1]:g}"
            raise TrainingError(f"training diverged ({loss}): lower learning_rate or lambda_reg")
        self.loss_curve_ = np.vstack([self.loss_curve_, losses])


def search_lambda(
    X: Any,
    n_bits: int = 256,
    lambdas: Sequence[float] = (1.0, 2.0, 3.0, 4.0),
    *,
    sample: int = 50_000,
    **params: Any,
) -> tuple[float, dict[float, float]]:
    """The paper's grid search: the λ with the smallest reconstruction + regularization loss.

    The two losses are compared without the weight λ. With it, the smallest λ would always win.

    Args:
        X: Vectors of shape (n, dims).
        lambdas: The weights to try: one or more.
        sample: Fit on this many rows, spread evenly.
        params: Other parameters of `PaperAutoencoder`.

    Returns:
        The best λ, and the final loss of each.

    Raises:
        InputError: Bad vectors or parameters, or no λ to try.
    """
    if isinstance(lambdas, str) or not np.ndim(lambdas) or not len(lambdas):
        raise InputError(f"lambdas is {lambdas!r}, expected a list of one weight or more")
    X = PaperAutoencoder().check_vectors(X, fitting=True)
    rows = X[:: -(-len(X) // whole("sample", sample, 1))]
    losses: dict[float, float] = {}
    for lambda_reg in lambdas:
        coder = PaperAutoencoder(n_bits, lambda_reg=lambda_reg, **params).fit(rows)
        losses[lambda_reg] = float(coder.loss_curve_[-1].sum())
    return min(losses, key=losses.__getitem__), losses


def _mean_and_scale(X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What to subtract from rows, (dims,), and to multiply them by, (1,): 0 and 1, or as above."""
    sample = np.asarray(X[np.arange(0, len(X), -(-len(X) // SCALE_ROWS))], dtype=np.float64)
    mean, scale = np.zeros(sample.shape[1], dtype=np.float32), _scale_to_usual(sample)
    if scale > 1:
        mean = sample.mean(axis=0).astype(np.float32)
        scale = _scale_to_usual(sample - mean)
    return mean, np.array([scale], dtype=np.float32)


def _scale_to_usual(values: NDArray[np.float64]) -> float:
    """The power of two, 1 or more, for the usual size: it multiplies floats without rounding."""
    size = math.sqrt(np.mean(values * values))
    exponent = round(math.log2(USUAL_SIZE / size)) if size > 0 else 0
    return 2.0 ** min(max(0, exponent), MAX_SCALE_LOG2)
