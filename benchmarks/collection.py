"""Collections: the time of changes, and searches of many pieces beside one file.

    python benchmarks/collection.py [--rows 2000000] [--pieces 100] [--folder DIR]
        [--out benchmarks/results]

The codes are random, of 256 bits; the time of a scan does not depend on them. Changes are timed
with codes that are made already, beside which the encoding takes its own time; they include
flushing to the disk of --folder. A search of the pieces and one of a single file take turns, and
the median of the ratios is reported. Writes collection.md into --out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import embits
from embits.collection import changes

N_BITS, ADDED, TURNS = 256, 1000, 11


class Times:
    """Wall and processor time of turns, in milliseconds; other programs disturb the latter less."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def run(self, function: Callable[..., object], *arguments: object) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        function(*arguments)
        self.processor.append(1e3 * (time.process_time() - processor))
        self.wall.append(1e3 * (time.perf_counter() - wall))

    def __str__(self) -> str:
        return f"{statistics.median(self.wall):.1f} | {statistics.median(self.processor):.1f}"


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of turns."""
    return statistics.median(a / max(b, 1e-6) for a, b in zip(ours, theirs, strict=True))


def codes_of(n: int, seed: int) -> NDArray[np.uint8]:
    content = np.random.default_rng(seed).bytes(n * N_BITS // 8)
    return np.frombuffer(content, np.uint8).reshape(n, -1)


def names(n: int, start: int = 0) -> list[str]:
    return [f"document-{i}" for i in range(start, start + n)]


def new_collection(folder: Path, coder: embits.Coder, codes: NDArray[np.uint8], pieces: int):
    """A collection of as many pieces of the same size."""
    collection = embits.open_collection(folder, coder)
    merged, changes.MAX_MERGED_ROWS = changes.MAX_MERGED_ROWS, 0
    done = 0
    for part in np.array_split(codes, pieces):
        collection.add(part, names(len(part), done))
        done += len(part)
    changes.MAX_MERGED_ROWS = merged
    return collection


def change_times(collection: embits.Collection) -> dict[str, Times]:
    """The times of changes, with the flushing of the disk."""
    n, rng, some = len(collection), np.random.default_rng(2), codes_of(ADDED, 1)
    times = {
        what: Times()
        for what in (
            f"add {ADDED:,} rows",
            f"look up {ADDED:,} ids",
            "update 100 rows",
            f"remove {ADDED:,} rows",
            "open",
        )
    }
    add, look_up, update, remove, opened = times.values()
    for turn in range(TURNS):
        ids = names(ADDED, n + turn * ADDED)
        add.run(collection.add, some, ids)
        look_up.run(collection.words.find_many, ids)
        picked = rng.choice(n // TURNS, ADDED, replace=False) + turn * (n // TURNS)
        ids = [f"document-{row}" for row in picked]
        update.run(collection.update, some[:100], ids[:100])
        remove.run(collection.remove, ids)
        opened.run(embits.load, collection.path)
    return times


def searches(n: int, dims: int) -> Iterator[tuple[str, int, Callable[[embits.BinaryVectors], Any]]]:
    """What is searched for, how often, and how."""
    queries = codes_of(1000, 3)
    floats = np.random.default_rng(4).normal(size=(100, dims)).astype("f4")
    half = embits.search.select(n, np.random.default_rng(5).random(n) < 0.5)
    yield "one query", 25, lambda bits: bits.search(queries[0])
    yield "one query, one thread", 25, lambda bits: bits.on(threads=1).search(queries[0])
    yield "one query, half of the rows", 15, lambda bits: bits.search(queries[0], where=half)
    yield "one float query", 15, lambda bits: bits.search(floats[0], metric="asymmetric")
    yield "100 queries", 7, lambda bits: bits.search(queries[:100])
    yield "100 float queries", 3, lambda bits: bits.search(floats, metric="asymmetric")
    yield "1,000 queries", 3, lambda bits: bits.search(queries)


def search_lines(
    one: embits.BinaryVectors, many: embits.BinaryVectors, *, same: bool = True
) -> Iterator[str]:
    """Times of one file and of pieces, and the ratios of their turns."""
    for what, turns, search in searches(min(len(one), len(many)), one.dims):
        if "half" in what and not same:
            continue  # a filter fits one number of rows
        is_same = np.array_equal(search(one).rows, search(many).rows)
        assert is_same or not same
        first, second = Times(), Times()
        for _ in range(turns):
            first.run(search, one)
            second.run(search, many)
        wall, processor = (
            ratio(second.wall, first.wall), ratio(second.processor, first.processor)
        )  # fmt: skip
        times = f"{statistics.median(first.wall):.2f} | {statistics.median(second.wall):.2f}"
        yield f"| {what} | {times} | {wall:.3f} | {processor:.3f} |"


def report(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The lines of the report."""
    coder = embits.RandomHyperplanes(N_BITS).fit(np.random.default_rng(0).normal(size=(999, 64)))
    codes = codes_of(options.rows, 0)
    one = new_collection(folder / "one", coder, codes, 1)
    many = new_collection(folder / "many", coder, codes, options.pieces)
    pieces = f"{options.pieces} pieces"
    head = f"| search | one file, ms | {pieces}, ms | ratio | ratio of processor time |"
    yield "# Collections"
    yield ""
    yield (
        f"{options.rows:,} rows of {N_BITS} bits; instruction set {embits.search.simd()}. "
        "`python benchmarks/collection.py` repeats it."
    )
    yield ""
    yield head
    yield "|---|---:|---:|---:|---:|"
    yield from search_lines(one, many)
    yield ""
    before = many.snapshot()
    yield f"| change | one file, ms | processor, ms | {pieces}, ms | processor, ms |"
    yield "|---|---:|---:|---:|---:|"
    for (what, first), second in zip(
        change_times(one).items(), change_times(many).values(), strict=True
    ):
        yield f"| {what} | {first} | {second} |"
    yield ""
    yield f"{pieces} after these changes, beside the same pieces before:"
    yield ""
    yield "| search | before, ms | after, ms | ratio | ratio of processor time |"
    yield "|---|---:|---:|---:|---:|"
    yield from search_lines(before, many, same=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for line in report(options, Path(folder)):
            print(line, flush=True)
            lines.append(line)
    if options.out:
        (options.out / "collection.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
