"""How much faster than gensim text vectors are read, and with how much memory.

    python benchmarks/read_text.py [VECTORS] [--runs 5] [--out benchmarks/results]

With --out, read_text.json is written there. VECTORS is a text file with a word2vec header; without
it one is made: 20,000 words of 300 dimensions. Times are medians in one process, in turns; peak
memory is that of a fresh process which does nothing but read, less what it had before.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from embits.readers import read_vectors
from provenance import provenance


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("vectors", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peak-of", choices=READERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_of:
        print(peak_bytes(READERS[arguments.peak_of], arguments.vectors))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.vectors or write_synthetic(Path(folder, "synthetic.vec"))
        facts = compare(path, arguments.runs)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        stored = facts | {"about": provenance()}
        (arguments.out / "read_text.json").write_text(json.dumps(stored, indent=1) + "\n")


def read_with_embits(path: Path) -> tuple[int, int]:
    rows, dims = read_vectors(path).matrix.shape
    return rows, dims


def read_with_gensim(path: Path) -> tuple[int, int]:
    from gensim.models import KeyedVectors

    shape: tuple[int, int] = KeyedVectors.load_word2vec_format(str(path)).vectors.shape
    return shape


READERS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "embits": read_with_embits,
    "gensim": read_with_gensim,
}


def compare(path: Path, runs: int) -> dict[str, float]:
    shape = read_with_embits(path)
    size = path.stat().st_size
    matrix_bytes = 4 * shape[0] * shape[1]
    print(
        f"{path.name}: {shape[0]:,} x {shape[1]}, {size >> 20} MiB, matrix {matrix_bytes >> 20} MiB"
    )
    times: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(runs):
        for name, read in READERS.items():
            start = time.perf_counter()
            assert read(path) == shape
            times[name].append(time.perf_counter() - start)
    for name in READERS:
        median = statistics.median(times[name])
        command = [sys.executable, __file__, str(path), "--peak-of", name]
        peak = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        print(
            f"{name}: {median:7.3f} s ({min(times[name]):.3f} to {max(times[name]):.3f}), "
            f"{size / median / 1e6:4.0f} MB/s, peak {peak / matrix_bytes:.2f} x the matrix"
        )
    ours, gensims = (statistics.median(times[name]) for name in ("embits", "gensim"))
    print(f"ratio: {gensims / ours:.1f} x gensim")
    return {
        "words": shape[0],
        "dims": shape[1],
        "embits_s": round(ours, 4),
        "gensim_s": round(gensims, 3),
        "ratio": round(gensims / ours, 1),
    }


def peak_bytes(read: Callable[[Path], tuple[int, int]], path: Path) -> int:
    """Growth of the resident set while reading. A row read first brings the imports in."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder, "tiny.vec")
        tiny.write_text("1 2\nword 0.5 0.25\n")
        read(tiny)
    before = max_resident()
    read(path)
    return max_resident() - before


def max_resident() -> int:
    """Linux counts ru_maxrss from the parent on; VmHWM is this process alone."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def write_synthetic(path: Path, n_words: int = 20_000, dims: int = 300) -> Path:
    rows = np.random.default_rng(0).normal(scale=0.3, size=(n_words, dims))
    with path.open("w") as file:
        file.write(f"{n_words} {dims}\n")
        for i, row in enumerate(rows):
            file.write(f"word{i} " + " ".join(f"{value:.5g}" for value in row) + "\n")
    return path


if __name__ == "__main__":
    main()
