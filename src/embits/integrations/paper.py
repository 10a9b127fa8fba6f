"""The text format of the paper's own programs.

The first line has the number of words and the number of bits. Each other line has a word and its
code as unsigned 64-bit integers in decimal, the first bit of each 64 highest. The programs read
whole integers only, so other widths are padded with zeros: distances and the order of neighbors
do not change, but the similarities that the programs print count the padding as equal bits.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts

INTEGER_BITS = 64
# The programs read a word into 256 bytes, with a zero at the end, and do not check its length.
MAX_WORD_BYTES = 255
_UNWRITABLE = re.compile(r"[ \t\n\v\f\r\0]|^$")


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Facts:
    """Write the codes in the format of the paper's programs, atomically.

    Args:
        bits: What to write.
        target: The file.
        progress: Called with (rows done, rows) as they are written.
        overwrite: Replace an existing file.

    Raises:
        InputError: A word has white space or more than 255 bytes; the programs would misread it.
            Or the file exists, and `overwrite` is false.
    """
    path, width = Path(target), -(-bits.n_bits // INTEGER_BITS) * INTEGER_BITS
    check_target(path, overwrite=overwrite)
    for row, word in enumerate(bits.words):
        if _UNWRITABLE.search(word) or len(word.encode()) > MAX_WORD_BYTES:
            raise InputError(
                f"the word {word[:40]!r} of row {row} cannot be written to the paper's format: "
                f"words are 1 to {MAX_WORD_BYTES} bytes without white space"
            )
    words = iter(bits.words)
    with atomic_write(path) as file:
        file.write(f"{len(bits)} {width}\n".encode())
        for rows in blocks(len(bits)):
            integers = _integers(bits.codes[rows]).tolist()
            for numbers, word in zip(integers, words, strict=False):
                file.write(f"{word} {' '.join(map(str, numbers))}\n".encode())
            if progress is not None:
                progress(rows.stop, len(bits))
    return {"width": width, "bytes": path.stat().st_size}


def _integers(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return packed codes as 64-bit integers, padded with zeros."""
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return padded.view(">u8").astype(np.uint64)
