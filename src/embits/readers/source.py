"""The file that is being read: its bytes in blocks, and how a reader refuses or warns."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from embits.arrays import Progress
from embits.errors import ReadError, ReadWarning

OnBad = Literal["raise", "skip"]

# Large enough to keep every thread busy, small beside any matrix worth the wait.
BLOCK_BYTES = 1 << 20

# Vectors pack 2 to 10 times smaller. Beyond a hundred it is a bomb, or a file of zeros that may
# as well be unpacked first; small ones may hold what they like.
_MOST_RATIO = 100
_ALWAYS_ALLOWED = 16 << 20
# xz -9 needs 65 MB to unpack; the format lets a file ask for 4 GB.
_XZ_MEMORY = 256 << 20

# What the standard library raises for archives with flipped bytes; found by flipping them.
DAMAGED_ARCHIVE = (
    EOFError,
    IndexError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    UnicodeDecodeError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Source:
    """A file and what the caller asked of it."""

    path: Path
    limit: int | None = None
    on_bad: OnBad = "raise"
    progress: Progress | None = None

    def refusal(self, found: str, expected: str, where: str = "") -> ReadError:
        """The error to raise: one line, `FILE, WHERE: found X, expected Y`."""
        place = f"{self.path}, {where}" if where else f"{self.path}"
        facts = " ".join(f"found {found}, expected {expected}".split())
        return ReadError(f"{place}: {facts}")

    def warn(self, message: str) -> None:
        """Tell the caller of `read_vectors` what was put right."""
        warnings.warn(f"{self.path}: {message}", ReadWarning, stacklevel=_frames_to_caller())

    def report(self, done: int, total: int) -> None:
        """Call the progress callback, where there is one."""
        if self.progress is not None:
            self.progress(done, total)

    @property
    def size(self) -> int:
        """Bytes of the file on disk."""
        return self.path.stat().st_size

    def rows_wanted(self, n_rows: int) -> int:
        """How many of `n_rows` the limit lets in."""
        return n_rows if self.limit is None else min(n_rows, self.limit)


def largest_inside(packed: int) -> int:
    """How many bytes an archive of `packed` bytes may unpack to."""
    return max(_ALWAYS_ALLOWED, _MOST_RATIO * packed)


class Stream:
    """The bytes of a file, decompressed on the way, that can be looked at before they are read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ahead = b""
        self._n_read = 0
        self._opened = ExitStack()
        self._file: IO[bytes] = self._opened.enter_context(source.path.open("rb"))
        try:
            self._bytes = self._opened.enter_context(_decompressed(source, self._file))
        except BaseException:
            self._opened.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened.close()

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes come out of a .gz, .xz or .zip."""
        return self._bytes is not self._file

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end of the file; they stay to be read."""
        while len(self._ahead) < size and (more := self._read(size - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size]

    def skip(self, size: int) -> None:
        """Leave out the next `size` bytes, which were peeked at."""
        self._ahead = self._ahead[size:]

    def skip_to(self, offset: int) -> None:
        """Go on at a byte of the unpacked file, from its very beginning."""
        if not self.is_compressed:
            self._file.seek(offset)
            return
        while self._n_read < offset and self._read(min(BLOCK_BYTES, offset - self._n_read)):
            self._source.report(self._file.tell(), self._source.size)

    def blocks(self) -> Iterator[bytes]:
        """The rest of the bytes; the next block is read while the last one is worked on."""
        if self._ahead:
            yield self._ahead
            self._ahead = b""
        reader = self._opened.enter_context(ThreadPoolExecutor(1))
        ahead = reader.submit(self._read, BLOCK_BYTES)
        while block := ahead.result():
            if self._source.progress is not None:
                self._source.report(self._file.tell(), self._source.size)
            ahead = reader.submit(self._read, BLOCK_BYTES)
            yield block

    def _read(self, size: int) -> bytes:
        try:
            block = self._bytes.read(size)
        except DAMAGED_ARCHIVE as error:
            raise self._source.refusal(
                f"damaged compression ({error})", "a whole file", f"byte {self._file.tell()}"
            ) from error
        self._n_read += len(block)
        if self.is_compressed and self._n_read > largest_inside(self._source.size):
            raise self._source.refusal(
                f"an archive that unpacks to over {_MOST_RATIO} times its size",
                "vectors (unpack it first if it is right)",
            )
        return block


def _decompressed(source: Source, file: IO[bytes]) -> IO[bytes]:
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if magic == b"\xfd7zXZ\x00":
        return _Xz(file)  # type: ignore[return-value]
    if magic.startswith(b"PK\x03\x04"):
        return _only_member(source, file)
    return file


class _Xz:
    """`lzma.LZMAFile` for reading, but with a bound on the memory that a file may ask for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._unpacker = self._new()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The file is closed by who opened it."""

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""
        while True:
            packed = b""
            if self._unpacker.eof:  # another stream may follow
                packed = self._unpacker.unused_data or self._file.read(BLOCK_BYTES)
                if not packed.strip(b"\0"):
                    return b""
                self._unpacker = self._new()
            elif self._unpacker.needs_input:
                packed = self._file.read(BLOCK_BYTES)
                if not packed:
                    raise EOFError("the file ends within its compression")
            if unpacked := self._unpacker.decompress(packed, size):
                return unpacked

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


def _only_member(source: Source, file: IO[bytes]) -> IO[bytes]:
    try:
        archive = zipfile.ZipFile(file)
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            names = ", ".join(member.filename for member in members[:4])
            raise source.refusal(f"{len(members)} files inside ({names})", "exactly one")
        return archive.open(members[0])
    except DAMAGED_ARCHIVE as error:
        raise source.refusal(f"an archive that does not open ({error})", "a plain .zip") from error


def parser_threads() -> int:
    """How many threads share a block of text; beyond eight, starting them costs what they gain."""
    return min(cores(), 8)


def cores() -> int:
    """How many threads this process may keep busy."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _frames_to_caller() -> int:
    """The stack level, counted from `Source.warn`, of the first frame outside this package."""
    package = str(Path(__file__).parents[1])
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
        level += 1
    return level
