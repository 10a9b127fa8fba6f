"""Codes as a NumPy file, for programs that have NumPy and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.file.atomic import atomic_write
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.words_sidecar import check_targets, write_words_sidecar


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Facts:
    """Write the packed codes, uint8 (n, ceil(n_bits / 8)), and a file of their words.

    Args:
        bits: What to write.
        target: The `.npy`; the words go to a `.words` file of the same name, one per line.
        progress: Not called: the codes are written at once.
        overwrite: Replace existing files.

    Raises:
        InputError: One of the files exists, and `overwrite` is false.
    """
    bits, path = to_export(bits), Path(target)
    check_targets(path, bits.words, overwrite)
    with atomic_write(path) as file:
        np.save(file, bits.codes, allow_pickle=False)
        write_words_sidecar(path, bits.words)
    return {"bytes": path.stat().st_size}
