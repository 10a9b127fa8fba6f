"""Word vectors for a phone: choose the number of bits for a size budget.

    python examples/word_vectors_on_a_phone.py                       # GloVe 6B 50d, 400,000 words
    python examples/word_vectors_on_a_phone.py mine.vec --budget 10  # megabytes

Writes a file for each of 64, 128, 256 and 512 bits. Prints its size, its download size (gzip), the
time to open it and answer the first query, and its agreement with human similarity scores and with
the floats. Then searches the widest file within the budget.
Takes about five minutes for all of GloVe on two cores.
Needs `pip install '.[demo]'`, in a checkout, without a file.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import embits
from embits.evaluation import DataFolder, as_space, evaluate_neighbors, evaluate_similarity
from shared import arguments, megabytes, table, word_vectors

ASKED = ("queen", "guitar", "jupiter")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("vectors", type=Path, nargs="?", help="a file of your own")
    parser.add_argument("--bits", default="64,128,256,512", help="widths (default: %(default)s)")
    parser.add_argument("--method", default="near-lossless", help="(default: %(default)s)")
    parser.add_argument("--limit", type=int, help="the first words only")
    parser.add_argument("--budget", type=float, default=20, help="MB (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("embits-phone"))
    options = parser.parse_args()
    vectors = word_vectors(options.vectors, options.limit)
    pairs = DataFolder(options.data).similarity()
    raw = as_space(vectors)
    print(f"{len(vectors):,} words × {vectors.dims} floats\n")

    rows = [("", "file", "gzip", "opens in", "as people", "neighbors kept")]
    rows.append(("floats", megabytes(vectors.matrix.nbytes), "", "", agreement(raw, pairs), ""))
    files = []
    options.output.mkdir(parents=True, exist_ok=True)
    for width in map(int, options.bits.split(",")):
        path = options.output / f"words.{width}.safetensors"
        embits.binarize(vectors, width, options.method).save(path)
        files.append(path)
        start = time.perf_counter()
        bits = embits.load(path)
        bits.most_similar(bits.words[0])
        ready = 1e3 * (time.perf_counter() - start)
        kept = evaluate_neighbors(bits, raw, at=(10,))["recall_at_10"]
        rows.append((
            f"{width} bits", megabytes(path.stat().st_size), megabytes(zipped(path)),
            f"{ready:.1f} ms", agreement(as_space(bits), pairs), f"{100 * kept:.0f} %",
        ))  # fmt: skip
    table(rows, indent="")

    fitting = [path for path in files if path.stat().st_size <= 1e6 * options.budget]
    if not fitting:
        print(f"\nNothing fits {options.budget:g} MB: take fewer words (--limit) or fewer bits")
        return
    bits = embits.load(fitting[-1])
    print(f"\nWithin {options.budget:g} MB: {fitting[-1]}")
    for word in ASKED:
        if word in bits:
            print(f"  {word}: {', '.join(name for name, _ in bits.most_similar(word, topn=6))}")


def agreement(space, pairs) -> str:
    """Spearman's correlation with people's scores, the Fisher mean over the data sets."""
    mean = evaluate_similarity(space, pairs)["fisher_mean"] if pairs else None
    return "-" if mean is None else f"{100 * mean:.1f}"


def zipped(path: Path) -> int:
    """Bytes of the file as a server would send it."""
    return len(gzip.compress(path.read_bytes(), compresslevel=6))


if __name__ == "__main__":
    main()
