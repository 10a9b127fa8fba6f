"""Cells: rows read, the rows of the exact scan that are found, and time; beside IndexBinaryIVF.

    python benchmarks/cells.py glove FOLDER --vectors glove.npy     words, 256 bits
    python benchmarks/cells.py rows FOLDER --rows 10000000          mixes of sentence vectors

`recall_time.py` measures the recall of true neighbors, beside graphs and other indexes.
FOLDER keeps what takes long to make. Times are medians of paired turns on one thread, of its
processor time: every turn runs each of the rivals once. Recall is measured on queries that nothing
was calibrated with; `--seed` draws others.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import embits
from provenance import processor

K = 10
TURNS = 20


NOISE_ROWS = 50_000  # vectors of noise, of which each new row gets one


def mixed(source, neighbors, noise, rng, n):
    """New rows: mixes of a vector and one of its neighbors, with noise."""
    rows = rng.integers(len(source), size=n)
    others = neighbors[rows, rng.integers(neighbors.shape[1], size=n)]
    share = rng.uniform(0.25, 0.75, (n, 1)).astype(np.float32)
    X = source[rows]
    X -= source[others]
    X *= share
    X += source[others]
    X += noise[rng.integers(len(noise), size=n)]
    return X


def noise_of(dims):
    rng = np.random.default_rng(99)
    return rng.normal(scale=0.5 / dims**0.5, size=(NOISE_ROWS, dims)).astype(np.float32)


def sentences(data):
    source = np.concatenate([np.load(path) for path in sorted(data.glob("sentences/*.npy"))])
    source = source.astype(np.float32)
    source /= np.linalg.norm(source, axis=1, keepdims=True)
    nearest = [
        np.argpartition(-(source[i : i + 1024] @ source.T), 11, axis=1)[:, :11].copy()
        for i in range(0, len(source), 1024)
    ]
    return source, np.concatenate(nearest)


def make_rows(folder, data, n, n_bits, floats):
    """Files of codes, plain and with cells; vectors if they are wanted; and queries.

    ITQ codes are the signs of a linear map. Without `floats`, its results are mixed instead of the
    vectors, which is the same but for their lengths, and takes a tenth of the time.
    """
    plain, cells = folder / f"plain-{n}-{n_bits}.bits", folder / f"cells-{n}-{n_bits}.bits"
    source, neighbors = sentences(data)
    coder, noise = embits.ITQ(n_bits=n_bits, random_state=0).fit(source), noise_of(source.shape[1])
    queries = mixed(source, neighbors, noise, np.random.default_rng(12345), 2000)
    if not plain.exists():
        rng, codes = np.random.default_rng(0), np.empty((n, n_bits // 8), np.uint8)
        kept = None
        if floats:
            kept = np.lib.format.open_memmap(
                folder / f"floats-{n}.npy", "w+", np.float16, (n, source.shape[1])
            )
        projected = coder.project(source), noise @ np.asarray(coder.W_, np.float32).T
        for start in range(0, n, 50_000):
            stop = min(n, start + 50_000)
            if kept is None:
                signs = mixed(projected[0], neighbors, projected[1], rng, stop - start)
                codes[start:stop] = np.packbits(signs >= 0, axis=1)
            else:
                X = mixed(source, neighbors, noise, rng, stop - start)
                X /= np.linalg.norm(X, axis=1, keepdims=True)  # of equal order by inner product
                codes[start:stop], kept[start:stop] = coder.encode(X), X
        embits.BinaryVectors(None, codes, coder).save(plain)
    if not cells.exists():
        program = (
            "import embits, sys, time\n"
            "bits, begin = embits.load(sys.argv[1]), time.perf_counter()\n"
            "made = bits.with_cells()\n"
            "seconds = time.perf_counter() - begin\n"
            "peak = [x for x in open('/proc/self/status') if x.startswith('VmHWM')][0].split()[1]\n"
            "print(f'{len(made.current.centers)} cells in {seconds:.0f} s, '\n"
            "      f'{time.process_time():.0f} s of processors, peak {int(peak) / 1e6:.2f} GB')\n"
            "made.save(sys.argv[2])"
        )
        subprocess.run([sys.executable, "-c", program, plain, cells], check=True)
    return embits.load(plain), embits.load(cells), queries


def shares(exact, found):
    return np.array([len(set(a) & set(b)) / K for a, b in zip(exact, found, strict=True)])


def paired(rivals, n):
    """Median milliseconds of each rival, in turns; a rival is called with a number from 0 to n.

    Of the processor time of this thread: work of others on the machine counts less.
    """
    times = {name: [] for name in rivals}
    for turn in range(TURNS * 10):
        for name, call in rivals.items():
            begin = time.thread_time()
            call(turn % n)
            times[name].append(time.thread_time() - begin)
    return {name: 1000 * float(np.median(each)) for name, each in times.items()}


def report(name, bits, plain, queries, recalls=(0.9, 0.95, 0.99)):
    """Recall and rows read of unseen queries, then times; by Hamming distance, those of codes."""
    found = []
    vectors = queries
    for metric in ("hamming", "asymmetric"):
        queries = bits.encode(vectors) if metric == "hamming" else vectors
        exact = plain.on(threads=2).search(queries, K, metric=metric)
        for recall in recalls:
            some = bits.on(threads=2).search(queries, K, metric=metric, recall=recall)
            rivals = {
                "exact": lambda i, m=metric, q=queries: plain.on(threads=1).search(
                    q[i], K, metric=m
                ),
                "cells": lambda i, m=metric, r=recall, q=queries: bits.on(threads=1).search(
                    q[i], K, metric=m, recall=r
                ),
            }
            times = paired(rivals, len(queries))
            found.append(
                {
                    "data": name, "metric": metric, "asked": recall,
                    "found": round(float(shares(exact.rows, some.rows).mean()), 4),
                    "read": round(some.rows_read / len(queries) / len(bits), 5),
                    "exact ms": round(times["exact"], 4), "cells ms": round(times["cells"], 4),
                    "ratio": round(times["cells"] / times["exact"], 3),
                }
            )  # fmt: skip
            print(json.dumps(found[-1]), flush=True)
    return found


def batches(bits, plain, queries, recall=0.95, turns=3):
    """Batches of a thousand, by Hamming distance: exact, and with cells."""
    times = {"exact": [], "cells": []}
    batch = bits.encode(queries[:1000])
    for _ in range(turns):
        for name, call in (
            ("exact", lambda: plain.on(threads=1).search(batch, K)),
            ("cells", lambda: bits.on(threads=1).search(batch, K, recall=recall)),
        ):
            begin = time.thread_time()
            call()
            times[name].append(time.thread_time() - begin)
    median = {name: float(np.median(each)) for name, each in times.items()}
    ratio = median["exact"] / median["cells"]
    print(json.dumps({"batch of 1000, seconds": median, "exact / cells": round(ratio, 2)}))


def binary_ivf(bits, plain, queries, recall=0.95):
    """FAISS IndexBinaryIVF with as many lists, at the probes that find as much."""
    import faiss

    faiss.omp_set_num_threads(2)
    codes, n_lists = np.asarray(plain.codes), len(bits.current.centers)
    quantizer = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index = faiss.IndexBinaryIVF(quantizer, 8 * codes.shape[1], n_lists)
    rng, rows_a_list = np.random.default_rng(0), 40 if len(codes) < 3e6 else 10
    index.cp.niter = 10 if len(codes) < 3e6 else 4
    begin = time.process_time()
    sample = rng.choice(len(codes), min(len(codes), rows_a_list * n_lists), replace=False)
    index.train(codes[np.sort(sample)])
    index.add(codes)
    made = time.process_time() - begin
    print(f"IndexBinaryIVF, {n_lists} lists: made in {made:.0f} s of processors", flush=True)
    asked = bits.encode(queries)
    exact = plain.search(asked, K).rows
    ours = bits.search(asked, K, recall=recall)
    target = shares(exact, ours.rows).mean()
    probes = 1
    while True:
        index.nprobe = probes
        reached = shares(exact, index.search(asked, K)[1]).mean()
        if reached >= target or probes >= n_lists:
            break
        probes = max(probes + 1, int(probes * 1.2))
    faiss.omp_set_num_threads(1)
    times = paired(
        {
            "faiss": lambda i: index.search(asked[i : i + 1], K),
            "cells": lambda i: bits.on(threads=1).search(asked[i], K, recall=recall),
        },
        len(asked),
    )
    line = {
        "probes": probes,
        "faiss found": round(float(reached), 4),
        "ours": round(float(target), 4),
    }
    print(json.dumps(line | {k: round(v, 4) for k, v in times.items()}), flush=True)


def resident(path, queries_path, recall, limit=200_000_000):
    """In a process of its own: memory after searches of a mapped file that no cache holds.

    Where control groups can be made, all its memory is limited, that of the file included.
    """
    program = """
