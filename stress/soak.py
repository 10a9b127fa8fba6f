"""A soak test: millions of queries from 8 threads, while a collection grows and shrinks.

    python stress/soak.py [--queries 10000000] [--seconds S] [--write]

The queries are those of a server: the neighbors of a word, of a row, of an unknown word, of a
vector, with and without filters, in all cells and in a few, a similarity, a decoded vector. Some go
to a collection, with conditions on a column, a recall or rescoring. Another thread adds rows to it
and removes the oldest, compacts it in cells and fits its coder again. Memory and queries are
noted in ten parts of the run. Memory may grow while the allocator warms up, but not in the second
half. --write puts the figures into docs/trust.md.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import re
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import embits

ROOT = Path(__file__).resolve().parents[1]
THREADS, PARTS = 8, 10
MAX_DRIFT = 0.01
BATCH = 20  # rows of a change
CHANGE_EVERY_S = 0.01


def resident() -> int:
    """Bytes of memory this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Served(NamedTuple):
    """What the threads ask."""

    bits: embits.BinaryVectors
    in_cells: embits.BinaryVectors
    matrix: np.ndarray
    evens: Any
    collection: embits.Collection


def make(folder: Path) -> Served:
    matrix = np.random.default_rng(0).normal(0, 0.5, (2000, 32)).astype("f4")
    words = [f"word{i}" for i in range(len(matrix))]
    embits.binarize(embits.WordVectors(words, matrix), 128, "lsh").save(folder / "f")
    bits = embits.load(folder / "f")
    bits.with_cells(20).save(folder / "cells")
    in_cells = embits.load(folder / "cells")
    collection = embits.open_collection(folder / "c", bits.coder, keep="float16")
    collection.add(matrix[: 20 * BATCH], columns=columns(0, 20 * BATCH))
    collection.compact(cells=5)
    evens = bits.select(rows=np.arange(0, 2000, 2))
    return Served(bits, in_cells, matrix, evens, collection)


def columns(start: int, n: int) -> dict[str, list[Any]]:
    rows = range(start, start + n)
    return {"year": [2000 + row % 20 for row in rows], "text": [f"text of {row}" for row in rows]}


