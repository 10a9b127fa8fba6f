"""Word vectors as text, with a header or, as GloVe, without; and as word2vec's .bin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from embits.readers.blocks import Block, ParsedBlocks, Position
from embits.readers.source import BYTE_ORDER_MARK, Source, Stream, cores

_HEAD_BYTES = 1 << 20  # of text, from which the layout is found
_BINARY_HEAD = 4096
_MAX_DIMS = 1 << 20
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))
_MAX_LINE = 16 << 20  # bytes: a million numbers
_AT_THE_END = " (the file ends in this line)"
_LINES_TO_COUNT = 100
_SEPARATORS = re.compile(rb"[ \t]+")
_WHOLE_NUMBERS = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NO_WORDS = (
    "the first column was read as the words, but it holds numbers; if the file has no words, save "
    "its matrix as .npy"
)


class Layout(NamedTuple):
    """How many numbers a line holds, and the rows and bytes of a header, if there is one."""

    dims: int
    header_rows: int | None = None
    header_bytes: int = 0


class TextBlocks(ParsedBlocks):
    """Text vectors in blocks of whole lines."""

    unit = "line"

    def __init__(self, source: Source) -> None:
        with Stream(source) as stream:
            head = stream.peek(len(BYTE_ORDER_MARK) + _HEAD_BYTES)
        text = head.removeprefix(BYTE_ORDER_MARK)
        self._layout = layout = find_layout(source, text[:_HEAD_BYTES])
        start = len(head) - len(text) + layout.header_bytes
        super().__init__(source, layout.dims, Position(start, 2 if layout.header_bytes else 1))
        if self._layout.header_rows is None and _has_no_words(text[:_HEAD_BYTES]):
            self.findings.notes.append(_NO_WORDS)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            for line_start, chunk, size in _pieces(stream):
                if len(line_start) > _MAX_LINE:
                    found = f"no line end in {_MAX_LINE >> 20} MiB"
                    raise self.source.read_error(found, "lines of text", f"line {start.place}")
                rows = self.new_rows(start, self.source.limit)
                rows.parse_text(line_start, 1)  # kept by the parser until the chunk ends the line
                rows.parse_text(chunk, min(cores(), 8))
                if not chunk:
                    rows.end_text()
                full, hint = rows.full, "" if chunk else _AT_THE_END
                block = self.parsed(start, size, rows, words=words, hint=hint)
                start = block.end
                if len(block.matrix):
                    yield block
                if full:
                    return
        self.end(start)
        promised, n_lines = self._layout.header_rows, start.rows + start.bad
        if promised not in (None, n_lines):
            note = f"the header promises {promised} rows, the file holds {n_lines}"
            self.findings.notes.append(note)


def _pieces(stream: Stream) -> Iterator[tuple[bytes, bytes, int]]:
    """Pieces of text that end with a line: start of a line that was cut, chunk, bytes of both."""
    line_start = b""
    for chunk in stream.chunks():
        cut = chunk.rfind(b"\n") + 1
        if cut or len(line_start) > _MAX_LINE:
            yield line_start, chunk, len(line_start) + cut
            line_start = chunk[cut:]
        else:
            line_start += chunk
    if line_start:  # a last line without a newline
        yield line_start, b"", len(line_start)


def header(line: bytes) -> tuple[int, int] | None:
    """The two whole numbers of a word2vec header, or None for any other line."""
    match = _WHOLE_NUMBERS.fullmatch(line)
    return (int(match[1]), int(match[2])) if match else None


def find_layout(source: Source, head: bytes) -> Layout:
    """Decide from the first lines whether there is a header, and how many numbers a line holds.

    Two whole numbers are a header if the next line, or most of the next hundred, have as many
    numbers as the second says. If the next line is a word and one number, they are a word and one
    number too.
    """
    lines = head.split(b"\n")
    if len(head) == _HEAD_BYTES and len(lines) > 2:
        lines.pop()  # cut by the end of the head
    counted = header(lines[0])
    split = [_fields(line) for line in lines[: _LINES_TO_COUNT + 1]]
    counts = [len(fields) - 1 for fields in split[1:] if fields]
    if counted is not None:
        n_rows, dims = counted
        if not counts:
            raise source.read_error(f"a header of {n_rows} rows, and none", "rows", "line 2")
        if dims > 0 and dims in (counts[0], _mode(counts)):
            return Layout(dims, n_rows, len(lines[0]) + 1)
        if counts[0] != 1:
            expected = f"{dims} as the header in line 1 says"
            raise source.read_error(f"{counts[0]} numbers", expected, "line 2")
    if first := split[0]:
        counts.insert(0, len(first) - 1)
    if first and all(map(_is_comma_separated, filter(None, split[:2]))):
        expected = "a word and its numbers with spaces between them"
        hint = "replace the commas by spaces, or save the table as Parquet, or a matrix as .npy"
        raise source.read_error("comma-separated values", f"{expected}: {hint}", "line 1")
    n_last = sum(1 for _ in takewhile(_NUMBER.fullmatch, reversed(first[1:])))
    dims = _mode(counts, n_last) if counts else 0
    if dims < 1:
        raise source.read_error("no numbers", "a word and its numbers", "line 1")
    return Layout(dims)


def _fields(line: bytes) -> list[bytes]:
    stripped = line.strip(b" \t\r")
    return _SEPARATORS.split(stripped) if stripped else []


def _mode(counts: list[int], preferred: int | None = None) -> int:
    """The most common count; of ties `preferred`, else the least: spaces in words add fields."""
    times = Counter(counts)
    return min(times, key=lambda count: (-times[count], count != preferred, count))


def _is_comma_separated(fields: list[bytes]) -> bool:
    """Whether a line is one of a CSV file, with or without spaces after the commas."""
    if len(fields) == 1:
        return fields[0].count(b",") > 1 or fields[0].count(b";") > 1
    return len(fields) > 2 and all(field[-1:] in (b",", b";") for field in fields[:-1])


def _has_no_words(head: bytes) -> bool:
    """Whether the first lines start with numbers that are not all whole, which may be ids."""
    lines = map(_fields, head.split(b"\n", _LINES_TO_COUNT)[:_LINES_TO_COUNT])
    words = [fields[0] for fields in lines if fields]
    return all(map(_NUMBER.fullmatch, words)) and not all(word.isdigit() for word in words)


# -- word2vec .bin: a header line, then for each row a word, a space and raw float32 ---------------


def is_word2vec_binary(head: bytes) -> bool:
    """Whether the bytes are a word2vec header followed by raw floats, not by text."""
    first, _, rest = head[:_BINARY_HEAD].partition(b"\n")
    if header(first) is None:
        return False
    # About 4 % of the bytes of floats are control characters; text has almost none.
    n_control = len(rest) - len(rest.translate(None, _CONTROL_BYTES))
    return n_control > len(rest) / 100


class Word2VecBlocks(ParsedBlocks):
    unit = "byte"

    def __init__(self, source: Source) -> None:
        with Stream(source) as stream:
            first, _, _ = stream.peek(_BINARY_HEAD).partition(b"\n")
            self._header_rows, dims = header(first) or (0, 0)
            n_rows, start = self._header_rows, len(first) + 1
            least = start + n_rows * (4 * dims + 2)
            expected = None  # compared with the size before memory is allocated for the rows
            if n_rows < 1 or dims < 1:
                expected = "1 or more"
            elif not stream.is_compressed and least > source.size:
                expected = f"{least} bytes or more in the file, not {source.size}"
            elif dims > _MAX_DIMS:  # the size of a compressed file is not known beforehand
                expected = f"{_MAX_DIMS} dims at most"
            if expected is not None:
                found = f"a header of {n_rows} rows and {dims} dims"
                raise source.read_error(found, expected, "byte 0")
        super().__init__(source, dims, Position(start, start))

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        limit = self.source.rows_wanted(self._header_rows)
        tail = b""
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            for chunk in stream.chunks():
                tail += chunk
                rows = self.new_rows(start, limit)
                used = rows.parse_word2vec(tail)
                block = self.parsed(start, used, rows, words=words)
                tail = tail[used:]
                start = block.end
                if len(block.matrix):
                    yield block
                if start.rows >= limit:
                    break
        n_read = start.rows + start.bad
        if n_read < self._header_rows and start.rows != limit:
            found, where = f"the end of the file in row {n_read + 1}", f"byte {start.place}"
            raise self.source.read_error(found, f"{self._header_rows} rows", where)
        if n_read == self._header_rows and tail.strip(b"\n"):
            note = f"bytes after the {self._header_rows} rows of the header, at byte {start.place}"
            self.findings.notes.append(note)
        self.end(start)
