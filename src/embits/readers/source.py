"""The file that is being read: its first bytes, its content unpacked, its errors and warnings."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeAlias, TypedDict

from embits import checks
from embits.arrays import Progress
from embits.errors import InputError, ReadError, ReadWarning, warn_caller
from embits.remote import Fetched

OnBad = Literal["raise", "skip"]
Repeats = Literal["first", "refuse"]
AnyPath: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = AnyPath | Sequence[AnyPath]
Words = Sequence[str] | str | os.PathLike[str]
IdColumn = str | Literal[False] | None  # False: no ids; None: the column with a usual name

GZIP = b"\x1f\x8b"  # the first bytes by which files are recognized
XZ = b"\xfd7zXZ\x00"
ZIP = b"PK\x03\x04"
NPY = b"\x93NUMPY"
PARQUET = b"PAR1"
FASTTEXT = struct.pack("<i", 793712314)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMPRESSED = (GZIP, XZ, ZIP)
_PICKLE = "a Python pickle, which can run code"
_NOT_VECTORS = {
    b"version https://git-lfs": "a Git LFS pointer, not the file itself (run `git lfs pull`)",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    **{bytes((0x80, version)): _PICKLE for version in range(2, 6)},
    b"BZh": "a bzip2 archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"\x89HDF": "an HDF5 file",
}
# An opened tag with attributes, or one followed by anything but a number: `<html>` may be a word.
_HTML = re.compile(rb"\s*<(?:!doctype\b|\?xml\b|html(?:>\s*[^-+.\d\s]|\s+[a-z]))", re.IGNORECASE)
_TEXT_BYTES = bytes((*b"\t\n\r", *range(32, 127), *range(128, 256)))
CHUNK_BYTES = 1 << 20  # keeps every thread busy, and is small next to a large matrix
# Compressed vectors are 2 to 10 times smaller. Above a ratio of 100 a file is a decompression bomb,
# or holds zeros and can be unpacked first. The first bytes are not checked.
_MAX_RATIO = 100
_ALWAYS_ALLOWED = 16 << 20
_PACKED_BYTES = 1 << 16  # read at once, so that the ratio is known early
_MAX_XZ_MEMORY = 256 << 20  # xz -9 needs 65 MB to decompress; the format allows up to 4 GB
# What the standard library raises for damaged archives, as found by flipping bytes.
DAMAGED_ARCHIVE = (
    EOFError, IndexError, MemoryError, NotImplementedError, OverflowError, RuntimeError,
    UnicodeDecodeError, gzip.BadGzipFile, lzma.LZMAError, struct.error, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(XZ)).startswith(_COMPRESSED)


def may_be_vectors(head: bytes) -> bool:
    """Whether a file with these first bytes may hold float vectors, safetensors excepted."""
    known = head.startswith((NPY, PARQUET, FASTTEXT, *_COMPRESSED))
    return known or not head.translate(None, _TEXT_BYTES)


def known_other(head: bytes) -> str | None:
    """The name of a kind of file that holds no vectors, or None for any other file."""
    html = "an HTML page (the download went wrong)" if _HTML.match(head) else None
    return next((name for magic, name in _NOT_VECTORS.items() if head.startswith(magic)), html)


class ReadOptions(TypedDict, total=False):
    """The options of `read_vectors`, but for `progress`."""

    limit: int | None
    words: Words | None
    on_bad: OnBad
    repeats: Repeats | None
    ids: IdColumn
    column: str | None
    encoding: str


@dataclass(frozen=True)
class Source:
    """A file, or several, and the caller's options: the arguments of `read_vectors`, checked."""

    path: Path  # of several files, the folder that they are in
    limit: int | None = None
    on_bad: OnBad = "raise"
    progress: Progress | None = None
    words: Words | None = None
    repeats: Repeats | None = None
    ids: IdColumn = None
    column: str | None = None
    encoding: str = "utf-8"
    keeps_numbers: bool = True  # rows without words, as ids, if bad ones are left out
    fetched: Fetched | None = None  # what keeps `path`, a copy of a file at an address
    files: tuple[Path, ...] = ()  # several, in their order
    kept: tuple[str, ...] = ()  # columns that are read elsewhere
    is_part: bool = False  # one of several files, which may have no rows

    def __post_init__(self) -> None:
        if self.limit is not None:
            checks.whole("limit", self.limit, 1)
        checks.choice("on_bad", self.on_bad, ["raise", "skip"])
        if self.repeats is not None:
            checks.choice("repeats", self.repeats, ["first", "refuse"])
        for name, value in (("ids", self.ids or ""), ("column", self.column or "")):
            if not isinstance(value, str):
                raise InputError(f"{name} is {value!r}, expected the name of a column")
        with suppress(LookupError, TypeError, UnicodeError):
            if "0123456789 \t\n".encode(self.encoding) == b"0123456789 \t\n":
                return
        expected = "one such as utf-8 or latin-1, which writes digits as ASCII does"
        raise InputError(f"encoding is {self.encoding!r}, expected {expected}")

    def check_regular(self) -> None:
        """Refuse a folder, and what never ends or blocks: pipes and devices."""
        if self.path.is_dir():
            raise self.read_error("a directory", "a file, or a folder of .npy or Parquet files")
        with suppress(PermissionError):  # the reader raises the error
            checks.open_regular(self.path, error=ReadError).close()

    def read_error(self, found: str, expected: str, where: str = "") -> ReadError:
        """The error to raise: one line, `FILE, WHERE: found X, expected Y`."""
        place = f"{self.name}, {where}" if where else self.name
        facts = " ".join(f"found {found}, expected {expected}".split())
        return ReadError(facts, path=place)

    def warn(self, message: str) -> None:
        warn_caller(f"{self.name}: {message}", ReadWarning)

    def report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    @property
    def name(self) -> str:
        """What messages call the file: its path or its address."""
        return str(self.path) if self.fetched is None else self.fetched.name

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files or [self.path])

    def paths(self) -> list[Path]:
        beside = [Path(self.words)] if isinstance(self.words, str | os.PathLike) else []
        return [*(self.files or [self.path]), *beside]

    def rows_wanted(self, n_rows: int) -> int:
        """How many of `n_rows` the limit allows."""
        return n_rows if self.limit is None else min(n_rows, self.limit)


