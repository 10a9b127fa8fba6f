"""`binarize --method paper` from file to file, in turns with the program of the paper's authors.

    python benchmarks/paper_speed.py VECTORS [--program PATH] [--bits 256] [--epochs 5] [--turns 5]

VECTORS is word2vec text with a header. PATH is the compiled program `binarize` of the authors. Both
may use two threads; the program is also run with one, which is faster where cores are busy. Times
are those of the clock and of the processor, with the medians of their ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

THREADS = 2


def seconds(command: Sequence[str | Path], threads: int) -> tuple[float, float]:
    """Seconds of the clock and of the processor that a command takes."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(args: argparse.Namespace, folder: str) -> dict[str, tuple[list[str | Path], int]]:
    """The commands by name, each with its number of BLAS threads."""
    bits, epochs = str(args.bits), str(args.epochs)
    embits = [sys.executable, "-m", "embits", "binarize", args.vectors, "-o", f"{folder}/e",
              "--method", "paper", "--bits", bits, "--param", f"epochs={epochs}"]  # fmt: skip
    found: dict[str, tuple[list[str | Path], int]] = {"embits": (embits, THREADS)}
    if args.program:
        authors = [args.program, "-input", args.vectors, "-output", f"{folder}/a",
                   "-n-bits", bits, "-epoch", epochs]  # fmt: skip
        found["authors, 1 thread"] = (authors, 1)
        if args.both:
            found["authors, 2 threads"] = (authors, THREADS)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--both", action="store_true", help="the program with two threads too")
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    print(platform.processor() or platform.machine(), os.cpu_count(), "cores")
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.turns):
            for name, (command, threads) in commands(args, folder).items():
                times.setdefault(name, []).append(seconds(command, threads))
                print(f"{name}: {times[name][-1][0]:.1f} s, processor {times[name][-1][1]:.1f} s")
    for name, found in times.items():
        pairs = list(zip(times["embits"], found, strict=True))
        clock, processor = (statistics.median(e[i] / o[i] for e, o in pairs) for i in (0, 1))
        print(f"embits / {name}: {clock:.2f} of the time, {processor:.2f} of the processor's time")


if __name__ == "__main__":
    main()
