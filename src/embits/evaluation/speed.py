"""Speed and size: the paper's top-K table, and what a word costs in memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from embits.binary_vectors import load
from embits.evaluation.neighbors import query_rows
from embits.evaluation.spaces import BitSpace, Space, as_space
from embits.readers import read_vectors
from embits.search import top_k

TOP = (1, 10, 50)
REPEATS = 50


def evaluate_speed(space: Space, file: Path | None = None) -> dict[str, Any]:
    """Median milliseconds of one exact query over all rows, by linear scan.

    Bits are scanned by the search kernels, floats by NumPy's product with a matrix of unit rows.
    Loading is measured with the file in the system's cache, as a second start of a program
    meets it.

    Args:
        space: What is searched.
        file: Where it was read from, for the time of loading; None leaves that out.

    Returns:
        `{"top_1_ms", "top_10_ms", "top_50_ms", "load_top_10_ms", "bytes_per_word"}`.
    """
    rows = query_rows(len(space), REPEATS).tolist()
    result: dict[str, Any] = {f"top_{k}_ms": _median_ms(_query(space, k), rows) for k in TOP}
    if file is not None:
        result["load_top_10_ms"] = _loading_ms(space, file)
    result["bytes_per_word"] = -(-space.n_bits // 8)
    return result


def _query(space: Space, k: int) -> Callable[[int], object]:
    if isinstance(space, BitSpace):
        codes = space.codes
        return lambda row: top_k(codes, codes[row], k)
    unit = space.unit

    def scan(row: int) -> object:
        cosines = unit @ unit[row]
        best = np.argpartition(cosines, -k)[-k:]
        return best[np.argsort(-cosines[best])]

    return scan


def _median_ms(query: Callable[[int], object], rows: list[int]) -> float:
    query(rows[0])
    times = []
    for row in rows:
        start = time.perf_counter()
        query(row)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _loading_ms(space: Space, file: Path) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        if isinstance(space, BitSpace):
            bits = load(file)
            bits.most_similar(bits.words[0])
        else:
            # Without a lookup by case: building one is no part of the query.
            fresh = as_space(read_vectors(file), space.lookup)
            _query(fresh, 10)(0)
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)
