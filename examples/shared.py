"""Helpers of the examples: the data folder, default word vectors, tables and timing."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import embits
from embits.cli.demo import glove
from embits.cli.output import megabytes, table

__all__ = ["arguments", "megabytes", "milliseconds", "table", "word_vectors"]

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser that shows the script's docstring and knows `--data`."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(os.environ.get("EMBITS_DATA", BESIDE))
    help = "folder of data sets (default: $EMBITS_DATA, or ../shared/data)"
    parser.add_argument("--data", type=Path, default=default, metavar="DIR", help=help)
    return parser


def word_vectors(path: Path | None, limit: int | None) -> embits.WordVectors:
    """The vectors of a file, or GloVe 6B 50d of the extra `demo`; the first `limit` words."""
    if path is not None:
        return embits.read_vectors(path, limit)
    vectors = glove()
    return embits.WordVectors(list(vectors.words or [])[:limit], vectors.matrix[:limit])


def milliseconds(query: Callable[[int], object], times: int) -> float:
    """The median time of `query(0)`, `query(1)`, …, after one that does not count."""
    query(0)
    found = []
    for i in range(times):
        start = time.perf_counter()
        query(i)
        found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)
