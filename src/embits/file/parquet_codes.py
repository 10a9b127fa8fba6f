"""Parquet files that hold codes, as the pieces of a job on several workers; and where they are.

A piece has a column `code` of fixed-size binary, and the columns that were kept. If its metadata
says so, the column `length` has the lengths of the vectors. Reading needs pyarrow.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder
from embits.errors import FormatError, MissingExtraError, ReadError
from embits.rows import Lengths

CODE, LENGTH = "code", "length"


def read_one(files: Any, path: str, name: str) -> Any:
    """One column of a Parquet file, as a pyarrow ChunkedArray."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path, filesystem=files, page_checksum_verification=True)
        if name not in table.schema_arrow.names:
            columns = ", ".join(table.schema_arrow.names)
            raise ReadError(f"{path}: found columns {columns}, expected one named {name!r}")
        return table.read([name]).column(name)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        folder, _, file = path.rpartition("/")
        raise FormatError(f"{folder}: damaged: {file}: {_first_line(error)}") from None


def read_lengths(files: Any, path: str) -> Lengths | None:
    """The lengths of a piece, if they were stored; raises as `read_one` does."""
    import pyarrow.parquet as pq

    metadata = pq.read_schema(path, filesystem=files).metadata or {}
    try:
        if not dict(json.loads(metadata.get(b"embits", b"{}"))).get("lengths"):
            return None
        return Lengths.of(read_one(files, path, LENGTH).to_numpy())
    except (ValueError, TypeError) as error:  # also a ReadError or InputError
        raise FormatError(f"{path}: damaged: the lengths: {_first_line(error)}") from None


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether this is the address of an object store, such as s3://bucket/codes."""
    return isinstance(path, str) and "://" in path


def locate(address: str | os.PathLike[str]) -> tuple[Any, str]:
    """Find the pyarrow file system of a path or address (s3://, gs://, …), and the path in it."""
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


def code_matrix(path: Any, column: Any, coder: Coder) -> NDArray[np.uint8]:
    """A column of codes as a matrix, uint8 (n, width)."""
    import pyarrow as pa

    codes = np.empty((len(column), coder.n_bytes_), dtype=np.uint8)
    done = 0
    for chunk in column.chunks:
        if len(chunk) == 0:
            continue
        if chunk.type != pa.binary(coder.n_bytes_) or chunk.null_count:
            raise FormatError(
                f"{path}: codes are {chunk.type} with {chunk.null_count} nulls, expected "
                f"{pa.binary(coder.n_bytes_)} for {coder.n_bits_} bits"
            )
        flat = np.frombuffer(chunk.buffers()[1], np.uint8)
        rows = flat[chunk.offset * coder.n_bytes_ :][: len(chunk) * coder.n_bytes_]
        codes[done : done + len(chunk)] = rows.reshape(len(chunk), -1)
        done += len(chunk)
    return codes


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
