"""The tensors of a vocabulary in a file of version 2 (docs/file-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.ids.fixed_ids import MAX_NUMBER, NUMBERS, UUIDS, FixedIds, NumberIds, UuidIds
from embits.ids.packed import BLOCK, N_CODES, PackedVocabulary, cycle_links
from embits.ids.packed_numbers import pack_numbers
from embits.ids.prefix_codes import code_lengths, code_table, to_bytes
from embits.ids.run import narrowed
from embits.ids.vocabulary import Vocabulary

Tensors = dict[str, NDArray[Any]]
_NOTHING = np.empty(0, np.uint8)
_MAX_DIGITS = len(str(MAX_NUMBER))
_UUID_DIGITS = 36
_AT_ONCE = 1 << 20  # rows or bytes: temporary arrays of all words take much memory


def pack(words: Vocabulary) -> Tensors:
    """The tensors of words: as numbers or UUIDs if they are such, and otherwise as text.

    The same words give the same tensors.
    """
    if isinstance(words, PackedVocabulary | FixedIds):
        return dict(words.tensors)
    fixed = _numbers(words) or _uuids(words)
    if fixed is not None and "word_rows" not in fixed:
        return fixed
    text = _packed_text(words)
    return fixed if fixed is not None and _size(fixed) < _size(text) else text


def packed_sizes(words: Vocabulary) -> tuple[int, int]:
    """Bytes of the words and of their order in a file."""
    stored = words if words.is_stored else open_words(pack(words), len(words))
    return (0, 0) if stored is None else stored.byte_sizes


def open_words(tensors: Mapping[str, NDArray[Any]], n: int) -> Vocabulary | None:
    """The words of an opened file, which stay mapped; None if it has none.

    Raises:
        FormatError: The tensors do not fit together.
    """
    own = {name: tensors[name] for name in _NAMES if name in tensors}
    if NUMBERS in own:
        return NumberIds(own, n)
    if UUIDS in own:
        return UuidIds(own, n)
    return PackedVocabulary(own, n) if own else None


_NAMES = ("words", "word_codes", "word_starts", "word_rows", "word_links", NUMBERS, UUIDS)


def _size(tensors: Tensors) -> int:
    return sum(array.nbytes for array in tensors.values())


def _packed_text(words: Vocabulary) -> Tensors:
    ends, order = words.ends.astype(np.uint64), words.order.astype(np.uint64)
    text = np.ascontiguousarray(words.text)
    counts = np.zeros(N_CODES * 256, np.uint64)
    starts = np.zeros(-(-len(words) // BLOCK), np.uint64)
    _core.pack_words(text, ends, order, counts, np.empty(0, np.uint32), _NOTHING, starts)
    lengths = [code_lengths(each) for each in counts.reshape(N_CODES, 256)]
    n_bits = sum(int(counts[i] * length) for i, length in enumerate(np.concatenate(lengths)))
    packed = np.zeros(-(-n_bits // 8), np.uint8)
    codes = np.concatenate([code_table(each) for each in lengths])
    _core.pack_words(text, ends, order, counts, codes, packed, starts)
    del ends  # of many words, this is much memory
    return {
        "words": packed,
        "word_codes": np.frombuffer(b"".join(map(to_bytes, lengths)), np.uint8),
        "word_starts": pack_numbers(starts, (8 * len(packed)).bit_length()),
        **_order(order.view(np.int64), links=True),
    }


def _order(rows: NDArray[np.int64], *, links: bool) -> Tensors:
    """The row of each place; nothing if the rows are in the order of their words."""
    if _count_up(rows):
        return {}
    width = (len(rows) - 1).bit_length()
    tensors = {"word_rows": pack_numbers(rows, width)}
    if links:
        tensors["word_links"] = pack_numbers(cycle_links(rows), width)
    return tensors


def _count_up(rows: NDArray[np.int64]) -> bool:
    """Whether the rows are 0, 1, …"""
    parts = ((i, rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE))
    return all(np.array_equal(part, np.arange(i, i + len(part))) for i, part in parts)


def _are_digits(text: NDArray[np.uint8]) -> bool:
    parts = (text[i : i + _AT_ONCE] for i in range(0, len(text), _AT_ONCE))
    return all(((part >= ord("0")) & (part <= ord("9"))).all() for part in parts)


def _numbers(words: Vocabulary) -> Tensors | None:
    if not len(words) or not _are_digits(words.text):
        return None
    sizes = np.diff(words.ends.astype(np.int64), prepend=0)
    if sizes.max() > _MAX_DIGITS or not sizes.min():
        return None
    starts = words.ends.astype(np.int64) - sizes
    if ((words.text[starts] == ord("0")) & (sizes > 1)).any():
        return None
    exact = [int(word) for word in words]
    if max(exact) > MAX_NUMBER:
        return None
    numbers = np.array(exact, np.uint64)
    if (np.diff(numbers) == 1).all():
        return {NUMBERS: narrowed(numbers[:1], int(numbers[0]))}
    return {NUMBERS: narrowed(numbers, max(exact)), **_order(np.argsort(numbers), links=False)}


def _uuids(words: Vocabulary) -> Tensors | None:
    if not len(words) or len(words.text) != _UUID_DIGITS * len(words):
        return None
    if (np.diff(words.ends.astype(np.int64), prepend=0) != _UUID_DIGITS).any():
        return None
    keys = [UuidIds.key_of(word) for word in words]
    if None in keys:
        return None
    uuids = np.frombuffer(b"".join(filter(None, keys)), np.uint8).reshape(-1, 16)
    return {UUIDS: uuids, **_order(words.order.astype(np.int64), links=False)}
