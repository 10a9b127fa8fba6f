"""The file: write, open, verify. The only module that knows the layout (docs/file-format.md).

A valid safetensors file: 8 bytes of header length, a JSON header, then the tensors' bytes.
Opening maps the file and checks the header against the size; it reads no tensor.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.bits import has_padding_bits, packed_width
from embits.errors import FormatError, InputError
from embits.file.atomic import atomic_write

FORMAT = "embits"
VERSION = 1
WRITER = f"embits {__version__}"
ALIGNMENT = 64  # the codes start on a cache line of the file, so of the mapping
MAX_HEADER = 1 << 16  # a header is about 2 KB; a longer one is damage or an attack
MAX_SIZE = 1 << 48  # bytes or rows: beyond any disk, and safe in NumPy's own arithmetic
_MOST_OBJECTS = 2000  # lists and objects in a header: more would be megabytes of Python's
_PIECE_BYTES = 1 << 20  # of a file that is copied
_NO_CHECKSUM = "0" * 64
_HINT_BYTES = 1000
_CHECKSUM = re.compile("[0-9a-f]{64}", re.ASCII)
_DTYPES = {
    "U8": "<u1", "F16": "<f2", "U32": "<u4", "F32": "<f4", "U64": "<u8", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True)
class CodesOnDisk:
    """Packed codes in a file of their own, to be copied block by block and never held.

    Attributes:
        path: The file: nothing but the codes, row by row.
        shape: Rows, and bytes of a code.
    """

    path: Path
    shape: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of all codes."""
        return self.shape[0] * self.shape[1]

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in pieces."""
        with self.path.open("rb") as file:
            left = self.nbytes
            while left:
                piece = file.read(min(left, _PIECE_BYTES))
                if not piece:
                    raise OSError(errno.EIO, "cut short while it was read", str(self.path))
                left -= len(piece)
                yield piece


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: codes, and whatever arrays its vocabulary and coder are made of.

    Attributes:
        codes: Packed codes, uint8 (n, ceil(n_bits / 8)).
        n_bits: Bits of a code.
        dims: Dimensions of the vectors the codes were made from.
        method: The coder's name.
        params: The coder's parameters.
        tensors: All other arrays by name.
        writer: Name and version of the program that wrote the file.
    """

    codes: NDArray[np.uint8]
    n_bits: int
    dims: int
    method: str
    params: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    writer: str = WRITER


Tensor: TypeAlias = NDArray[Any] | CodesOnDisk


# -- write ---------------------------------------------------------------------------------------


def write(path: Path, contents: Contents, codes: CodesOnDisk | None = None) -> None:
    """Write a file whole or not at all; the same contents give the same bytes.

    Args:
        path: The file.
        contents: What it holds.
        codes: Codes to copy from a file, in place of `contents.codes`.

    Raises:
        OSError: The disk said no; the file that was there before is still there.
    """
    tensors = _layout(contents, codes)
    checksums = dict.fromkeys(tensors, _NO_CHECKSUM)
    header = _header(contents, tensors, checksums)
    with atomic_write(path) as file:
        # Checksums have one length: the header's place is kept until they are known.
        file.write(len(header).to_bytes(8, "little") + header)
        for name, tensor in tensors.items():
            digest = hashlib.sha256()
            for piece in _pieces(tensor):
                digest.update(piece)
                file.write(piece)
            checksums[name] = digest.hexdigest()
        file.seek(8)
        file.write(_header(contents, tensors, checksums))


def _layout(contents: Contents, on_disk: CodesOnDisk | None) -> dict[str, Tensor]:
    """The tensors in file order: codes first, then by falling item size, so all are aligned."""
    codes: Tensor = on_disk or np.ascontiguousarray(contents.codes, dtype=np.uint8)
    rest: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in contents.tensors.items()
    }
    tensors: dict[str, Tensor] = {"codes": codes}
    if rest and codes.nbytes % 8:  # safetensors allows no gap: the padding is a tensor
        tensors["padding"] = np.zeros(-codes.nbytes % 8, dtype=np.uint8)
    in_order = sorted(rest.items(), key=lambda item: (-item[1].itemsize, item[0]))
    tensors.update(in_order)
    return tensors


