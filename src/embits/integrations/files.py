"""Files for other programs: codes as `.npy`, decoded floats as word2vec, and the paper's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryRows
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts
from embits.integrations.table import ids_of, integers, row_blocks, to_export
from embits.writers import write_word2vec, write_words

__all__ = ["export_npy", "export_paper", "export_word2vec"]

DECODED_ROWS = 1024  # at once; two blocks are in memory: the writer holds a row of the previous one
MAX_WORD_BYTES = 255  # the paper's programs read a word and a zero into 256 bytes, unchecked
_UNWRITABLE = re.compile(r"[ \t\n\v\f\r\0]|^$")


def export_npy(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, overwrite: bool = False
) -> Facts:
    """Write packed codes, uint8 (n, ceil(n_bits / 8)), at once: see `integrations.export`.

    The words go to a `.words` file of the same name, one per line.
    """
    bits, path = to_export(bits), Path(target)
    with atomic_with_words(path, bits, overwrite) as file:
        np.save(file, bits.codes, allow_pickle=False)
    return {"bytes": path.stat().st_size}


def export_word2vec(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, overwrite: bool = False
) -> Facts:
    """Write the floats that the codes decode to, in blocks: see `integrations.export`.

    Args:
        target: `.bin` is word2vec binary, `.txt` and `.vec` are text; `.gz` compresses them.
    """

    def decoded() -> Iterator[NDArray[np.float32]]:
        for rows in blocks(len(bits), DECODED_ROWS):
            yield from bits.decode(rows)
            if progress is not None:
                progress(rows.stop, len(bits))

    path = Path(target)
    check_target(path, overwrite=overwrite)
    write_word2vec(path, bits.words, bits.dims, decoded())
    return {"dims": bits.dims, "bytes": path.stat().st_size}


def export_paper(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, overwrite: bool = False
) -> Facts:
    """Write the codes in the text format of the paper's own programs: see `integrations.export`.

    The first line has the number of words and the number of bits. Each other line has a word and
    its code as unsigned 64-bit integers in decimal, the first bit of each 64 highest. Other widths
    are padded with zeros, which the similarities that the programs print count as equal bits.

    Raises:
        InputError: A word has white space or more than 255 bytes; the programs would misread it.
    """
    bits, path, width = to_export(bits), Path(target), -(-bits.n_bits // 64) * 64
    check_target(path, overwrite=overwrite)
    for row, word in enumerate(bits.words):
        if _UNWRITABLE.search(word) or len(word.encode()) > MAX_WORD_BYTES:
            found = f"the word {word[:40]!r} of row {row} cannot be written to the paper's format"
            raise InputError(f"{found}: words are 1 to {MAX_WORD_BYTES} bytes without white space")
    with atomic_write(path) as file:
        file.write(f"{len(bits)} {width}\n".encode())
        for rows, codes, words in row_blocks(bits, progress):
            for name, numbers in zip(words or rows, integers(codes).tolist(), strict=True):
                file.write(f"{name} {' '.join(map(str, numbers))}\n".encode())
    return {"width": width, "bytes": path.stat().st_size}


@contextmanager
def atomic_with_words(path: Path, bits: BinaryRows, overwrite: bool) -> Iterator[BinaryIO]:
    """A file to write, and a `.words` file of the ids beside it, one per line, if there are any."""
    ids, beside = ids_of(bits), path.parent / f"{path.stem}.words"
    for each in (path,) if ids is None else (path, beside):
        check_target(each, overwrite=overwrite)
    with atomic_write(path) as file:
        yield file
        if ids is not None:
            write_words(beside, ids)
