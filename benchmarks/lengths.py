"""Recall@10 by inner product on vectors whose lengths vary, with and without stored lengths.

    python benchmarks/lengths.py VECTORS... [--bits 64,128,256] [--queries 1000]

Queries are rows of the file that the fit did not see. The true neighbors are the rows with the
largest inner products of the floats. "dot" reads the lengths, a byte a row; "asymmetric" orders by
the estimated cosine; "cosine of the floats" is the most that an order without lengths can reach.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import embits


def recall(found: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    """The share of the true neighbors that was found."""
    pairs = zip(found, true, strict=True)
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in pairs]))


def nearest(scores: NDArray[np.float32], k: int = 10) -> NDArray[np.int64]:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", nargs="+")
    parser.add_argument("--bits", default="64,128,256")
    parser.add_argument("--queries", type=int, default=1000)
    options = parser.parse_args()
    for path in options.vectors:
        X = embits.read_vectors(path).matrix
        X = X[np.linalg.norm(X, axis=1) > 0]
        order = np.random.default_rng(0).permutation(len(X))
        queries, rows = X[order[: options.queries]], X[order[options.queries :]]
        lengths = np.linalg.norm(rows, axis=1)
        true = nearest(queries @ rows.T)
        low, high = np.percentile(lengths, [1, 99])
        print(f"{path}: {len(rows):,} × {X.shape[1]}, lengths {low:.2f} to {high:.2f}")
        cosines = nearest(queries @ (rows / lengths[:, None]).T)
        print(f"  cosine of the floats  {100 * recall(cosines, true):5.1f} %")
        for width in map(int, options.bits.split(",")):
            bits = embits.binarize(rows, n_bits=width, lengths=True)
            for metric in ("asymmetric", "dot"):
                found = bits.search(queries, k=10, metric=metric).rows
                print(f"  {width:4} bits, {metric:10}  {100 * recall(found, true):5.1f} %")


if __name__ == "__main__":
    main()
