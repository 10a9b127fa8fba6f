"""embits, sign and EDEN as contenders."""

from __future__ import annotations

from functools import partial
from typing import Any

import faiss
import numpy as np
from measures import Clock, Fitted, Floats, Maker, Rows, Search

import embits
from embits.search import asymmetric_top_k, top_k

CODERS: dict[str, dict[str, Any]] = {
    "NearLossless": {},
    "Neural": {},
    "Neural long": {"effort": "long"},
    "Neural long float": {"effort": "long", "prefer": "float"},
}


def embits_maker(name: str, n_bits: int, seed: int, device: str) -> Maker:
    """One of CODERS. `among` searches the unseen rows alone: a second look has a shortlist."""

    def make(sample: Floats, X: Floats) -> Fitted:
        clock = Clock()
        of = getattr(embits, name.split()[0])
        coder = of(n_bits, random_state=seed, device=device, **CODERS[name]).fit(sample)
        fit_s = clock.lap()
        codes = coder.encode(X, device=device)
        encode_us = 1e6 * clock.lap() / len(X)
        bits = embits.BinaryVectors(None, codes, coder)

        def by(metric: str, first: int = 0) -> Search:
            rows = bits.subset(np.arange(len(bits)) >= first) if first else bits
            return lambda queries, k: (
                rows.on(threads=1).search(queries, k, metric=metric).rows + first
            )

        metrics = {"Hamming": "hamming", "float query": "asymmetric", "decoded": "decoded"}
        ways = {way: by(metric) for way, metric in metrics.items()}
        among = {way: partial(by, metric) for way, metric in metrics.items()}
        shared = sum(part.nbytes for part in coder.state().values())
        return Fitted(ways, n_bits / 8, shared, fit_s, encode_us, among)

    return make


def sign_maker() -> Maker:
    """One bit a dimension: whether it is above its mean."""

    def make(sample: Floats, X: Floats) -> Fitted:
        clock = Clock()
        mean = sample.mean(axis=0)
        fit_s = clock.lap()
        codes = np.packbits(mean < X, axis=1)
        encode_us = 1e6 * clock.lap() / len(X)

        def hamming(queries: Floats, k: int) -> Rows:
            return top_k(codes, np.packbits(queries > mean, axis=1), k, 1).rows

        def weighted(queries: Floats, k: int) -> Rows:
            return asymmetric_top_k(codes, queries - mean, k, 1).rows

        ways = {"Hamming": hamming, "float query": weighted}
        return Fitted(ways, codes.shape[1], mean.nbytes, fit_s, encode_us)

    return make


def eden_maker(n_bits: int) -> Maker:
    """EDEN (Vargaftik et al. 2022): a rotation, the best levels of a normal value, and a scale.

    Searched as floats: its time is not that of a scan of codes.
    """

    def make(sample: Floats, X: Floats) -> Fitted:
        clock = Clock()
        dims = X.shape[1]
        rng = np.random.default_rng(0)
        rotation = np.linalg.qr(rng.normal(size=(dims, dims)))[0].astype(np.float32)
        levels = lloyd_max(n_bits)
        edges = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
        fit_s = clock.lap()
        rotated = X @ rotation * np.float32(dims**0.5)
        coded = levels[np.searchsorted(edges, rotated)]
        along = np.einsum("ij,ij->i", rotated, coded)
        coded *= (np.einsum("ij,ij->i", rotated, rotated) / along)[:, None]
        encode_us = 1e6 * clock.lap() / len(X)
        index = faiss.IndexFlatIP(dims)
        index.add(np.ascontiguousarray(coded, dtype=np.float32))
        faiss.omp_set_num_threads(1)
        ways: dict[str, Search] = {"": lambda queries, k: index.search(queries @ rotation, k)[1]}
        return Fitted(ways, n_bits * dims / 8 + 4, rotation.nbytes, fit_s, encode_us)

    return make


def lloyd_max(n_bits: int) -> Floats:
    """The levels with the least squared error for values of a normal distribution."""
    values = np.sort(np.random.default_rng(1).normal(size=200_000))
    levels = np.quantile(values, (np.arange(2**n_bits) + 0.5) / 2**n_bits)
    for _ in range(100):
        parts = np.split(values, np.searchsorted(values, (levels[1:] + levels[:-1]) / 2))
        levels = np.array([part.mean() for part in parts])
    return levels.astype(np.float32)
