"""Make the golden collection with a log, once: it is never made again.

    python tests/golden/make_log.py

Writes collection-v3: a piece, and a log of rows with lengths, kept vectors and columns.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np

import embits

HERE = Path(__file__).parent
WORDS = ["the", "queen", "of", "Zürich", "a b", "naïve", "<img src=x onerror=alert(1)>", "日本語"]
DAY = datetime.datetime(2020, 2, 29, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)  # noqa: UP017


def main() -> None:
    grid = np.arange(len(WORDS) * 12, dtype=np.float64).reshape(len(WORDS), 12)
    matrix = np.sin(grid * grid / 7).astype("f4")
    coder = embits.RandomHyperplanes(n_bits=20).fit(matrix)
    collection = embits.open_collection(HERE / "collection-v3", coder, keep="int8")
    columns = {"text": WORDS, "year": [2020, None, 5, 6, 7, 8, 9, 10], "day": [DAY] * 8,
               "tags": [["a"], None, [], ["b", None], [], [], [], ["ä"]]}  # fmt: skip
    for rows in (slice(0, 4), slice(4, 5), slice(5, 7), slice(7, 8)):
        some = {name: values[rows] for name, values in columns.items()}
        collection.add(matrix[rows], WORDS[rows], columns=some, lengths=rows.start == 0)
    (HERE / "collection-v3/_lock").unlink()


if __name__ == "__main__":
    main()
