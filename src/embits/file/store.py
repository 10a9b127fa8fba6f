"""The file: write, open, verify. Only this module knows the layout (docs/file-format.md).

Opening maps the file, checks the header against the size, and reads the coder's tensors to check
them against their checksums; it reads no other tensor.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import blocks, has_padding_bits, packed_width
from embits.bounded_json import Limits, parse_json
from embits.checks import open_regular
from embits.errors import FormatError, InputError
from embits.file.atomic import atomic_write

FORMAT = "embits"
VERSION = 2  # of new files
VERSION_WITH_MORE = 3  # of files that earlier versions would read without a part
VERSION_WITH_CELLS = 4  # of files whose codes are not in row order
VERSIONS = ("1", "2", "3", "4")  # that can be read
WRITER = f"embits {__version__}"
ALIGNMENT = 64  # the codes start on a cache line of the file, so of the mapping
MAX_HEADER = 1 << 16  # a header is about 2 KB; a longer one is damage or an attack
MAX_SIZE = 1 << 48  # bytes or rows: more than any disk holds, and safe in NumPy's own arithmetic
NO_CHECKSUM = "0" * 64
DTYPES = {
    "I8": "<i1", "U8": "<u1", "F16": "<f2", "U32": "<u4", "F32": "<f4", "U64": "<u8", "F64": "<f8",
}  # fmt: skip
CODER = "coder."  # the start of the names of what the coder has learned
CELLS = "cells."  # the start of the names of the tensors of cells
COLUMN = "column."  # the start of the name of a column's tensor
TEXT = "text."  # the start of the name of a tensor of a text encoder
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Strings: TypeAlias = Mapping[str, str]
Fail: TypeAlias = Callable[[str], NoReturn]  # called with what is wrong
_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
_LIMITS = Limits(MAX_HEADER, MAX_HEADER, 2000)
_CHECKSUM = re.compile("[0-9a-f]{64}", re.ASCII)


def is_stored(dtype: np.dtype[Any]) -> bool:
    """Whether a file holds numbers of this type."""
    return dtype.newbyteorder("<") in _NAMES


def params_json(params: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(params), sort_keys=True, default=_plain, allow_nan=False)
    except InputError:
        raise
    except ValueError as error:
        found = f"the coder's parameters {shortened(dict(params))} cannot be stored"
        raise InputError(f"{found}: {error}") from None


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    hint = "use a number, a string, True, False or None"
    raise InputError(f"the coder's parameter {value!r} cannot be stored: {hint}")


def parse_header(header: bytes, fail: Fail) -> tuple[dict[str, Any], dict[str, str]]:
    """The entries of the tensors, and the metadata; `fail` is called with what is wrong."""
    try:
        entries = parse_json(header, _LIMITS, strict=True)
        metadata = entries.pop("__metadata__")
        strings = all(isinstance(value, str) for value in metadata.values())
    except (ValueError, KeyError, AttributeError, TypeError):
        fail("not an embits file: its header is not valid JSON")
    if not strings or metadata.get("format") != FORMAT:
        fail("a safetensors file, but not one that embits wrote (no format 'embits' in it)")
    version = metadata.get("format_version", "")
    if not version:
        fail("damaged: the header has no format version")
    if version not in VERSIONS:
        known = f"this embits reads versions {', '.join(VERSIONS)}: install a newer one"
        fail(f"written in format version {shortened(version)}; {known}")
    checksum = metadata.get("header_sha256", "")
    if not _CHECKSUM.fullmatch(checksum):
        fail("damaged: the header has no checksum")
    zeroed = header.replace(checksum.encode(), NO_CHECKSUM.encode(), 1)
    if hashlib.sha256(zeroed).hexdigest() != checksum:
        fail("damaged: the header does not match its checksum")
    return entries, metadata


def check_extents(entries: Mapping[str, Any], data_size: int, fail: Fail) -> None:
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
            found = f"shape {shortened(shape)} and offsets {shortened([start, stop])}"
            fail(f"damaged: tensor {shortened(name)} has {found}")
        length = math.prod(sizes)  # Python's integers: nothing overflows
        if start != end or stop - start != length:
            fail(f"damaged: tensor {shortened(name)} of {shape} lies at bytes {start} to {stop}")
        end = stop
    if end != data_size:
        fail(f"damaged or cut short: {data_size} bytes of tensors, expected {end}")


def with_prefix(prefix: str, tensors: Arrays) -> dict[str, NDArray[Any]]:
    """The tensors whose names start with a prefix, by what follows it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def whole_number(text: str) -> int:
    """A number as `str` writes it: int() alone accepts signs, spaces and underscores."""
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number


