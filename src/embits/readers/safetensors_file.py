"""safetensors: a JSON header with shapes and offsets, then the raw tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.readers.array_blocks import ArrayBlocks
from embits.readers.source import Source
from embits.readers.words_sidecar import words_for

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MAX_HEADER = 4 << 20  # bytes; the format allows 100 MB, which take gigabytes once parsed
_USUAL_NAMES = ("embeddings", "embedding", "vectors", "matrix", "weight", "embedding.weight")


def is_safetensors(head: bytes, size: int) -> bool:
    """Whether the first bytes are a header length that fits the file, and then JSON."""
    if len(head) < 10 or head[8:9] != b"{":
        return False
    (length,) = struct.unpack("<Q", head[:8])
    return bool(2 <= length <= min(size - 8, _MAX_HEADER))


def open_safetensors(source: Source) -> ArrayBlocks:
    """The matrix of floats in a safetensors file, mapped."""
    array, widen = _matrix(source)
    return ArrayBlocks(source, array, words_for(source, *array.shape), widen)


def _matrix(source: Source) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
    """The matrix, mapped, and the function that makes floats of its rows."""
    header, start = _header(source)
    metadata = header.pop("__metadata__", {})
    if isinstance(metadata, dict) and str(metadata.get("format", "")).startswith("embits"):
        raise source.read_error("binary codes", "float vectors; embits.load opens files of codes")
    name = _matrix_name(source, header)
    widen = _from_bfloat16 if header[name]["dtype"] == "BF16" else np.asanyarray
    return _mapped(source, header[name], start, name), widen


def _header(source: Source) -> tuple[dict[str, Any], int]:
    with source.path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        raw = file.read(length)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise source.read_error(f"a broken header ({error})", "JSON", "byte 8") from error
    if not isinstance(header, dict):
        raise source.read_error("a header of another kind", "a JSON object", "byte 8")
    return header, 8 + length


def _matrix_name(source: Source, header: dict[str, Any]) -> str:
    matrices = [
        name
        for name, entry in header.items()
        if isinstance(entry, dict)
        and str(entry.get("dtype")) in _DTYPES
        and isinstance(entry.get("shape"), list)
        and len(entry["shape"]) == 2
    ]
    usual = [name for name in _USUAL_NAMES if name in matrices]
    if len(matrices) == 1 or usual:
        return (usual or matrices)[0]
    raise source.read_error(
        f"{len(matrices)} float matrices ({', '.join(list(header)[:6])})",
        "one, or one `embeddings`",
    )


def _mapped(source: Source, entry: dict[str, Any], start: int, name: str) -> NDArray[Any]:
    numbers = [*entry["shape"], *_pair(entry.get("data_offsets"))]
    if len(numbers) != 4 or not all(type(n) is int and 0 <= n < 2**48 for n in numbers):
        raise source.read_error(f"a tensor {name!r} of {numbers}", "shape and offsets", "byte 8")
    n_rows, dims, begin, end = numbers
    dtype: np.dtype[Any] = np.dtype(_DTYPES[entry["dtype"]])
    if end - begin != n_rows * dims * dtype.itemsize:
        raise source.read_error(
            f"a tensor {name!r} of {end - begin} bytes",
            f"{n_rows * dims * dtype.itemsize}",
            "byte 8",
        )
    if start + end > source.size:
        raise source.read_error(f"{source.size} bytes", f"{start + end}", f"byte {start + begin}")
    if begin == end:
        return np.empty((n_rows, dims), np.float32)
    array: NDArray[Any] = np.memmap(source.path, dtype, "r", start + begin, (n_rows, dims))
    return array


def _from_bfloat16(rows: NDArray[Any]) -> NDArray[Any]:
    """bfloat16 is the upper half of a float32."""
    wide = rows.astype(np.uint32)
    widened: NDArray[Any] = np.left_shift(wide, 16, out=wide).view(np.float32)
    return widened


def _pair(offsets: Any) -> list[Any]:
    return offsets if isinstance(offsets, list) else [offsets]
