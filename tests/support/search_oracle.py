"""Slow and obvious answers that the fast searches must give."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WIDTHS = [*range(1, 139), 160, 256, 960, 992, 1024]  # bytes: 1 to 1,100 bits, and wide codes


def hamming_top_k(
    codes: NDArray[np.uint8], queries: NDArray[np.uint8], k: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    differing = np.unpackbits(codes[np.newaxis] ^ queries[:, np.newaxis], axis=2)
    return smallest(differing.sum(axis=2, dtype=np.int32), k)


def scores(codes: NDArray[np.uint8], projections: NDArray[np.float32]) -> NDArray[np.float64]:
    bits = np.unpackbits(codes, axis=1)[:, : projections.shape[1]]
    return projections.astype(np.float64) @ (2.0 * bits - 1).T


def smallest(values, k):
    rows = np.argsort(values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, rows, axis=1), rows


def random_codes(rng: np.random.Generator, n: int, width: int) -> NDArray[np.uint8]:
    """Codes that start at any address, a few bits apart, so that there are ties at any width."""
    start = int(rng.integers(0, 64))
    buffer = np.zeros(start + n * width, dtype=np.uint8)
    codes = buffer[start:].reshape(n, width)
    codes[:] = rng.integers(0, 256, (1, width))
    flips = rng.random((n, width)) < rng.random()
    codes[flips] ^= rng.integers(0, 256, int(flips.sum()), dtype=np.uint8)
    return codes


def filtered_hamming_top_k(codes, queries, k, mask):
    """As `hamming_top_k`, of the rows in a mask (n,) or in one for each query (q, n)."""
    differing = np.bitwise_count(codes[np.newaxis] ^ queries[:, np.newaxis])
    distances = differing.sum(axis=2, dtype=np.int32)
    return _filtered(distances, k, mask, np.int32(2**31 - 1))


def filtered_score_top_k(codes, projections, k, mask):
    """The highest scores, in the same way."""
    values, rows = _filtered(-scores(codes, projections), k, mask, np.inf)
    return (-values).astype(np.float32), rows


def _filtered(values, k, mask, no_value):
    most = int(mask.sum(axis=-1).max(initial=0))
    mask = np.broadcast_to(mask, values.shape)
    values = np.where(mask, values, no_value).astype(values.dtype)
    best, rows = smallest(values, min(k, most))
    passed = np.take_along_axis(mask, rows, axis=1)
    return best, np.where(passed, rows, -1)


def hamming_within(
    codes: NDArray[np.uint8], queries: NDArray[np.uint8], distance: int
) -> list[list[tuple[int, int]]]:
    """For each query its (distance, row) pairs, in order."""
    differing = np.unpackbits(codes[np.newaxis] ^ queries[:, np.newaxis], axis=2).sum(axis=2)
    return [
        sorted((int(d), row) for row, d in enumerate(of_query) if d <= distance)
        for of_query in differing
    ]


def ragged(offsets, rows, values) -> list[list[tuple[float, int]]]:
    """A ragged result as one list of (value, row) pairs for each query."""
    pairs = list(zip(values.tolist(), rows.tolist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(offsets)]