def change(served: Served, i: int) -> str:
    """Add a batch of rows and remove the oldest: the collection keeps its size.

    Returns what else was done.
    """
    collection = served.collection
    start = i * BATCH % len(served.matrix)
    collection.add(served.matrix[start : start + BATCH], columns=columns(start, BATCH))
    collection.remove(collection.ids(np.arange(BATCH)).tolist())
    if i % 100 == 59:  # other planes and, in turns, another width: codes of other sizes
        collection.refit(coder=embits.RandomHyperplanes((128, 96)[i // 100 % 2], random_state=i))
        return "refit"
    if i % 20 == 19:
        collection.compact(cells=(5, 8, None)[i // 20 % 3])
        return "compact"
    return ""


def ask(served: Served, i: int) -> None:
    bits, in_cells, matrix, evens, collection = served
    row = i * 7919 % len(bits)
    match i % 15:
        case 0:
            bits.most_similar(f"word{row}", topn=5)
        case 1:
            bits.decode(rows=[row])
        case 2:
            bits.search(matrix[row], 5)
        case 3 if i % 120 == 3:
            with contextlib.suppress(embits.UnknownWordError):
                bits.most_similar(f"wrd{row}")
        case 4:
            bits.search(matrix[row], 5, metric="asymmetric")
        case 5:
            assert f"word{row}" in bits
        case 6:
            assert not (bits.search(matrix[row], 5, where=evens).rows % 2).any()
        case 7:
            assert (
                row
                not in bits.search(matrix[row], 5, where=bits.select(exclude=[f"word{row}"])).rows
            )
        case 8:
            now = collection.snapshot()  # whole, whatever the writer does
            found = now.search(matrix[row], 5)
            assert (now.ids(found.rows, int) >= 0).all()
        case 9:
            recent = collection.search(matrix[row], 5, where={"year": (2010, None)})
            assert all(text.startswith("text of ") for text in recent.column("text"))
        case 10:
            options = ({"rescore": 20}, {"recall": 0.9}, {"probes": 2})[i // 15 % 3]
            assert len(collection.search(matrix[row], 5, **options).rows) == 5
        case 11:
            in_cells.search(matrix[row], 5, recall=embits.Probes(3))
        case 12:
            in_cells.search(matrix[row], 5, recall=0.9, where=evens)
        case _:
            assert 0 <= bits.similarity(f"word{row}", bits.codes[i % len(bits)]) <= 1


def main() -> int:
    arguments = argparse.ArgumentParser(description="Millions of queries from 8 threads.")
    arguments.add_argument("--queries", type=int, default=10_000_000)
    arguments.add_argument("--seconds", type=float, help="stop after this time, queries or not")
    arguments.add_argument(
        "--write", action="store_true", help="put the figures into docs/trust.md"
    )
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        notes, changes = soak(make(Path(folder)), options.queries, options.seconds)
    made, compacted, refitted = changes.total(), changes["compact"], changes["refit"]
    memory = [resident for _, resident, _ in notes]
    speeds = [speed for _, _, speed in notes[1:]]
    half = memory[PARTS // 2 - 1]
    drift = (memory[-1] - half) / half
    total = notes[-1][0]
    report = (
        f"{total:,} queries from {THREADS} threads and {made:,} additions and removals of "
        f"{BATCH} rows of a collection, which was compacted {compacted:,} times and "
        f"fitted again {refitted:,} times: memory {memory[0] / 1e6:.1f} MB after the "
        f"first tenth, {half / 1e6:.1f} MB after half of the run and {memory[-1] / 1e6:.1f} MB at "
        f"the end ({100 * drift:+.2f} % in the second half); {min(speeds):,.0f} to "
        f"{max(speeds):,.0f} queries a second of processor time (median {np.median(speeds):,.0f}) "
        "in the tenths after the first"
    )
    print(report)
    if options.write:
        page = ROOT / "docs" / "trust.md"
        block = f"<!-- soak -->\n{report}.\n<!-- /soak -->"
        page.write_text(re.sub(r"(?s)<!-- soak -->.*<!-- /soak -->", block, page.read_text()))
    return int(drift > MAX_DRIFT)


def soak(
    served: Served, queries: int, seconds: float | None
) -> tuple[list[tuple[int, int, float]], Counter[str]]:
    """Ask and change until all queries are asked or the time is up.

    Returns:
        (queries done, bytes resident, queries a second of processor time) at the end of each tenth
        of the run; and how many changes of each kind were made.
    """
    counts, changes = [0] * THREADS, Counter[str]()
    stop = threading.Event()
    failures: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            for i in range(queries // THREADS):
                ask(served, i * THREADS + thread)
                counts[thread] = i + 1
                if stop.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - told below, in the main thread
            failures.append(error)

    def write() -> None:
        try:
            while not stop.wait(CHANGE_EVERY_S):
                changes[change(served, changes.total())] += 1
        except BaseException as error:  # noqa: BLE001 - as above
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    writer = threading.Thread(target=write)
    writer.start()
    start, last = time.monotonic(), time.process_time()
    for thread in threads:
        thread.start()
    notes: list[tuple[int, int, float]] = []
    before = 0
    for part in range(1, PARTS + 1):
        while any(thread.is_alive() for thread in threads):
            done = sum(counts) / queries
            share = max(done, (time.monotonic() - start) / seconds if seconds else 0)
            if share >= part / PARTS:
                break
            time.sleep(0.05)
        gc.collect()
        now, total = time.process_time(), sum(counts)
        notes.append((total, resident(), (total - before) / (now - last)))
        before, last = total, now
        print(f"{part}/{PARTS}: {total:,} queries, {notes[-1][1] / 1e6:.1f} MB", file=sys.stderr)
    stop.set()
    for thread in (*threads, writer):
        thread.join()
    if failures:
        raise failures[0]
    return notes, changes


if __name__ == "__main__":
    sys.exit(main())
