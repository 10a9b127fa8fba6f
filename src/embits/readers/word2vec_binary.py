"""word2vec's .bin: a header line, then for each row a word, a space and raw float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from embits.readers.blocks import Block, Blocks, Position
from embits.readers.rows import finish, new_rows, raise_first_bad
from embits.readers.source import Source, Stream
from embits.readers.text import header
from embits.vectors import WordVectors

_HEAD_BYTES = 4096
_MOST_DIMS = 1 << 20
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))


def is_word2vec_binary(head: bytes) -> bool:
    """Whether the bytes are a word2vec header with raw floats, not text, after it."""
    first, _, rest = head[:_HEAD_BYTES].partition(b"\n")
    if header(first) is None:
        return False
    # Four float bytes in a hundred are control characters; text has next to none.
    n_control = len(rest) - len(rest.translate(None, _CONTROL_BYTES))
    return n_control > len(rest) / 100


def read_word2vec_binary(source: Source, stream: Stream) -> WordVectors:
    """Read word2vec binary vectors, as GoogleNews comes, also out of a .gz."""
    first, _, _ = stream.peek(_HEAD_BYTES).partition(b"\n")
    n_rows, dims = header(first) or (0, 0)
    _check_promise(source, stream, n_rows, dims, len(first) + 1)
    stream.skip(len(first) + 1)
    wanted = replace(source, limit=source.rows_wanted(n_rows))
    rows = new_rows(wanted, dims, first_place=len(first) + 1)
    tail = b""
    for block in stream.blocks():
        tail += block
        tail = tail[rows.parse_word2vec(tail) :]
        raise_first_bad(source, rows, "byte")
        if rows.full:
            break
    if note := _check_end(
        source, n_rows, rows.n_bad, len(rows), wanted.limit, rows.next_place, tail
    ):
        source.warn(note)
    return finish(source, rows, "byte")


class Word2VecBlocks(Blocks):
    """word2vec binary vectors in blocks."""

    unit = "byte"

    def __init__(self, source: Source, stream: Stream) -> None:
        first, _, _ = stream.peek(_HEAD_BYTES).partition(b"\n")
        self._promised, dims = header(first) or (0, 0)
        self._start = len(first) + 1
        _check_promise(source, stream, self._promised, dims, self._start)
        super().__init__(source, dims)

    def start(self) -> Position:
        """The byte after the header."""
        return Position(self._start, self._start)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on, one for each block of the file."""
        limit = self.source.rows_wanted(self._promised)
        tail = b""
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            for block in stream.blocks():
                tail += block
                left = replace(self.source, limit=limit - start.rows)
                rows = new_rows(left, self.dims, start.place)
                used = rows.parse_word2vec(tail)
                raise_first_bad(self.source, rows, "byte")
                tail = tail[used:]
                made = self.parsed(start, used, rows, words)
                start = made.end
                if len(made.matrix):
                    yield made
                if start.rows >= limit:
                    break
        note = _check_end(
            self.source, self._promised, start.bad, start.rows, limit, start.place, tail
        )
        if note:
            self.findings.notes.append(note)
        if start.rows == 0:
            self.findings.warn(self.source)
            raise self.source.refusal("no vectors", "at least one row")


def _check_end(
    source: Source,
    promised: int,
    n_bad: int,
    n_good: int,
    limit: int | None,
    place: int,
    tail: bytes,
) -> str:
    """Refuse a file that ends early; what to say of one that goes on after its rows."""
    n_read = n_good + n_bad
    if n_read < promised and n_good != limit:
        raise source.refusal(
            f"the end of the file in row {n_read + 1}", f"{promised} rows", f"byte {place}"
        )
    if n_read == promised and tail.strip(b"\n"):
        return f"bytes after the {promised} rows of the header, at byte {place}"
    return ""


def _check_promise(source: Source, stream: Stream, n_rows: int, dims: int, start: int) -> None:
    """Hold the header against the file's real size before anything is made room for."""
    if n_rows < 1 or dims < 1:
        raise source.refusal(f"a header of {n_rows} rows and {dims} dims", "1 or more", "byte 0")
    least = start + n_rows * (4 * dims + 2)
    if not stream.is_compressed and least > source.size:
        raise source.refusal(
            f"{source.size} bytes", f"{least} or more for {n_rows} rows of {dims} floats", "byte 0"
        )
    if dims > _MOST_DIMS:  # a compressed file does not say beforehand how long it is
        raise source.refusal(f"a header of {dims} dims", f"{_MOST_DIMS} at most", "byte 0")
