"""JSON objects of `{word: [numbers]}`, plain or as the `vectors` of a wink-embeddings package.

The lists go through the text parser: 35 million Python numbers would take over a gigabyte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

from embits.errors import ReadError
from embits.readers.blocks import Block, ParsedBlocks, Position
from embits.readers.source import BYTE_ORDER_MARK, Source, Stream, cores

# Possessive quantifiers: backtracking costs 160 bytes a character, over a gigabyte for a string
# without an end.
_STRING = rb'"((?:[^"\\]++|\\.)*+)"'
_OBJECT_OF_LISTS = re.compile(rb"\s*\{(?=\s*" + _STRING + rb"\s*:\s*\[\s*[-\d\]])", re.DOTALL)
_VECTORS = re.compile(rb'"vectors"\s*:\s*\{')
_DIMENSIONS = re.compile(rb'"dimensions"\s*:\s*(\d{1,9})\b')
_PAIR = _STRING + rb"\s*:\s*\[([^\]]*)\]"
_FIRST = re.compile(rb"\s*" + _PAIR, re.DOTALL)
_NEXT = re.compile(rb"\s*,\s*" + _PAIR, re.DOTALL)
_IS_JSON = re.compile(rb"\s*\{\s*(?:" + _STRING + rb"\s*:|\})", re.DOTALL)
_LIST = re.compile(rb'\s*\[\s*(?:\{\s*"|\[\s*[-\d.eE]+\s*,)')  # of vectors or of objects
_SPACES = bytes.maketrans(b",\n\r\t", b"    ")
_HEAD_BYTES = 1 << 16
_ROWS_AT_ONCE = 1 << 13
_LONGEST = 1 << 25  # bytes between two ends of lists: the `words` of a package may be one list
_EXPECTED = 'an object {"word": [numbers]}, no list or JSON Lines; or a matrix as .npy (numpy.save)'


def is_json(head: bytes) -> bool:
    """Whether an object with a key or a list starts: the rows of `{` and `[` in GloVe do not."""
    return (_IS_JSON.match(head) or _LIST.match(head)) is not None


class JsonBlocks(ParsedBlocks):
    """The entries of an object of lists of numbers, whose file is read as a whole."""

    unit = "entry"

    def __init__(self, source: Source) -> None:
        parts, without = list[bytes](), 0
        with Stream(source) as stream:
            for part in stream.chunks():
                parts.append(part)
                without = len(part) - part.rfind(b"]") + (0 if b"]" in part else without)
                if without > _LONGEST:  # it may go on without end
                    raise source.read_error(f"{_LONGEST >> 20} MiB without a list", _EXPECTED)
        self._text = b"".join(parts).removeprefix(BYTE_ORDER_MARK)
        found = _OBJECT_OF_LISTS.match(self._text)
        self._is_nested, n_dims = found is None, None
        if found is None:
            if _LIST.match(self._text):
                raise source.read_error("a JSON list", _EXPECTED)
            found = _VECTORS.search(self._text)
            n_dims = _DIMENSIONS.search(self._text, 0, _HEAD_BYTES)
        first = found and _FIRST.match(self._text, found.end())
        if not found or not (first or self._text[found.end() :].lstrip().startswith(b'"')):
            raise source.read_error("no vectors", _EXPECTED)
        n_listed = first[2].count(b",") + 1 if first else 1
        dims = min(int(n_dims[1]), n_listed) if n_dims else n_listed
        super().__init__(source, dims, Position(found.end()))
        # wink-embeddings adds two numbers after the vector: its norm and the index of the word.
        self._n_extra = n_listed - dims

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        entries, limit = self._entries(start.offset), self.source.limit
        while batch := list(islice(entries, min(_ROWS_AT_ONCE, limit or _ROWS_AT_ONCE))):
            rows, lines = self.new_rows(start, limit), []
            for match in batch:
                vector = match[2].rsplit(b",", self._n_extra)[0] if self._n_extra else match[2]
                lines.append(b"w " + vector.translate(_SPACES))
            rows.parse_text(b"\n".join(lines) + b"\n", min(cores(), 8))
            block = self.parsed(start, batch[-1].end() - start.offset, rows, words=False)
            if words:
                chosen = (block.places - start.place).tolist()
                block = block._replace(words=[_word(self.source, batch[i][1]) for i in chosen])
            start = block.end
            if len(block.matrix):
                yield block
            if limit is not None and start.rows >= limit:
                return
        self.end(start, _EXPECTED)

    def _entries(self, at: int) -> Iterator[re.Match[bytes]]:
        """Each entry, a word and its numbers; ReadError where the object goes on otherwise."""
        text, entry = self._text, _FIRST if at == self.first.offset else _NEXT
        while match := entry.match(text, at):
            yield match
            at, entry = match.end(), _NEXT
        rest = text[at:].lstrip()
        if not rest.startswith(b"}"):
            raise self._error(at, '"word": [numbers], with commas between them')
        rest = rest[1:].lstrip()
        if rest and not self._is_nested:
            raise self._error(len(text) - len(rest), f"the end of the file: it is {_EXPECTED}")

    def _error(self, at: int, expected: str) -> ReadError:
        start = repr(self._text[at : at + 30].decode(errors="backslashreplace"))
        found = start if self._text[at:] else "the end"
        return self.source.read_error(found, expected, f"byte {at}")


def _word(source: Source, word: bytes) -> str:
    try:
        text: str = json.loads(b'"' + word + b'"', strict=False) if b"\\" in word else word.decode()
    except ValueError as error:
        raise source.read_error(f"a word that is not JSON ({error})", "a JSON string") from error
    return text.encode(errors="backslashreplace").decode()  # half of a surrogate pair has no UTF-8