def largest_inside(packed: int) -> int:
    """How many bytes an archive of `packed` bytes may unpack to."""
    return max(_ALWAYS_ALLOWED, _MAX_RATIO * packed)


class Stream:
    """The bytes of a file, decompressed, that can be peeked at before they are read."""

    def __init__(self, source: Source) -> None:
        self._source, self._ahead, self._n_read = source, b"", 0
        with ExitStack() as opened:
            self._file: IO[bytes] = opened.enter_context(source.path.open("rb"))
            self._unpacked = _unpacked(source, self._file)
            self.is_compressed = self._unpacked is not self._file
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def peek(self, size: int) -> bytes:
        """The next `size` bytes without consuming them; fewer only at the end of the file."""
        while len(self._ahead) < size and (more := self._read(size - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size]

    def skip_to(self, offset: int) -> None:
        """Move from the start of the file to a byte of its unpacked content."""
        if not self.is_compressed:
            self._file.seek(offset)
            return
        while self._n_read < offset and self._read(min(CHUNK_BYTES, offset - self._n_read)):
            self._source.report(self._file.tell(), self._source.size)

    def chunks(self) -> Iterator[bytes]:
        """The rest of the bytes; the next chunk is read while the caller uses the last one."""
        if self._ahead:
            yield self._ahead
            self._ahead = b""
        reader = self._opened.enter_context(ThreadPoolExecutor(1))
        ahead = reader.submit(self._read, CHUNK_BYTES)
        while chunk := ahead.result():
            if self._source.progress is not None:
                self._source.report(self._file.tell(), self._source.size)
            ahead = reader.submit(self._read, CHUNK_BYTES)
            yield chunk

    def _read(self, size: int) -> bytes:
        if not self.is_compressed:
            return self._file.read(size)
        chunk = b""
        try:
            while len(chunk) < size and (
                more := self._unpacked.read(min(_PACKED_BYTES, size - len(chunk)))
            ):
                chunk += more
        except DAMAGED_ARCHIVE as error:
            found, where = f"damaged compression ({error})", f"byte {self._file.tell()}"
            raise self._source.read_error(found, "a whole file", where) from error
        self._n_read += len(chunk)
        if self._n_read > largest_inside(self._file.tell()):
            found = f"an archive that unpacks to over {_MAX_RATIO} times its size"
            raise self._source.read_error(found, "less (unpack it first if it is right)")
        return chunk


def _unpacked(source: Source, file: IO[bytes]) -> Any:
    """What reads the content of a file: the file itself, if it is not compressed."""
    head = file.read(len(XZ))
    file.seek(0)
    if head.startswith(GZIP):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(XZ):
        return _Xz(file)
    return _only_member(source, file) if head.startswith(ZIP) else file


class _Xz:
    """`lzma.LZMAFile` for reading, with a limit on memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._unpacker = file, self._new()

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""
        while True:
            packed = b""
            if self._unpacker.eof:  # another stream may follow
                packed = self._unpacker.unused_data or self._file.read(_PACKED_BYTES)
                if not packed.strip(b"\0"):
                    return b""
                self._unpacker = self._new()
            elif self._unpacker.needs_input and not (packed := self._file.read(_PACKED_BYTES)):
                raise EOFError("the file ends within its compression")
            if unpacked := self._unpacker.decompress(packed, size):
                return unpacked

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_MEMORY)


def _only_member(source: Source, file: IO[bytes]) -> IO[bytes]:
    try:
        archive = zipfile.ZipFile(file)
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            names = ", ".join(member.filename for member in members[:4])
            raise source.read_error(f"{len(members)} files inside ({names})", "exactly one")
        return archive.open(members[0])
    except DAMAGED_ARCHIVE as error:
        found = f"an archive that does not open ({error})"
        raise source.read_error(found, "a plain .zip") from error


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
