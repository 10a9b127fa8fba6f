"""The first bytes by which files are recognized, in one place."""

from __future__ import annotations

import re
import struct

GZIP = b"\x1f\x8b"
XZ = b"\xfd7zXZ\x00"
ZIP = b"PK\x03\x04"
NPY = b"\x93NUMPY"
PARQUET = b"PAR1"
FASTTEXT = struct.pack("<i", 793712314)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MAX_BYTES = 6  # of the longest above

_COMPRESSED = (GZIP, XZ, ZIP)
_VECTORS = (NPY, PARQUET, FASTTEXT, *_COMPRESSED)
_PICKLE = "a Python pickle, which can run code"
_NOT_VECTORS = {
    b"version https://git-lfs": "a Git LFS pointer, not the file itself (run `git lfs pull`)",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"BZh": "a bzip2 archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"\x89HDF": "an HDF5 file",
}
# An opened tag with attributes, or one followed by anything but a number: `<html>` may be a word.
_HTML = re.compile(rb"\s*<(?:!doctype\b|\?xml\b|html(?:>\s*[^-+.\d\s]|\s+[a-z]))", re.IGNORECASE)
_TEXT_BYTES = bytes((*b"\t\n\r", *range(32, 127), *range(128, 256)))


def is_compressed(head: bytes) -> bool:
    """Whether a file with these first bytes is a .gz, .xz or .zip."""
    return head.startswith(_COMPRESSED)


def may_be_vectors(head: bytes) -> bool:
    """Whether a file with these first bytes may hold float vectors, safetensors excepted."""
    return head.startswith(_VECTORS) or not head.translate(None, _TEXT_BYTES)


def known_other(head: bytes) -> str | None:
    """The name of a kind of file that holds no vectors, or None for any other file."""
    for magic, name in _NOT_VECTORS.items():
        if head.startswith(magic):
            return name
    return "an HTML page (the download went wrong)" if _HTML.match(head) else None
