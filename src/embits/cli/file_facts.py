"""Facts about a file of codes, as `info --json` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embits.binary_vectors import BinaryVectors
from embits.collection import Collection
from embits.file.store import Contents


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
        **_pieces(bits),
    }


def _pieces(bits: BinaryVectors) -> dict[str, int]:
    """Files of a collection, and rows that `compact` deletes."""
    if not isinstance(bits, Collection):
        return {}
    pieces = bits.manifest.pieces
    return {"pieces": len(pieces), "removed": sum(piece.rows - piece.live for piece in pieces)}


def describe_contents(path: Path, contents: Contents) -> dict[str, Any]:
    """The facts of `info --json` that do not need the coder's class."""
    size, rows = size_on_disk(path), len(contents.codes)
    float_bytes = rows * contents.dims * 4
    return {
        "words": rows,
        "bits": contents.n_bits,
        "dims": contents.dims,
        "method": contents.method,
        "bytes": size,
        "bytes_per_word": round(size / rows, 2) if rows else 0.0,
        "float_bytes": float_bytes,
        "ratio": round(float_bytes / size, 2),
        "params": dict(contents.params),
    }


def _parts(bits: BinaryVectors, size: int) -> dict[str, int]:
    """Bytes of each part of a file of `size` bytes; "header" is the rest."""
    counts = bits.nbytes
    return counts._asdict() | {"header": max(0, size - counts.total)}


def counted_rows(bits: BinaryVectors) -> str:
    """The number of rows with their noun: "1 row", "2,000 rows".

    They are not called words: a file does not tell words from ids of texts.
    """
    return "1 row" if len(bits) == 1 else f"{len(bits):,} rows"


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
