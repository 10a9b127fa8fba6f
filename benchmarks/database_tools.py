"""Rows to export, and contenders that take turns, for the benchmarks of databases."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import embits
from embits.ids.vocabulary import Vocabulary

ROWS = 400_000
RUNS = 3


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_turns(contenders: dict[str, Callable[[], object]], runs: int = RUNS) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, run in contenders.items():
            times[name].append(seconds(run))
    return {name: statistics.median(each) for name, each in times.items()}


def of_rows(bits: embits.BinaryVectors, n: int) -> embits.BinaryVectors:
    """The codes again and again under other words, up to n rows."""
    rows = np.arange(n) % len(bits)
    words = [bits.words[row] + "~" * (i // len(bits)) for i, row in enumerate(rows.tolist())]
    return embits.BinaryVectors(Vocabulary.from_words(words), bits.codes[rows], bits.coder)
