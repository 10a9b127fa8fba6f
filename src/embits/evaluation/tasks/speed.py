"""Search time and size of one file: its column of the paper's Table 3, and bytes per word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embits.bits import packed_width
from embits.evaluation.spaces import BitSpace, Space
from embits.evaluation.tasks.top_k_table import TOP, bit_contenders, float_contenders, measure

THREADS = 1  # as in the paper; NumPy's matrix product uses the threads of its BLAS


def evaluate_speed(space: Space, file: Path | None = None) -> dict[str, Any]:
    """Median milliseconds of one exact query over all rows, by linear scan.

    Codes are scanned by the search kernels, floats by NumPy's product with a matrix of unit rows.
    Loading is measured with the file in the page cache.

    Args:
        space: The vectors or codes to search.
        file: Their file, to measure the loading time; None skips that.

    Returns:
        `{"top_1_ms", "top_10_ms", "top_50_ms", "load_top_10_ms", "bytes_per_word"}`.
    """
    if isinstance(space, BitSpace):
        contender = next(bit_contenders(file or Path(), space.bits, THREADS))
    else:
        contender = next(float_contenders(file, space.unit, THREADS))
    if file is None:
        contender.load = None
    measure([contender], len(space))
    result: dict[str, Any] = {f"top_{k}_ms": contender.top_ms[k] for k in TOP}
    if contender.load_ms is not None:
        result["load_top_10_ms"] = contender.load_ms
    return result | {"bytes_per_word": packed_width(space.n_bits)}
