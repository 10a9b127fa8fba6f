"""Make the golden collection, once: it is never made again.

    python tests/golden/make_collection.py

Writes collection-v1: two pieces, one of them with removed rows, and an updated row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import embits
from embits.collection import changes

HERE = Path(__file__).parent
WORDS = ["the", "queen", "of", "Zürich", "日本", "a b", "naïve", "<img src=x onerror=alert(1)>"]


def main() -> None:
    changes.MAX_MERGED_ROWS = 0  # leave the pieces as they are
    grid = np.arange(len(WORDS) * 12, dtype=np.float64).reshape(len(WORDS), 12)
    matrix = np.sin(grid * grid / 7).astype("f4")
    coder = embits.RandomHyperplanes(n_bits=20).fit(matrix)
    collection = embits.open_collection(HERE / "collection-v1", coder)
    collection.add(matrix[:5], WORDS[:5])
    collection.add(matrix[5:], WORDS[5:])
    collection.remove(["of"])
    collection.update(matrix[7:], ["queen"])
    (HERE / "collection-v1/_lock").unlink()


if __name__ == "__main__":
    main()
