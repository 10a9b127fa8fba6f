"""Rows in Postgres' binary COPY format, built by NumPy a block at a time.

A row is its number of fields, then the length and the bytes of each field, all big-endian. Every
field but the word has a fixed size. The fixed parts of a block are one structured array; the words,
which are contiguous in the vocabulary, are interleaved with them in one step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.errors import FormatError, InputError
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension of the header
TRAILER = b"\xff\xff"
BLOCK_ROWS = 16384


def binary_rows(bits: BinaryVectors) -> Iterator[tuple[int, bytes]]:
    """Yield the rows done so far and a block of rows (id, code, word), or (id, code).

    Raises:
        FormatError: The words' offsets do not match their text.
    """
    for start in range(0, len(bits), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(bits)))
        heads = _fixed_parts(bits, rows)
        if isinstance(bits.words, RowNumbers):
            yield rows.stop, heads.tobytes()
            continue
        text, sizes = _text(bits.words, rows)
        heads["word_size"] = sizes
        yield rows.stop, _interleave(heads, text, sizes)


def check_no_nul(words: Vocabulary | RowNumbers) -> None:
    """Check that Postgres can store every word as text.

    Raises:
        InputError: A word contains the character NUL.
    """
    if isinstance(words, RowNumbers):
        return
    places = np.flatnonzero(words.text == 0)
    if len(places):
        row = int(np.searchsorted(words.ends, places[0], side="right"))
        raise InputError(
            f"the word {words[row]!r} of row {row} has a NUL character, which Postgres cannot store"
        )


def longest_word(words: Vocabulary) -> int:
    """Return the length of the longest word in bytes."""
    return int(np.diff(words.ends.astype(np.int64), prepend=0).max(initial=0))


def _fixed_parts(bits: BinaryVectors, rows: slice) -> NDArray[np.void]:
    has_words = not isinstance(bits.words, RowNumbers)
    width = bits.codes.shape[1]
    fields = [("fields", ">i2"), ("id_size", ">i4"), ("id", ">i8"), ("code_size", ">i4"),
              ("n_bits", ">i4"), ("code", "u1", (width,))]  # fmt: skip
    if has_words:
        fields.append(("word_size", ">i4"))
    heads = np.empty(rows.stop - rows.start, dtype=np.dtype(fields))
    heads["fields"] = 2 + has_words
    heads["id_size"] = 8
    heads["id"] = np.arange(rows.start, rows.stop)
    heads["code_size"] = 4 + width
    heads["n_bits"] = bits.n_bits
    heads["code"] = bits.codes[rows]
    return heads


def _text(words: Vocabulary, rows: slice) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the text of these rows' words, and the bytes of each word."""
    first = int(words.ends[rows.start - 1]) if rows.start else 0
    ends = words.ends[rows].astype(np.int64)
    sizes = np.diff(ends, prepend=first)
    if (sizes < 0).any() or ends[-1] > len(words.text):
        raise FormatError("damaged: the words' offsets do not match their text")
    return words.text[first : int(ends[-1])], sizes


def _interleave(
    heads: NDArray[np.void], text: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> bytes:
    """Put each row's word after its fixed part."""
    runs = np.stack([np.full_like(sizes, heads.itemsize), sizes], axis=1).ravel()
    is_word = np.repeat(np.tile([False, True], len(sizes)), runs)
    rows = np.empty(len(is_word), dtype=np.uint8)
    rows[~is_word] = heads.view(np.uint8)
    rows[is_word] = text
    return rows.tobytes()
