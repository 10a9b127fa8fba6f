"""HDF5 files in the format of ann-benchmarks, and a run of the module on them without Docker.

    python benchmarks/ann_benchmarks/hdf5.py make MATRIX.npy FILE.hdf5 [--distance NAME]
    python benchmarks/ann_benchmarks/hdf5.py run FILE.hdf5 [--group NAME] [--queries 1000]

`make` takes the last rows of a matrix as queries and computes their true neighbors. The distance
is angular, hamming, or cosine, which is VIBE's name for angular. For Hamming, bits are the signs
of the values minus their means. `run` fits every configuration of config.yml that applies, or those
of one of its groups, and prints recall and queries per second: one query at a time on one thread,
and all at once on all threads.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import h5py
import numpy as np
import yaml

HERE = Path(__file__).parent
COUNT = 100  # neighbors of a query in the file, as in ann-benchmarks


def make(X, path, distance="angular", n_queries=1000):
    """Write (n, dims) floats as a data set; returns the number of rows to search."""
    X = np.asarray(X, dtype=np.float32)
    X = X - X.mean(axis=0) > 0 if distance == "hamming" else X
    train, test = X[:-n_queries], X[-n_queries:]
    count = min(COUNT, len(train))
    distances = np.stack([distances_to(train, query, distance) for query in test])
    neighbors = np.argsort(distances, axis=1, kind="stable")[:, :count]
    with h5py.File(path, "w") as file:
        file.attrs.update(
            type="dense", distance=distance, dimension=X.shape[1],
            point_type="bit" if distance == "hamming" else "float",
        )  # fmt: skip
        file.create_dataset("train", data=train)
        file.create_dataset("test", data=test)
        file.create_dataset("neighbors", data=neighbors)
        file.create_dataset("distances", data=np.take_along_axis(distances, neighbors, axis=1))
    return len(train)


def distances_to(train, query, distance):
    """The distance of every row to a query, as ann-benchmarks defines it."""
    if distance == "hamming":
        return (train ^ query).mean(axis=1)
    lengths = np.linalg.norm(train, axis=1) * np.linalg.norm(query)
    return 1 - train @ query / np.maximum(lengths, 1e-30)


def configurations(point_type, distance, only=None):
    """The (constructor, arguments, query arguments) of config.yml for a data set."""
    config = yaml.safe_load((HERE / "config.yml").read_text())
    for algorithm in config[point_type][distance]:
        for name, group in algorithm["run_groups"].items():
            for arguments in itertools.product(*group["args"]):
                asked = list(itertools.product(*group.get("query_args", [])))
                if only in (None, name):
                    yield algorithm["constructor"], [distance, *arguments], asked


def run(path, count=10, n_queries=None, group=None, **settings):
    """Yield (name, recall, queries per second, queries per second of a batch)."""
    import module  # beside this file, as in the folder of an algorithm

    with h5py.File(path) as file:
        kind, distance = file.attrs["point_type"], file.attrs["distance"]
        train, test = np.array(file["train"]), np.array(file["test"])[:n_queries]
        limits = np.array(file["distances"])[: len(test), count - 1]
    for constructor, arguments, asked in configurations(kind, distance, group):
        algorithm = getattr(module, constructor)(*arguments, **settings)
        algorithm.fit(train)
        for query_arguments in asked or [()]:
            if query_arguments:
                algorithm.set_query_arguments(*query_arguments)
            yield (str(algorithm), *measure(algorithm, train, test, limits, distance, count))


def measure(algorithm, train, test, limits, distance, count):
    """Recall by distance, as ann-benchmarks counts it: ties at the limit are hits."""
    start = time.perf_counter()
    found = [algorithm.query(query, count) for query in test]
    single = len(test) / (time.perf_counter() - start)
    start = time.perf_counter()
    algorithm.batch_query(test, count)
    batch = len(test) / (time.perf_counter() - start)
    np.testing.assert_array_equal(found, algorithm.get_batch_results())
    hits = [
        (distances_to(train[rows], query, distance) <= limit + 1e-3).sum()
        for rows, query, limit in zip(found, test, limits, strict=True)
    ]
    return float(np.sum(hits)) / (count * len(test)), single, batch


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker, runner = verbs.add_parser("make"), verbs.add_parser("run")
    maker.add_argument("matrix", type=Path)
    maker.add_argument("file", type=Path)
    maker.add_argument("--distance", choices=["angular", "hamming", "cosine"], default="angular")
    maker.add_argument("--queries", type=int, default=1000)
    runner.add_argument("file", type=Path)
    runner.add_argument("--count", type=int, default=10)
    runner.add_argument("--queries", type=int)
    runner.add_argument("--group", help="a run group of config.yml")
    options = parser.parse_args()
    if options.verb == "make":
        rows = make(np.load(options.matrix), options.file, options.distance, options.queries)
        print(f"{options.file}: {rows:,} rows, {options.queries:,} queries, {options.distance}")
        return
    print("| algorithm | recall | queries/s | queries/s, batch |\n|---|---:|---:|---:|")
    for name, recall, single, batch in run(
        options.file, options.count, options.queries, options.group
    ):
        print(f"| {name} | {recall:.3f} | {single:,.0f} | {batch:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
