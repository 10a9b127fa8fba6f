"""Words and ids as a file of version 2 stores them (docs/file-format.md), read as they are.

Words are sorted, front-coded and Huffman-coded, about 5 bytes a word. Ids that are whole numbers or
UUIDs are stored as numbers of a fixed size, in row order.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.errors import FormatError
from embits.ids.keys import MAX_NUMBER, Run, bounds, encoded_words, number_keys, rows_from
from embits.ids.vocabulary import LazyVocabulary, Vocabulary, WordRun, narrowed

BLOCK = 32  # words that are coded together
STEP = 31  # every STEP-th place has a link
N_CODES = 3
MAX_CODE_BITS = 15
NUMBERS, UUIDS = "word_numbers", "word_uuids"

_TEXT = ("words", "word_codes", "word_starts")
_ORDER = ("word_rows", "word_links")
_UUID_SIZE = 36
_UUID_DIGITS = ~np.isin(np.arange(_UUID_SIZE), (8, 13, 18, 23))  # the others are hyphens
_HEX = np.full(256, 255, np.uint8)  # the value of a digit
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_EMPTY = np.empty(0, np.uint8)
_DAMAGED = -2
_UNREADABLE = "damaged: the words cannot be decoded"
_MANY = 8  # of as many rows as an 8th of all, all words are unpacked
_NUMBERS_AT_ONCE = 1 << 16  # a multiple of 8: each batch fills whole bytes

Tensors: TypeAlias = dict[str, NDArray[Any]]


def pack(words: Vocabulary) -> Tensors:
    """The tensors of words, always the same: as numbers, as UUIDs, or else as text."""
    if isinstance(words, StoredWords):
        return dict(words.tensors)
    fixed = _numbers(words) or _uuids(words)
    if fixed and "word_rows" not in fixed:
        return fixed
    text = _packed_text(words)
    return fixed if fixed and _size(fixed) < _size(text) else text


def packed_sizes(words: Vocabulary) -> tuple[int, int]:
    """Bytes of the words and of their order in a file."""
    stored = words if words.is_stored else open_words(pack(words), len(words))
    return (0, 0) if stored is None else stored.byte_sizes


def open_words(tensors: Mapping[str, NDArray[Any]], n: int) -> Vocabulary | None:
    """The words of an opened file, which stay mapped; None if it has none."""
    names = (*_TEXT, *_ORDER, NUMBERS, UUIDS)
    own = {name: tensors[name] for name in names if name in tensors}
    kind = NumberIds if NUMBERS in own else UuidIds if UUIDS in own else PackedVocabulary
    if kind is not PackedVocabulary and len(own) > 1 + ("word_rows" in own):
        raise FormatError(f"damaged: the ids are of several kinds: {', '.join(own)}")
    return kind(own, n) if own else None


class StoredWords(LazyVocabulary):
    """`n` words or ids of a mapped file; FormatError if its tensors do not fit together."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        self._n, self.tensors = n, dict(tensors)
        self._width = max(0, n - 1).bit_length()
        self._rows = tensors.get("word_rows", _EMPTY)
        self._links = tensors.get("word_links", _EMPTY)
        if any(name in tensors for name in _ORDER):
            _check_size("rows", self._rows, packed_size(n, self._width))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tensors, self._n), {"lacks_subwords": self.lacks_subwords}

    def __len__(self) -> int:
        return self._n

    @property
    def byte_sizes(self) -> tuple[int, int]:
        order = sum(self.tensors[name].nbytes for name in _ORDER if name in self.tensors)
        return _size(self.tensors) - order, order

    def _rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of places in the order of the file."""
        rows = unpack_numbers(self._rows, self._width, places) if len(self._rows) else places
        if (rows >= self._n).any():
            raise FormatError(f"damaged: the words' order points at row {rows.max()} of {self._n}")
        return rows

    def _verified_rows(self) -> NDArray[np.int64]:
        rows = self._rows_at(np.arange(self._n))
        if not np.array_equal(np.sort(rows), np.arange(self._n)):
            raise FormatError("damaged: the words' order is not a permutation of the rows")
        return rows


class PackedVocabulary(StoredWords):
    """Words of a mapped file. A look-up decodes about 30 words, and nothing is built before it."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        super().__init__(tensors, n)
        if missing := [name for name in _TEXT if name not in tensors]:
            raise FormatError(f"damaged: there are words, but no {missing[0]}")
        text, codes, starts = (tensors[name] for name in _TEXT)
        _check_size("starts", starts, packed_size(-(-n // BLOCK), (8 * text.size).bit_length()))
        n_links = -(-n // STEP) if any(name in tensors for name in _ORDER) else 0
        _check_size("links", self._links, packed_size(n_links, self._width))
        if any(array.dtype != np.uint8 or array.ndim != 1 for array in (text, codes)):
            raise FormatError("damaged: the words' arrays have wrong types")
        check_codes(codes.tobytes(), N_CODES)
        self._core = _core.PackedWords(text, codes, starts, self._rows, self._links, n)

    def _run(self) -> Run:
        sizes = np.zeros(self._n, np.uint64)
        is_whole = self._core.unpack(sizes, _EMPTY)
        ends = np.cumsum(sizes, dtype=np.uint64)
        text = np.zeros(int(ends[-1]) if is_whole and self._n else 0, np.uint8)
        if not is_whole or (len(text) and not self._core.unpack(ends, text)):
            raise FormatError(_UNREADABLE)
        return text, ends

    def _order(self) -> NDArray[Any]:
        return narrowed(self._rows_at(np.arange(self._n)), self._n)

    def _word(self, row: int) -> str:
        word = self._core.word(row)
        with suppress(UnicodeDecodeError):
            if word is not None:
                return word.decode()
        raise FormatError(f"damaged: word {row} cannot be decoded")

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        if "ends" in self.__dict__:  # the text is unpacked
            return WordRun._words_of(self, rows)
        if len(rows) * _MANY <= self._n or self._n <= 1000:
            return [self._word(row) for row in rows.tolist()]
        words = self._core.words()
        if words is None:
            raise FormatError(_UNREADABLE)
        return words if len(rows) == self._n else [words[row] for row in rows.tolist()]

    def find(self, word: str) -> int | None:
        row = _checked(self._core.find(word.encode(errors="surrogatepass")))
        return None if row < 0 else row

    def _find(self, run: Run, rows: NDArray[np.int64]) -> None:
        self._core.find_many(*run, rows)
        _checked(rows.min(initial=0))

    def _near(self, word: bytes, edits: int, most: int) -> list[int]:
        return self._core.near(word, edits, most)

    def _rows_between(self, low: bytes, high: bytes) -> NDArray[np.int64]:
        start, stop = (_checked(self._core.first_place(word)) for word in (low, high))
        return self._rows_at(np.arange(start, max(start, stop)))

    def verify(self) -> None:
        # The core starts where the first block does: its first bit is to be 0.
        starts, width = self.tensors["word_starts"], (8 * self.tensors["words"].size).bit_length()
        is_late = unpack_numbers(starts, width, np.zeros(min(self._n, 1), np.int64)).any()
        if is_late or not self._core.is_sorted():
            raise FormatError("damaged: the words cannot be decoded, or are not in order")
        rows = self._verified_rows()
        if len(self._links):
            found = unpack_numbers(self._links, self._width, np.arange(-(-self._n // STEP)))
            if not np.array_equal(found, cycle_links(rows)):
                raise FormatError("damaged: the links of the words do not match their order")
        for _ in self:  # decoding checks the UTF-8
            pass


def cycle_links(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each STEP-th place, the one before it on its cycle of the permutation `rows`."""
    links = np.zeros(-(-len(rows) // STEP), np.int64)
    at = np.arange(0, len(rows), STEP)
    before = at.copy()
    while len(at):  # all cycles at once
        at = rows[at]
        is_end = at % STEP == 0
        links[at[is_end] // STEP] = before[is_end]
        at, before = at[~is_end], before[~is_end]
    return links


def _check_size(name: str, array: NDArray[Any], size: int) -> None:
    if array.dtype != np.uint8 or array.shape != (size,):
        raise FormatError(f"damaged: word_{name} is {array.dtype} {array.shape}, not {size} bytes")


def _checked(found: int) -> int:
    """A row or a place that the core found."""
    if found == _DAMAGED:
        raise FormatError(_UNREADABLE)
    return found


class FixedIds(StoredWords):
    """Ids of a fixed size. A prefix or a spelling is looked up in their text."""

    _keys: NDArray[Any]  # of the rows, which sort as the ids do

    @staticmethod
    @abstractmethod
    def keys_of(text: NDArray[np.uint8], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The keys of ids in a run of UTF-8, and whether each has one."""

    def _run(self) -> Run:
        return encoded_words(self._words_of(np.arange(self._n)))

    def find_run(self, run: Run) -> NDArray[np.int64]:
        keys, are_keys = self.keys_of(*run)
        rows = np.full(len(are_keys), -1, np.int64)
        if self._n:
            rows[are_keys] = self._rows_of(keys[are_keys])
        return rows

    def _rows_of(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """The row of each key; -1 if it is not there."""
        if self._is_worth_an_index(len(keys)):
            in_order, sorted_keys = self._in_order
            rows = in_order[np.minimum(np.searchsorted(sorted_keys, keys), self._n - 1)]
        else:
            rows = self._rows_by_halves(keys)
        return np.where(self._keys[rows] == keys, rows, -1)

    @LazyProperty
    def _in_order(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The rows in the order of their keys, and the keys in this order."""
        rows = self._rows_at(np.arange(self._n))
        return rows, self._keys[rows]

    def _rows_by_halves(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """All keys are searched at once. Nothing is built."""
        low, high = np.zeros(len(keys), np.int64), np.full(len(keys), self._n)
        for _ in range(self._n.bit_length()):
            middle = (low + high) // 2
            is_below = self._keys[self._rows_at(np.minimum(middle, self._n - 1))] < keys
            low = np.where(is_below & (low < high), middle + 1, low)
            high = np.where(is_below, high, middle)
        return self._rows_at(np.minimum(low, self._n - 1))

    def verify(self) -> None:
        keys = self._keys[self._verified_rows()] if len(self._rows) else self._keys
        if (keys[1:] <= keys[:-1]).any():
            raise FormatError("damaged: the ids are not in order")


class NumberIds(FixedIds):
    """Whole numbers below 2^64; one number in the file: the ids count up from it."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        super().__init__(tensors, n)
        self._keys = numbers = tensors[NUMBERS]
        if numbers.dtype.kind != "u" or numbers.dtype.itemsize < 4 or numbers.ndim != 1:
            raise FormatError(f"damaged: the ids are {numbers.dtype} {numbers.shape}")
        if len(numbers) not in (1, self._n) or (self._n == 0 and len(numbers)):
            raise FormatError(f"damaged: {len(numbers)} ids for {self._n} codes")
        self._first = int(numbers[0]) if len(numbers) == 1 else None
        if len(numbers) < self._n and len(self._rows):
            raise FormatError("damaged: ids that count up have word_rows")
        if self._first is not None and self._first + self._n - 1 > MAX_NUMBER:
            raise FormatError(f"damaged: {self._n} ids count up from {self._first}")

    keys_of = staticmethod(number_keys)

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        numbers = self._keys[rows] if self._first is None else rows.astype(np.uint64) + self._keys
        return _core.number_words(numbers.astype(np.uint64))

    def _rows_of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        if self._first is None:
            return super()._rows_of(keys)
        return rows_from(self._first, self._n, keys)


class UuidIds(FixedIds):
    """UUIDs in lower case with hyphens."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], n: int) -> None:
        super().__init__(tensors, n)
        uuids = tensors[UUIDS]
        if uuids.dtype != np.uint8 or uuids.shape != (n, 16):
            raise FormatError(f"damaged: the ids are {uuids.dtype} {uuids.shape}")
        self._keys = _uuid_keys(uuids)

    @staticmethod
    def keys_of(text: NDArray[np.uint8], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        starts, sizes = bounds(ends)
        are_keys = sizes == _UUID_SIZE
        letters = text[starts[are_keys, np.newaxis] + np.arange(_UUID_SIZE)]
        digits = _HEX[letters[:, _UUID_DIGITS]]
        has_hyphens = (letters[:, ~_UUID_DIGITS] == ord("-")).all(axis=1)
        keys = np.zeros((len(ends), 16), np.uint8)
        keys[are_keys] = digits[:, ::2] << 4 | digits[:, 1::2] & 15
        are_keys[are_keys] = has_hyphens & (digits < 16).all(axis=1)
        return _uuid_keys(keys), are_keys

    def _words_of(self, rows: NDArray[np.int64]) -> list[str]:
        letters = np.full((len(rows), _UUID_SIZE), ord("-"), np.uint8)
        digits = np.frombuffer(self.tensors[UUIDS][rows].tobytes().hex().encode(), np.uint8)
        letters[:, _UUID_DIGITS] = digits.reshape(-1, 32)
        places = np.arange(len(rows))
        return WordRun(letters.ravel(), _UUID_SIZE * (places + 1))._words_of(places)


def _uuid_keys(uuids: NDArray[np.uint8]) -> NDArray[Any]:
    return np.ascontiguousarray(uuids).view("S16").ravel()


def _size(tensors: Tensors) -> int:
    return sum(array.nbytes for array in tensors.values())


def _packed_text(words: Vocabulary) -> Tensors:
    ends, order = words.ends.astype(np.uint64), words.order.astype(np.uint64)
    text = np.ascontiguousarray(words.text)
    counts = np.zeros(N_CODES * 256, np.uint64)
    starts = np.zeros(-(-len(words) // BLOCK), np.uint64)
    _core.pack_words(text, ends, order, counts, np.empty(0, np.uint32), _EMPTY, starts)
    lengths = [code_lengths(each) for each in counts.reshape(N_CODES, 256)]
    n_bits = sum(int(counts[i] * length) for i, length in enumerate(np.concatenate(lengths)))
    packed = np.zeros(-(-n_bits // 8), np.uint8)
    codes = np.concatenate([code_table(each) for each in lengths])
    _core.pack_words(text, ends, order, counts, codes, packed, starts)
    del ends  # of many words, this is much memory
    word_codes = np.frombuffer(b"".join(map(to_bytes, lengths)), np.uint8)
    word_starts = pack_numbers(starts, (8 * len(packed)).bit_length())
    tensors = {"words": packed, "word_codes": word_codes, "word_starts": word_starts}
    return tensors | _order(order.view(np.int64), links=True)


def _order(rows: NDArray[np.int64], *, links: bool) -> Tensors:
    """The row of each place; nothing if the rows are in the order of their words."""
    if (rows[1:] > rows[:-1]).all():
        return {}
    width = (len(rows) - 1).bit_length()
    links_of = {"word_links": pack_numbers(cycle_links(rows), width)} if links else {}
    return {"word_rows": pack_numbers(rows, width), **links_of}


def _numbers(words: Vocabulary) -> Tensors | None:
    if not len(words) or not words.encoded(0).isdigit():
        return None
    numbers, are_numbers = number_keys(words.text, words.ends)
    if not are_numbers.all():
        return None
    if (np.diff(numbers) == 1).all():
        return {NUMBERS: narrowed(numbers[:1], int(numbers[0]))}
    order = _order(np.argsort(numbers), links=False)
    return {NUMBERS: narrowed(numbers, int(numbers.max())), **order}


def _uuids(words: Vocabulary) -> Tensors | None:
    if not len(words) or len(words.text) != _UUID_SIZE * len(words):
        return None
    keys, are_keys = UuidIds.keys_of(words.text, words.ends)
    if not are_keys.all():
        return None
    order = _order(words.order.astype(np.int64), links=False)
    return {UUIDS: keys.view(np.uint8).reshape(-1, 16), **order}


# -- whole numbers of a fixed number of bits, the lowest bit first ---------------------------------


def packed_size(n: int, width: int) -> int:
    """Bytes of n numbers of `width` bits."""
    return -(-n * width // 8)


def pack_numbers(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Pack numbers below 2^width."""
    shifts = np.arange(width, dtype=np.uint64)
    one = np.uint64(1)
    batches = [
        np.packbits(batch.astype(np.uint64)[:, np.newaxis] >> shifts & one, bitorder="little")
        for batch in np.split(numbers, range(_NUMBERS_AT_ONCE, len(numbers), _NUMBERS_AT_ONCE))
    ]
    return np.concatenate(batches)


def unpack_numbers(
    packed: NDArray[np.uint8], width: int, places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The numbers at some places of a packed array, which holds them."""
    numbers = np.zeros(len(places), np.int64)
    for start in range(0, len(places) if width else 0, _NUMBERS_AT_ONCE):
        first = places[start : start + _NUMBERS_AT_ONCE] * width
        part = numbers[start : start + _NUMBERS_AT_ONCE]
        for byte in range((width + 14) // 8):  # of those past the end, no bit is used
            here = packed[np.minimum((first >> 3) + byte, len(packed) - 1)].astype(np.int64)
            part |= here << 8 * byte
        part >>= first & 7
        part &= (1 << width) - 1
    return numbers


# -- canonical Huffman codes of at most 15 bits, for up to 255 symbols -----------------------------


def code_lengths(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Bits of each symbol's code; 0 for a symbol that does not occur."""
    weights = counts.astype(np.int64)
    while True:
        leaves = ((weight, symbol, [symbol]) for symbol, weight in enumerate(weights.tolist()))
        heap = [leaf for leaf in leaves if leaf[0]]
        heapq.heapify(heap)
        lengths = np.zeros(len(weights), np.int64)
        if len(heap) == 1:
            lengths[heap[0][2]] = 1  # a code needs a bit
        while len(heap) > 1:
            (a, first, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
            lengths[left + right] += 1
            heapq.heappush(heap, (a + b, first, left + right))
        if lengths.max(initial=0) <= MAX_CODE_BITS:
            return lengths
        weights = (weights + 1) // 2  # flatter: rare symbols get shorter codes


def code_table(lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The canonical code of each symbol, as code x 16 + length."""
    table = np.zeros(len(lengths), np.uint32)
    code = before = 0
    for symbol in _in_order(lengths):
        length = int(lengths[symbol])
        code <<= length - before
        table[symbol] = code << 4 | length
        code, before = code + 1, length
    return table


def to_bytes(lengths: NDArray[np.int64]) -> bytes:
    """How many symbols have 1 to 15 bits, then the symbols by length and value."""
    counts = np.bincount(lengths, minlength=MAX_CODE_BITS + 1)[1:]
    return bytes(counts.tolist()) + bytes(_in_order(lengths))


def _in_order(lengths: NDArray[np.int64]) -> list[int]:
    return sorted(np.flatnonzero(lengths).tolist(), key=lengths.__getitem__)


def check_codes(content: bytes, n_codes: int) -> None:
    """Check that an array holds so many codes, and that no code has too many symbols."""
    start = 0
    for _ in range(n_codes):
        counts = content[start : start + MAX_CODE_BITS]
        used = sum(count << (MAX_CODE_BITS - 1 - i) for i, count in enumerate(counts))
        if len(counts) < MAX_CODE_BITS or used > 1 << MAX_CODE_BITS:
            raise FormatError("damaged: the words' codes are not prefix codes")
        start += MAX_CODE_BITS + sum(counts)
    if start != len(content):
        raise FormatError(f"damaged: the words' codes have {len(content)} bytes, expected {start}")
