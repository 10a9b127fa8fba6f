"""Small made-up vectors with structure in them."""

import numpy as np


def clustered(n=600, dims=24, clusters=30, seed=0):
    """Vectors in clusters, so that neighbors mean something."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(0, 0.5, (clusters, dims))
    return (centers[rng.integers(0, clusters, n)] + rng.normal(0, 0.1, (n, dims))).astype("f4")
