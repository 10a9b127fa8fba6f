"""The naive method: one bit per dimension, 0 where the value is negative and 1 otherwise."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, namespace
from embits.checks import check_n_bits
from embits.coders.base import Shapes
from embits.coders.linear import DECODER, LinearlyDecoded
from embits.errors import InputError

_BELOW_ZERO = -float(np.finfo(np.float32).tiny)  # a normal number: no processor flushes it to zero


class SignBits(LinearlyDecoded):
    """One bit per dimension: its sign.

    Args:
        n_bits: None, or the dimensions of the input: this method has no other width.
        strict: A value of exactly 0 gives bit 0, as sentence-transformers has it; it gives 1
            otherwise, as with every other coder here.

    Example:
        >>> import numpy as np
        >>> X = np.array([[0.5, -0.1, 0.0], [-0.5, 0.2, 0.3]])
        >>> np.unpackbits(SignBits().fit_transform(X), axis=1, count=3)
        array([[1, 0, 1],
               [0, 1, 1]], dtype=uint8)
    """

    method: ClassVar[str] = "sign"
    state_shapes: ClassVar[Shapes] = DECODER

    def __init__(self, n_bits: int | None = None, strict: bool = False) -> None:
        self.n_bits, self.strict = n_bits, strict

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn the decoder; the encoder has nothing to learn."""
        X = self.check_vectors(X, fitting=True)
        dims = self.n_features_in_
        if self.n_bits is not None and check_n_bits(self.n_bits) != dims:
            found = f"sign gives one bit per dimension: {dims} for these vectors, not {self.n_bits}"
            raise InputError(f"{found}; leave the number of bits out, or take another method")
        self.n_bits_ = dims
        return self._with_decoder(X)

    def project(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vectors themselves, shape (n, dims); zeros are just below zero where `strict`."""
        if not self.strict:
            return X
        xp = namespace(X)
        below: NDArray[np.float32] = xp.where(X == 0, xp.full_like(X, _BELOW_ZERO), X)
        return below
