"""Fits on few rows: recall@10 of codes whose coder has seen 5 to 2,000 rows, with peers beside it.

    python benchmarks/few_rows.py VECTORS.npy [MORE.npy ...] [--bits 256] [--rows 5,20,100,500,2000]
        [--among 10000] [--seeds 3]

Each seed draws the rows that are searched, the 500 queries, which are others, and the rows of the
fit, which are the first of those searched. Columns: recall of the ten nearest by cosine, by float
query (metric "asymmetric") and by Hamming distance.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import embits
from embits.arrays import unit_rows
from embits.errors import TrainingWarning

METHODS = {
    "near-lossless": embits.NearLossless,
    "itq": embits.ITQ,
    "lsh": embits.RandomHyperplanes,
}
K, QUERIES = 10, 500


def main() -> None:
    """Fit, search and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path, nargs="+")
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--rows", default="5,20,100,500,2000")
    parser.add_argument("--among", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    X = np.concatenate([np.load(path) for path in args.vectors]).astype(np.float32)
    print(f"{'rows':>6}  " + "".join(f"{name:>20}" for name in METHODS))
    for n in map(int, args.rows.split(",")):
        line = f"{n:6}  "
        for method in METHODS.values():
            scores = [
                recalls(method(args.bits, random_state=seed), X, n, args.among, seed)
                for seed in range(args.seeds)
            ]
            line += "{:>13.3f} {:.3f} ".format(*np.mean(scores, axis=0))
        print(line, flush=True)


def recalls(
    coder: embits.Coder, X: np.ndarray, n: int, among: int, seed: int
) -> tuple[float, float]:
    """By float query and by Hamming distance, of a coder fitted on n rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    among = min(among, len(X) * 3 // 4)
    rows, queries = X[order[:among]], X[order[among : among + QUERIES]]
    cosines = unit_rows(queries) @ unit_rows(rows).T
    nearest = np.argpartition(-cosines, K, axis=1)[:, :K]
    coder.fit(rows[:n])
    bits = embits.BinaryVectors(None, coder.encode(rows), coder)
    found = (
        bits.search(queries, K, metric="asymmetric").rows,
        bits.search(coder.encode(queries), K).rows,
    )
    by_float, by_hamming = (
        float((nearest[:, :, None] == each[:, None, :]).any(axis=2).mean()) for each in found
    )
    return by_float, by_hamming


if __name__ == "__main__":
    main()
