"""`binarize` end to end, against the bare matrix products it needs plus reading the text.

    python benchmarks/binarize.py [VECTORS] [--bits 256]

Prints the ratio of times and peak memory against the float matrix. Without VECTORS, a text
file of 341,479 × 100 random floats is made.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import embits


def bare_products(X: np.ndarray, n_bits: int, batch: int, epochs: int) -> float:
    """Seconds of the products alone: Wx, Wᵀb, bᵀδ and the two of the regularizer, per batch."""
    n, m = X.shape
    rng = np.random.default_rng(0)
    W = rng.normal(0, 0.05, (n_bits, m)).astype("f4")
    b = rng.integers(0, 2, (batch, n_bits)).astype("f4")
    start = time.perf_counter()
    for _ in range(epochs):
        for at in range(0, n, batch):
            x = X[at : at + batch]
            bits = b[: len(x)]
            x @ W.T
            bits @ W
            bits.T @ x
            if n_bits < m:
                (W @ W.T) @ W
            else:
                W @ (W.T @ W)
    for at in range(0, n, 8192):  # encoding
        X[at : at + 8192] @ W.T
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors", nargs="?", type=Path)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.vectors
        if path is None:
            path = Path(folder, "random.txt")
            matrix = np.random.default_rng(0).normal(0, 0.4, (341_479, 100)).astype("f4")
            words = [f"w{i}" for i in range(len(matrix))]
            embits.write_vectors(path, embits.WordVectors(words, matrix))
        ratios = []
        for _ in range(args.runs):
            start = time.perf_counter()
            X = embits.read_vectors(path).matrix
            reading = time.perf_counter() - start
            products = bare_products(X, args.bits, batch=75, epochs=5)
            shape, float_bytes = X.shape, X.nbytes
            del X
            command = [sys.executable, "-m", "embits", "binarize", path, "-o", f"{folder}/out",
                       "--method", "paper", "--bits", str(args.bits)]  # fmt: skip
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            whole = time.perf_counter() - start
            ratios.append(whole / (reading + products))
            print(
                f"{shape[0]:,} × {shape[1]} -> {args.bits} bits: {whole:.2f} s whole, "
                f"{reading:.2f} s reading + {products:.2f} s bare products: {ratios[-1]:.2f} ×"
            )
    # The largest child is `embits binarize` itself.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"median ratio {statistics.median(ratios):.2f}")
    print(f"peak memory {peak / 1e6:.0f} MB = {peak / float_bytes:.2f} × the floats")


if __name__ == "__main__":
    main()
