"""Files of ids and of rows, as options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embits.errors import ReadError, named_if_missing


def read_ids(path: Path) -> list[str]:
    """The ids of a text file, one per line; empty lines are skipped.

    Raises:
        ReadError: It is not UTF-8.
        OSError: It cannot be read.
    """
    from embits.ids.vocabulary import WordRun

    with named_if_missing(path):
        content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError:
        raise ReadError(
            f"{path}: found other bytes, expected UTF-8 text with one id per line"
        ) from None
    return [line for line in WordRun.from_lines(content) if line]


def read_filter(path: Path | None) -> Any:
    """What `where` and `exclude` take: ids of a text file, or rows or a mask of a `.npy`.

    Raises:
        ReadError: The file is damaged.
        OSError: It cannot be read.
    """
    if path is None:
        return None
    if path.suffix.lower() != ".npy":
        return read_ids(path)
    from embits.readers.numpy_arrays import map_npy
    from embits.readers.source import Source

    return map_npy(Source(path))
