"""Locality-sensitive hashing for cosine similarity (Charikar 2002): the paper's LSH rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.checks import check_n_bits, random_generator
from embits.coders.base import Shapes
from embits.coders.linear import DECODER, LinearlyDecoded, LinearlyEncoded


class RandomHyperplanes(LinearlyEncoded, LinearlyDecoded):
    """Each bit says on which side of a random hyperplane a vector lies.

    Args:
        n_bits: Bits of a code: any number.
        random_state: Seed of the hyperplanes.

    Attributes:
        planes_: Normals of the hyperplanes, shape (n_bits, dims), float32.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 20))
        >>> RandomHyperplanes(n_bits=12).fit_transform(X).shape
        (100, 2)
    """

    method: ClassVar[str] = "lsh"
    state_shapes: ClassVar[Shapes] = {"planes": ("bits", "dims"), **DECODER}
    planes_: NDArray[np.float32]

    def __init__(self, n_bits: int = 256, *, random_state: int | None = 0) -> None:
        self.n_bits, self.random_state = n_bits, random_state

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Draw the hyperplanes and learn the decoder."""
        X = self.check_vectors(X, fitting=True)
        self.n_bits_ = check_n_bits(self.n_bits)
        rng = random_generator(self.random_state)
        self.planes_ = rng.normal(size=(self.n_bits_, self.n_features_in_)).astype(np.float32)
        return self._with_decoder(X)

    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors, and the normals: scores are signed distances up to scale."""
        return X, self.planes_
