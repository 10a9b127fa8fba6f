"""Facts about a file of codes, as `info --json` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embits.binary_vectors import BinaryVectors
from embits.words.vocabulary import RowNumbers


def describe(path: Path, bits: BinaryVectors) -> dict[str, Any]:
    """The facts of `info --json`; sizes in bytes."""
    size = size_on_disk(path)
    float_bytes = len(bits) * bits.dims * 4
    return {
        "words": len(bits),
        "bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
        "bytes": size,
        "parts": _parts(bits, size),
        "bytes_per_word": round(size / len(bits), 2) if len(bits) else 0.0,
        "float_bytes": float_bytes,
        "ratio": round(float_bytes / size, 2),
        "params": bits.coder.get_params(),
        "subwords": bits.subwords is not None,
    }


def _parts(bits: BinaryVectors, size: int) -> dict[str, int]:
    """Bytes of each part of a file of `size` bytes; "header" is the rest."""
    counts = bits.nbytes
    return counts._asdict() | {"header": max(0, size - counts.total)}


def row_noun(bits: BinaryVectors) -> str:
    """What its rows are called: "words", or "rows" when they have no words."""
    return "rows" if isinstance(bits.words, RowNumbers) else "words"


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
