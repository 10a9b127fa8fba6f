"""fastText .bin: arguments, dictionary, and the rows of words and n-gram buckets."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.ids.subwords import MAX_NGRAM, Subwords
from embits.readers.blocks import ArrayBlocks, Findings, decoded_words
from embits.readers.source import Source, cores
from embits.readers.words import FoundWords

_VERSIONS = (11, 12)
_SUPERVISED = 3
# dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate, then t
_ARGS = struct.Struct("<12id")
_COUNTS = struct.Struct("<3iqq")  # entries, words, labels, tokens, pruned buckets
_ENTRY_TAIL = 9  # after a word and its NUL: an int64 count and a byte, 0 for words, 1 for labels
_MAX_ADDITIONS_A_NUMBER = 256
_ALWAYS_ALLOWED = 1 << 28  # a fifth of a second
_MATRIX = struct.Struct("<?qq")  # quantised, rows, dims


@dataclass(frozen=True)
class _Arguments:
    dims: int
    n_buckets: int
    minn: int
    maxn: int


class _Cursor:
    """A position in the mapped file, checked against its end."""

    def __init__(self, source: Source, data: mmap.mmap) -> None:
        self.source, self.data, self.at = source, data, 0

    def take(self, layout: struct.Struct, what: str) -> tuple[int, ...]:
        if self.at + layout.size > len(self.data):
            raise self.read_error("the end of the file", what)
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def read_error(self, found: str, expected: str) -> Exception:
        return self.source.read_error(found, expected, f"byte {self.at}")


class FastTextBlocks(ArrayBlocks):
    """A fastText model: the vectors of its words, in memory, and its subwords, mapped."""

    def __init__(self, source: Source) -> None:
        with source.path.open("rb") as file:
            # The arrays that point into the map keep it open.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        cursor = _Cursor(source, data)
        arguments = _take_arguments(cursor)
        words, n_words, has_ngrams = _take_words(cursor)
        table = _take_matrix(cursor, n_words + arguments.n_buckets, arguments.dims)
        n_buckets = arguments.n_buckets if has_ngrams and arguments.maxn > 0 else 0
        _check_work(cursor, words, table, arguments, n_buckets)
        findings, run = Findings(), b"\n".join(words)
        decoded = decoded_words(source, findings, run, len(words), lambda row: f"word {row + 1}")
        matrix = _word_vectors(words, table, n_words, arguments, n_buckets)
        super().__init__(source, matrix, FoundWords(decoded))
        self.words_apart, self.findings = False, findings
        if n_buckets:
            buckets = table.view("<f4").reshape(-1, arguments.dims)[n_words:]
            self.subwords = Subwords(buckets, arguments.minn, arguments.maxn)


def _take_arguments(cursor: _Cursor) -> _Arguments:
    _, version = cursor.take(struct.Struct("<ii"), "fastText's magic and version")
    if version not in _VERSIONS:
        raise cursor.read_error(f"fastText version {version}", "version 11 or 12")
    dims, _, _, _, _, _, _, model, n_buckets, minn, maxn, _, _ = cursor.take(_ARGS, "arguments")
    if version == 11 and model == _SUPERVISED:
        maxn = 0  # as in fastText: such models were trained without n-grams
    if not 1 <= dims <= 1 << 20:
        raise cursor.read_error(f"{dims} dims", "1 to 1048576")
    lengths_fit = 0 <= minn <= MAX_NGRAM and 0 <= maxn <= MAX_NGRAM
    if n_buckets < 0 or not lengths_fit or 0 < maxn < minn:
        raise cursor.read_error(
            f"{n_buckets} buckets and n-grams of {minn} to {maxn}", "sizes of 0 or more, in order"
        )
    return _Arguments(dims, n_buckets, minn, maxn)


def _take_words(cursor: _Cursor) -> tuple[list[bytes], int, bool]:
    n_entries, n_words, n_labels, _, n_pruned = cursor.take(_COUNTS, "a dictionary")
    room = (len(cursor.data) - cursor.at) // (1 + _ENTRY_TAIL)
    if n_words < 1 or n_labels < 0 or n_entries != n_words + n_labels or n_entries > room:
        raise cursor.read_error(
            f"{n_entries} entries, {n_words} words, {n_labels} labels", "counts that fit the file"
        )
    if n_pruned > 0:
        raise cursor.read_error("a pruned dictionary", "a full model: .ftz files are not read")
    wanted = cursor.source.rows_wanted(n_words)
    words: list[bytes] = []
    data, at = cursor.data, cursor.at
    for i in range(n_entries):
        end = data.find(b"\0", at)
        if end < 0 or end + _ENTRY_TAIL >= len(data):
            cursor.at = at
            raise cursor.read_error(f"the end of the file in entry {i + 1}", f"{n_entries} entries")
        if data[end + _ENTRY_TAIL] != (i >= n_words):
            cursor.at = at
            raise cursor.read_error(f"entry {i + 1} of the wrong kind", "words, then labels")
        if i < wanted:
            words.append(data[at:end])
        at = end + 1 + _ENTRY_TAIL
    cursor.at = at
    # fastText: -1 is "not pruned"; 0 is "every bucket pruned away".
    return words, n_words, n_pruned < 0


def _take_matrix(cursor: _Cursor, n_rows: int, dims: int) -> NDArray[np.uint8]:
    quantised, found_rows, found_dims = cursor.take(_MATRIX, "the matrix of vectors")
    if quantised:
        raise cursor.read_error("a quantised model (.ftz)", "a full .bin model")
    if (found_rows, found_dims) != (n_rows, dims):
        raise cursor.read_error(f"a matrix of {found_rows} x {found_dims}", f"{n_rows} x {dims}")
    size = 4 * n_rows * dims
    if size > len(cursor.data) - cursor.at:
        raise cursor.read_error(f"{len(cursor.data) - cursor.at} bytes", f"{size} of vectors")
    return np.frombuffer(cursor.data, np.uint8, size, cursor.at)


def _check_work(
    cursor: _Cursor,
    words: list[bytes],
    table: NDArray[np.uint8],
    arguments: _Arguments,
    n_buckets: int,
) -> None:
    """Refuse words and n-grams so long that adding them up would take minutes.

    Real files take about ten additions for every number.
    """
    n_lengths = arguments.maxn - max(arguments.minn, 1) + 1 if n_buckets else 0
    additions = sum(map(len, words)) * n_lengths * arguments.dims
    if additions > _MAX_ADDITIONS_A_NUMBER * len(table) // 4 + _ALWAYS_ALLOWED:
        raise cursor.read_error(
            f"{additions} numbers to add up for n-grams", f"words that fit {len(table)} bytes"
        )


def _word_vectors(
    words: list[bytes],
    table: NDArray[np.uint8],
    n_words: int,
    arguments: _Arguments,
    n_buckets: int,
) -> NDArray[np.float32]:
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=offsets[1:])
    run = np.frombuffer(b"".join(words) or b"\0", np.uint8)
    out = np.empty((len(words), arguments.dims), np.float32)
    _core.word_vectors(
        run, offsets, table, n_words, arguments.minn, arguments.maxn, n_buckets, cores(), out
    )
    return out
