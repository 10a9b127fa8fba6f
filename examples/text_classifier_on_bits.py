"""Text classification on binary codes: accuracy beside floats.

    python examples/text_classifier_on_bits.py                      # AG News, GloVe 6B 50d
    python examples/text_classifier_on_bits.py --dataset subj --vectors mine.vec --bits 512

Represents a text by the mean of its word vectors and trains scikit-learn's LogisticRegression: once
on the floats, once on the bits (0 and 1), and once on the floats decoded from the bits.
Takes about three minutes on two cores, mostly to train the coder. Needs
`pip install '.[sklearn]'` in a checkout, and `pip install '.[demo]'` without --vectors.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import embits
from embits.evaluation import BitSpace, as_space, prepare
from embits.evaluation.data import read_split
from embits.evaluation.tasks.classification import mean_vectors
from shared import arguments, megabytes, table, word_vectors


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dataset", default="ag_news", help="(default: %(default)s)")
    parser.add_argument("--vectors", type=Path, help="a file of word vectors")
    parser.add_argument("--limit", type=int, default=100_000, help="words (default: %(default)s)")
    parser.add_argument("--bits", default="64,256", help="widths (default: %(default)s)")
    parser.add_argument("--method", default="near-lossless", help="(default: %(default)s)")
    options = parser.parse_args()
    vectors = word_vectors(options.vectors, options.limit)
    raw = as_space(vectors)
    task = prepare(read_split(options.data / "classification" / options.dataset), raw.lookup)
    print(
        f"{options.dataset}: {len(task.train.classes):,} texts to learn from, "
        f"{len(task.test.classes):,} to test, {task.n_classes} classes; {len(vectors):,} words\n"
    )

    rows = [("", "words' table", "accuracy", "of rebuilt floats")]
    size = megabytes(vectors.matrix.nbytes)
    rows.append((f"{vectors.dims} floats", size, f"{100 * accuracy(raw, task):.1f} %", ""))
    for width in map(int, options.bits.split(",")):
        bits = embits.binarize(vectors, width, options.method)
        space = BitSpace(bits, raw.lookup)
        rows.append((
            f"{width} bits", megabytes(bits.codes.nbytes), f"{100 * accuracy(space, task):.1f} %",
            f"{100 * accuracy(space.rebuilt(), task):.1f} %",
        ))  # fmt: skip
    table(rows, indent="")


def accuracy(space, task) -> float:
    """The share of test texts whose class a logistic regression on mean vectors tells."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(mean_vectors(task.train, space), task.train.classes)
    return float(model.score(mean_vectors(task.test, space), task.test.classes))


if __name__ == "__main__":
    main()
