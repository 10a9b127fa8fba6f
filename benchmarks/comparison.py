"""Recall, size and time of quantizers, on rows that none of them was fitted on.

    python benchmarks/comparison.py NAME=MATRIX.npy ... [--scifact FOLDER] [--slow] [--out FOLDER]

Each MATRIX is (n, dims) floats compared by cosine. Every method is fitted on half of the rows,
codes all of them, and is asked with 1,000 rows of the other half: recall@10 is the share of the
true ten nearest that it finds, recall@40 the share of those ten among its first forty. --scifact
adds nDCG@10 of 300 claims among 5,183 abstracts (fitted on the abstracts). Times are for one
query on one thread, contenders in turns, medians. --slow adds LSQ. Writes comparison.json and
comparison.md into --out; docs/figures/comparison.py draws the pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

import embits
from embits.search import asymmetric_top_k, top_k

WIDTHS = (64, 128, 256, 512, 1024)
SIZES = (8, 16, 32, 64, 128)  # bytes
QUERIES, K, FURTHER, TURNS = 1000, 10, 40, 15
CORES = len(os.sched_getaffinity(0))
NAMES = {"minilm": "MiniLM sentences", "gnews": "GoogleNews words", "glove": "GloVe words"}
Floats = NDArray[np.float32]
Search = Callable[[Floats, int], NDArray[np.int64]]  # float queries, k -> rows


class Fitted(NamedTuple):
    """A quantizer with all rows in it.

    Attributes:
        ways: Ways to ask, by name; "" is the usual one.
        n_bytes: Of a row.
        shared: Bytes that do not grow with the rows: codebooks, rotations, weights.
        fit_s: Seconds of the fit.
        encode_us: Microseconds to code a row.
    """

    ways: dict[str, Search]
    n_bytes: float
    shared: int
    fit_s: float
    encode_us: float


Maker = Callable[[Floats, Floats], Fitted]  # rows to fit on, rows to hold


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("matrices", nargs="+", metavar="NAME=MATRIX.npy")
    parser.add_argument("--scifact", type=Path)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--only", help="methods whose name holds this")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for argument in arguments.matrices:
        name, _, path = argument.partition("=")
        X = unit(np.load(path))
        X = X[np.random.default_rng(0).permutation(len(X))]
        results[name] = {"vectors": len(X), "dims": X.shape[1], "rows": []}
        makers = list(all_makers(X.shape[1], arguments.slow))
        chosen = [(m, make) for m, make in makers if not arguments.only or arguments.only in m]
        scifact = Scifact(arguments.scifact) if arguments.scifact else None
        results[name]["rows"] = [
            row for method, make in chosen for row in measure(method, make, X, scifact)
        ]
    if arguments.out:
        text = {"about": about(), "sets": results}
        (arguments.out / "comparison.json").write_text(json.dumps(text, indent=1) + "\n")
        (arguments.out / "comparison.md").write_text(page(results))


def unit(X: NDArray[Any]) -> Floats:
    X = X.astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# -- what is measured ------------------------------------------------------------------------------


def measure(
    method: str, make: Maker, X: Floats, scifact: Scifact | None
) -> Iterator[dict[str, Any]]:
    half = len(X) // 2
    fitted = make(X[:half], X)
    rows = np.arange(half, half + QUERIES)
    cosines = X[rows] @ X.T
    cosines[np.arange(QUERIES), rows] = -np.inf
    near = np.argpartition(-cosines, K, axis=1)[:, :K]
    graded = scifact.fitted(make) if scifact else None
    for way, search in fitted.ways.items():
        found = without_self(search(X[rows], FURTHER + 1), rows)
        row = {
            "method": method + (f", {way}" if way else ""),
            "bytes": round(fitted.n_bytes, 1),
            "shared_bytes": fitted.shared,
            "recall_at_10": recall(near, found, K),
            "recall_at_40": recall(near, found, FURTHER),
            "fit_s": round(fitted.fit_s, 2),
            "encode_us": round(fitted.encode_us, 2),
            "query_ms": round(1e3 * median_time(search, X[rows]), 4),
        }
        if scifact and graded:
            row["ndcg_at_10"] = scifact.ndcg(graded.ways[way])
        print(row, flush=True)
        yield row


def recall(near: NDArray[np.int64], found: list[list[int]], k: int) -> float:
    shares = [len(set(a) & set(b[:k])) / K for a, b in zip(near.tolist(), found, strict=True)]
    return round(float(np.mean(shares)), 4)


def without_self(found: NDArray[np.int64], rows: NDArray[np.int64]) -> list[list[int]]:
    return [
        [r for r in line if r != own][:FURTHER]
        for line, own in zip(found.tolist(), rows.tolist(), strict=True)
    ]


def median_time(search: Search, queries: Floats) -> float:
    taken = []
    for turn in range(TURNS):
        start = time.perf_counter()
        search(queries[turn : turn + 1], K)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


class Scifact:
    """Claims, abstracts, and which abstract answers which claim."""

    def __init__(self, folder: Path) -> None:
        self.corpus, self.queries = (
            unit(np.load(folder / f"{name}.npy")) for name in ("corpus", "queries")
        )
        ids = [(folder / f"{name}_ids.txt").read_text().split() for name in ("corpus", "query")]
        documents, claims = ({each: i for i, each in enumerate(of)} for of in ids)
        self.relevant: list[set[int]] = [set() for _ in self.queries]
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            claim, document, grade = line.split("\t")
            if int(grade) > 0 and claim in claims:
                self.relevant[claims[claim]].add(documents[document])

    def fitted(self, make: Maker) -> Fitted:
        return make(self.corpus, self.corpus)

    def ndcg(self, search: Search) -> float:
        gains = 1 / np.log2(np.arange(2, K + 2))
        scores = [
            sum(gain for gain, row in zip(gains, found, strict=True) if row in wanted)
            / gains[: min(K, len(wanted))].sum()
            for found, wanted in zip(search(self.queries, K).tolist(), self.relevant, strict=True)
            if wanted
        ]
        return round(float(np.mean(scores)), 4)


# -- contenders ------------------------------------------------------------------------------------


def all_makers(dims: int, slow: bool) -> Iterator[tuple[str, Maker]]:
    for n_bits in WIDTHS:
        yield f"embits {n_bits}", embits_maker(n_bits)
    yield "sign, centered", sign_maker()
    for n_bits in (1, 2, 4):
        yield f"EDEN {n_bits} bit", eden_maker(n_bits)
    for n_bits in ("", 2, 4):
        yield f"FAISS RaBitQ {n_bits or 1} bit", faiss_maker(f"RR{dims},RaBitQ{n_bits}")
    for kind in ("SQ4", "SQ8", "SQfp16"):
        yield f"FAISS {kind}", faiss_maker(kind)
    for size in SIZES:
        if dims % size == 0:
            yield f"FAISS PQ {size}", faiss_maker(f"PQ{size}x8")
        yield f"FAISS OPQ {size}", faiss_maker(f"OPQ{size}_{dims // size * size},PQ{size}x8")
    for size in (8, 16, 32):
        yield f"FAISS RQ {size}", faiss_maker(f"RQ{size}x8")
        if dims % (size // 4) == 0:
            yield f"FAISS PRQ {size}", faiss_maker(f"PRQ{size // 4}x4x8")
    if slow:
        for size in (8, 16):
            yield f"FAISS LSQ {size}", faiss_maker(f"LSQ{size}x8")


def embits_maker(n_bits: int) -> Maker:
    def make(sample: Floats, X: Floats) -> Fitted:
        start = time.perf_counter()
        coder = embits.NearLossless(n_bits).fit(sample)
        fitted = time.perf_counter()
        codes = coder.encode(X)
        encoded = time.perf_counter()
        bits = embits.BinaryVectors(None, codes, coder)

        def by(metric: str) -> Search:
            return lambda queries, k: bits.search(queries, k, metric=metric, threads=1).rows

        ways = {"Hamming": by("hamming"), "float query": by("asymmetric"), "decoded": by("decoded")}
        shared = sum(part.nbytes for part in coder.state().values())
        times = fitted - start, 1e6 * (encoded - fitted) / len(X)
        return Fitted(ways, n_bits / 8, shared, *times)

    return make


def sign_maker() -> Maker:
    def make(sample: Floats, X: Floats) -> Fitted:
        start = time.perf_counter()
        mean = sample.mean(axis=0)
        codes = np.packbits(mean < X, axis=1)
        encode_us = 1e6 * (time.perf_counter() - start) / len(X)

        def hamming(queries: Floats, k: int) -> NDArray[np.int64]:
            return top_k(codes, np.packbits(queries > mean, axis=1), k, 1).rows

        def weighted(queries: Floats, k: int) -> NDArray[np.int64]:
            return asymmetric_top_k(codes, queries - mean, k, 1).rows

        ways = {"Hamming": hamming, "float query": weighted}
        return Fitted(ways, -(-X.shape[1] // 8), mean.nbytes, 0.0, encode_us)

    return make


def eden_maker(n_bits: int) -> Maker:
    """EDEN (Vargaftik et al. 2022): a rotation, the best levels of a normal value, and a scale."""

    def make(sample: Floats, X: Floats) -> Fitted:
        start = time.perf_counter()
        dims = X.shape[1]
        rng = np.random.default_rng(0)
        rotation = np.linalg.qr(rng.normal(size=(dims, dims)))[0].astype(np.float32)
        levels = lloyd_max(n_bits)
        edges = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
        fitted = time.perf_counter()
        rotated = X @ rotation * np.float32(dims**0.5)
        coded = levels[np.searchsorted(edges, rotated)]
        along = np.einsum("ij,ij->i", rotated, coded)
        coded *= (np.einsum("ij,ij->i", rotated, rotated) / along)[:, None]
        encode_us = 1e6 * (time.perf_counter() - fitted) / len(X)
        index = faiss.IndexFlatIP(dims)
        index.add(np.ascontiguousarray(coded, dtype=np.float32))
        faiss.omp_set_num_threads(1)
        ways = {"": lambda queries, k: index.search(queries @ rotation, k)[1]}
        n_bytes = n_bits * dims / 8 + 4
        return Fitted(ways, n_bytes, rotation.nbytes, fitted - start, encode_us)

    return make


def lloyd_max(n_bits: int) -> Floats:
    """The levels with the least squared error for values of a normal distribution."""
    values = np.sort(np.random.default_rng(1).normal(size=200_000))
    levels = np.quantile(values, (np.arange(2**n_bits) + 0.5) / 2**n_bits)
    for _ in range(100):
        parts = np.split(values, np.searchsorted(values, (levels[1:] + levels[:-1]) / 2))
        levels = np.array([part.mean() for part in parts])
    return levels.astype(np.float32)


def faiss_maker(factory: str) -> Maker:
    def make(sample: Floats, X: Floats) -> Fitted:
        faiss.omp_set_num_threads(CORES)
        start = time.perf_counter()
        index = faiss.index_factory(X.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(sample)
        fitted = time.perf_counter()
        shared = faiss.serialize_index(index).nbytes
        added = time.perf_counter()
        index.add(X)
        encode_us = 1e6 * (time.perf_counter() - added) / len(X)
        n_bytes = (faiss.serialize_index(index).nbytes - shared) / len(X)
        faiss.omp_set_num_threads(1)
        ways = {"": lambda queries, k: index.search(queries, k)[1]}
        return Fitted(ways, n_bytes, shared, fitted - start, encode_us)

    return make


# -- what is written -------------------------------------------------------------------------------


def about() -> list[str]:
    return [
        f"{platform.machine()}; kernels: {embits.search.simd()}; queries on one thread; "
        f"fits and encoding on {CORES} cores",
        f"FAISS {faiss.__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
        "Fitted on half of the rows, asked with 1,000 rows of the other half; one seed. EDEN is "
        "an implementation of this script, searched as floats: its time is not that of a scan "
        "of codes",
    ]


def page(results: dict[str, dict[str, Any]]) -> str:
    lines = ["# Quantizers on unseen rows", "", *(f"- {line}" for line in about())]
    for name, result in results.items():
        title = f"{NAMES.get(name, name)}, {result['vectors']:,} × {result['dims']}"
        lines += ["", f"## {title}", "", *table(result["rows"])]
    return "\n".join(lines) + "\n"


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| bytes | method | recall@10 | recall@40 | nDCG@10 | fit s | µs a row | shared KB | "
        "ms a query |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: (row["bytes"], row["recall_at_10"])):
        ndcg = f"{row['ndcg_at_10']:.3f}" if "ndcg_at_10" in row else ""
        lines.append(
            f"| {row['bytes']:g} | {row['method']} | {row['recall_at_10']:.3f} | "
            f"{row['recall_at_40']:.3f} | {ndcg} | {row['fit_s']:.1f} | {row['encode_us']:.1f} | "
            f"{row['shared_bytes'] / 1000:,.0f} | {row['query_ms']:.2g} |"
        )
    return lines


if __name__ == "__main__":
    main()
