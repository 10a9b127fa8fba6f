"""Scores in the folder of a comparison, and the settings they were computed with."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.tasks import DATA_TASKS
from embits.file.atomic import atomic_write
from embits.vectors import WordVectors


def fingerprint(vectors: WordVectors) -> str:
    """A checksum of words and matrix: a run is resumed only with the same vectors."""
    crc = 0
    for rows in blocks(len(vectors)):
        crc = zlib.crc32(np.ascontiguousarray(vectors.matrix[rows]).tobytes(), crc)
    for word in vectors.words or ():
        crc = zlib.crc32(word.encode(errors="replace") + b"\n", crc)
    return f"{len(vectors)}x{vectors.dims}-{crc:08x}"


def data_fingerprint(data: DataFolder | None) -> str:
    """A checksum of the names and sizes of the files of all data sets."""
    if data is None:
        return "none"
    listing = "\n".join(
        f"{path.relative_to(data.path)} {path.stat().st_size}"
        for task in sorted(DATA_TASKS)
        for path in sorted((data.path / task).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    )
    return f"{zlib.crc32(listing.encode()):08x}"


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty if there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    with atomic_write(path) as file:
        file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())


def read_replicates(path: Path) -> dict[str, NDArray[np.float64]] | None:
    """The replicates in a file; None if it does not exist or is damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def write_replicates(path: Path, replicates: dict[str, NDArray[np.float64]]) -> None:
    """Write replicates as a .npz of float32."""
    arrays: dict[str, Any] = {name: each.astype(np.float32) for name, each in replicates.items()}
    with atomic_write(path) as file:
        np.savez(file, **arrays)