import os, sys
from pathlib import Path
path, queries, recall, limit = sys.argv[1:]
v1 = Path("/sys/fs/cgroup/memory")
group = (v1 if v1.exists() else v1.parent) / f"embits-{os.getpid()}"
try:
    group.mkdir()
    (group / ("memory.limit_in_bytes" if v1.exists() else "memory.max")).write_text(limit)
    (group / "cgroup.procs").write_text(str(os.getpid()))
except OSError as error:
    print(f"without a limit: {error}")
with open(path, "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
import numpy as np, embits
bits, q = embits.load(path), np.load(queries)
for each in q[:300]:
    bits.search(each, 10, recall=float(recall), threads=1)
facts = dict(line.split(":") for line in open("/proc/self/status"))
facts = {name: int(facts[name].split()[0]) // 1000 for name in ("VmHWM", "RssAnon", "RssFile")}
print(f"resident after 300 searches: {facts} MB, of a file of {bits.nbytes / 1e6:.0f} MB")
"""
    arguments = [path, queries_path, str(recall), str(limit)]
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)


def glove(arguments):
    X = np.load(arguments.vectors)
    path = arguments.folder / "glove.bits"
    if not path.exists():
        embits.binarize(X, n_bits=256).save(path)
    plain = embits.load(path)
    begin = time.perf_counter()
    bits = plain.with_cells()
    print(f"{len(bits.current.centers)} cells in {time.perf_counter() - begin:.1f} s")
    counts = bits.byte_counts()
    print(
        f"cells: {(counts.cells - 4 * len(bits)) / counts.codes:.2%} of the codes, and row numbers"
    )
    for seed in range(arguments.seed, arguments.seed + 3):
        rng = np.random.default_rng(1000 + seed)
        queries = X[np.sort(rng.choice(len(X), 1000, replace=False))]
        report(f"glove, seed {seed}", bits, plain, queries, recalls=(0.95,))
    binary_ivf(bits, plain, queries)


def rows(arguments):
    plain, bits, queries = make_rows(
        arguments.folder, arguments.data, arguments.rows, arguments.bits, floats=False
    )
    np.save(arguments.folder / "queries.npy", queries)
    report(
        f"{arguments.rows:,} rows", bits, plain, queries[: 1000 if arguments.rows > 3e6 else 2000]
    )
    batches(bits, plain, queries)
    cells = arguments.folder / f"cells-{arguments.rows}-{arguments.bits}.bits"
    resident(cells, arguments.folder / "queries.npy", 0.95)
    if not arguments.alone:
        binary_ivf(bits, plain, queries[:1000])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("glove", "rows"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="without other libraries")
    arguments = parser.parse_args()
    print(f"embits {embits.__version__}, {processor()}, {embits.search.simd()} kernels")
    {"glove": glove, "rows": rows}[arguments.what](arguments)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
