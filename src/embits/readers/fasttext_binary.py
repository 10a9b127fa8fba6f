"""fastText .bin: arguments, dictionary, and the rows of words and n-gram buckets."""

from __future__ import annotations

import mmap
import struct

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.ids.subwords import MAX_NGRAM, Subwords
from embits.readers.blocks import ArrayBlocks, Findings, decoded_words
from embits.readers.source import Source, cores
from embits.readers.words import MatrixWords

_VERSIONS = (11, 12)
_SUPERVISED = 3
# dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate, then t
_ARGS = struct.Struct("<12id")
_COUNTS = struct.Struct("<3iqq")  # entries, words, labels, tokens, pruned buckets
_ENTRY_TAIL = 9  # after a word and its NUL: an int64 count and a byte, 0 for words, 1 for labels
_MAX_ADDITIONS_A_NUMBER = 256
_ALWAYS_ALLOWED = 1 << 28  # a fifth of a second
_MATRIX = struct.Struct("<?qq")  # quantised, rows, dims


class FastTextBlocks(ArrayBlocks):
    """A fastText model: the vectors of its words, in memory, and its subwords, mapped."""

    def __init__(self, source: Source) -> None:
        model = _Model(source)
        words, findings = model.words, Findings()
        decoded = decoded_words(
            source, findings, b"\n".join(words), len(words), lambda row: f"word {row + 1}"
        )
        found = MatrixWords(None if source.ids is False else decoded)
        super().__init__(source, model.vectors(), found)
        self.words_are_ids, self.findings = False, findings
        if model.n_buckets:
            buckets = model.table.view("<f4").reshape(-1, model.dims)[model.n_words :]
            self.subwords = Subwords(buckets, model.minn, model.maxn)


class _Model:
    """A model, read from front to back; every size in it is checked against the file."""

    n_buckets = minn = maxn = 0

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0
        with source.path.open("rb") as file:
            # The arrays that point into the map keep it open.
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._take_arguments()
        has_ngrams = self._take_words()
        n_rows = self.n_words + self.n_buckets
        quantised, *shape = self._take(_MATRIX, "the matrix of vectors")
        if quantised:
            raise self._error("a quantised model (.ftz)", "a full .bin model")
        if shape != [n_rows, self.dims]:
            raise self._error(f"a matrix of {shape[0]} x {shape[1]}", f"{n_rows} x {self.dims}")
        size, left = 4 * n_rows * self.dims, len(self._data) - self._at
        if size > left:
            raise self._error(f"{left} bytes", f"{size} of vectors")
        self.table = np.frombuffer(self._data, np.uint8, size, self._at)
        if not has_ngrams or self.maxn == 0:
            self.n_buckets = 0
        # Words and n-grams may be so long that adding them up would take minutes. Real files take
        # about ten additions for every number.
        n_lengths = self.maxn - max(self.minn, 1) + 1 if self.n_buckets else 0
        additions = sum(map(len, self.words)) * n_lengths * self.dims
        if additions > _MAX_ADDITIONS_A_NUMBER * len(self.table) // 4 + _ALWAYS_ALLOWED:
            found = f"{additions} numbers to add up for n-grams"
            raise self._error(found, f"words that fit {len(self.table)} bytes")

    def vectors(self) -> NDArray[np.float32]:
        """The vectors of the words, float32 (n, dims): the means of theirs and their n-grams'."""
        offsets = np.cumsum([0, *map(len, self.words)], dtype=np.int64)
        run = np.frombuffer(b"".join(self.words) or b"\0", np.uint8)
        out = np.empty((len(self.words), self.dims), np.float32)
        sizes = self.n_words, self.minn, self.maxn, self.n_buckets
        _core.word_vectors(run, offsets, self.table, *sizes, cores(), out)
        return out

    def _take_arguments(self) -> None:
        _, version = self._take(struct.Struct("<ii"), "fastText's magic and version")
        if version not in _VERSIONS:
            raise self._error(f"fastText version {version}", "version 11 or 12")
        self.dims, *_, model, buckets, minn, maxn, _, _ = self._take(_ARGS, "arguments")
        if version == 11 and model == _SUPERVISED:
            maxn = 0  # as in fastText: such models were trained without n-grams
        if not 1 <= self.dims <= 1 << 20:
            raise self._error(f"{self.dims} dims", "1 to 1048576")
        lengths_fit = 0 <= minn <= MAX_NGRAM and 0 <= maxn <= MAX_NGRAM
        if buckets < 0 or not lengths_fit or 0 < maxn < minn:
            found = f"{buckets} buckets and n-grams of {minn} to {maxn}"
            raise self._error(found, "sizes of 0 or more, in order")
        self.n_buckets, self.minn, self.maxn = buckets, minn, maxn

    def _take_words(self) -> bool:
        """Read the dictionary; whether the model has n-grams."""
        n_entries, self.n_words, n_labels, _, n_pruned = self._take(_COUNTS, "a dictionary")
        n_words, data, at = self.n_words, self._data, self._at
        room = (len(data) - at) // (1 + _ENTRY_TAIL)
        if n_words < 1 or n_labels < 0 or n_entries != n_words + n_labels or n_entries > room:
            found = f"{n_entries} entries, {n_words} words, {n_labels} labels"
            raise self._error(found, "counts that fit the file")
        if n_pruned > 0:
            raise self._error("a pruned dictionary", "a full model: .ftz files are not read")
        wanted = self._source.rows_wanted(n_words)
        self.words: list[bytes] = []
        for i in range(n_entries):
            self._at, end = at, data.find(b"\0", at)
            if end < 0 or end + _ENTRY_TAIL >= len(data):
                raise self._error(f"the end of the file in entry {i + 1}", f"{n_entries} entries")
            if data[end + _ENTRY_TAIL] != (i >= n_words):
                raise self._error(f"entry {i + 1} of the wrong kind", "words, then labels")
            if i < wanted:
                self.words.append(data[at:end])
            at = end + 1 + _ENTRY_TAIL
        self._at = at
        return n_pruned < 0  # fastText: -1 is "not pruned"; 0 is "every bucket pruned away"

    def _take(self, layout: struct.Struct, what: str) -> tuple[int, ...]:
        if self._at + layout.size > len(self._data):
            raise self._error("the end of the file", what)
        values = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values

    def _error(self, found: str, expected: str) -> Exception:
        return self._source.read_error(found, expected, f"byte {self._at}")
