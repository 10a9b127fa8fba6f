"""Recall at equal size, and the time of a query: embits beside other libraries.

    python benchmarks/comparison.py NAME=MATRIX.npy ... [--keep FOLDER] [--out benchmarks/results]

Each MATRIX is (n, dims) floats compared by cosine. The queries are 1,000 rows spread over the first
30,000, searched among all other rows; recall@10 is the share of the true ten nearest that a method
finds. `sign` is what `quantize_embeddings("ubinary")`, `binary_quantize` and `vec_quantize_binary`
do. Times are for one query on one thread, contenders in turns, medians. --keep stores fitted codes
for the next run. Writes comparison.md into --out, and the table of docs/comparison.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
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

WIDTHS = (64, 128, 256, 512)
DOCS = Path(__file__).parents[1] / "docs" / "comparison.md"
NAMES = {"minilm": "MiniLM sentences", "gnews": "GoogleNews words", "glove": "GloVe words"}
QUERIES, K, FIRST_ROWS, ROUNDS = 1000, 10, 30_000, 25
Floats = NDArray[np.float32]
Search = Callable[[Floats, int], NDArray[np.int64]]  # float queries, k -> rows


class Contender(NamedTuple):
    """A way to search: what it stores of a vector, and whether the floats are read too."""

    name: str
    bytes_a_vector: float
    search: Search
    floats_read: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("matrices", nargs="+", metavar="NAME=MATRIX.npy")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for argument in arguments.matrices:
        name, _, path = argument.partition("=")
        X = np.load(path).astype(np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        results[name] = compare(name, X, arguments.keep)
    if arguments.out:
        (arguments.out / "comparison.md").write_text(page(results))
        block = "<!-- equal bytes -->\n" + summary(results) + "\n<!-- /equal bytes -->"
        text = re.sub(r"(?s)<!-- equal bytes -->.*<!-- /equal bytes -->", block, DOCS.read_text())
        DOCS.write_text(text)


def compare(name: str, X: Floats, keep: Path | None) -> dict[str, object]:
    rows = np.linspace(0, min(FIRST_ROWS, len(X)) - 1, QUERIES).astype(int)
    queries = X[rows]
    contenders = list(all_contenders(name, X, keep))
    truth = without_self(contenders[0].search(queries, K + 1), rows)
    recalls = []
    for each in contenders:
        found = without_self(each.search(queries, K + 1), rows)
        shares = [len(set(a) & set(b)) / K for a, b in zip(truth, found, strict=True)]
        recalls.append(float(np.mean(shares)))
        print(
            f"{name}: {each.name}, {each.bytes_a_vector:.0f} bytes: {recalls[-1]:.3f}", flush=True
        )
    times: list[list[float]] = [[] for _ in contenders]
    for turn in range(ROUNDS):
        for each, taken in zip(contenders, times, strict=True):
            query = queries[turn : turn + 1]
            start = time.perf_counter()
            each.search(query, K)
            taken.append(time.perf_counter() - start)
    table = [
        {"method": each.name, "bytes": each.bytes_a_vector, "floats_read": each.floats_read,
         "recall_at_10": round(recall, 4), "ms": round(1e3 * statistics.median(taken), 4)}
        for each, recall, taken in zip(contenders, recalls, times, strict=True)
    ]  # fmt: skip
    return {"vectors": len(X), "dims": X.shape[1], "rows": table}


def without_self(found: NDArray[np.int64], rows: NDArray[np.int64]) -> list[list[int]]:
    return [
        [r for r in line if r != own][:K] for line, own in zip(found.tolist(), rows, strict=True)
    ]


def all_contenders(name: str, X: Floats, keep: Path | None) -> Iterator[Contender]:
    yield faiss_index("floats, FAISS IndexFlatIP", faiss.IndexFlatIP(X.shape[1]), X, 4 * X.shape[1])
    yield from sign_bits(X)
    for n_bits in WIDTHS:
        yield from embits_codes(name, X, n_bits, keep)
    dims = X.shape[1]
    for least in (8, 16, 32, 64):
        n_bytes = next(size for size in range(least, dims + 1) if dims % size == 0)
        index = faiss.IndexPQ(dims, n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
        yield faiss_index("FAISS PQ", index, X, n_bytes)
    rotated = faiss.index_factory(
        dims, f"OPQ32_{dims // 32 * 32},PQ32x8", faiss.METRIC_INNER_PRODUCT
    )
    yield faiss_index("FAISS OPQ + PQ", rotated, X, 32)
    rabitq = faiss.index_factory(dims, "RR,RaBitQ", faiss.METRIC_INNER_PRODUCT)
    yield faiss_index("FAISS RaBitQ", rabitq, X, -(-dims // 8) + 8)


def faiss_index(name: str, index: faiss.Index, X: Floats, n_bytes: float) -> Contender:
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index.train(X[: 1 << 15])
    index.add(X)
    faiss.omp_set_num_threads(1)
    return Contender(name, n_bytes, lambda queries, k: index.search(queries, k)[1])


def sign_bits(X: Floats) -> Iterator[Contender]:
    codes, n_bytes = np.packbits(X > 0, axis=1), -(-X.shape[1] // 8)

    def hamming(queries: Floats, k: int) -> NDArray[np.int64]:
        return top_k(codes, np.packbits(queries > 0, axis=1), k, 1)[1]

    yield Contender("sign", n_bytes, hamming)
    yield Contender("sign, float query", n_bytes,
                    lambda queries, k: asymmetric_top_k(codes, queries, k, 1)[1])  # fmt: skip


def embits_codes(name: str, X: Floats, n_bits: int, keep: Path | None) -> Iterator[Contender]:
    path = keep / f"{name}.{n_bits}.safetensors" if keep else None
    if path and path.exists():
        bits = embits.load(path)
    else:
        bits = embits.binarize(X, n_bits)
        if path:
            bits.save(path)

    def by(**how: Any) -> Search:
        return lambda queries, k: bits.search(queries, k, threads=1, **how)[1]

    n_bytes = -(-n_bits // 8)
    yield Contender("embits", n_bytes, by())
    yield Contender("embits, float query", n_bytes, by(metric="asymmetric"))
    again = by(metric="asymmetric", oversample=4, floats=X)
    yield Contender("embits, float query, 4 × rescored", n_bytes, again, floats_read=True)


def about() -> list[str]:
    return [
        f"{platform.machine()}; kernels: {embits.search.simd()}; one thread",
        f"FAISS {faiss.__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
        "NearLossless fitted on the CPU with its defaults; one seed",
    ]


def page(results: dict[str, dict[str, object]]) -> str:
    lines = ["# Recall at equal size", "", *(f"- {line}" for line in about())]
    for name, result in results.items():
        lines += ["", f"## {titled(name, result)}", "", *table(result)]
    return "\n".join(lines) + "\n"


def summary(results: dict[str, dict[str, object]]) -> str:
    parts = [
        [f"**{titled(name, result)}**", "", *table(result)] for name, result in results.items()
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def titled(name: str, result: dict[str, object]) -> str:
    return f"{NAMES.get(name, name)}, {result['vectors']:,} × {result['dims']}"


def table(result: dict[str, Any]) -> list[str]:
    lines = ["| bytes per vector | method | recall@10 | ms per query |", "|---:|---|---:|---:|"]
    rows = sorted(result["rows"], key=lambda row: row["bytes"])
    for row in rows:
        name = row["method"] + (", with the floats" if row["floats_read"] else "")
        lines.append(
            f"| {row['bytes']:,.0f} | {name} | {row['recall_at_10']:.3f} | {row['ms']:.2g} |"
        )
    return lines


if __name__ == "__main__":
    main()
