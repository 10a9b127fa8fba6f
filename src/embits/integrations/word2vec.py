"""Decoded floats as word2vec files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryVectors
from embits.file.overwrite import check_target
from embits.integrations import Facts
from embits.writers import write_word2vec

ROWS_AT_ONCE = 1024  # two blocks are in memory: the writer holds a row of the previous one


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Facts:
    """Write the floats that the codes decode to, in blocks and atomically.

    Args:
        bits: What to decode; the whole float matrix is never in memory.
        target: `.bin` is word2vec binary, `.txt` and `.vec` are text; `.gz` compresses them.
        progress: Called with (rows done, rows) as they are written.
        overwrite: Replace an existing file.

    Raises:
        InputError: The suffix is another one, the format cannot hold a word, or the file exists and
            `overwrite` is false.
    """
    path = Path(target)
    check_target(path, overwrite=overwrite)
    write_word2vec(path, bits.words, bits.dims, _decoded_rows(bits, progress))
    return {"dims": bits.dims, "bytes": path.stat().st_size}


def _decoded_rows(bits: BinaryVectors, progress: Progress | None) -> Iterator[NDArray[np.float32]]:
    for rows in blocks(len(bits), ROWS_AT_ONCE):
        yield from bits.decode(bits.codes[rows])
        if progress is not None:
            progress(rows.stop, len(bits))
