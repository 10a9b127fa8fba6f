"""Make the sample of word vectors that the package carries: src/embits/readers/sample.npz.

    python benchmarks/make_sample.py

Takes the most frequent words of GloVe 6B 50d from the package of `embits[demo]`, and stores each
value as a multiple of STEP, which compresses to about three bits. The noise this adds is small
beside that of binary codes: the mean cosine to the original vectors is 0.98.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from embits.cli.demo import glove

WORDS, STEP = 2000, 0.5
SAMPLE = Path(__file__).parents[1] / "src" / "embits" / "readers" / "sample.npz"


def main() -> None:
    vectors = glove()
    words = list(vectors.words or ())
    # Plain words only: the most frequent tokens are marks and numbers.
    rows = [row for row, word in enumerate(words) if re.fullmatch("[a-z]{3,}", word)][:WORDS]
    steps = np.round(vectors.matrix[rows] / STEP).astype(np.int8)
    names = np.frombuffer("\n".join(words[row] for row in rows).encode(), np.uint8)
    np.savez_compressed(SAMPLE, words=names, steps=steps, step=np.float32(STEP))
    cosines = (steps * vectors.matrix[rows]).sum(axis=1) / (
        np.linalg.norm(steps.astype(float), axis=1) * np.linalg.norm(vectors.matrix[rows], axis=1)
    )
    print(f"{SAMPLE}: {SAMPLE.stat().st_size:,} bytes, mean cosine {cosines.mean():.3f}")


if __name__ == "__main__":
    main()
