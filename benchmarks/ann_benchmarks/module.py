"""embits as an algorithm of ann-benchmarks and of VIBE.

Copy this file, `config.yml` and `Dockerfile` to `ann_benchmarks/algorithms/embits`; for VIBE, this
file and those of `vibe/` to `vibe/algorithms/embits` (README.md).
"""

import numpy as np

import embits
from embits.search import MultiIndex, top_k

try:
    from ..base.module import BaseANN
except ImportError:  # outside of both: hdf5.py and the tests
    BaseANN = object

COSINE = ("angular", "cosine", "normalized")


class EmbitsHamming(BaseANN):
    """Exact search by Hamming distance over the bits of the data set."""

    def __init__(self, metric, index="scan"):
        if metric != "hamming" or index not in ("scan", "multi-index"):
            # The algorithms of both benchmarks raise this error for a metric they do not support.
            raise NotImplementedError(f"EmbitsHamming has no metric {metric} with index {index}")
        self._index = index
        self.name = f"embits(hamming, {index})"

    def fit(self, X):
        self._codes = _packed(X)
        self._multi_index = MultiIndex(self._codes) if self._index == "multi-index" else None

    def query(self, v, n):
        return self._search(_packed(v), n, threads=1)

    def batch_query(self, X, n):
        self.res = self._search(_packed(X), n, threads=None)

    def get_batch_results(self):
        return self.res

    def _search(self, codes, n, threads):
        if self._multi_index is not None:
            return self._multi_index.top_k(codes, n, threads=threads).rows
        return top_k(self._codes, codes, n, threads).rows

    def __str__(self):
        return self.name


class Embits(BaseANN):
    """Codes of `n_bits` bits, searched by `search`, and a shortlist ordered by the floats.

    Args:
        metric: "angular", or VIBE's "cosine" and "normalized".
        n_bits: Bits per code.
        method: The coder.
        params: Other parameters of the coder.
    """

    def __init__(self, metric, n_bits, method="near-lossless", params=None):
        if metric not in COSINE:  # the same convention
            raise NotImplementedError(f"Embits compares by cosine, not by {metric}")
        self._n_bits, self._method = n_bits, method
        self._params = params or {}
        self.set_query_arguments("hamming", 0)

    def fit(self, X):
        self._floats = np.ascontiguousarray(X, dtype=np.float32)
        self._bits = embits.binarize(self._floats, self._n_bits, self._method, **self._params)

    def set_query_arguments(self, search, oversample):
        """How to search ("hamming" or "asymmetric"); 0 searches the codes alone."""
        self._how = {"metric": search}
        self._oversample = oversample
        self.name = f"embits({self._method}, {self._n_bits} bits, {search}, ×{oversample})"

    def query(self, v, n):
        return self._search(v, n, threads=1)

    def batch_query(self, X, n):
        self.res = self._search(X, n, threads=None)

    def get_batch_results(self):
        return self.res

    def _search(self, queries, n, threads):
        how = dict(self._how)
        if self._oversample:
            how |= {"rescore": int(self._oversample * n), "floats": self._floats}
        return self._bits.search(np.asarray(queries, np.float32), n, threads=threads, **how).rows

    def __str__(self):
        return self.name


def _packed(bits):
    """Packed codes: ann-benchmarks has one value for each bit, VIBE has packed bytes."""
    bits = np.asarray(bits)
    return bits if bits.dtype == np.uint8 else np.packbits(bits.astype(bool), axis=-1)
