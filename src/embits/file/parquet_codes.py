"""Folders of Parquet files that hold codes, as a job on several workers writes them.

    part-00000.parquet …   `code` as fixed-size binary, and the columns that were kept
    _coder.safetensors     an embits file with the coder and no codes
    _embits.json           written last: bits, method, rows, the parts in row order

A folder without `_embits.json` is unfinished. Reading needs pyarrow.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder, coder_class
from embits.errors import FormatError, InputError, MissingExtraError, ReadError
from embits.file import contents
from embits.file.contents import Parts
from embits.vectors import as_words
from embits.words.vocabulary import RowNumbers, Vocabulary

CODE = "code"
CODER = "_coder.safetensors"  # readers of Parquet folders skip names that start with _
MANIFEST = "_embits.json"
FORMAT = "embits codes"
VERSION = 1


def open_folder(folder: str | os.PathLike[str]) -> Parts:
    """Read a folder with the ids that its manifest names.

    Raises:
        FormatError: The folder is unfinished or damaged, or its ids repeat.
        MissingExtraError: pyarrow is not installed.
    """
    if not is_address(folder) and not Path(folder, MANIFEST).is_file():  # known without pyarrow
        raise _not_finished(folder)
    ids = read_manifest(folder).get("ids")
    try:
        return read_folder(folder, ids)
    except (InputError, ReadError) as error:
        raise FormatError(str(error)) from None


def read_folder(
    folder: str | os.PathLike[str], ids: str | None = None, column: str = CODE
) -> Parts:
    """Read all codes of a folder into memory.

    Args:
        folder: A local folder, or its address in an object store.
        ids: The column of the rows' ids, strings or whole numbers; None numbers the rows.
        column: The column of codes.

    Returns:
        Words, codes, coder and None (there are no subwords), as `BinaryVectors` takes them.

    Raises:
        FormatError: The folder is unfinished, or its parts do not match the manifest.
        ReadError: There is no such column.
        InputError: An id repeats.
        MissingExtraError: pyarrow is not installed.
    """
    manifest = read_manifest(folder)
    coder = read_coder(folder)
    codes = _code_matrix(folder, read_column(folder, column), coder)
    if len(codes) != manifest["rows"]:
        raise FormatError(f"{folder}: {len(codes)} rows, expected {manifest['rows']}")
    words = RowNumbers(len(codes)) if ids is None else _vocabulary(folder, ids)
    return words, codes, coder, None


def read_column(folder: str | os.PathLike[str], name: str) -> Any:
    """Read one column, such as the ids; row i belongs to code i.

    Returns:
        A pyarrow ChunkedArray.

    Raises:
        FormatError: The folder is unfinished, or a part is missing or damaged.
        ReadError: There is no such column.
    """
    manifest = read_manifest(folder)
    files, path = locate(folder)
    import pyarrow as pa

    chunks: list[Any] = []
    for part in manifest["parts"]:
        try:
            chunks += _column_chunks(folder, files, f"{path}/{part['file']}", name)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{folder}: damaged: {part['file']}: {_first_line(error)}") from None
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([[]], type=pa.null())


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read `_embits.json`: bits, dims, method, rows, ids and parts.

    Raises:
        FormatError: It is missing or damaged.
    """
    files, path = locate(folder)
    import pyarrow as pa

    try:
        with files.open_input_stream(f"{path}/{MANIFEST}") as stream:
            manifest = json.loads(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        raise _not_finished(folder) from None
    except (ValueError, RecursionError, pa.ArrowException):
        raise FormatError(f"{folder}: damaged: {MANIFEST} is not JSON") from None
    _check_manifest(folder, manifest)
    return dict(manifest)


def read_coder(folder: str | os.PathLike[str]) -> Coder:
    """Read the coder of a folder into memory.

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
            raise FormatError(f"{folder}: damaged: it has no {CODER}") from None
        try:
            mapped = contents.read_coder(copy, verify=True)
        except FormatError as error:
            reason = str(error).removeprefix(f"{copy}: ")
            raise FormatError(f"{folder}: {CODER}: {reason}") from None
        state = {name: array.copy() for name, array in mapped.state().items()}
    return coder_from_arrays(
        mapped.method, mapped.get_params(), state, mapped.n_features_in_, mapped.n_bits_
    )


def coder_from_arrays(
    method: str, params: dict[str, Any], state: dict[str, NDArray[Any]], dims: int, n_bits: int
) -> Coder:
    """Build a fitted coder from its parameters and arrays."""
    return coder_class(method).from_state(params, state, dims, n_bits)


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether this is the address of an object store, such as s3://bucket/codes."""
    return isinstance(path, str) and "://" in path


def locate(address: str | os.PathLike[str]) -> tuple[Any, str]:
    """Find the pyarrow file system of a path or address (s3://, gs://, …), and the path in it.

    Raises:
        ReadError: pyarrow does not support the address.
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import fs
    except ImportError as error:
        raise MissingExtraError("reading and writing Parquet", "parquet") from error
    text = os.fspath(address)
    if not is_address(text):
        return fs.LocalFileSystem(), str(Path(text).resolve())
    try:
        files, path = fs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{text}: {_first_line(error)}") from None
    return files, path.rstrip("/")


def _not_finished(folder: str | os.PathLike[str]) -> FormatError:
    return FormatError(
        f"{folder} has no {MANIFEST}: it is not a folder of codes, or the job that writes it has "
        "not finished"
    )


def _check_manifest(folder: Any, manifest: Any) -> None:
    match manifest:
        case {"format": str(form), "version": int(version), "rows": int(), "parts": list(parts)}:
            pass
        case _:
            raise FormatError(f"{folder}: damaged: {MANIFEST} does not list the folder's contents")
    if (form, version) != (FORMAT, VERSION):
        raise FormatError(f"{folder}: {form!s:.40} version {version}; this embits reads {VERSION}")
    names = [part.get("file") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(name, str) and name and "/" not in name for name in names):
        raise FormatError(f"{folder}: damaged: {MANIFEST} lists parts that are not file names")
    if not isinstance(manifest.get("ids"), str | None):
        raise FormatError(f"{folder}: damaged: ids in {MANIFEST} is not the name of a column")


def _column_chunks(folder: Any, files: Any, path: str, name: str) -> list[Any]:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path, filesystem=files, page_checksum_verification=True)
    if name not in table.schema_arrow.names:
        columns = ", ".join(table.schema_arrow.names)
        raise ReadError(f"{folder}: found columns {columns}, expected one named {name!r}")
    return list(table.read([name]).column(name).chunks)


def _vocabulary(folder: Any, column: str) -> Vocabulary:
    ids = as_words(read_column(folder, column).to_pylist())
    if not all(isinstance(each, str) for each in ids):
        raise ReadError(
            f"{folder}, column {column!r}: found other values, expected strings or whole numbers"
        )
    try:
        return Vocabulary.from_words(ids)
    except InputError as error:
        raise InputError(f"{folder}, column {column!r}: {error}") from None


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
