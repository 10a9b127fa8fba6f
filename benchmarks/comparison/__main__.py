"""Recall, size and time of quantizers, on rows that none of them was fitted on.

    python benchmarks/comparison measure PARTS NAME=VECTORS ... [--scifact NAME=FOLDER]
    python benchmarks/comparison time PARTS NAME=VECTORS
    python benchmarks/comparison merge PARTS OUT

VECTORS is a file that embits reads, or a folder of .npy files; rows are compared by cosine. Every
method is fitted on half of the rows, encodes all of them, and is asked with 1,000 rows of the other
half: recall@10 is the share of the true ten nearest that it finds, recall@40 the share of those ten
among its first forty, and U is recall@10 among the rows of the other half alone. --scifact adds
nDCG@10 of 300 claims among 5,183 abstracts (fitted on the abstracts) to one set. Fits and encoding
are in processor time.

`measure` writes a file for each method into the folder PARTS; --seed measures the coders of embits
with another seed, and the tables have the mean of all seeds; --device cuda fits and encodes with
them on a GPU, where processor time says nothing and is left out. Processes started with the same
folder share the methods. Run the same command again to resume, after deleting the empty files of
a stopped run. `time` adds the time of a query to the files of one set: single queries on one
thread, methods in turns, medians. It fits on 1,000 rows, because the time of a query does not
depend on the fit. `merge` writes comparison.json and comparison.md into OUT;
docs/figures/comparison.py draws the pictures.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # of provenance.py

from measures import Floats, Maker, Scifact, Unseen, milliseconds
from packages import (
    faiss_maker,
    rabitqlib_maker,
    scann_maker,
    turbovec_maker,
    usearch_maker,
)
from quantizers import CODERS, eden_maker, embits_maker, sign_maker
from tables import about, has_results, merge

import embits
from provenance import checksum

SIZES = (8, 16, 32, 64, 128)  # bytes
TO_TIME = 1000  # rows of a fit whose queries are timed


class Job(NamedTuple):
    """A method to measure on a set, and the file of its results."""

    part: Path
    method: str
    make: Maker
    rows: Unseen
    scifact: Scifact | None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    measurer, timer, merger = (verbs.add_parser(name) for name in ("measure", "time", "merge"))
    for verb in (measurer, timer):
        verb.add_argument("parts", type=Path)
        verb.add_argument("matrices", nargs="+", metavar="NAME=VECTORS")
        verb.add_argument("--scifact", default="", metavar="NAME=FOLDER")
        verb.add_argument("--methods", default="", help="a regular expression")
        verb.add_argument("--seed", type=int, default=0, help="of the coders of embits")
        verb.add_argument("--device", default="cpu", help="of the coders of embits")
    measurer.set_defaults(work=measure_all)
    timer.set_defaults(work=time_all)
    merger.add_argument("parts", type=Path)
    merger.add_argument("out", type=Path)
    merger.set_defaults(work=lambda arguments: merge(arguments.parts, arguments.out))
    arguments = parser.parse_args()
    arguments.work(arguments)


def measure_all(arguments: argparse.Namespace) -> None:
    arguments.parts.mkdir(parents=True, exist_ok=True)
    for job in jobs(arguments):
        if claim(job.part):
            name, (n, dims) = job.part.name.partition(".")[0], job.rows.X.shape
            result = {"set": name, "vectors": n, "dims": dims, "about": about(arguments.device)}
            result |= {"seed": arguments.seed, "input": checksum(job.rows.X)}
            result["rows"] = measure(job, timed=arguments.device == "cpu")
            job.part.write_text(json.dumps(result))
            print(name, result["rows"], flush=True)


def time_all(arguments: argparse.Namespace) -> None:
    measured = [
        (job, json.loads(job.part.read_text()))
        for job in jobs(arguments)
        if has_results(job.part) and "EDEN" not in job.method  # searched as floats
    ]
    ways = [
        search
        for job, _ in measured
        for way, search in job.make(job.rows.X[:TO_TIME], job.rows.X).ways.items()
        if way != "cosine"  # searched as floats
    ]
    times = iter(milliseconds(ways, measured[0][0].rows.queries))
    for job, result in measured:
        for row in result["rows"]:
            if row["method"].endswith(", cosine"):
                continue
            row["query_ms"] = next(times)
        result["timed"] = f"{about('cpu')[0]}; methods in turns"
        job.part.write_text(json.dumps(result))


def jobs(arguments: argparse.Namespace) -> list[Job]:
    """All methods on all sets, the slowest first."""
    found = []
    for argument in arguments.matrices:
        name, _, path = argument.partition("=")
        rows = Unseen(matrix(Path(path)))
        of, _, folder = arguments.scifact.partition("=")
        scifact = Scifact(Path(folder)) if of == name else None
        for place, (method, make) in enumerate(makers(rows.X.shape[1], arguments)):
            if re.search(arguments.methods, method):
                seed = f".{arguments.seed}" if arguments.seed else ""
                part = arguments.parts / f"{name}.{method.replace(' ', '-')}{seed}.json"
                found.append((place, Job(part, method, make, rows, scifact)))
    return [job for _, job in sorted(found, key=lambda pair: pair[0])]


def matrix(path: Path) -> Floats:
    """The vectors of a file, or of all .npy files of a folder."""
    files = sorted(path.glob("*.npy")) if path.is_dir() else [path]
    return np.concatenate([np.asarray(embits.read_vectors(file).matrix) for file in files])


def claim(part: Path) -> bool:
    """Whether no other process measures, or has measured, this part."""
    try:
        part.open("x").close()
    except FileExistsError:
        return False
    return True


def measure(job: Job, timed: bool) -> list[dict[str, Any]]:
    fitted = job.make(job.rows.sample, job.rows.X)
    graded = job.make(job.scifact.corpus, job.scifact.corpus).ways if job.scifact else {}
    measured = []
    for way in fitted.ways:
        row = {
            "method": job.method + (f", {way}" if way else ""),
            "bytes": round(fitted.n_bytes, 1),
            "shared_bytes": fitted.shared,
            **job.rows.recalls(fitted, way),
        }
        if timed:
            row |= {"fit_s": round(fitted.fit_s, 2), "encode_us": round(fitted.encode_us, 2)}
        if job.scifact:
            row["ndcg_at_10"] = job.scifact.ndcg(graded[way])
        measured.append(row)
    return measured


def makers(dims: int, arguments: argparse.Namespace) -> Iterator[tuple[str, Maker]]:
    """All contenders by name, the slowest fits first."""
    for kind in ("LSQ", "RQ"):
        for size in reversed(SIZES):
            yield f"FAISS {kind} {size}", faiss_maker(f"{kind}{size}x8_Nnone")  # needs no norms
    for name in reversed(CODERS):
        for size in reversed(SIZES):
            make = embits_maker(name, 8 * size, arguments.seed, arguments.device)
            yield f"{name} {8 * size}", make
    yield from product_quantizers(dims)
    yield "sign, centered", sign_maker()
    for n_bits in (1, 2, 4):
        yield f"EDEN {n_bits} bit", eden_maker(n_bits)
        yield f"FAISS RaBitQ {n_bits} bit", faiss_maker(f"RR{dims},RaBitQ{n_bits}".rstrip("1"))
    for kind in ("SQ4", "SQ8", "SQfp16"):
        yield f"FAISS {kind}", faiss_maker(kind)
    yield from other_packages(dims)


def product_quantizers(dims: int) -> Iterator[tuple[str, Maker]]:
    """OPQ, PRQ and PQ. np: without polysemous training, which does not change recall."""
    for size in reversed(SIZES):
        yield f"FAISS OPQ {size}", faiss_maker(f"OPQ{size}_{dims // size * size},PQ{size}x8np")
    for size in (64, 32, 16, 8):
        fitting = [steps for steps in (4, 8) if dims % (size // steps) == 0]
        if fitting:
            factory = f"PRQ{size // fitting[0]}x{fitting[0]}x8_Nnone"
            yield f"FAISS PRQ {size}", faiss_maker(factory)
    for size in reversed(SIZES):
        pad = f"Pad{dims + -dims % size}," if dims % size else ""
        yield f"FAISS PQ {size}", faiss_maker(f"{pad}PQ{size}x8np")


def other_packages(dims: int) -> Iterator[tuple[str, Maker]]:
    """Those that are installed."""

    def installed(name: str) -> bool:
        return importlib.util.find_spec(name) is not None

    if installed("scann"):
        for size in SIZES:
            block = -(-dims // (2 * size))  # dimensions
            yield f"ScaNN {-(-dims // block) / 2:g}", scann_maker(block)
    if installed("turbovec"):
        for n_bits in (2, 4):
            yield f"turbovec {n_bits} bit", turbovec_maker(n_bits)
    if installed("rabitqlib"):
        for n_bits in (1, 2, 4):
            yield f"rabitqlib {n_bits} bit", rabitqlib_maker(n_bits)
    if installed("usearch"):
        for dtype in ("e4m3", "i8", "f16"):
            yield f"usearch {dtype}", usearch_maker(dtype)


if __name__ == "__main__":
    main()
