"""The searched codes of NearLossless against the bare product W x, on one core and on all.

    python benchmarks/encode.py [--bits 256] [--dims 384] [--rows 16384]

Both take turns; prints the median of the ratios for each instruction set. With several threads,
the matrix library and the encoder use as many.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import Any

ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--dims", type=int, default=384)
    parser.add_argument("--rows", type=int, default=16_384)
    parser.add_argument("--threads", type=int, help="of one measurement; else one, then all")
    args = parser.parse_args()
    if args.threads:
        measure(args)
        return
    for threads in sorted({1, os.cpu_count() or 1}):
        # The matrix library reads both when it is loaded. By default its threads wait for work on
        # a busy core for some 20 ms after a product, and the encoder would share that core.
        blas = {"OPENBLAS_NUM_THREADS": str(threads), "OPENBLAS_THREAD_TIMEOUT": "4"}
        environment = {**os.environ, **blas}
        subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--threads", str(threads)],
            env=environment, check=True,
        )  # fmt: skip


def measure(args: argparse.Namespace) -> None:
    import numpy as np

    import embits
    from embits import _core

    rng = np.random.default_rng(0)
    centers = rng.normal(size=(200, args.dims))
    X = centers[rng.integers(0, 200, args.rows)] + rng.normal(0, 1.2, (args.rows, args.dims))
    X = X.astype(np.float32)
    coder = embits.NearLossless(args.bits, steps=30).fit(X)
    if coder.is_threshold:
        raise SystemExit("this fit found no bits worth searching: nothing to measure")
    encode = partial(coder._encoder().encode, X, args.threads)
    weights = np.ascontiguousarray(coder.W_.T)
    for simd in _core.available_simd():
        _core.use_simd(simd)
        product, encoding = in_turns(lambda: X @ weights, encode, threads=args.threads)
        ratio = statistics.median(b / a for a, b in zip(product, encoding, strict=True))
        print(
            f"{args.dims} dimensions, {args.bits} bits, {args.threads} thread(s), {simd}: "
            f"product {statistics.median(product) / args.rows * 1e6:.2f} µs a row, "
            f"codes {statistics.median(encoding) / args.rows * 1e6:.2f} µs, {ratio:.2f} times",
            flush=True,
        )


def in_turns(*runs: Any, threads: int) -> list[list[float]]:
    """Seconds of each run in each round; of one thread, its processor time."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, taken in zip(runs, times, strict=True):
            time.sleep(0.002)  # threads of the other run stop waiting for work
            start = clock()
            run()
            taken.append(clock() - start)
    return times


if __name__ == "__main__":
    main()
