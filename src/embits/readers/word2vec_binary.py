"""word2vec .bin: a header line, then for each row a word, a space and raw float32."""

from __future__ import annotations

from collections.abc import Iterator

from embits.readers.blocks import Block, ParsedBlocks, Position
from embits.readers.source import Source, Stream
from embits.readers.text import header

_HEAD_BYTES = 4096
_MAX_DIMS = 1 << 20
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))


def is_word2vec_binary(head: bytes) -> bool:
    """Whether the bytes are a word2vec header followed by raw floats, not by text."""
    first, _, rest = head[:_HEAD_BYTES].partition(b"\n")
    if header(first) is None:
        return False
    # About 4 % of the bytes of floats are control characters; text has almost none.
    n_control = len(rest) - len(rest.translate(None, _CONTROL_BYTES))
    return n_control > len(rest) / 100


class Word2VecBlocks(ParsedBlocks):
    """word2vec binary vectors in blocks."""

    unit = "byte"

    def __init__(self, source: Source) -> None:
        with Stream(source) as stream:
            first, _, _ = stream.peek(_HEAD_BYTES).partition(b"\n")
            self._header_rows, dims = header(first) or (0, 0)
            self._start = len(first) + 1
            _check_header(source, stream, self._header_rows, dims, self._start)
        super().__init__(source, dims)

    def start(self) -> Position:
        """The byte after the header."""
        return Position(self._start, self._start)

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on, one for each chunk of the file."""
        limit = self.source.rows_wanted(self._header_rows)
        tail = b""
        with Stream(self.source) as stream:
            stream.skip_to(start.offset)
            for chunk in stream.chunks():
                tail += chunk
                rows = self.new_rows(start, limit)
                used = rows.parse_word2vec(tail)
                self.raise_first_bad(rows)
                tail = tail[used:]
                block = self.parsed(start, used, rows, words=words)
                start = block.end
                if len(block.matrix):
                    yield block
                if start.rows >= limit:
                    break
        self._check_end(start, limit, tail)
        self.end(start)

    def _check_end(self, end: Position, limit: int, tail: bytes) -> None:
        """Refuse a file that ends early; note one that has more bytes after its rows."""
        n_read = end.rows + end.bad
        if n_read < self._header_rows and end.rows != limit:
            found, where = f"the end of the file in row {n_read + 1}", f"byte {end.place}"
            raise self.source.read_error(found, f"{self._header_rows} rows", where)
        if n_read == self._header_rows and tail.strip(b"\n"):
            note = f"bytes after the {self._header_rows} rows of the header, at byte {end.place}"
            self.findings.notes.append(note)


def _check_header(source: Source, stream: Stream, n_rows: int, dims: int, start: int) -> None:
    """Compare the header with the size of the file before memory is allocated for it."""
    if n_rows < 1 or dims < 1:
        raise source.read_error(f"a header of {n_rows} rows and {dims} dims", "1 or more", "byte 0")
    least = start + n_rows * (4 * dims + 2)
    if not stream.is_compressed and least > source.size:
        expected = f"{least} or more for {n_rows} rows of {dims} floats"
        raise source.read_error(f"{source.size} bytes", expected, "byte 0")
    if dims > _MAX_DIMS:  # the size of a compressed file is not known beforehand
        raise source.read_error(f"a header of {dims} dims", f"{_MAX_DIMS} at most", "byte 0")
