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
    """Search by Hamming distance over the bits of the data set: exact, or by cells."""

    def __init__(self, metric, index="scan"):
        if metric != "hamming" or index not in ("scan", "multi-index", "cells"):
            # The algorithms of both benchmarks raise this error for a metric they do not support.
            raise NotImplementedError(f"EmbitsHamming has no metric {metric} with index {index}")
        self._index, self._recall = index, None
        self.name = f"embits(hamming, {index})"

    def fit(self, X):
        self._codes = _packed(X)
        if self._index == "multi-index":
            self._multi_index = MultiIndex(self._codes)
        elif self._index == "cells":
            bits = np.unpackbits(self._codes[:1000], axis=1)
            coder = embits.SignBits().fit(bits - np.float32(0.5))
            self._bits = embits.BinaryVectors(None, self._codes, coder).with_cells()

    def set_query_arguments(self, recall):
        """The share of the exact result that cells shall find; others are exact."""
        self._recall = recall
        self.name = f"embits(hamming, {self._index}, recall {recall})"

    def query(self, v, n):
        return self._search(_packed(v), n, threads=1)

    def batch_query(self, X, n):
        self.res = self._search(_packed(X), n, threads=None)

    def get_batch_results(self):
        return self.res

    def _search(self, codes, n, threads):
        if self._index == "cells":
            return self._bits.on(threads=threads).search(codes, n, recall=self._recall).rows
        if self._index == "multi-index":
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
        cells: Whether the codes get cells, so that a search can read a part of the rows.
        params: Other parameters of the coder.
    """

    def __init__(self, metric, n_bits, method="near-lossless", cells=False, params=None):
        if metric not in COSINE:  # the same convention
            raise NotImplementedError(f"Embits compares by cosine, not by {metric}")
        self._n_bits, self._method, self._cells = n_bits, method, cells
        self._params = params or {}
        self.set_query_arguments("hamming", 0)

    def fit(self, X):
        self._floats = np.ascontiguousarray(X, dtype=np.float32)
        self._bits = embits.binarize(self._floats, self._n_bits, self._method, **self._params)
        if self._cells:
            self._bits = self._bits.with_cells()

    def set_query_arguments(self, search, oversample, recall=None, second_look=None):
        """How to search.

        Args:
            search: "hamming" or "asymmetric".
            oversample: Rows for each neighbor that are ordered by the floats; 0: none are.
            recall: The share of the rows of an exact search over the codes that cells shall find;
                None reads all rows.
            second_look: Rows that are scored again by their decoded vectors; None: as the coder was
                fitted, which only that of "neural" does. The Hamming distance has none.
        """
        self._how = {"metric": search, "recall": recall}
        self._look = None if search == "hamming" else second_look
        self._oversample = oversample
        cells = ", cells" if self._cells else ""
        self.name = f"embits({self._method}, {self._n_bits} bits{cells}, {search}, ×{oversample}"
        self.name += "" if recall is None else f", recall {recall}"
        self.name += ")" if second_look is None else f", second look {second_look})"

    def query(self, v, n):
        return self._search(v, n, threads=1)

    def batch_query(self, X, n):
        self.res = self._search(X, n, threads=None)

    def get_batch_results(self):
        return self.res

    def _search(self, queries, n, threads):
        stages = [] if self._look is None else [embits.Rescore(self._look, "decoded")]
        if self._oversample:
            stages.append(embits.Rescore(int(self._oversample * n), self._floats))
        bits, queries = self._bits.on(threads=threads), np.asarray(queries, np.float32)
        return bits.search(queries, n, rescore=stages or None, **self._how).rows

    def __str__(self):
        return self.name


def _packed(bits):
    """Packed codes: ann-benchmarks has one value for each bit, VIBE has packed bytes."""
    bits = np.asarray(bits)
    return bits if bits.dtype == np.uint8 else np.packbits(bits.astype(bool), axis=-1)
