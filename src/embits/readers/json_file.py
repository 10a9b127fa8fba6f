"""JSON objects of `{word: [numbers]}`, plain or as the `vectors` of a wink-embeddings package.

The lists go through the text parser: 35 million Python numbers would take over a gigabyte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeAlias

from embits.errors import ReadError
from embits.readers.blocks import Block, ParsedBlocks, Position
from embits.readers.source import BYTE_ORDER_MARK, Source, Stream, cores

# Possessive quantifiers: backtracking costs 160 bytes a character, over a gigabyte for a string
# without an end.
_STRING = rb'"((?:[^"\\]++|\\.)*+)"'
_OBJECT_OF_LISTS = re.compile(rb"\s*\{\s*" + _STRING + rb"\s*:\s*\[\s*[-\d\]]", re.DOTALL)
_VECTORS = re.compile(rb'"vectors"\s*:\s*\{')
_DIMENSIONS = re.compile(rb'"dimensions"\s*:\s*(\d{1,9})\b')
_PAIR = _STRING + rb"\s*:\s*\[([^\]]*)\]"
_FIRST = re.compile(rb"\s*" + _PAIR, re.DOTALL)
_NEXT = re.compile(rb"\s*,\s*" + _PAIR, re.DOTALL)
_IS_JSON = re.compile(rb"\s*\{\s*(?:" + _STRING + rb"\s*:|\})", re.DOTALL)
_LIST = re.compile(rb'\s*\[\s*(?:\{\s*"|\[\s*[-\d.eE]+\s*,)')  # of vectors or of objects
_SPACES = bytes.maketrans(b",\n\r\t", b"    ")
_HEAD_BYTES = 1 << 16
_MAX_ENTRY = 8 << 20  # bytes: half a million numbers
_EXPECTED = 'an object {"word": [numbers]}, no list or JSON Lines; or a matrix as .npy (numpy.save)'


def is_json(head: bytes) -> bool:
    """Whether an object with a key or a list starts: the rows of `{` and `[` in GloVe do not."""
    return (_IS_JSON.match(head) or _LIST.match(head)) is not None


_Batch: TypeAlias = tuple[list[tuple[bytes, bytes]], int]  # words and numbers, bytes before the end


class JsonBlocks(ParsedBlocks):
    """The entries of an object of lists of numbers, in blocks."""

    unit = "entry"

    def __init__(self, source: Source) -> None:
        with Stream(source) as stream:
            stream.peek(_HEAD_BYTES)  # the start of the object is in the first chunk
            reader = _Entries(source, stream)
            dims, self._is_nested = reader.find_object()
            start = reader.passed
            first = next(reader.batches(_FIRST), None)
        if first is None:
            raise source.read_error("no vectors", _EXPECTED)
        n_listed = first[0][0][1].count(b",") + 1
        super().__init__(source, min(dims or n_listed, n_listed), Position(start))
        # wink-embeddings adds two numbers after the vector: its norm and the index of the word.
        self._n_extra = n_listed - self.dims

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        limit = self.source.limit
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            reader = _Entries(self.source, stream, start.offset)
            for batch in reader.batches(_FIRST if start == self.first else _NEXT):
                block = self._block(start, batch, words=words)
                start = block.end
                if len(block.matrix):
                    yield block
                if limit is not None and start.rows >= limit:
                    return
            if not self._is_nested:
                reader.check_end()
        self.end(start, _EXPECTED)

    def _block(self, start: Position, batch: _Batch, *, words: bool) -> Block:
        entries, end = batch
        rows = self.new_rows(start, self.source.limit)
        lines = []
        for _, numbers in entries:
            vector = numbers.rsplit(b",", self._n_extra)[0] if self._n_extra else numbers
            lines.append(b"w " + vector.translate(_SPACES))
        rows.parse_text(b"\n".join(lines) + b"\n", min(cores(), 8))
        block = self.parsed(start, end - start.offset, rows, words=False)
        if not words:
            return block
        chosen = (block.places - start.place).tolist()
        return block._replace(words=[_text(self.source, entries[i][0]) for i in chosen])


def _text(source: Source, word: bytes) -> str:
    try:
        text: str = json.loads(b'"' + word + b'"', strict=False) if b"\\" in word else word.decode()
    except ValueError as error:
        found = f"a word that is not JSON ({error})"
        raise source.read_error(found, "UTF-8 and its escapes") from error
    return text.encode(errors="backslashreplace").decode()  # half of a surrogate pair has no UTF-8


class _Entries:
    """The entries of the object, after `passed` bytes of the unpacked file, a batch a chunk."""

    def __init__(self, source: Source, stream: Stream, passed: int = 0) -> None:
        self._source = source
        self._chunks = stream.chunks()
        self._text = b""
        self.passed = passed

    def batches(self, entry: re.Pattern[bytes]) -> Iterator[_Batch]:
        at_end = False
        while True:
            entries, stop = [], 0
            while match := entry.match(self._text, stop):
                entries.append((match[1], match[2]))
                stop, entry = match.end(), _NEXT
            self._drop(stop)
            if entries:
                yield entries, self.passed
            if self._text.lstrip().startswith(b"}"):
                return
            # An entry without an end would be scanned again for each chunk.
            if at_end or len(self._text) > _MAX_ENTRY:
                raise self._error('"word": [numbers], with commas between them')
            at_end = not self._more()

    def check_end(self) -> None:
        """Refuse what follows the object."""
        self._drop(self._text.index(b"}") + 1)
        while not (rest := self._text.lstrip()):
            self._drop(len(self._text))
            if not self._more():
                return
        self._drop(len(self._text) - len(rest))
        raise self._error(f"the end of the file: it is {_EXPECTED}")

    def _error(self, expected: str) -> ReadError:
        start = repr(self._text[:30].decode(errors="backslashreplace"))
        found = start if self._text else "the end"
        return self._source.read_error(found, expected, f"byte {self.passed}")

    def find_object(self) -> tuple[int | None, bool]:
        """Move to the first vector: its dimensions, if given; whether they are in an object."""
        self._more()
        if self._text.startswith(BYTE_ORDER_MARK):
            self._drop(len(BYTE_ORDER_MARK))
        if _OBJECT_OF_LISTS.match(self._text):
            self._drop(self._text.index(b"{") + 1)
            return None, False
        if _LIST.match(self._text):
            raise self._source.read_error("a JSON list", _EXPECTED)
        dimensions = _DIMENSIONS.search(self._text)
        while not (found := _VECTORS.search(self._text)):
            self._drop(max(0, len(self._text) - 64))  # the key may be split between two chunks
            if not self._more():
                raise self._source.read_error("no vectors", _EXPECTED)
        self._drop(found.end())
        return int(dimensions[1]) if dimensions else None, True

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._text += chunk
        return bool(chunk)

    def _drop(self, size: int) -> None:
        self._text = self._text[size:]
        self.passed += size
