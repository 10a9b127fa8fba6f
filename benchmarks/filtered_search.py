"""Searches with a filter, beside the search of all rows: time ratios in paired turns.

    python benchmarks/filtered_search.py                  # 10 million random codes of 256 bits
    python benchmarks/filtered_search.py --rows 1000000 --bits 64

"selection" is a filter that was parsed once, "mask" a boolean array that every search reads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from embits.search import asymmetric_top_k, kernel, select, top_k

SHARES = (0.0001, 0.01, 0.1, 0.5, 0.9, 0.99)
Search = Callable[..., object]


def turns(run: Search, beside: Search, rounds: int) -> tuple[float, float]:
    """Seconds of `beside` and the ratio of `run` to it: medians over rounds, processor time."""
    for each in (run, beside):
        each()
    pairs = [(seconds(run), seconds(beside)) for _ in range(rounds)]
    ratio = statistics.median(own / other for own, other in pairs)
    return statistics.median(other for _, other in pairs), ratio


def seconds(run: Search) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def measure(name: str, search: Search, n: int, n_queries: int, rounds: int) -> None:
    rng = np.random.default_rng(1)
    for share in SHARES:
        mask = rng.random(n) < share
        for form, where in (("selection", select(n, mask)), ("mask", mask)):
            full, ratio = turns(partial(search, where=where), search, rounds)
            print(
                f"| {name} | {n_queries} | {share:.2%} | {form} | {1e3 * full:.2f} | "
                f"**{ratio:.3f}** |",
                flush=True,
            )


def measure_own(codes: NDArray[np.uint8], queries: NDArray[np.uint8], rounds: int) -> None:
    """A filter for each query."""
    n, rng = len(codes), np.random.default_rng(1)
    for share in (0.001, 0.5, 0.99):
        where = [select(n, rng.random(n) < share) for _ in queries]
        search = partial(top_k, codes, queries, 10, threads=1)
        full, ratio = turns(partial(search, where=where), search, rounds)
        print(f"| Hamming, own filters | {len(queries)} | {share:.2%} | selection | "
              f"{1e3 * full:.2f} | **{ratio:.3f}** |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64, help="queries of a batch")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (args.rows, args.bits // 8), dtype=np.uint8)
    queries = rng.integers(0, 256, (args.batch, args.bits // 8), dtype=np.uint8)
    z = rng.standard_normal((args.batch, args.bits), dtype=np.float32)
    print(f"{args.rows:,} × {args.bits} bits, k = 10, one thread, kernels: {kernel().simd}\n")
    print("| search | queries | rows that pass | filter | all rows, ms | ratio |")
    print("|---|---:|---:|---|---:|---:|")
    few = max(3, args.rounds // 3)
    for count, rounds in ((1, args.rounds), (args.batch, few)):
        hamming = partial(top_k, codes, queries[:count], 10, threads=1)
        measure("Hamming", hamming, args.rows, count, rounds)
        scores = partial(asymmetric_top_k, codes, z[:count], 10, threads=1)
        measure("asymmetric", scores, args.rows, count, rounds)
    measure_own(codes, queries, few)


if __name__ == "__main__":
    main()