def _header(
    contents: Contents, tensors: Mapping[str, Tensor], checksums: Mapping[str, str]
) -> bytes:
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "format_version": str(VERSION),
            "writer": contents.writer,
            "bits": str(contents.n_bits),
            "dims": str(contents.dims),
            "method": contents.method,
            "params": _params(contents.params),
            "sha256": json.dumps(dict(checksums)),
            "header_sha256": _NO_CHECKSUM,
        }
    }
    offset = 0
    for name, tensor in tensors.items():
        entries[name] = {
            "dtype": "U8" if isinstance(tensor, CodesOnDisk) else _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    return header.replace(_NO_CHECKSUM.encode(), hashlib.sha256(header).hexdigest().encode(), 1)


def _params(params: Mapping[str, Any]) -> str:
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
    raise InputError(f"the coder's parameter {value!r} cannot be stored: take a plain number")


# -- open ----------------------------------------------------------------------------------------


def open_file(path: Path, *, verify: bool = False) -> Contents:
    """Map a file and check its header; with `verify`, read and check every byte.

    Raises:
        FormatError: It is not such a file, or it is damaged.
        OSError: It cannot be opened.
    """

    def fail(problem: str) -> NoReturn:
        raise FormatError(f"{path}: {problem}")

    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            fail(f"not a safetensors file: it has {size} bytes")
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            fail(
                "not an embits file" + _hint(length.to_bytes(8, "little") + file.read(_HINT_BYTES))
            )
        if length > size - 8:
            fail(f"cut short: {size} bytes, and its header alone has {length}")
        header = file.read(length)
        entries, metadata = _parse_header(header, fail)
        if (8 + length) % ALIGNMENT:
            fail(f"damaged: a header of {length} bytes, which aligns no tensor to {ALIGNMENT}")
        _check_extents(entries, size - 8 - length, fail)
        try:
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except ValueError:  # shorter by now than it was a moment ago
            fail("cut short while it was opened")
    tensors = {name: _view(mapped, 8 + length, entry) for name, entry in entries.items()}
    contents = _contents(tensors, metadata, fail)
    if verify:
        _verify(tensors, contents, metadata, fail)
    return contents


def _hint(head: bytes) -> str:
    """What to do with a file that was never one of ours, going by its first bytes."""
    from embits.readers.magic import may_be_vectors  # only here: opening a file needs no readers

    if may_be_vectors(head):
        return ": if it holds float vectors, `embits binarize` makes one of it"
    return ", or damaged"


def _parse_header(header: bytes, fail: Any) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        entries = _parse_json(header.decode())
        metadata = entries.pop("__metadata__")
        strings = all(isinstance(value, str) for value in metadata.values())
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        fail("not an embits file: its header is not the JSON of one")
    if not strings or metadata.get("format") != FORMAT:
        fail("a safetensors file, but not one that embits wrote (no format 'embits' in it)")
    version = metadata.get("format_version", "")
    if version != str(VERSION):
        fail(
            f"written in format version {shortened(version)}; this embits reads version "
            f"{VERSION}: install a newer one"
        )
    checksum = metadata.get("header_sha256", "")
    if not _CHECKSUM.fullmatch(checksum):
        fail("damaged: the header has no checksum")
    zeroed = header.replace(checksum.encode(), _NO_CHECKSUM.encode(), 1)
    if hashlib.sha256(zeroed).hexdigest() != checksum:
        fail("damaged: the header does not match its checksum")
    return entries, metadata


def _parse_json(text: str) -> Any:
    """JSON as its standard has it: Python alone would take NaN, and a name twice.

    Raises:
        ValueError: It is something else; RecursionError: it is nested without end.
    """
    if text.count("{") + text.count("[") > _MOST_OBJECTS:
        raise ValueError("more than any header holds")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name appears twice")
    return entries


def _check_extents(entries: Mapping[str, Any], data_size: int, fail: Any) -> None:
    """Tensors must fill the data exactly, in order, each as long as its shape says."""
    end = 0
    for name, entry in entries.items():
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [start, stop]}:
                pass
            case _:
                fail(f"damaged: no dtype, shape and offsets for tensor {shortened(name)}")
        if dtype not in _DTYPES:
            fail(f"damaged: tensor {shortened(name)} has dtype {shortened(dtype)}")
        sizes = [np.dtype(_DTYPES[dtype]).itemsize, *shape]
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


def _view(mapped: mmap.mmap, start: int, entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    begin, end = entry["data_offsets"]
    if begin == end:
        return np.empty(entry["shape"], dtype=dtype)
    flat = np.frombuffer(mapped, dtype, (end - begin) // dtype.itemsize, start + begin)
    return flat.reshape(entry["shape"])


def _contents(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str], fail: Any
) -> Contents:
    try:
        n_bits, dims = _whole(metadata["bits"]), _whole(metadata["dims"])
        method, writer = metadata["method"], metadata["writer"]
        params = _parse_json(metadata["params"])
        codes = tensors["codes"]
    except (KeyError, ValueError, RecursionError):
        fail("damaged: bits, dims, method, params, writer or codes are missing")
    if n_bits < 1 or dims < 1 or not isinstance(params, dict):
        fail(
            f"damaged: {shortened(n_bits)} bits from {shortened(dims)} dimensions, "
            f"parameters {shortened(params)}"
        )
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != packed_width(n_bits):
        fail(
            f"damaged: codes are {codes.dtype} of shape {codes.shape} for {shortened(n_bits)} bits"
        )
    rest = {name: array for name, array in tensors.items() if name not in ("codes", "padding")}
    return Contents(codes, n_bits, dims, method, params, rest, writer)


def _whole(text: str) -> int:
    """A number as `str` writes it: int() alone would take signs, spaces and underscores."""
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number


# -- verify --------------------------------------------------------------------------------------


def _verify(
    tensors: Mapping[str, NDArray[Any]], contents: Contents, metadata: Mapping[str, str], fail: Any
) -> None:
    try:
        checksums = _parse_json(metadata["sha256"])
        expected = {name: checksums[name] for name in tensors}
    except (KeyError, ValueError, TypeError, RecursionError):
        fail("damaged: a tensor has no checksum")
    for name, array in tensors.items():
        if _sha256(array) != expected[name]:
            fail(f"damaged: the bytes of tensor {name!r} do not match its checksum")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            fail(f"damaged: tensor {name!r} contains NaN or infinity")
    if has_padding_bits(contents.codes, contents.n_bits):
        fail(f"damaged: codes of {contents.n_bits} bits have a padding bit set")


def _sha256(array: NDArray[Any]) -> str:
    return hashlib.sha256(_raw(array)).hexdigest()


def _pieces(tensor: Tensor) -> Iterable[bytes | memoryview]:
    return tensor.pieces() if isinstance(tensor, CodesOnDisk) else (_raw(tensor),)


def _raw(array: NDArray[Any]) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")
