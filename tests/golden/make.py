"""How the golden files of format version 1 were made: they are never made again.

An embits that writes version 1 is needed:

    python tests/golden/make.py

Writes v1-METHOD-BITS.safetensors, and in v1.json what each must answer for ever.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import embits
from embits.coders import METHODS

HERE = Path(__file__).parent
WORDS = ["the", "queen", "of", "Zürich", "日本", "a b", "naïve", "<img src=x onerror=alert(1)>"]
WIDTHS = (3, 64, 100)


def vectors() -> embits.WordVectors:
    """Sines: the same on every machine."""
    grid = np.arange(len(WORDS) * 12, dtype=np.float64).reshape(len(WORDS), 12)
    return embits.WordVectors(WORDS, np.sin(grid * grid / 7).astype("f4"))


def facts(bits: embits.BinaryVectors) -> dict[str, object]:
    """What a reader of the file must find in it."""
    return {
        "words": list(bits.words),
        "n_bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
        "params": bits.coder.get_params(),
        "codes": bits.codes.tobytes().hex(),
        "neighbors": bits.most_similar("queen", topn=4),
        "floats": np.round(bits.decode("queen").astype(float), 4).tolist(),
    }


def main() -> None:
    expected = {}
    for method in METHODS:
        for width in (None,) if method == "sign" else WIDTHS:
            bits = embits.binarize(vectors(), width, method)
            name = f"v1-{method}-{bits.n_bits}.safetensors"
            if (HERE / name).exists():
                continue
            bits.save(HERE / name)
            expected[name] = facts(embits.load(HERE / name, verify=True))
    path = HERE / "v1.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(kept | expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
