"""Searches within a distance and all near pairs, beside FAISS in one process.

    python benchmarks/pairs_within.py [--rows 10000000] [--part 200000] [--out benchmarks/results]

The codes are learned ones: NearLossless of 64 bits, fitted on GloVe 6B 50d (400,000 words, from the
package of `embits[demo]`). Four rows in five are sums of two words, taken at random. The others are
near copies: such sums with noise of 0.1 standard deviations. Rows are shuffled.

FAISS finds pairs by IndexBinaryMultiHash (4 tables of 16 bits, which is exact up to a distance of
3) and by IndexBinaryFlat.range_search; both search a part of the rows, as their time grows with
the square of the rows. Contenders take turns, on one thread, and rows state medians of processor
time. The search of all rows runs on all cores in a process of its own, which reports the peak of
its memory. Writes pairs_within.md into --out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import embits
from embits.search import duplicates, pairs_within, within
from provenance import processor
from search_tools import HEADER, Bench, busy, word_floats

DISTANCE = 3
NOISE = 0.1  # of a copy, in standard deviations
BLOCK = 200_000

ALL_ROWS = """
import json, resource, sys, time
import numpy as np
from embits.search import {search}
codes = np.load(sys.argv[1], mmap_mode="r")
start, cpu = time.perf_counter(), time.process_time()
found = {search}(codes, int(sys.argv[2]))
print(json.dumps({{
    "found": len(found[{field}]) - {extra}, "seconds": time.perf_counter() - start,
    "processor_seconds": time.process_time() - cpu,
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
}}))
"""


def learned_codes(floats: NDArray[np.float32], n: int, n_bits: int) -> NDArray[np.uint8]:
    """Codes of sums of two words, and of copies of them with noise."""
    rng = np.random.default_rng(1)
    coder = embits.NearLossless(n_bits=n_bits).fit(floats)
    words = rng.integers(0, len(floats), (n, 2))
    copies = np.arange(n * 4 // 5, n)
    words[copies] = words[rng.integers(0, copies[0], len(copies))]
    codes = np.empty((n, n_bits // 8), np.uint8)
    for start in range(0, n, BLOCK):
        sums = floats[words[start : start + BLOCK]].sum(axis=1)
        noise = NOISE * sums.std() * rng.standard_normal(sums.shape, dtype=np.float32)
        noise[: max(copies[0] - start, 0)] = 0
        codes[start : start + BLOCK] = coder.encode(sums + noise)
    return codes[rng.permutation(n)]


def searches_within(bench: Bench, codes: NDArray[np.uint8], n_bits: int) -> None:
    """`within` against range_search."""
    index = faiss.IndexBinaryFlat(n_bits)
    index.add(codes)
    for n_queries, distance in ((1, n_bits // 8), (100, n_bits // 8), (100, n_bits // 4)):
        queries = codes[:n_queries].copy()
        ours = within(codes, queries, distance, threads=1)
        theirs = index.range_search(queries, distance + 1)
        assert (ours.offsets == theirs[0]).all()
        noun = "one query" if n_queries == 1 else f"batch of {n_queries}"
        bench.compare(
            f"{noun}, {n_bits} bits, distance {distance}: {len(ours.rows):,} rows",
            ("within", partial(within, codes, queries, distance, threads=1)),
            ("range_search", partial(index.range_search, queries, distance + 1)),
            rounds=15, per=n_queries,
        )  # fmt: skip


def near_pairs(bench: Bench, codes: NDArray[np.uint8]) -> None:
    """`pairs_within` against FAISS, on a part of the rows."""
    expected = pairs_within(codes, DISTANCE, threads=1)
    for name, make_index in (
        ("IndexBinaryMultiHash", partial(faiss.IndexBinaryMultiHash, 64, 4, 16)),
        ("range_search", partial(faiss.IndexBinaryFlat, 64)),
    ):
        limits, _, _ = in_range(make_index, codes)
        assert (limits[-1] - len(codes)) // 2 == len(expected.first)
        bench.compare(
            f"{len(expected.first):,} pairs of {len(codes):,} rows, 64 bits, distance {DISTANCE}",
            ("pairs_within", partial(pairs_within, codes, DISTANCE, threads=1)),
            (name, partial(in_range, make_index, codes)),
            rounds=3,
        )  # fmt: skip


def in_range(make_index: Callable[[], Any], codes: NDArray[np.uint8]) -> tuple[NDArray[Any], ...]:
    """Limits, distances and rows of all codes near each code, by an index of FAISS."""
    index = make_index()
    index.add(codes)
    found: tuple[NDArray[Any], ...] = index.range_search(codes, DISTANCE + 1)
    return found


def all_rows(codes: NDArray[np.uint8], search: Callable[..., object]) -> dict[str, float]:
    """A search of all rows in a process of its own."""
    groups = search is duplicates
    program = ALL_ROWS.format(search=search.__name__, field=0, extra=int(groups))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "codes.npy"), codes)
        command = [sys.executable, "-c", program, str(Path(folder, "codes.npy")), str(DISTANCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    facts: dict[str, float] = json.loads(done.stdout)
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--part", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    load = busy()
    faiss.omp_set_num_threads(1)
    name, floats = word_floats()
    bench = Bench(options.quick)
    bench.clock = time.process_time
    for n_bits in (64, 256):
        searches_within(bench, learned_codes(floats, 1_000_000, n_bits), n_bits)
    start = time.perf_counter()
    codes = learned_codes(floats, options.rows, 64)
    print(f"\n{len(codes):,} codes in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    near_pairs(bench, learned_codes(floats, options.part, 64))
    lines = [
        f"| {search.__name__} | {len(codes):,} | {facts['found']:,.0f} | {facts['seconds']:.0f} | "
        f"{facts['processor_seconds']:.0f} | {facts['megabytes']:,.0f} |"
        for search in (pairs_within, duplicates)
        for facts in [all_rows(codes, search)]
    ]
    write(options.out, name, load, bench, lines)


def write(out: Path, name: str, load: str, bench: Bench, lines: list[str]) -> None:
    table = ["| what | rows | found | s | processor s | MB |", "|---|---:|---:|---:|---:|---:|"]
    text = [
        "# Searches within a distance and near pairs, measured", "",
        f"- processor: {processor()}, {os.cpu_count()} cores; kernels: {embits.search.simd()}",
        f"- codes: NearLossless fitted on {name}; sums of two words, one row in five a copy with "
        f"noise; FAISS {faiss.__version__}, NumPy {np.__version__}",
        "- one thread; times for one query, or for all pairs; the programs take turns; medians "
        "of the rounds",
        f"- load average at the start: {load}", "",
        HEADER, *map(str, bench.rows), "",
        f"All pairs, and the groups they form, within {DISTANCE} bits among codes of 64 bits, on "
        "all cores. The codes are mapped from a file and count as memory.", "",
        *table, *lines,
    ]  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "pairs_within.md").write_text("\n".join(text) + "\n")
    print("\n".join([*table, *lines]))


if __name__ == "__main__":
    main()
