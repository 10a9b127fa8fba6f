"""Collections with columns and kept vectors: the time of changes, filters and rescoring; memory.

    python benchmarks/collection_columns.py [--rows 1000000] [--seed 0] [--folder DIR]
        [--out benchmarks/results]

Each row has a text of about 170 letters, a year, a label and a score; codes are random, 256 bits.
A change takes turns with the same change of a collection without columns, a filter with the boolean
mask of the same rows, made by Arrow from one table, and rescoring with a search that does not
rescore; medians and ratios of turns are given. The memory of a search is that of another process,
beyond what it has mapped. Writes collection_columns.md into --out.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import embits

N_BITS, ADDED, TURNS, DIMS = 256, 1000, 15, 64
LABELS = np.array(["news", "sport", "art", "science"])
WORDS = np.array(["river", "music", "paper", "winter", "engine", "garden", "number", "sailor"])

MEMORY = """
import sys, numpy as np, embits
import threading, time
def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(x.split()[1] for x in lines if x.startswith("RssAnon"))) / 1024
start, peak, done = anonymous(), [0.0], threading.Event()
def watch():
    while not done.is_set():
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.0005)
watcher = threading.Thread(target=watch)
watcher.start()
bits = embits.load(sys.argv[1])
codes = np.asarray(bits.codes[:10])
found = bits.search(codes, k=10, where={"year": (2015, None), "label": ["news", "art"]})
found.column("text"), found.column("year")
done.set()
watcher.join()
print(max(peak[0], anonymous()) - start)
"""


def columns_of(n: int, rng: np.random.Generator) -> dict[str, Any]:
    words = rng.choice(WORDS, (n, 25)).tolist()
    texts = [" ".join(each) for each in words]
    years, labels = rng.integers(1990, 2030, n), rng.choice(LABELS, n)
    return {"text": texts, "year": years, "label": labels, "score": rng.random(n)}


def codes_of(n: int, rng: np.random.Generator) -> Any:
    return np.frombuffer(rng.bytes(n * N_BITS // 8), np.uint8).reshape(n, -1)


def timed(function: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    start = time.perf_counter()
    function(*arguments, **options)
    return 1e3 * (time.perf_counter() - start)


def line(what: str, ours: list[float], peer: str, theirs: list[float]) -> str:
    ratio = statistics.median(a / max(b, 1e-6) for a, b in zip(ours, theirs, strict=True))
    a, b = statistics.median(ours), statistics.median(theirs)
    return f"| {what} | {a:.3f} | {peer} | {b:.3f} | {ratio:.2f} |"


def changes_and_filters(folder: Path, n: int, rng: np.random.Generator) -> Iterator[str]:
    coder = embits.RandomHyperplanes(N_BITS).fit(rng.normal(size=(999, DIMS)))
    ours = embits.open_collection(folder / "columns", coder)
    plain = embits.open_collection(folder / "plain", coder)
    codes, columns = codes_of(n, rng), columns_of(n, rng)
    ids = [f"document-{i}" for i in range(n)]
    ours.add(codes, ids, columns=columns)
    plain.add(codes, ids)
    first: dict[str, list[float]] = {}
    again: dict[str, list[float]] = {}
    masks: dict[str, list[float]] = {}
    table = pa.table(columns)
    for year in range(1991, 1991 + TURNS):  # another filter each time: none is known
        filters = {
            "year >= y": ({"year": (year, None)}, lambda y=year: pc.field("year") >= y),
            "score >= s": (
                {"score": (year / 3000, None)}, lambda y=year: pc.field("score") >= y / 3000,
            ),
        }  # fmt: skip
        for name, (where, expression) in filters.items():
            first.setdefault(name, []).append(timed(ours.select, where))
            again.setdefault(name, []).append(timed(ours.select, where))
            made = lambda e=expression: table.filter(e()).num_rows  # noqa: E731
            masks.setdefault(name, []).append(timed(made))
    for name in first:
        yield line(f"filter {name}, first time", first[name], "Table.filter", masks[name])
        yield line(f"filter {name}, again", again[name], "Table.filter", masks[name])
    add, without = [], []
    for turn in range(TURNS):
        some, extra = codes_of(ADDED, rng), columns_of(ADDED, rng)
        ids = [f"new-{turn}-{i}" for i in range(ADDED)]
        add.append(timed(ours.add, some, ids, columns=extra))
        without.append(timed(plain.add, some, ids))
    yield line(f"add {ADDED:,} rows", add, "without columns", without)


def rescoring(folder: Path, n: int, rng: np.random.Generator) -> Iterator[str]:
    X = rng.normal(size=(n, DIMS)).astype(np.float32)
    coder = embits.RandomHyperplanes(N_BITS).fit(X[:999])
    for keep in ("float16", "int8"):
        kept = embits.open_collection(folder / keep, coder, keep=keep)
        kept.add(X)
        one, plain = [], []
        for query in rng.normal(size=(10 * TURNS, DIMS)).astype(np.float32):
            one.append(timed(kept.search, query, k=10, rescore=40))
            plain.append(timed(kept.search, query, k=10))
        yield line(f"search, rescore=40, {keep}", one, "no rescoring", plain)


def report(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    rng = np.random.default_rng(options.seed)
    yield "# Collections with columns"
    yield ""
    yield (
        f"{options.rows:,} rows of {N_BITS} bits with a text and three attributes; kept vectors of "
        f"{DIMS} dimensions; instruction set {embits.search.simd()}; seed {options.seed}. "
        "`python benchmarks/collection_columns.py` repeats it."
    )
    yield ""
    yield "| what | ms | beside | ms | ratio |"
    yield "|---|---:|---|---:|---:|"
    yield from changes_and_filters(folder, options.rows, rng)
    yield from rescoring(folder, options.rows, rng)
    command = [sys.executable, "-c", MEMORY, str(folder / "columns")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    yield ""
    yield (
        f"A process that opens the collection, searches it with a filter on two columns and reads "
        f"two columns of the results takes {float(done.stdout):.0f} MB beyond the mapped files, "
        "with pyarrow and the other imports of the search."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for each in report(options, Path(folder)):
            print(each, flush=True)
            lines.append(each)
    if options.out:
        (options.out / "collection_columns.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
