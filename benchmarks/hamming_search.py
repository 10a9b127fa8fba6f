"""Search times beside FAISS, as ratios measured in one process.

    python benchmarks/hamming_search.py [--quick] [--old PATH] [--out benchmarks/results]

--old compares with another build of embits: PATH is the folder that holds its package. It runs in
a process of its own.

Contenders take turns, round after round; a row states the median of the rounds' ratios and the
span that holds the middle 80 % of them. Writes hamming_search.md and .json into --out.

The codes are real ones: GloVe 6B 50d (400,000 words, from the package of `embits[demo]`), coded
by the signs of random hyperplanes. The 10 and 20 million are made from them: each word again and
again, with noise of 0.3 standard deviations added to its floats before they are coded, shuffled;
queries are words with fresh noise. Without the package, clustered random floats take the place
of GloVe.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.search import MultiIndex, asymmetric_top_k, top_k
from provenance import processor
from search_tools import (
    Bench,
    OldBuild,
    Run,
    busy,
    by,
    encode,
    faiss_on,
    many,
    noisy,
    on,
    project,
    word_floats,
    write,
)

WIDTHS = (64, 128, 256, 512)


def one_query(codes: NDArray[np.uint8], query: NDArray[np.uint8]) -> tuple[str, Run]:
    return "Hamming scan", partial(top_k, codes, query, 10, threads=1)


def hamming(bench: Bench, floats: NDArray[np.float32], old: OldBuild | None) -> None:
    """One query and batches against FAISS, on every instruction set."""
    best = _core.available_simd()[-1]
    for n_bits in WIDTHS:
        codes = encode(floats[:341_479], n_bits)
        query, batch = codes[77].copy(), codes[:1000].copy()
        index = faiss.IndexBinaryFlat(n_bits)
        index.add(codes)
        expected = index.search(batch[:50], 10)[0]
        assert (top_k(codes, batch[:50], 10)[0] == expected).all()
        one, batched = f"one query, {n_bits} bits", f"batch of 1,000, {n_bits} bits"
        alone = partial(index.search, query[np.newaxis], 10)
        together = partial(index.search, batch, 10)
        run_one, run_many = one_query(codes, query)[1], partial(top_k, codes, batch, 10, threads=1)
        for name in _core.available_simd():
            bench.compare(one, (name, on(name, run_one)), ("FAISS", alone), 100)
        bench.compare(batched, (best, on(best, run_many)), ("FAISS", together), 5, per=1000)
        if "avx2" in _core.available_simd() and hasattr(faiss, "SIMDConfig"):
            slow = ("FAISS on AVX2", faiss_on("AVX2", alone))
            bench.compare(one, ("avx2", on("avx2", run_one)), slow, 100)
            slow = ("FAISS on AVX2", faiss_on("AVX2", together))
            bench.compare(batched, ("avx2", on("avx2", run_many)), slow, 5, per=1000)
        for name in _core.available_simd():
            for size in (32, 1000):
                run = on(name, partial(top_k, codes, batch[:size], 10, threads=1))
                bench.compare(f"batch of {size:,}, {n_bits} bits, {name}",
                              ("by planes", by("planes", run)), ("row by row", by("rows", run)),
                              3, per=size)  # fmt: skip
            if old and name != "portable":
                before = ("previous build", old.search(codes, name, 1))
                bench.compare(one, (name, on(name, run_one)), before, 30)
                before = ("previous build", old.search(codes, name, 1000))
                bench.compare(batched, (name, on(name, run_many)), before, 5, per=1000)
        _core.use_simd(best)
        bench.compare(f"bytes a second, {n_bits} bits", one_query(codes, query),
                      ("sum of the same array", codes.view(np.uint64).sum), 100)  # fmt: skip


def floats_of_300(bench: Bench) -> None:
    """256 bits against the best scan of the floats they stand for; any floats take as long."""
    rng = np.random.default_rng(0)
    floats = rng.standard_normal((341_479, 300), dtype=np.float32)
    codes = encode(floats, 256)
    query = floats[5].copy()
    index = faiss.IndexFlatIP(300)
    index.add(floats)

    def blas() -> None:
        scores = floats @ query
        best = np.argpartition(-scores, 10)[:10]
        best[np.argsort(-scores[best])]

    for name, run in (("FAISS IndexFlatIP", partial(index.search, query[np.newaxis], 10)),
                      ("BLAS, argpartition", blas)):  # fmt: skip
        bench.compare("341,479 × 300 floats, or 256 bits", one_query(codes, codes[5].copy()),
                      (name, run), 20)  # fmt: skip


def asymmetric(bench: Bench, floats: NDArray[np.float32]) -> None:
    """A float query against bits, beside a Hamming scan."""
    word = noisy(floats, np.random.default_rng(0))[77]
    for n_bits in WIDTHS:
        codes, z = encode(floats, n_bits), project(word, n_bits)
        bench.compare(f"400,000 × {n_bits} bits, a float query",
                      ("float query", partial(asymmetric_top_k, codes, z, 10, threads=1)),
                      one_query(codes, np.packbits(z > 0)), 30)  # fmt: skip
        batch = project(noisy(floats[:100], np.random.default_rng(1)), n_bits)
        signs = np.packbits(batch > 0, axis=1)
        for name in _core.available_simd():
            run = partial(asymmetric_top_k, codes, batch, 10, threads=1)
            beside = partial(top_k, codes, signs, 10, threads=1)
            bench.compare(f"400,000 × {n_bits} bits, 100 float queries, {name}",
                          ("float queries", on(name, run)), ("Hamming batch", on(name, beside)),
                          5, per=100)  # fmt: skip
        _core.use_simd(_core.available_simd()[-1])


def multi_index(bench: Bench, floats: NDArray[np.float32]) -> None:
    """Ten million codes without a full scan, and the same answers."""
    rng = np.random.default_rng(2)
    codes = many(floats, 10_000_000, 64)
    queries = encode(noisy(floats, rng)[rng.integers(0, len(floats), 50)], 64)
    index = MultiIndex(codes)
    for k in (10, 100):
        for found, scanned in zip(index.top_k(queries, k), top_k(codes, queries, k), strict=True):
            assert np.array_equal(found, scanned)
        through_index = [partial(index.top_k, query, k, threads=1) for query in queries]
        through_all = [partial(top_k, codes, query, k, threads=1) for query in queries]
        bench.compare(f"10 million × 64 bits, top {k}",
                      ("multi-index", lambda runs=through_index: [run() for run in runs]),
                      ("scan", lambda runs=through_all: [run() for run in runs]), 9,
                      per=len(queries))  # fmt: skip


def two_threads(bench: Bench, floats: NDArray[np.float32]) -> None:
    """Twenty million codes; says little where other work keeps the cores busy.

    One query is bound by memory: the row of the bare sum says what the machine's memory has left
    for a second core. A batch reads its codes from the cache, and is bound by the cores.
    """
    bench.clock = time.perf_counter
    for n_bits in (64, 128):
        codes = many(floats, 20_000_000, n_bits)
        query, batch = codes[3].copy(), codes[:64].copy()
        words = codes.view(np.uint64).ravel()
        bench.compare(f"20 million × {n_bits} bits, one query",
                      ("two threads", partial(top_k, codes, query, 10, threads=2)),
                      ("one thread", partial(top_k, codes, query, 10, threads=1)), 15)  # fmt: skip
        with ThreadPoolExecutor(2) as pool:
            halves = np.array_split(words, 2)
            bench.compare(f"20 million × {n_bits} bits, the bare sum",
                          ("two threads", lambda h=halves, p=pool: list(p.map(np.sum, h))),
                          ("one thread", words.sum), 15)  # fmt: skip
        bench.compare(f"20 million × {n_bits} bits, batch of 64",
                      ("two threads", partial(top_k, codes, batch, 10, threads=2)),
                      ("one thread", partial(top_k, codes, batch, 10, threads=1)), 3,
                      per=64)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    parser.add_argument("--old", type=Path, help="folder of another build's package")
    parser.add_argument("--only", choices=("hamming", "float"), help="a part of the comparisons")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    source, floats = word_floats()
    about = [
        f"processor: {processor()}, {os.cpu_count()} cores; kernels: {_core.simd()}",
        f"codes: {source}, signs of random hyperplanes; FAISS {faiss.__version__}, "
        f"NumPy {np.__version__}, Python {sys.version.split()[0]}",
        "one thread unless noted, processor time per query; two threads by wall clock; "
        "the programs take turns; medians of the rounds",
        f"load average at the start: {busy()} on {os.cpu_count()} cores",
    ]
    print(*about, "", sep="\n")
    bench = Bench(args.quick)
    if args.only != "float":
        hamming(bench, floats, OldBuild(args.old) if args.old else None)
    if args.only != "hamming":
        asymmetric(bench, floats)
    if not args.only:
        floats_of_300(bench)
        multi_index(bench, floats)
        two_threads(bench, floats)
        write(bench, about, args.out)


if __name__ == "__main__":
    main()
