"""Codes as a NumPy file, for whoever has NumPy and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.file.atomic import atomic_write
from embits.integrations import Facts
from embits.integrations.words_sidecar import write_words_beside


def export(bits: BinaryVectors, target: str, *, progress: Progress | None = None) -> Facts:
    """Write the packed codes, uint8 (n, ceil(n_bits / 8)), and their words beside them.

    Args:
        bits: What to write.
        target: The `.npy`; words go to a `.words` file of the same name, one a line.
        progress: Not called: it is one write.
    """
    path = Path(target)
    with atomic_write(path) as file:
        np.save(file, bits.codes, allow_pickle=False)
        write_words_beside(path, bits.words)
    return {"bytes": path.stat().st_size}
