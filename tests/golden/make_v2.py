"""Make the golden files of format version 2, once: they are never made again.

    python tests/golden/make_v2.py

Writes v2-*.safetensors, one for each kind of ids, and in v2.json what each must answer.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np

import embits
from tests.golden.make_page import WORDS

HERE = Path(__file__).parent
UUIDS = [str(uuid.UUID(int=(i * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for i in range(40)]
MANY = [*WORDS, *(f"word{i}" for i in range(200)), "", "x" * 1_000, "x" * 999 + "y", "a" * 301]
IDS: dict[str, list[str] | None] = {
    "words": MANY,
    "sorted": sorted(MANY, key=str.encode),
    "one": ["Zürich"],
    "empty-word": [""],
    "none": [],
    "rows": None,
    "numbers": [str(i * i) for i in range(3, 63)],
    "large-numbers": [str(2**64 - 1 - i * i) for i in range(60)],
    "shuffled-numbers": [str(i * 0x9E3779B97F4A7C15 % 2**64) for i in range(60)],
    "counted": [str(i) for i in range(1_000, 1_060)],
    "slim": MANY,
    "uuids": UUIDS,
    "sorted-uuids": sorted(UUIDS),
}
PREFIXES = ("", "qu", "w", "word1", "é", "x", "1", "10", "0", "\U0001f600", "absent")
MISSPELLED = ("quen", "Queeen", "wrod12", "zurich", "1001", "10")


def vectors(ids: list[str] | None) -> embits.BinaryVectors:
    """Sines: the same on every machine."""
    n = 60 if ids is None else len(ids)
    grid = np.arange(max(n, 9) * 12, dtype=np.float64).reshape(-1, 12)
    matrix = np.sin(grid * grid / 7).astype("f4")
    coder = embits.binarize(matrix, 19, "lsh").coder
    return embits.BinaryVectors(ids, coder.encode(matrix[:n]).reshape(n, 3), coder)


def facts(bits: embits.BinaryVectors) -> dict[str, object]:
    """What a reader of the file must find in it."""
    words = bits.words
    return {
        "words": list(words),
        "codes": bits.codes.tobytes().hex(),
        "neighbors": bits.most_similar(words[1], topn=4) if len(bits) > 1 else [],
        "prefixes": {prefix: words.starting_with(prefix, 5) for prefix in PREFIXES},
        "spellings": {word: words.suggest(word) for word in MISSPELLED},
    }


def main() -> None:
    listed = HERE / "v2.json"
    expected = json.loads(listed.read_text()) if listed.exists() else {}
    for name, ids in IDS.items():
        path = HERE / f"v2-{name}.safetensors"
        if path.exists():
            continue
        bits = vectors(ids)
        (bits.slim() if name == "slim" else bits).save(path)
        expected[path.name] = facts(embits.load(path, verify=True))
    listed.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
