"""Reproduce the tables of "Near-lossless Binarization of Word Embeddings" on your vectors.

    python examples/reproduce_the_paper.py                            # quick, GloVe 6B 50d
    python examples/reproduce_the_paper.py dict2vec.vec --full        # everything in the paper

Trains the paper's autoencoder, LSH, sign and NearLossless; scores them on similarity, analogies,
neighbors and rebuilt floats. `--full` adds text classification and speed, at four widths. Writes a
report with tables and figures, and prints how much each score drops from floats to bits, here and
in the paper. Run it again to resume after an interruption.
Takes about three minutes on two cores (20,000 words); `--full` takes many times that.
This is `embits compare VECTORS --data DIR --report DIR` in Python.
"""

from __future__ import annotations

from pathlib import Path

from embits.evaluation import TASKS, Comparison, DataFolder
from embits.evaluation.compare import BITS
from embits.evaluation.results import Grid
from paper_scores import gap_table
from shared import arguments, table, word_vectors

QUICK = {"bits": (64, 256), "tasks": ("similarity", "analogy", "neighbors", "reconstruction")}
QUICK_WORDS = 20_000
METHODS = ("paper", "near-lossless", "lsh", "sign")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("vectors", type=Path, nargs="?", help="a file of word vectors")
    parser.add_argument("--full", action="store_true", help="all words, widths and tasks")
    parser.add_argument("--limit", type=int, help="the first words only")
    parser.add_argument("--methods", default=",".join(METHODS), help="(default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("embits-paper"))
    options = parser.parse_args()
    limit = options.limit or (None if options.full else QUICK_WORDS)
    vectors = word_vectors(options.vectors, limit)
    name = options.vectors.name if options.vectors else "GloVe 6B 50d"
    print(f"{name}: {len(vectors):,} words × {vectors.dims} dimensions")

    comparison = Comparison(
        vectors,
        options.output,
        DataFolder.at(options.data),
        methods=options.methods.split(","),
        report=lambda text: print(f"  {text}"),
        **({"bits": BITS, "tasks": TASKS} if options.full else QUICK),
    )
    entries = comparison.run(overwrite=True)
    comparison.write_report(f"Bits of {name}", {"vectors": name}, overwrite=True)

    gaps = gap_table(Grid(entries))
    print("\nBits less raw floats, in points; the paper's smallest to largest gap")
    table([tuple(gaps.header), *(tuple(row) for row in gaps.rows)], indent="")
    print(f"\nAll tables and figures: {options.output / 'report.md'}")


if __name__ == "__main__":
    main()
