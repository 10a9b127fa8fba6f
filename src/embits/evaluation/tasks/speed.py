"""Search time and size: the paper's Table 3, for one file and for several implementations."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.arrays import packed_width
from embits.binary_vectors import BinaryRows
from embits.collection import load
from embits.evaluation.results import Entry, Grid, Score, Table, at, names_at, number
from embits.evaluation.spaces import BitSpace, Space
from embits.evaluation.tasks.base import Subject, Task
from embits.readers import read_vectors
from embits.search import top_k

TOP = (1, 10, 50)
ROUNDS, RUN = 7, 5
THREADS = 1  # as in the paper; NumPy's matrix product uses the threads of its BLAS


@dataclass
class Contender:
    """An implementation of top-k search that is timed."""

    name: str
    bits: int | None  # of its codes; None for floats
    query: Callable[[int, int], object]  # (row, k) finds the k nearest rows of a row
    load: Callable[[], object] | None = None  # opens the file and runs one top-10 query
    top_ms: dict[int, float] = field(default_factory=dict)  # median milliseconds by k
    load_ms: float | None = None


def bit_contenders(path: Path | None, bits: BinaryRows, threads: int) -> Iterator[Contender]:
    """embits, NumPy and, if installed, FAISS, on the codes of a file."""
    codes = np.ascontiguousarray(bits.codes)

    def ours(row: int, k: int) -> object:
        return top_k(codes, codes[row], k, threads)

    def first_answer(path: Path) -> object:
        opened = load(path)
        return opened.on(threads=threads).search(opened.codes[0], 10)

    def numpy_scan(row: int, k: int) -> object:
        distances = np.bitwise_count(codes ^ codes[row]).sum(axis=1, dtype=np.int32)
        return _best(-distances, k)

    yield Contender("embits", bits.n_bits, ours, partial(first_answer, path) if path else None)
    if codes.shape[1] * 8 == bits.n_bits:
        yield from _faiss("IndexBinaryFlat", bits.n_bits, codes, bits.n_bits, threads)
    yield Contender("NumPy", bits.n_bits, numpy_scan)


def float_contenders(
    path: Path | None, unit: NDArray[np.float32], threads: int
) -> Iterator[Contender]:
    """NumPy's product (BLAS) and, if installed, FAISS, on float vectors of length 1."""

    def first_answer(path: Path) -> object:
        matrix = read_vectors(path).matrix
        lengths = np.linalg.norm(matrix, axis=1)
        return _best(matrix @ matrix[0] / np.maximum(lengths, 1e-30), 10)

    loading = partial(first_answer, path) if path else None
    yield Contender("NumPy (BLAS)", None, lambda row, k: _best(unit @ unit[row], k), loading)
    yield from _faiss("IndexFlatIP", unit.shape[1], unit, None, threads)


def measure(contenders: list[Contender], n: int) -> None:
    """Measure the times of all contenders, which alternate: other load affects all of them."""
    rows = np.linspace(0, n - 1, ROUNDS * RUN).astype(int).reshape(ROUNDS, RUN).tolist()
    for k in TOP:
        times: list[list[float]] = [[] for _ in contenders]
        for run, (contender, mine) in product(rows, list(zip(contenders, times, strict=True))):
            contender.query(run[0], k)  # not counted: the cache holds the previous vectors
            mine += [_ms(contender.query, row, k) for row in run]
        for contender, mine in zip(contenders, times, strict=True):
            contender.top_ms[k] = statistics.median(mine)
    for contender in contenders:
        if contender.load is not None:
            contender.load_ms = min(_ms(contender.load) for _ in range(3))


def _ms(run: Callable[..., object], *args: int) -> float:
    start = time.perf_counter()
    run(*args)
    return 1e3 * (time.perf_counter() - start)


def _best(scores: NDArray[np.float32] | NDArray[np.int32], k: int) -> NDArray[np.int64]:
    k = min(k, len(scores))
    best = np.argpartition(scores, -k)[-k:]
    ordered: NDArray[np.int64] = best[np.argsort(-scores[best])]
    return ordered


def _faiss(
    name: str,
    width: int,
    rows: NDArray[np.float32] | NDArray[np.uint8],
    bits: int | None,
    threads: int,
) -> Iterator[Contender]:
    try:
        import faiss
    except ImportError:
        return
    faiss.omp_set_num_threads(threads)
    index = getattr(faiss, name)(width)
    index.add(rows)
    yield Contender(f"FAISS {name}", bits, lambda row, k: index.search(rows[row][None], k))


def evaluate_speed(space: Space, file: Path | None = None) -> Entry:
    """Median milliseconds of one exact query over all rows, by linear scan.

    It is `{"top_1_ms", "top_10_ms", "top_50_ms", "load_top_10_ms", "bytes_per_word"}`. Codes are
    scanned by the search kernels, floats by NumPy's product with a matrix of unit rows. Loading is
    measured with the `file` in the page cache.
    """
    if isinstance(space, BitSpace):
        contender = next(bit_contenders(file, space.bits, THREADS))
    else:
        contender = next(float_contenders(file, space.unit, THREADS))
    measure([contender], len(space))
    result: Entry = {f"top_{k}_ms": contender.top_ms[k] for k in TOP}
    if contender.load_ms is not None:
        result["load_top_10_ms"] = contender.load_ms
    return result | {"bytes_per_word": packed_width(space.n_bits)}


class Speed(Task):
    """Milliseconds of one query, and bytes per word."""

    name = "speed"
    title = "Speed and size"
    caption = (
        "Time of one exact top-k query over all words by linear scan on one thread: median of 35 "
        "queries. Loading with the file in the page cache."
    )

    def run(self, subject: Subject) -> Entry:
        return evaluate_speed(subject.space, subject.file)

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        score = self.score("Top-10 query, ms", "top_10_ms", as_text=number)
        return [score] if names_at(entries, self.name) else []

    def table(self, grid: Grid) -> Table | None:
        """Times of the first method of each width; the others take the same time."""
        columns = {entry["bits"]: entry for entry in reversed(grid.coded) if self.name in entry}
        entries = [*(columns[width] for width in sorted(columns)), grid.raw]
        if not names_at(grid.entries, self.name):
            return None
        times = {f"Top {k}, ms": f"top_{k}_ms" for k in TOP}
        times["Loading + Top 10, ms"] = "load_top_10_ms"
        rows = [
            [label, *(number(at(entry, self.name, name)) for entry in entries)]
            for label, name in times.items()
        ]
        sizes = (str(at(entry, self.name, "bytes_per_word") or "-") for entry in entries)
        header = ["", *(f"{width}-bit" for width in sorted(columns)), "Real-valued"]
        return Table(header, [*rows, ["Bytes per word", *sizes]], self.caption)
