"""The paper's Table 3: times of top-1, top-10 and top-50 searches and of loading."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.collection import load
from embits.readers import read_vectors
from embits.search import top_k

TOP = (1, 10, 50)
ROUNDS, RUN = 7, 5


@dataclass
class Contender:
    """An implementation of top-k search that is timed.

    Attributes:
        name: Its name in the table.
        bits: Bits per code, or None for floats.
        query: Called with (row, k): finds the k nearest rows of a row.
        load: Opens the file and runs one top-10 query; None if there is no file.
        top_ms: Median milliseconds for each k.
        load_ms: Milliseconds to load the file and run the first top-10 query.
    """

    name: str
    bits: int | None
    query: Callable[[int, int], object]
    load: Callable[[], object] | None = None
    top_ms: dict[int, float] = field(default_factory=dict)
    load_ms: float | None = None


def bit_contenders(path: Path, bits: BinaryVectors, threads: int) -> Iterator[Contender]:
    """embits, NumPy and, if installed, FAISS, on the codes of a file."""
    codes = np.ascontiguousarray(bits.codes)

    def first_answer() -> object:
        opened = load(path)
        return opened.search(opened.codes[0], 10, threads=threads)

    yield Contender(
        "embits", bits.n_bits, lambda row, k: top_k(codes, codes[row], k, threads), first_answer
    )
    faiss = _faiss(threads)
    if faiss is not None and codes.shape[1] * 8 == bits.n_bits:
        index = faiss.IndexBinaryFlat(bits.n_bits)
        index.add(codes)
        yield Contender(
            "FAISS IndexBinaryFlat", bits.n_bits, lambda row, k: index.search(codes[row][None], k)
        )

    def numpy_scan(row: int, k: int) -> object:
        distances = np.bitwise_count(codes ^ codes[row]).sum(axis=1, dtype=np.int32)
        return _best(-distances, k)

    yield Contender("NumPy", bits.n_bits, numpy_scan)


def float_contenders(
    path: Path | None, unit: NDArray[np.float32], threads: int
) -> Iterator[Contender]:
    """NumPy's product (BLAS) and, if installed, FAISS, on float vectors of length 1."""

    def first_answer() -> object:
        matrix = read_vectors(path).matrix if path is not None else unit
        lengths = np.linalg.norm(matrix, axis=1)
        return _best(matrix @ matrix[0] / np.maximum(lengths, 1e-30), 10)

    yield Contender(
        "NumPy (BLAS)",
        None,
        lambda row, k: _best(unit @ unit[row], k),
        first_answer if path is not None else None,
    )
    faiss = _faiss(threads)
    if faiss is not None:
        index = faiss.IndexFlatIP(unit.shape[1])
        index.add(unit)
        yield Contender("FAISS IndexFlatIP", None, lambda row, k: index.search(unit[row][None], k))


def measure(contenders: list[Contender], n: int) -> None:
    """Measure the times of all contenders.

    Contenders alternate, so that other load on the machine affects all of them. In each turn a
    contender runs several queries; the first is not counted, because the cache still holds the
    vectors of the previous contender.
    """
    rows = np.linspace(0, n - 1, ROUNDS * RUN).astype(int).reshape(ROUNDS, RUN).tolist()
    for k in TOP:
        times: list[list[float]] = [[] for _ in contenders]
        for run in rows:
            for contender, mine in zip(contenders, times, strict=True):
                contender.query(run[0], k)
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


def _best(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    k = min(k, len(scores))
    best = np.argpartition(scores, -k)[-k:]
    ordered: NDArray[np.int64] = best[np.argsort(-scores[best])]
    return ordered


def _faiss(threads: int) -> Any:
    try:
        import faiss
    except ImportError:
        return None
    faiss.omp_set_num_threads(threads)
    return faiss
