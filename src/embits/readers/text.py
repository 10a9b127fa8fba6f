"""Word vectors as text: word2vec's with a header, GloVe's without, fastText's .vec."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from embits.readers.blocks import Block, Blocks, Position
from embits.readers.rows import finish, new_rows, raise_first_bad
from embits.readers.source import Source, Stream, parser_threads
from embits.vectors import WordVectors

HEAD_BYTES = 1 << 20  # of the text, to find its layout by
_LONGEST_LINE = 64 << 20
_AT_THE_END = " (the file ends in this line)"
_LINES_TO_COUNT = 100
_SEPARATORS = re.compile(rb"[ \t]+")
_WHOLE_NUMBERS = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*")


@dataclass(frozen=True)
class Layout:
    """How many numbers a line holds, and what a header, if there is one, promises."""

    dims: int
    promised_rows: int | None = None
    header_bytes: int = 0

    def broken_promise(self, n_lines: int) -> str | None:
        """What to say of a header that promised another number of rows than there are."""
        if self.promised_rows in (None, n_lines):
            return None
        return f"the header promises {self.promised_rows} rows, the file holds {n_lines}"


def read_text(source: Source, stream: Stream, threads: int | None = None) -> WordVectors:
    """Read text vectors from a stream that stands at the first byte of the first line."""
    layout = find_layout(source, stream.peek(HEAD_BYTES))
    stream.skip(layout.header_bytes)
    rows = new_rows(source, layout.dims, first_place=1 if layout.promised_rows is None else 2)
    for block in stream.blocks():
        rows.parse_text(block, threads or parser_threads())
        raise_first_bad(source, rows, "line")
        if rows.full:
            break
    rows.end_text()
    raise_first_bad(source, rows, "line", _AT_THE_END)
    if not rows.full and (note := layout.broken_promise(len(rows) + rows.n_bad)):
        source.warn(note)
    return finish(source, rows, "line")


class TextBlocks(Blocks):
    """Text vectors in blocks of whole lines; `skipped` bytes of the file come before the text."""

    unit = "line"

    def __init__(self, source: Source, head: bytes, skipped: int) -> None:
        self._layout = find_layout(source, head)
        self._skipped = skipped
        super().__init__(source, self._layout.dims)

    def start(self) -> Position:
        """The first line, or the one after the header."""
        has_header = self._layout.promised_rows is not None
        return Position(self._skipped + self._layout.header_bytes, 2 if has_header else 1)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on, one for each block of the file."""
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            for text, is_last in _whole_lines(stream):
                rows = new_rows(self._limited(start.rows), self.dims, start.place)
                rows.parse_text(text, parser_threads())
                raise_first_bad(self.source, rows, "line")
                if is_last:
                    rows.end_text()
                    raise_first_bad(self.source, rows, "line", _AT_THE_END)
                full = rows.full
                block = self.parsed(start, len(text), rows, words)
                start = block.end
                if len(block.matrix):
                    yield block
                if full:
                    return
        if start.rows == 0:
            self.findings.warn(self.source)
            raise self.source.refusal("no vectors", "at least one row")
        if note := self._layout.broken_promise(start.rows + start.bad):
            self.findings.notes.append(note)

    def _limited(self, n_read: int) -> Source:
        if self.source.limit is None:
            return self.source
        return replace(self.source, limit=self.source.limit - n_read)


def _whole_lines(stream: Stream) -> Iterator[tuple[bytes, bool]]:
    """The text, cut at line ends, and whether it is a last line that no newline ends."""
    tail = b""
    for block in stream.blocks():
        text = tail + block
        cut = text.rfind(b"\n") + 1
        if not cut and len(text) > _LONGEST_LINE:
            cut = len(text)  # the parser says what is wrong with it
        if cut:
            yield text[:cut], False
        tail = text[cut:]
    if tail:
        yield tail, True


def header(line: bytes) -> tuple[int, int] | None:
    """The two whole numbers of a word2vec header, or None for any other line."""
    match = _WHOLE_NUMBERS.fullmatch(line)
    return (int(match[1]), int(match[2])) if match else None


def find_layout(source: Source, head: bytes) -> Layout:
    """Decide from the first lines whether there is a header, and how many numbers a line holds.

    Two whole numbers are a header when the next line, or most of the next hundred, have as many
    numbers as the second says. Where the next line is a word and one number, so are they.
    """
    lines = head.split(b"\n")
    if len(head) == HEAD_BYTES and len(lines) > 2:
        lines.pop()  # cut by the end of the head
    promise = header(lines[0])
    counts = [
        len(fields) - 1 for line in lines[1 : _LINES_TO_COUNT + 1] if (fields := _fields(line))
    ]
    if promise is not None:
        n_rows, dims = promise
        header_bytes = len(lines[0]) + 1
        if not counts:
            raise source.refusal(f"a header of {n_rows} rows, and none", "rows", "line 2")
        if dims > 0 and dims in (counts[0], _mode(counts)):
            return Layout(dims, n_rows, header_bytes)
        if counts[0] != 1:
            raise source.refusal(
                f"{counts[0]} numbers", f"{dims} as the header in line 1 says", "line 2"
            )
    if first := _fields(lines[0]):
        counts.insert(0, len(first) - 1)
    dims = _mode(counts) if counts else 0
    if dims < 1:
        raise source.refusal("no numbers", "a word and its numbers", "line 1")
    return Layout(dims)


def _fields(line: bytes) -> list[bytes]:
    stripped = line.strip(b" \t\r")
    return _SEPARATORS.split(stripped) if stripped else []


def _mode(counts: list[int]) -> int:
    """The commonest count; the smallest of equals, as spaces in words only ever add fields."""
    times = Counter(counts)
    return min(times, key=lambda count: (-times[count], count))