MAX_BASE = 1024  # beyond it a length is no float64
_HINT_BYTES = 1000


@dataclass(frozen=True)
class RowsInBlocks:
    """A matrix of a file that is written in blocks of rows, and never held in memory."""

    rows: Any  # uint8 (n, bytes of a row), read by slices
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.rows.shape[1] // self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return len(self.rows) * int(self.rows.shape[1])

    def pieces(self) -> Iterator[memoryview]:
        for block in blocks(len(self.rows)):
            yield _raw(np.ascontiguousarray(self.rows[block]))


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: codes, and the arrays of its vocabulary, coder and subwords."""

    codes: NDArray[np.uint8]  # packed, (n, ceil(n_bits / 8))
    n_bits: int
    dims: int  # of the vectors that the codes were made from
    method: str  # the coder's name
    params: Mapping[str, Any]  # the coder's
    tensors: Mapping[str, Any] = field(default_factory=dict)  # all other arrays
    writer: str = WRITER  # name and version of the program that wrote the file
    version: int = VERSION  # the oldest format whose readers ignore no part of it
    left_out: tuple[str, ...] = ()  # parts that were left out to make the file smaller
    lengths_base: int | None = None  # where the scale of the tensor `lengths` starts
    text: Mapping[str, Any] | None = None  # the settings of a text encoder


Tensor: TypeAlias = NDArray[Any] | RowsInBlocks


def write(path: Path, contents: Contents, *, like: Path | None = None) -> None:
    """Write a file atomically, `like` another; the same contents give the same bytes."""
    codes = np.ascontiguousarray(contents.codes, dtype=np.uint8)
    tensors: dict[str, Tensor] = {"codes": codes}
    # By falling item size after the codes, so that all are aligned.
    rest = sorted(contents.tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    if rest and codes.nbytes % 8:  # safetensors allows no gap: the padding is a tensor
        tensors["padding"] = np.zeros(-codes.nbytes % 8, dtype=np.uint8)
    for name, array in rest:
        own = array.dtype.newbyteorder("<")
        is_whole = isinstance(array, np.ndarray)
        tensors[name] = np.ascontiguousarray(array, dtype=own) if is_whole else array
    checksums = dict.fromkeys(tensors, NO_CHECKSUM)
    header = _header(contents, tensors, checksums)
    with atomic_write(path, like=like) as file:
        # All checksums have one length: the header is written again when they are known.
        file.write(len(header).to_bytes(8, "little") + header)
        for name, tensor in tensors.items():
            digest = hashlib.sha256()
            for piece in [_raw(tensor)] if isinstance(tensor, np.ndarray) else tensor.pieces():
                digest.update(piece)
                file.write(piece)
            checksums[name] = digest.hexdigest()
        file.seek(8)
        file.write(_header(contents, tensors, checksums))


def _header(contents: Contents, tensors: Mapping[str, Tensor], checksums: Strings) -> bytes:
    """The header's bytes, padded so that the tensors start on a 64-byte boundary."""
    metadata = {
        "format": FORMAT, "format_version": str(contents.version), "writer": contents.writer,
        "bits": str(contents.n_bits), "dims": str(contents.dims), "method": contents.method,
        "params": params_json(contents.params), "sha256": json.dumps(dict(checksums)),
    }  # fmt: skip
    if contents.left_out:
        metadata["left_out"] = ",".join(contents.left_out)
    if contents.lengths_base is not None:
        metadata["lengths_base"] = str(contents.lengths_base)
    if contents.text is not None:
        metadata["text"] = params_json(contents.text)
    entries: dict[str, Any] = {"__metadata__": metadata | {"header_sha256": NO_CHECKSUM}}
    offset = 0
    for name, tensor in tensors.items():
        start, offset = offset, offset + tensor.nbytes
        kind = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape)}
        entries[name] = kind | {"data_offsets": [start, offset]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    return header.replace(NO_CHECKSUM.encode(), hashlib.sha256(header).hexdigest().encode(), 1)


def open_file(path: Path, *, verify: bool = False, mapped: bool = True) -> Contents:
    """Map a file, or read it, and check its header and coder; with `verify`, check every byte."""

    def fail(problem: str) -> NoReturn:
        raise FormatError(problem, path=path)

    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            fail(f"not a safetensors file: it has {size} bytes")
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            from embits.readers.source import may_be_vectors  # a file that is ours needs no readers

            hint = ": if it holds float vectors, `embits binarize` converts it"
            head = length.to_bytes(8, "little") + file.read(_HINT_BYTES)
            fail("not an embits file" + (hint if may_be_vectors(head) else ", or damaged"))
        if length > size - 8:
            fail(f"cut short: {size} bytes, and its header alone has {length}")
        header = file.read(length)
        entries, metadata = parse_header(header, fail)
        if (8 + length) % ALIGNMENT:
            fail(f"damaged: a header of {length} bytes, which aligns no tensor to {ALIGNMENT}")
        check_extents(entries, size - 8 - length, fail)
        file.seek(0)
        data: mmap.mmap | bytes = b""
        with suppress(ValueError):  # shorter by now than it was a moment ago
            read_only = mmap.ACCESS_READ
            data = mmap.mmap(file.fileno(), size, access=read_only) if mapped else file.read(size)
        if len(data) < size:
            fail("cut short while it was opened")
    tensors = {name: _view(data, 8 + length, entry) for name, entry in entries.items()}
    contents = _contents(tensors, metadata, fail)
    own = tensors if verify else {k: v for k, v in tensors.items() if k.startswith(CODER)}
    _check_sums(own, metadata, fail)
    if verify:
        _check_values(tensors, contents, fail)
    return contents


def _view(data: mmap.mmap | bytes, start: int, entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(DTYPES[entry["dtype"]])
    begin, end = entry["data_offsets"]
    if begin == end:
        return np.empty(entry["shape"], dtype=dtype)
    flat = np.frombuffer(data, dtype, (end - begin) // dtype.itemsize, start + begin)
    return flat.reshape(entry["shape"])


def _contents(tensors: Arrays, metadata: Strings, fail: Fail) -> Contents:
    try:
        n_bits, dims = whole_number(metadata["bits"]), whole_number(metadata["dims"])
        method, writer = metadata["method"], metadata["writer"]
        params = parse_json(metadata["params"], _LIMITS, strict=True)
        codes = tensors["codes"]
        base = whole_number(metadata["lengths_base"]) if "lengths" in tensors else None
        text = parse_json(metadata["text"], _LIMITS, strict=True) if "text" in metadata else None
    except (KeyError, ValueError):
        fail("damaged: bits, dims, method, params, writer, codes or lengths_base are missing")
    version = int(metadata["format_version"])
    if "text" in metadata and not (isinstance(text, dict) and version >= VERSION_WITH_MORE):
        fail(f"damaged: the settings of its text encoder are {shortened(text)}")
    if not (0 < n_bits <= MAX_SIZE and 0 < dims <= MAX_SIZE and isinstance(params, dict)):
        found = f"{shortened(n_bits)} bits from {shortened(dims)} dimensions"
        fail(f"damaged: {found}, parameters {shortened(params)}")
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != packed_width(n_bits):
        fail(f"damaged: codes are {codes.dtype} {codes.shape} for {shortened(n_bits)} bits")
    lengths = tensors.get("lengths")
    if lengths is not None and (
        lengths.dtype != np.uint8 or lengths.shape != codes.shape[:1] or abs(base or 0) > MAX_BASE
    ):
        fail(f"damaged: lengths are {lengths.dtype} of shape {lengths.shape}, from 2^{base}")
    rest = {name: array for name, array in tensors.items() if name not in ("codes", "padding")}
    left_out = tuple(filter(None, metadata.get("left_out", "").split(",")))
    return Contents(
        codes, n_bits, dims, method, params, rest, writer, version, left_out, base, text
    )


def _check_sums(tensors: Arrays, metadata: Strings, fail: Fail) -> None:
    """Read tensors and compare them with their checksums."""
    try:
        checksums = parse_json(metadata["sha256"], _LIMITS, strict=True)
        expected = {name: checksums[name] for name in tensors}
    except (KeyError, ValueError, TypeError):
        fail("damaged: a tensor has no checksum")
    for name, array in tensors.items():
        if hashlib.sha256(_raw(array)).hexdigest() != expected[name]:
            fail(f"damaged: the bytes of tensor {name!r} do not match its checksum")


def _check_values(tensors: Arrays, contents: Contents, fail: Fail) -> None:
    """Floats must be finite, and padding bits zero."""
    for name, array in tensors.items():
        flat = array.ravel()  # it may be large
        parts = blocks(len(flat), 1 << 20) if array.dtype.kind == "f" else ()
        if not all(np.isfinite(flat[part]).all() for part in parts):
            fail(f"damaged: tensor {name!r} contains NaN or infinity")
    if has_padding_bits(contents.codes, contents.n_bits):
        fail(f"damaged: codes of {contents.n_bits} bits have a padding bit set")


def _raw(array: NDArray[Any]) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")
