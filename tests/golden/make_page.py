"""Writes the golden files of the browser page: format version 1, the same bytes on every machine.

They are made from integers alone, without training, and are never made again for a version of the
format: readers of every language must go on reading these bytes. What they hold is in golden.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from embits.file.store import Contents, write
from embits.ids.vocabulary import Vocabulary

HERE = Path(__file__).parent
WORDS = [
    "the", "queen", "king", "woman", "man", "Zürich", "naïve", "日本語", "東京", "مرحبا", "שלום",
    "👩‍🚀", "😀", "\ufeffbom", "two words", " ", "<img src=x onerror=alert(1)>", "a" * 300,
    "queens", "quee", "Queen", "𝔘𝔫𝔦", "e\u0301", "é",
]  # fmt: skip


def lsh(name: str, n: int, n_bits: int, dims: int, words: list[str] | None, wide: bool) -> None:
    """One file: random bits, small whole numbers as weights."""
    rng = np.random.default_rng(n_bits)
    codes = np.packbits(rng.integers(0, 2, (n, n_bits), dtype=np.uint8), axis=1)
    if n > 3:
        codes[n // 2] = codes[1]  # ties
    weights = rng.integers(-4, 5, (n_bits, dims)).astype("f4")
    tensors: dict[str, np.ndarray] = {
        "coder.planes": weights,
        "coder.decoder": weights / 8,
        "coder.offset": np.arange(dims, dtype="f4"),
    }
    if words is not None:
        vocabulary = Vocabulary.from_words(words)
        dtype = np.uint64 if wide else np.uint32
        tensors |= {
            "words": vocabulary.text,
            "word_ends": vocabulary.ends.astype(dtype),
            "word_order": vocabulary.order.astype(dtype),
        }
    params = {"n_bits": n_bits, "random_state": 0}
    contents = Contents(codes, n_bits, dims, "lsh", params, tensors, "embits golden", version=1)
    write(HERE / f"{name}.safetensors", contents)


def paper(name: str, words: list[str]) -> None:
    """A file of the paper's coder, with tensors of 8, 4 and 1 bytes an item."""
    rng = np.random.default_rng(7)
    vocabulary = Vocabulary.from_words(words)
    tensors = {
        "coder.W": rng.integers(-4, 5, (64, 5)).astype("f4") / 8,
        "coder.c": np.zeros(5, dtype="f4"),
        "coder.loss_curve": np.array([[3.0, 0.5], [2.0, 0.25]]),
        "words": vocabulary.text,
        "word_ends": vocabulary.ends,
        "word_order": vocabulary.order,
    }
    codes = rng.integers(0, 256, (len(words), 8), dtype=np.uint8)
    params = {"n_bits": 64, "lambda_reg": 1.0}
    contents = Contents(codes, 64, 5, "paper", params, tensors, writer="embits golden", version=1)
    write(HERE / f"{name}.safetensors", contents)


def main() -> None:
    """Write the files, and beside them what readers must find in them."""
    from embits import load

    many = WORDS + [f"word{i}" for i in range(200)]
    lsh("lsh-100-bits", len(many), 100, 6, many, wide=False)
    lsh("lsh-3-bits-u64", len(WORDS), 3, 2, WORDS, wide=True)
    lsh("lsh-256-bits-rows", 60, 256, 4, None, wide=False)
    lsh("lsh-8-bits-empty", 0, 8, 2, [], wide=False)
    paper("paper-64-bits", many)
    facts = {}
    for path in sorted(HERE.glob("*.safetensors")):
        bits = load(path, verify=True)
        asked = list(bits.words[:12])
        facts[path.name] = {
            "words": len(bits),
            "bits": bits.n_bits,
            "dims": bits.dims,
            "method": bits.coder.method,
            "first": asked,
            "neighbors": {word: bits.most_similar(word, topn=20) for word in asked},
            "analogy": bits.most_similar(asked[1:3], asked[:1], topn=9) if len(asked) > 2 else [],
        }
    (HERE / "golden.json").write_text(json.dumps(facts, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
