"""The header of a file: built, parsed, and checked against the size of the file.

8 bytes of length, then JSON: `__metadata__` with what the file holds and its checksums, and an
entry with dtype, shape and offsets for each tensor (docs/file-format.md).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any, NoReturn

import numpy as np

from embits._version import __version__
from embits.errors import InputError

FORMAT = "embits"
VERSION = 2  # of new files
VERSION_WITH_LENGTHS = 3  # of files that earlier versions would read without the lengths
VERSIONS = ("1", "2", "3")  # that can be read
WRITER = f"embits {__version__}"
ALIGNMENT = 64  # the codes start on a cache line of the file, so of the mapping
MAX_HEADER = 1 << 16  # a header is about 2 KB; a longer one is damage or an attack
MAX_SIZE = 1 << 48  # bytes or rows: more than any disk holds, and safe in NumPy's own arithmetic
MAX_OBJECTS = 2000  # lists and objects in a header: more would take megabytes of memory
NO_CHECKSUM = "0" * 64
DTYPES = {
    "U8": "<u1", "F16": "<f2", "U32": "<u4", "F32": "<f4", "U64": "<u8", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
_CHECKSUM = re.compile("[0-9a-f]{64}", re.ASCII)


# -- build -----------------------------------------------------------------------------------------


def build_header(
    metadata: Mapping[str, str], tensors: Mapping[str, Any], version: int = VERSION
) -> bytes:
    """The header's bytes, padded so that the tensors start on a 64-byte boundary.

    Args:
        metadata: What the file says of itself, without the format's name and version.
        tensors: The tensors in file order.
        version: The version of the format.
    """
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(version),
            **metadata,
            "header_sha256": NO_CHECKSUM,
        }
    }
    offset = 0
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    return header.replace(NO_CHECKSUM.encode(), hashlib.sha256(header).hexdigest().encode(), 1)


def params_json(params: Mapping[str, Any]) -> str:
    """A coder's parameters as JSON.

    Raises:
        InputError: One of them is not a plain number, string, flag or None.
    """
    try:
        return json.dumps(dict(params), sort_keys=True, default=_plain, allow_nan=False)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the coder's parameters cannot be stored: {error}") from None


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(
        f"the coder's parameter {value!r} cannot be stored: use a number, a string, True, False "
        "or None"
    )


# -- parse -----------------------------------------------------------------------------------------


def parse_header(header: bytes, fail: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The entries of the tensors, and the metadata; `fail` is called with what is wrong."""
    try:
        entries = parse_json(header.decode())
        metadata = entries.pop("__metadata__")
        strings = all(isinstance(value, str) for value in metadata.values())
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        fail("not an embits file: its header is not valid JSON")
    if not strings or metadata.get("format") != FORMAT:
        fail("a safetensors file, but not one that embits wrote (no format 'embits' in it)")
    version = metadata.get("format_version", "")
    if not version:
        fail("damaged: the header has no format version")
    if version not in VERSIONS:
        fail(
            f"written in format version {shortened(version)}; this embits reads versions "
            f"{', '.join(VERSIONS)}: install a newer one"
        )
    checksum = metadata.get("header_sha256", "")
    if not _CHECKSUM.fullmatch(checksum):
        fail("damaged: the header has no checksum")
    zeroed = header.replace(checksum.encode(), NO_CHECKSUM.encode(), 1)
    if hashlib.sha256(zeroed).hexdigest() != checksum:
        fail("damaged: the header does not match its checksum")
    return entries, metadata


def parse_json(text: str) -> Any:
    """Strict JSON: Python's parser alone accepts NaN, and a name twice.

    Raises:
        ValueError: It is something else; RecursionError: it is nested without end.
    """
    if text.count("{") + text.count("[") > MAX_OBJECTS:
        raise ValueError("more than any header holds")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name appears twice")
    return entries


def check_extents(entries: Mapping[str, Any], data_size: int, fail: Any) -> None:
    """Tensors must fill the data exactly, in order, each as long as its shape says."""
    end = 0
    for name, entry in entries.items():
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [start, stop]}:
                pass
            case _:
                fail(f"damaged: no dtype, shape and offsets for tensor {shortened(name)}")
        if dtype not in DTYPES:
            fail(f"damaged: tensor {shortened(name)} has dtype {shortened(dtype)}")
        sizes = [np.dtype(DTYPES[dtype]).itemsize, *shape]
        numbers = [start, stop, *shape]
        if len(shape) > 2 or any(type(x) is not int or not 0 <= x <= MAX_SIZE for x in numbers):
            fail(
                f"damaged: tensor {shortened(name)} has shape {shortened(shape)} "
                f"and offsets {shortened([start, stop])}"
            )
        length = 1
        for factor in sizes:
            length *= factor  # Python's integers: nothing overflows
        if start != end or stop - start != length:
            fail(
                f"damaged: tensor {shortened(name)} of shape {shape} "
                f"lies at bytes {start} to {stop}"
            )
        end = stop
    if end != data_size:
        fail(f"damaged or cut short: {data_size} bytes of tensors, expected {end}")


def whole_number(text: str) -> int:
    """A number as `str` writes it: int() alone accepts signs, spaces and underscores."""
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number
