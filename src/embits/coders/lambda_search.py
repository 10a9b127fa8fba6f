"""The paper's grid search for the weight of its orthogonality loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embits.coders.paper import PaperAutoencoder
from embits.errors import InputError


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
        n_bits: Bits of a code.
        lambdas: The weights to try: one or more.
        sample: Fit on this many rows, spread evenly.
        params: Other parameters of `PaperAutoencoder`.

    Returns:
        The best λ, and the final loss of each.

    Raises:
        InputError: Bad vectors or parameters, or no λ to try.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(0, 0.4, (300, 20))
        >>> best, losses = search_lambda(X, n_bits=32, lambdas=(1, 4), epochs=2)
        >>> best in losses
        True
    """
    if hasattr(X, "matrix"):
        raise InputError("X is an object with words, expected a matrix: pass X.matrix")
    if (
        isinstance(lambdas, str)
        or not isinstance(lambdas, Sequence | np.ndarray)
        or not len(lambdas)
    ):
        raise InputError(f"lambdas is {lambdas!r}, expected a list of one weight or more")
    X = PaperAutoencoder().check_vectors(X, fitting=True)
    rows = X[:: max(1, -(-len(X) // sample))]
    losses: dict[float, float] = {}
    for lambda_reg in lambdas:
        coder = PaperAutoencoder(n_bits, lambda_reg=lambda_reg, **params).fit(rows)
        losses[lambda_reg] = float(coder.loss_curve_[-1].sum())
    return min(losses, key=losses.__getitem__), losses
