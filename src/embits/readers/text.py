"""Word vectors as text: word2vec's with a header, GloVe's without, fastText's .vec."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from embits.readers.rows import finish, new_rows, raise_first_bad
from embits.readers.source import Source, Stream, parser_threads
from embits.vectors import WordVectors

_HEAD_BYTES = 1 << 20
_LINES_TO_COUNT = 100
_SEPARATORS = re.compile(rb"[ \t]+")
_WHOLE_NUMBERS = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*")


@dataclass(frozen=True)
class Layout:
    """How many numbers a line holds, and what a header, if there is one, promises."""

    dims: int
    promised_rows: int | None = None
    header_bytes: int = 0


def read_text(source: Source, stream: Stream, threads: int | None = None) -> WordVectors:
    """Read text vectors from a stream that stands at the first byte of the first line."""
    layout = find_layout(source, stream.peek(_HEAD_BYTES))
    stream.skip(layout.header_bytes)
    rows = new_rows(source, layout.dims, first_place=1 if layout.promised_rows is None else 2)
    for block in stream.blocks():
        rows.parse_text(block, threads or parser_threads())
        raise_first_bad(source, rows, "line")
        if rows.full:
            break
    rows.end_text()
    raise_first_bad(source, rows, "line", " (the file ends in this line)")
    n_lines = len(rows) + rows.n_bad
    if layout.promised_rows not in (None, n_lines) and not rows.full:
        source.warn(f"the header promises {layout.promised_rows} rows, the file holds {n_lines}")
    return finish(source, rows, "line")


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
    if len(head) == _HEAD_BYTES and len(lines) > 2:
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
