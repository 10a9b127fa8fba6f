"""Search a collection with Ray: one worker against two.

    python benchmarks/ray_search.py --write

Each round searches the same collection with one worker and with two, in both orders in turn, and
checks that the answers are those of one machine. A worker has one thread. The ratio of a round is
the time of one worker over that of two; the median of the ratios is reported. On Linux, a round is
repeated when other programs took more than a tenth of the processor time. Needs the extra `ray` and
two cores.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray

import embits
from embits.integrations import ray as on_ray
from embits.integrations.ray import searching
from quiet import timed
from ray_cluster import start_cluster

RESULTS = Path(__file__).parent / "results" / "ray_search.md"
DIMS = 64
PIECES = 4
MAX_FOREIGN = 0.1
MAX_ROUNDS = 40


def make_collection(folder: Path, rows: int, bits: int) -> embits.Collection:
    """Clustered vectors, in several pieces; one row in a hundred is a near copy."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((1000, DIMS), dtype=np.float32)
    coder = embits.RandomHyperplanes(bits).fit(centers)
    made = embits.open_collection(folder, coder)
    for _ in range(PIECES):
        some = centers[rng.integers(0, len(centers), rows // PIECES)]
        some = some + rng.standard_normal(some.shape, dtype=np.float32)
        copies = len(some) // 100
        some[-copies:] = some[:copies] + 0.01 * some[-copies:]
        made.add(some)
    return made


def same(found: Any, expected: Any) -> None:
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


def measured(job: Callable[[int], Any], expected: Any, runs: int) -> dict[int, list[float]]:
    """Seconds of one worker and of two in rounds in which other programs were quiet."""
    times: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(MAX_ROUNDS):
        order = (1, 2) if turn % 2 else (2, 1)
        seconds, others, found = zip(*(timed(lambda n=n: job(n)) for n in order), strict=True)
        for each in found:
            same(each, expected)
        shares = ", ".join(
            f"{n}: {s:.1f} s, others {o:.0%}"
            for n, s, o in zip(order, seconds, others, strict=True)
        )
        print(shares, file=sys.stderr, flush=True)
        if max(others) <= MAX_FOREIGN:
            for workers, each in zip(order, seconds, strict=True):
                times[workers].append(each)
        if len(times[1]) == runs:
            return times
    raise SystemExit("other programs kept the processors busy: try again later")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--pair-rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    args = parser.parse_args()
    start_cluster()
    searching.MAX_ROWS = min(searching.MAX_ROWS, args.rows // 8)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = make_collection(folder / "search", args.rows, args.bits)
        pairs = make_collection(folder / "pairs", args.pair_rows, 64)
        asked = np.random.default_rng(1).standard_normal((args.queries, DIMS), dtype=np.float32)
        codes = made.encode(asked)
        jobs: dict[str, tuple[Callable[[int], Any], Any]] = {
            f"search, k = 10, {args.queries:,} queries": (
                lambda n: on_ray.search(made.path, codes, 10, workers=n),
                made.search(codes, 10),
            ),
            f"within {args.bits // 4} bits, {args.queries:,} queries": (
                lambda n: on_ray.within(made.path, codes, args.bits // 4, workers=n),
                made.within(codes, args.bits // 4),
            ),
            "pairs within 3 bits": (
                lambda n: on_ray.pairs_within(pairs.path, 3, workers=n),
                pairs.pairs_within(3),
            ),
        }
        lines = []
        for name, (job, expected) in jobs.items():
            for workers in (2, 1):  # imports, once a worker
                job(workers)
            times = measured(job, expected, args.runs)
            ratios = [one / two for one, two in zip(times[1], times[2], strict=True)]
            line = (
                f"| {name} | {statistics.median(times[1]):.1f} | {statistics.median(times[2]):.1f}"
                f" | {statistics.median(ratios):.2f} × | {min(ratios):.2f} to {max(ratios):.2f} |"
            )
            print(line, flush=True)
            lines.append(line)
    ray.shutdown()
    head = [
        f"A collection of {args.rows:,} × {args.bits} bits in {PIECES} pieces, and for the pairs "
        f"{args.pair_rows:,} × 64 bits. One thread per worker, two cores, "
        f"{embits.search.kernel().simd}, Ray {ray.__version__}; {args.runs} paired rounds. All "
        "answers are those of one machine.",
        "",
        "| | one worker, s | two workers, s | ratio | of single rounds |",
        "|---|---|---|---|---|",
    ]
    text = "\n".join([*head, *lines]) + "\n"
    print(text)
    if args.write:
        RESULTS.write_text("# Searching with Ray\n\n" + text)


if __name__ == "__main__":
    main()
