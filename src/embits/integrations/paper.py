"""The text format of the paper's own programs: written, and read back.

A line with the number of words and the number of bits, then a line for each word: the word and
its code as unsigned 64-bit integers in decimal, the first bit of each group of 64 highest. Their
programs cut the width down to whole groups, so other widths are filled up with zeros: all
distances stay, and so does the order of neighbors; the similarity that the programs print counts
the zeros as bits that agree.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders.base import blocks
from embits.errors import InputError
from embits.file.atomic import replacing
from embits.integrations import Facts, Progress
from embits.readers.rows import decode_words
from embits.readers.source import Source

GROUP = 64
# Their programs read a word into 256 bytes, the last of them a zero, and do not look at its length.
LONGEST_WORD = 255
_NO_WORD = re.compile(r"[ \t\n\v\f\r\0]|^$")
_NUMBERS = re.compile(rb"(\d{1,18})\s+(\d{1,18})")


class PaperCodes(NamedTuple):
    """What such a file holds: words in row order, and packed codes, first bit highest."""

    words: list[str]
    codes: NDArray[np.uint8]
    n_bits: int


def export(bits: BinaryVectors, target: str, *, progress: Progress | None = None) -> Facts:
    """Write the codes as the paper's programs read them, whole or not at all.

    Args:
        bits: What to write.
        target: The file.
        progress: Called with (rows done, rows) as they are written.

    Raises:
        InputError: A word with white space or of over 255 bytes: the programs would read on
            into the next word, or past their memory.
    """
    path, width = Path(target), -(-bits.n_bits // GROUP) * GROUP
    for row, word in enumerate(bits.words):
        if _NO_WORD.search(word) or len(word.encode()) > LONGEST_WORD:
            raise InputError(
                f"the word {word[:40]!r} of row {row} cannot be written to the paper's format: "
                f"words are 1 to {LONGEST_WORD} bytes without white space"
            )
    with replacing(path) as file:
        file.write(f"{len(bits)} {width}\n".encode())
        for rows in blocks(len(bits)):
            groups = _groups(bits.codes[rows]).tolist()
            for word, numbers in zip(bits.words[rows], groups, strict=True):
                file.write(f"{word} {' '.join(map(str, numbers))}\n".encode())
            if progress is not None:
                progress(rows.stop, len(bits))
    return {"width": width, "bytes": path.stat().st_size}


def read_paper_codes(path: str | os.PathLike[str], n_bits: int | None = None) -> PaperCodes:
    """Read a file of the paper's programs, or of `export --to paper`.

    Args:
        path: The file.
        n_bits: Bits of a code, where it was filled up with zeros; None is what the file says.

    Returns:
        The words, and codes that `embits.search.top_k` takes, of shape (n, ceil(n_bits / 8)).

    Raises:
        ReadError: It is no such file, or a line is not as the first one says; names the line.
        InputError: `n_bits` is more than the file has, or cuts off bits that are set.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "codes.txt")
        >>> _ = path.write_text("2 64\\nup 9223372036854775808\\ndown 1\\n")
        >>> words, codes, n_bits = read_paper_codes(path)
        >>> words, codes.tolist()
        (['up', 'down'], [[128, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]])
        >>> folder.cleanup()
    """
    source = Source(Path(path))
    try:
        first, *lines = source.path.read_bytes().splitlines() or [b""]
    except OSError as error:
        raise source.read_error(f"no readable file ({error.strerror})", "codes") from None
    n, n_groups = _promised(source, first, lines)
    words: list[bytes] = []
    groups = np.empty((n, n_groups), dtype=">u8")
    for row, line in enumerate(lines):
        fields = line.split()
        if len(fields) != 1 + n_groups or not all(map(_is_group, fields[1:])):
            raise source.read_error(
                f"{line[:40].decode(errors='backslashreplace')!r}",
                f"a word and {n_groups} integers under 2^64",
                f"line {row + 2}",
            )
        words.append(fields[0])
        groups[row] = [int(field) for field in fields[1:]]
    named = decode_words(source, b"\n".join(words), n, lambda row: f"line {row + 2}") if n else []
    codes = groups.view(np.uint8).reshape(n, 8 * n_groups)
    return _cut(PaperCodes(named, codes, GROUP * n_groups), n_bits)


def _promised(source: Source, first: bytes, lines: list[bytes]) -> tuple[int, int]:
    """How many words there are, and of how many integers, as the first line says."""
    header = _NUMBERS.fullmatch(first.strip())
    n, n_groups = (int(header[1]), int(header[2]) // GROUP) if header else (0, 0)
    if not 0 < n_groups <= source.size:
        raise source.read_error("another line", "two numbers: of words, and of bits", "line 1")
    if len(lines) != n:
        raise source.read_error(f"{len(lines)} lines of codes", f"{n} as line 1 says")
    return n, n_groups


def _is_group(field: bytes) -> bool:
    return field.isdigit() and len(field) <= 20 and int(field) < 2**GROUP


def _groups(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes as 64-bit integers, zeros at the end."""
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return padded.view(">u8").astype(np.uint64)


def _cut(read: PaperCodes, n_bits: int | None) -> PaperCodes:
    if n_bits is None:
        return read
    if not 1 <= n_bits <= read.n_bits:
        raise InputError(f"n_bits is {n_bits}, expected 1 to the file's {read.n_bits}")
    if np.unpackbits(read.codes[:, n_bits // 8 :], axis=1)[:, n_bits % 8 :].any():
        raise InputError(f"n_bits is {n_bits}, but there are bits set beyond them")
    return PaperCodes(read.words, read.codes[:, : -(-n_bits // 8)].copy(), n_bits)
