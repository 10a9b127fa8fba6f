"""Peak memory and speed of `embits binarize` on files of gigabytes, against reading them whole.

    python benchmarks/streaming.py VECTORS.npy --format text --gigabytes 4 [--method near-lossless]
    python benchmarks/streaming.py VECTORS.npy --format npy --rows 10000000 --dims 96

VECTORS is a matrix of real vectors (float32 .npy). Its rows are repeated with a little noise until
the file has its size; words are numbers. The file is made in --folder (by default the system's
folder for temporary files) and removed. Prints the peak of the process (VmHWM, which counts mapped
pages that were touched), its ratio to the file and to the floats that reading the file whole
holds, and the time against a plain read of the file.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROWS_AT_ONCE = 20_000
_CHILD = """
import sys
import embits.cli
sys.argv = ["embits", *sys.argv[1:]]
try:
    embits.cli.main()
finally:
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def rows(matrix: np.ndarray, n: int, dims: int) -> Iterator[np.ndarray]:
    """n rows of `dims` dimensions, a block at a time: real ones, no two alike."""
    rng = np.random.default_rng(0)
    wide = np.concatenate([matrix] * -(-dims // matrix.shape[1]), axis=1)[:, :dims]
    noise = rng.normal(0, 0.02, (ROWS_AT_ONCE, dims)).astype(np.float32)
    for start in range(0, n, ROWS_AT_ONCE):
        size = min(ROWS_AT_ONCE, n - start)
        chosen = rng.integers(len(wide), size=size)
        yield wide[chosen] + noise[rng.permutation(ROWS_AT_ONCE)[:size]]


def write(path: Path, form: str, matrix: np.ndarray, n: int, dims: int) -> None:
    """A file of n rows."""
    if form == "npy":
        out = np.lib.format.open_memmap(path, "w+", np.float32, (n, dims))
        done = 0
        for block in rows(matrix, n, dims):
            out[done : done + len(block)] = block
            done += len(block)
        out.flush()
    elif form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        kind = pa.list_(pa.float32(), dims)
        with pq.ParquetWriter(path, pa.schema([("vector", kind)]), use_dictionary=False) as table:
            for block in rows(matrix, n, dims):
                flat = pa.array(block.ravel())
                table.write(pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, dims)}))
    else:
        # Numbers are printed once for a block of lines; only the words differ afterwards.
        block = next(rows(matrix, ROWS_AT_ONCE, dims))
        lines = [(" " + " ".join(f"{x:.5f}" for x in row) + "\n").encode() for row in block]
        with path.open("wb") as file:
            for start in range(0, n, ROWS_AT_ONCE):
                size = min(ROWS_AT_ONCE, n - start)
                file.write(b"".join(b"w%d" % (start + i) + lines[i] for i in range(size)))


def plain_read(path: Path) -> float:
    """Seconds to read the file and do nothing with it."""
    buffer = bytearray(4 << 20)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--format", choices=["text", "npy", "parquet"], default="npy")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dims", type=int, default=300)
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--method", default="near-lossless")
    parser.add_argument("--words", action="store_true", help="Give the rows ids with --words.")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    matrix = np.load(args.vectors, mmap_mode="r")[:50_000]
    bytes_a_number = 8.8 if args.format == "text" else 4
    n = args.rows or int(args.gigabytes * 1e9 / (bytes_a_number * args.dims))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder, {"text": "v.txt", "npy": "v.npy", "parquet": "v.parquet"}[args.format])
        write(path, args.format, np.asarray(matrix), n, args.dims)
        command = ["binarize", path, "-o", Path(folder, "out"), "--bits", str(args.bits),
                   "--method", args.method]  # fmt: skip
        if args.words:
            ids = Path(folder, "ids")
            ids.write_bytes(b"".join(b"id-%d\n" % i for i in range(n)))
            command += ["--words", ids]
        reading = plain_read(path)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *map(str, command)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak, size = int(done.stdout.split()[-1]) * 1024, path.stat().st_size
        floats = 4 * n * args.dims
    what = f"{args.format}, {n:,} × {args.dims}, {size / 1e9:.2f} GB"
    print(f"{what} -> {args.bits} bits, {args.method}")
    print(
        f"  peak {peak / 1e6:.0f} MB: the file is {size / peak:.1f} times it, "
        f"its floats {floats / peak:.1f} times"
    )
    print(
        f"  {seconds:.0f} s ({used.ru_utime + used.ru_stime:.0f} s of processors), "
        f"{size / 1e6 / seconds:.0f} MB/s; a plain read: {reading:.1f} s"
    )


if __name__ == "__main__":
    main()
