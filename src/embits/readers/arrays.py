"""Matrices: NumPy .npy and .npz, safetensors. Pickled objects are never loaded."""

from __future__ import annotations

import math
import os
import zipfile
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from embits.bounded_json import Limits, parse_json
from embits.errors import ReadError
from embits.readers.blocks import ArrayBlocks
from embits.readers.source import DAMAGED_ARCHIVE, NPY, Source, largest_inside
from embits.readers.words import MatrixWords, words_for

_MAX_HEADER = 2000  # bytes; the header of a matrix has 118
_DAMAGED = (*DAMAGED_ARCHIVE, ValueError, TypeError, SyntaxError, TokenError, OSError, LookupError)
_TENSOR_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_JSON = Limits(4 << 20, 500_000, 50_000)  # the format allows 100 MB
_MAX_MEMBERS = 1000  # of a .npz
_USUAL_NAMES = ("embeddings", "embedding", "vectors", "matrix", "weight", "embedding.weight")


def open_npy(source: Source) -> ArrayBlocks:
    """The matrix of a .npy, mapped."""
    array = map_npy(source)
    if array.ndim != 2:
        raise source.read_error(f"an array of shape {array.shape}", "a matrix: (rows, dims)")
    if array.dtype.kind not in "fiu":
        raise source.read_error(f"values of type {array.dtype}", "numbers")
    return ArrayBlocks(source, array, words_for(source, *array.shape))


def map_npy(source: Source, expected: str = "a .npy of numbers") -> NDArray[Any]:
    """The array of a .npy, mapped; of a file of another format, the error says what is expected."""
    source.check_regular()
    try:
        with source.path.open("rb") as file:
            if file.read(len(NPY)) != NPY:
                raise source.read_error("a file of another format", expected)
            file.seek(0)
            _check_header(file, source.size)
        array: NDArray[Any] = np.load(source.path, mmap_mode="r", allow_pickle=False)
    except ReadError:
        raise
    except _DAMAGED as error:
        raise source.read_error(f"no usable array ({error!s:.200})", "a .npy of numbers") from error
    return array


def open_npz(source: Source) -> ArrayBlocks:
    """The one matrix of a .npz; its words are its one array of strings, or beside the file."""
    try:
        with zipfile.ZipFile(source.path) as packed:
            members = packed.infolist()
            if len(members) > _MAX_MEMBERS:
                raise ValueError(f"{len(members):,} arrays, expected a matrix and its words")
            if sum(member.file_size for member in members) > largest_inside(source.size):
                raise ValueError("it would unpack to a hundred times its size")
            for member in members:
                with packed.open(member) as file:
                    _check_header(file, member.file_size)
        with np.load(source.path, allow_pickle=False) as archive:
            arrays: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    except _DAMAGED as error:
        found = f"no usable arrays ({error!s:.200})"
        raise source.read_error(found, "a .npz of numbers and words") from error
    matrices = [a for a in arrays.values() if a.ndim == 2 and a.dtype.kind in "fiu"]
    names = [a for a in arrays.values() if a.ndim == 1 and a.dtype.kind in "US"]
    if len(matrices) != 1 or len(names) > 1:
        found = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in arrays.items())
        raise source.read_error(found or "nothing", "one matrix, and at most one list of words")
    if not names or source.words is not None or source.ids is False:
        return ArrayBlocks(source, matrices[0], words_for(source, *matrices[0].shape))
    blocks = ArrayBlocks(source, matrices[0], MatrixWords(names[0].astype(np.str_).tolist()))
    blocks.words_are_ids = False
    return blocks


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse a header or array larger than its file: NumPy would allocate it, or miscount."""
    is_first = npy_format.read_magic(file) == (1, 0)
    length = file.read(2 if is_first else 4)
    if (n_bytes := int.from_bytes(length, "little")) > _MAX_HEADER:
        raise ValueError(f"a header of {n_bytes:,} bytes")
    file.seek(-len(length), os.SEEK_CUR)
    read = npy_format.read_array_header_1_0 if is_first else npy_format.read_array_header_2_0
    shape, _, dtype = read(file, _MAX_HEADER)
    if dtype.hasobject:
        raise ValueError("Python objects, which are never loaded")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size} bytes")


def is_safetensors(head: bytes, size: int) -> bool:
    """Whether the first bytes are a header length that fits the file, and then JSON."""
    if len(head) < 10 or head[8:9] != b"{":
        return False
    return 2 <= int.from_bytes(head[:8], "little") <= min(size - 8, _JSON.n_bytes)


def open_safetensors(source: Source) -> ArrayBlocks:
    """The matrix of floats in a safetensors file, mapped."""
    with source.path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        raw = file.read(length)
    try:
        header = parse_json(raw, _JSON)
    except ValueError as error:
        raise source.read_error(f"a broken header ({error})", "JSON", "byte 8") from error
    if not isinstance(header, dict):
        raise source.read_error("a header of another kind", "a JSON object", "byte 8")
    metadata = header.pop("__metadata__", {})
    if isinstance(metadata, dict) and str(metadata.get("format", "")).startswith("embits"):
        raise source.read_error("binary codes", "float vectors; embits.load opens files of codes")
    name = _matrix_name(source, header)
    widen = _from_bfloat16 if header[name]["dtype"] == "BF16" else np.asanyarray
    array = _mapped(source, header[name], 8 + length, name)
    return ArrayBlocks(source, array, words_for(source, *array.shape), widen)


def _matrix_name(source: Source, header: dict[str, Any]) -> str:
    matrices = []
    for name, entry in header.items():
        match entry:
            case {"dtype": str(dtype), "shape": [_, _]} if dtype in _TENSOR_TYPES:
                matrices.append(name)
    usual = [name for name in _USUAL_NAMES if name in matrices]
    if len(matrices) == 1 or usual:
        return (usual or matrices)[0]
    found = f"{len(matrices)} float matrices ({', '.join(list(header)[:6])})"
    raise source.read_error(found, "one, or one `embeddings`")


def _mapped(source: Source, entry: dict[str, Any], start: int, name: str) -> NDArray[Any]:
    offsets = entry.get("data_offsets")
    numbers = [*entry["shape"], *(offsets if isinstance(offsets, list) else [offsets])]
    if len(numbers) != 4 or not all(type(n) is int and 0 <= n < 2**48 for n in numbers):
        raise source.read_error(f"a tensor {name!r} of {numbers}", "shape and offsets", "byte 8")
    n_rows, dims, begin, end = numbers
    dtype: np.dtype[Any] = np.dtype(_TENSOR_TYPES[entry["dtype"]])
    if end - begin != (size := n_rows * dims * dtype.itemsize):
        raise source.read_error(f"a tensor {name!r} of {end - begin} bytes", f"{size}", "byte 8")
    if start + end > source.size:
        raise source.read_error(f"{source.size} bytes", f"{start + end}", f"byte {start + begin}")
    if begin == end:
        return np.empty((n_rows, dims), np.float32)
    return np.memmap(source.path, dtype, "r", start + begin, (n_rows, dims))


def _from_bfloat16(rows: NDArray[Any]) -> NDArray[Any]:
    """bfloat16 is the upper half of a float32."""
    return (rows.astype(np.uint32) << np.uint32(16)).view(np.float32)
