"""What it costs to hand codes to FAISS, and what its indexes then find.

    python benchmarks/faiss_exchange.py FILE [--write]

FILE is one that `embits binarize` wrote. For each kind of index: the time that `to_faiss` takes
as a ratio of FAISS's own calls on the same array, whether the codes come back, and for several
settings the share of the ten nearest that a search finds and its time beside `IndexBinaryFlat`
and our search (1,000 queries from among the codes, all threads). A neighbor at the distance of
the tenth counts as found, whichever row it is. --write stores the result in
benchmarks/results/faiss_exchange.md.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import embits
from embits.integrations.faiss import TRAINING_ROWS_PER_LIST, from_faiss, to_faiss
from embits.readers.source import cores

K = 10
ROUNDS = 5
BUILD_ROWS = 30_000  # of which the times of building are taken
SETTINGS: dict[str, list[dict[str, int]]] = {
    "flat": [{}],
    "ivf": [{"nprobe": share} for share in (64, 16, 8, 4, 1)],  # nlist is divided by these
    "hnsw": [{"efSearch": ef} for ef in (16, 64, 128, 256)],
}


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def faiss_alone(index: Any, codes: Any) -> float:
    """FAISS's own calls that make such an index from an array in memory."""
    sample = codes[:0]
    if isinstance(index, faiss.IndexBinaryIVF):
        again = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(index.d), index.d, index.nlist)
        again.cp.min_points_per_centroid = 1
        sample = np.random.default_rng(0).permutation(codes)[: TRAINING_ROWS_PER_LIST * index.nlist]
    elif isinstance(index, faiss.IndexBinaryHNSW):
        again = faiss.IndexBinaryHNSW(index.d, index.hnsw.nb_neighbors(1))
        again.hnsw.efConstruction = index.hnsw.efConstruction
    else:
        again = faiss.IndexBinaryFlat(index.d)
    return seconds(lambda: (again.train(sample) if len(sample) else None, again.add(codes)))


def build_ratio(kind: str, codes: Any) -> float:
    """The time of `to_faiss` over that of FAISS's own calls, in turns."""
    index = to_faiss(codes, kind)
    ratios = [
        seconds(lambda: to_faiss(codes, kind)) / faiss_alone(index, codes) for _ in range(ROUNDS)
    ]
    return statistics.median(ratios)


def searched(index: Any, settings: dict[str, int], queries: Any) -> tuple[str, float, Any]:
    for name, value in settings.items():
        if name == "nprobe":
            index.nprobe = max(1, index.nlist // value)
            settings = {"nprobe": index.nprobe}
        else:
            index.hnsw.efSearch = value
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        distances, _ = index.search(queries, K)
        times.append(time.perf_counter() - start)
    label = ", ".join(f"{name} {value}" for name, value in settings.items())
    return label, 1e6 * statistics.median(times) / len(queries), distances


def main() -> None:
    bits = embits.load(sys.argv[1])
    codes = np.ascontiguousarray(bits.codes)
    rows = np.random.default_rng(0).choice(len(codes), 1000, replace=False)
    queries = codes[rows]
    exact, _ = bits.search(queries, K)
    ours = statistics.median(seconds(lambda: bits.search(queries, K)) for _ in range(ROUNDS))
    us = 1e6 * ours / len(queries)
    lines = [
        f"{len(bits):,} codes of {bits.n_bits} bits ({bits.coder.method}); {cores()} threads; "
        f"embits' exact search: {us:.0f} µs a query, when 1,000 come at once.",
        "",
        "| kind | settings | to_faiss, of FAISS's own calls | codes back | finds | µs a query | "
        "of our time |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, all_settings in SETTINGS.items():
        ratio = build_ratio(kind, codes[:BUILD_ROWS])
        index = to_faiss(bits, kind)
        same = bool(np.array_equal(from_faiss(index, bits.coder).codes, codes))
        for settings in all_settings:
            label, each, distances = searched(index, settings, queries)
            found = float((distances <= exact[:, -1:]).mean())
            lines.append(
                f"| {kind} | {label} | {ratio:.2f} × | {'yes' if same else 'NO'} | "
                f"{100 * found:.1f} % | {each:.0f} | {each / us:.2f} × |"
            )
    print("\n".join(lines))
    if "--write" in sys.argv:
        target = Path(__file__).parent / "results" / "faiss_exchange.md"
        command = "`python benchmarks/faiss_exchange.py FILE --write`"
        target.write_text(f"# Codes in FAISS\n\n{command}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
