"""Encoding Parquet with Ray: two workers against one, and against one process without Ray.

    python benchmarks/ray_encode.py [--rows 1200000] [--bits 512] [--vectors DIR] [--write]

Every worker has one thread. Prints the ratio of throughputs of two workers to one, and of each to a
plain process of one thread that reads, encodes and writes the same files; checks that all wrote the
same codes, bit for bit. Needs the extra `ray` and two cores. On Linux, a round is repeated when
other programs used more than a twentieth of the processor time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import embits
from embits.integrations import ray as on_ray
from embits.integrations.parquet import read_codes
from quiet import timed
from ray_cluster import start_cluster

RESULTS = Path(__file__).parent / "results" / "ray_encode.md"
FILES = 8
MAX_FOREIGN = 0.05
MAX_ROUNDS = 25


def write_vectors(folder: Path, rows: int, dims: int) -> None:
    rng = np.random.default_rng(0)
    for number, ids in enumerate(np.array_split(np.arange(rows), FILES)):
        matrix = rng.standard_normal((len(ids), dims), dtype=np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(matrix.ravel(), dims)
        table = pa.table({"id": ids, "vector": vectors})
        pq.write_table(table, folder / f"{number:03d}.parquet", compression="none")


def without_ray(source: Path, coder: embits.coders.Coder, target: Path) -> np.ndarray:
    """The same work in a loop: read a batch, encode it, write it."""
    target.mkdir()
    codes = []
    kind = pa.binary(coder.n_bytes_)
    schema = pa.schema({"id": pa.int64(), "code": kind})
    for path in sorted(source.iterdir()):
        with pq.ParquetWriter(target / path.name, schema) as writer:
            for batch in pq.ParquetFile(path).iter_batches(8192, use_threads=False):
                flat = batch["vector"].flatten().to_numpy()
                codes.append(coder.transform(flat.reshape(len(batch), -1)))
                buffers = [None, pa.py_buffer(codes[-1])]
                packed = pa.FixedSizeBinaryArray.from_buffers(kind, len(batch), buffers)
                writer.write_table(pa.table({"id": batch["id"], "code": packed}))
    return np.concatenate(codes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--dims", type=int, default=300)
    parser.add_argument("--bits", type=int, default=512)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--vectors", type=Path, help="keep them in this folder for the next time")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    args = parser.parse_args()
    start_cluster()
    times: dict[str, list[float]] = {"no Ray": [], "1 worker": [], "2 workers": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = args.vectors or folder / "in"
        if not source.exists():
            source.mkdir()
            write_vectors(source, args.rows, args.dims)
        sample = np.random.default_rng(1).standard_normal((2000, args.dims), dtype=np.float32)
        coder = embits.RandomHyperplanes(args.bits).fit(sample)
        for name in ("warm", "warmer"):  # imports, once a worker
            on_ray.encode(source / "000.parquet", coder, folder / name, workers=2)
        expected = without_ray(source, coder, folder / "plain")
        for _ in range(MAX_ROUNDS):
            if len(times["no Ray"]) == args.runs:
                break
            shutil.rmtree(folder / "plain")
            rounds = {"no Ray": timed(lambda: without_ray(source, coder, folder / "plain"))}
            for workers, name in ((1, "1 worker"), (2, "2 workers")):
                rounds[name] = timed(
                    lambda n=workers: on_ray.encode(
                        source, coder, folder / "out", workers=n, overwrite=True
                    )
                )
                assert np.array_equal(read_codes(folder / "out").codes, expected)
            shares = ", ".join(f"{n} {s:.1f} s, {f:.0%}" for n, (s, f, _) in rounds.items())
            print(f"seconds, and what others took of the processors: {shares}", flush=True)
            if max(foreign for _, foreign, _ in rounds.values()) <= MAX_FOREIGN:
                for name, (seconds, _, _) in rounds.items():
                    times[name].append(seconds)
    ray.shutdown()
    if not times["no Ray"]:
        raise SystemExit("other programs kept the processors busy: try again later")
    report(times, args)


def report(times: dict[str, list[float]], args: argparse.Namespace) -> None:
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    scaling = [one / two for one, two in zip(times["1 worker"], times["2 workers"], strict=True)]
    lines = [
        f"{args.rows:,} × {args.dims} float32 in {FILES} Parquet files to {args.bits} bits; one "
        f"thread per worker, two cores, Ray {ray.__version__}, medians of "
        f"{len(times['no Ray'])} runs. All codes are equal, bit for bit.",
        "",
        "| | seconds | rows per second | against one process without Ray |",
        "|---|---|---|---|",
    ]
    for name, seconds in medians.items():
        lines.append(
            f"| {name} | {seconds:.2f} | {args.rows / seconds:,.0f} | "
            f"{medians['no Ray'] / seconds:.2f} × |"
        )
    lines += ["", f"Two workers against one: {statistics.median(scaling):.2f} ×"]
    print("\n".join(lines))
    if args.write:
        RESULTS.write_text("# Encoding with Ray\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
