"""A folder of Parquet files that hold codes: what is in it, and how it is read back.

    part-00000.parquet …   `code` as fixed-size binary, and the columns that were kept beside it
    _coder.safetensors     an embits file with the coder and no codes
    _embits.json           written last: bits, method, rows, the parts in the order of rows

A folder without `_embits.json` is not finished. Reading needs pyarrow and nothing else.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder, coder_class
from embits.errors import FormatError, MissingExtraError, ReadError
from embits.file import contents
from embits.words.vocabulary import RowNumbers, Vocabulary

CODE = "code"
CODER = "_coder.safetensors"  # readers of Parquet folders pass over names with _ in front
MANIFEST = "_embits.json"
FORMAT = "embits codes"
VERSION = 1


def read_codes(
    folder: str | os.PathLike[str], words: str | None = None, column: str = CODE
) -> BinaryVectors:
    """The codes of a folder, in one matrix and ready to be searched.

    Args:
        folder: What `embits.integrations.ray.encode` or `embits encode --ray` wrote: a folder,
            or the address of one in an object store.
        words: A column of strings, none of them twice, that names the rows; without one they go
            by their number.
        column: The column of codes.

    Returns:
        BinaryVectors in memory, rows in the order of the input.

    Raises:
        FormatError: The folder is not finished, or its parts do not fit what it says of them.
        ReadError: There is no such column, or nothing to read.
        MissingExtraError: pyarrow is not installed.
    """
    manifest = read_manifest(folder)
    coder = read_coder(folder)
    codes = _code_matrix(folder, read_column(folder, column), coder)
    if len(codes) != manifest["rows"]:
        raise FormatError(f"{folder}: {len(codes)} rows, expected {manifest['rows']}")
    if words is None:
        return BinaryVectors(RowNumbers(len(codes)), codes, coder)
    names = read_column(folder, words).to_pylist()
    if not all(isinstance(name, str) for name in names):
        raise ReadError(f"{folder}, column {words!r}: found other values, expected strings")
    return BinaryVectors(Vocabulary.from_words(names), codes, coder)


def read_column(folder: str | os.PathLike[str], name: str) -> Any:
    """A column of the folder as a pyarrow ChunkedArray, such as the ids: row i is that of code i.

    Raises:
        FormatError: The folder is not finished, or a part is missing or damaged.
        ReadError: There is no such column.
    """
    manifest = read_manifest(folder)
    files, path = locate(folder)
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks: list[Any] = []
    for part in manifest["parts"]:
        try:
            table = pq.ParquetFile(f"{path}/{part['file']}", filesystem=files)
            if name not in table.schema_arrow.names:
                there = ", ".join(table.schema_arrow.names)
                raise ReadError(f"{folder}: found columns {there}, expected one named {name!r}")
            chunks += table.read([name]).column(name).chunks
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{folder}: damaged: {part['file']}: {_first_line(error)}") from None
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([[]], type=pa.null())


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `_embits.json` says: bits, dims, method, rows and parts.

    Raises:
        FormatError: There is none, or it is damaged: the folder was not finished.
    """
    files, path = locate(folder)
    import pyarrow as pa

    try:
        with files.open_input_stream(f"{path}/{MANIFEST}") as stream:
            manifest = json.loads(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(
            f"{folder}: no {MANIFEST} in it: not finished, or no folder of codes"
        ) from None
    except (ValueError, RecursionError, pa.ArrowException):
        raise FormatError(f"{folder}: damaged: {MANIFEST} is not JSON") from None
    match manifest:
        case {"format": str(form), "version": int(version), "rows": int(), "parts": list(parts)}:
            pass
        case _:
            raise FormatError(f"{folder}: damaged: {MANIFEST} does not say what is in the folder")
    if (form, version) != (FORMAT, VERSION):
        raise FormatError(f"{folder}: {form!s:.40} version {version}; this embits reads {VERSION}")
    names = [part.get("file") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(name, str) and name and "/" not in name for name in names):
        raise FormatError(f"{folder}: damaged: {MANIFEST} names parts that are no files of it")
    return dict(manifest)


def read_coder(folder: str | os.PathLike[str]) -> Coder:
    """The coder of the folder, in memory.

    Raises:
        FormatError: It is missing or damaged.
    """
    files, path = locate(folder)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, CODER)
        try:
            with files.open_input_stream(f"{path}/{CODER}") as stream:
                copy.write_bytes(stream.read())
        except FileNotFoundError:
            raise FormatError(f"{folder}: damaged: no {CODER} in it") from None
        mapped = contents.read_coder(copy, verify=True)
        state = {name: array.copy() for name, array in mapped.state().items()}
    return from_arrays(
        mapped.method, mapped.get_params(), state, mapped.n_features_in_, mapped.n_bits_
    )


def from_arrays(
    method: str, params: dict[str, Any], state: dict[str, NDArray[Any]], dims: int, n_bits: int
) -> Coder:
    """A coder from what it is made of."""
    return coder_class(method).from_state(params, state, dims, n_bits)


def locate(address: str | os.PathLike[str]) -> tuple[Any, str]:
    """The pyarrow file system of a path or address (s3://, gs://, …), and the path in it.

    Raises:
        ReadError: pyarrow knows no such file system.
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import fs
    except ImportError as error:
        raise MissingExtraError("reading and writing Parquet", "parquet") from error
    text = os.fspath(address)
    if "://" not in text:
        return fs.LocalFileSystem(), str(Path(text).resolve())
    try:
        files, path = fs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{text}: {_first_line(error)}") from None
    return files, path.rstrip("/")


def _code_matrix(folder: Any, column: Any, coder: Coder) -> NDArray[np.uint8]:
    import pyarrow as pa

    codes = np.empty((len(column), coder.n_bytes_), dtype=np.uint8)
    done = 0
    for chunk in column.chunks:
        if len(chunk) == 0:
            continue
        if chunk.type != pa.binary(coder.n_bytes_) or chunk.null_count:
            raise FormatError(
                f"{folder}: codes are {chunk.type} with {chunk.null_count} nulls, expected "
                f"{pa.binary(coder.n_bytes_)} for {coder.n_bits_} bits"
            )
        flat = np.frombuffer(chunk.buffers()[1], np.uint8)
        rows = flat[chunk.offset * coder.n_bytes_ :][: len(chunk) * coder.n_bytes_]
        codes[done : done + len(chunk)] = rows.reshape(len(chunk), -1)
        done += len(chunk)
    return codes


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
