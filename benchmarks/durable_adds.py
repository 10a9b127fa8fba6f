"""Durable single adds a second: a collection beside SQLite, in turns on the same disk.

    python benchmarks/durable_adds.py [--folder DIR] [--adds 300] [--turns 5] [--dims 384]

A row is a vector, an id and a text. An add returns when the row is on the disk: SQLite runs with
synchronous=FULL, once with its rollback journal and once with a write-ahead log.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import embits


def sqlite(path: Path, mode: str) -> Callable[[str, np.ndarray], None]:
    """Adds rows to a table of SQLite."""
    database = sqlite3.connect(path, isolation_level=None)
    assert database.execute(f"PRAGMA journal_mode={mode}").fetchone() == (mode,)
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, text TEXT, vector BLOB)")
    insert = "INSERT INTO texts VALUES (?, ?, ?)"
    return lambda id, row: database.execute(insert, (id, f"text {id}", row.tobytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="on the disk that is measured")
    parser.add_argument("--adds", type=int, default=300)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dims", type=int, default=384)
    options = parser.parse_args()
    rows = np.random.default_rng(0).normal(size=(options.adds, 1, options.dims)).astype("f4")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        coder = embits.RandomHyperplanes(n_bits=options.dims).fit(rows[:, 0])
        collection = embits.open_collection(Path(folder, "c"), coder)
        writers = {
            "embits": lambda id, row: collection.add(row, [id], columns={"text": [f"text {id}"]}),
            "SQLite, rollback journal": sqlite(Path(folder, "journal"), "delete"),
            "SQLite, write-ahead log": sqlite(Path(folder, "wal"), "wal"),
        }
        rates: dict[str, list[float]] = {name: [] for name in writers}
        for turn in range(options.turns):
            for name, add in writers.items():
                start = time.perf_counter()
                for number, row in enumerate(rows):
                    add(f"{turn}-{number}", row)
                rates[name].append(options.adds / (time.perf_counter() - start))
        assert len(collection) == options.turns * options.adds
    print("| | adds a second, median | least | most |\n|---|---:|---:|---:|")
    for name, each in rates.items():
        print(f"| {name} | {np.median(each):,.0f} | {min(each):,.0f} | {max(each):,.0f} |")


if __name__ == "__main__":
    main()
