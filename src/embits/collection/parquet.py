"""Collections whose pieces are Parquet files, as a job on several workers writes them.

A piece has a column `code` of fixed-size binary, the columns that were kept and, if its metadata
says so, the lengths of the vectors in the column `length`. It is read into memory. The folder may
be in an object store.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors, concat
from embits.bounded_json import parse_json
from embits.coders import Coder
from embits.collection.manifest import CODER, MANIFEST, Manifest, Piece, no_manifest, parse_manifest
from embits.errors import ENCODE_AGAIN, FormatError, InputError, ReadError, first_line, from_extra
from embits.file import contents
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.readers.source import largest_inside
from embits.remote import is_address
from embits.segment import LENGTHS, Lengths, Segment
from embits.vectors import normalize_ids

CODE, LENGTH = "code", "length"


def parquet_rows(folder: str | os.PathLike[str], entry: Piece, coder: Coder) -> Segment:
    """Read a piece into memory; FileNotFoundError if it is not there."""
    try:
        return _rows(folder, coder, CODE, entry.column, entry)
    except InputError as error:
        where = f"{folder}/{entry.file}, column {entry.column!r}"
        raise FormatError(f"{where}: {error}: {ENCODE_AGAIN}") from None


def _rows(
    folder: str | os.PathLike[str], coder: Coder, code: str, ids: str | None, entry: Piece
) -> Segment:
    files, path = locate(folder)
    name = f"{path}/{entry.file}"
    codes = code_matrix(name, read_one(files, name, code), coder)
    if len(codes) != entry.rows:
        raise FormatError(f"{name}: {len(codes)} rows, expected {entry.rows}")
    lengths = read_lengths(files, name)
    columns = {} if lengths is None else {LENGTHS: lengths}
    if ids is None:
        return Segment(RowNumbers(len(codes), entry.first), codes, columns)
    values = read_one(files, name, ids).to_pylist()
    if len(values) != len(codes):
        raise FormatError(f"{name}, column {ids!r}: {len(values)} ids for {len(codes)} codes")
    return Segment(Vocabulary.from_words(normalize_ids(values)), codes, columns)


def open_address(address: str) -> BinaryVectors:
    """Read a collection in an object store into memory; only pieces of Parquet."""
    manifest = manifest_at(address)
    if any(piece.header or piece.removed for piece in manifest.pieces):
        raise FormatError(f"{address}: copy the collection to a disk, and open it there")
    column = manifest.pieces[0].column if manifest.pieces else None
    try:
        return read_codes(address, column)
    except (InputError, ReadError) as error:
        raise FormatError(str(error)) from None


def read_codes(
    folder: str | os.PathLike[str], ids: str | None = None, column: str = CODE
) -> BinaryVectors:
    """Read the codes of a folder into memory, in the row order of the input.

    Args:
        folder: What a job on Ray wrote: a folder, or its address in an object store.
        ids: The column of the ids, strings or whole numbers; None numbers the rows.
        column: The column of codes.

    Raises:
        FormatError: The folder is unfinished, or its pieces do not match the manifest.
        ReadError: There is no such column.
        InputError: An id repeats.
    """
    coder = coder_at(folder)
    nothing = BinaryVectors(None, np.empty((0, coder.n_bytes_), np.uint8), coder)
    try:
        pieces = _each(folder, partial(_rows, folder, coder, column, ids))
        return concat([BinaryVectors.of_segment(rows, coder) for rows in pieces] or [nothing])
    except InputError as error:
        raise InputError(f"{folder}, column {ids!r}: {error}") from None


def read_column(folder: str | os.PathLike[str], name: str) -> Any:
    """Read one column, a pyarrow ChunkedArray of which row i belongs to code i; as `read_codes`."""
    import pyarrow as pa

    files, path = locate(folder)
    columns = _each(folder, lambda piece: read_one(files, f"{path}/{piece.file}", name))
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([[]], type=pa.null())


def _each(folder: str | os.PathLike[str], read: Callable[[Piece], Any]) -> Iterator[Any]:
    for piece in manifest_at(folder).pieces:
        if piece.header is not None:
            raise FormatError(f"{folder}: {piece.file} is not Parquet: embits.load opens it")
        try:
            yield read(piece)
        except FileNotFoundError:
            raise FormatError(f"{folder}: damaged: {piece.file} is missing") from None


def manifest_at(folder: str | os.PathLike[str]) -> Manifest:
    """The manifest of a collection, local or in an object store."""
    files, path = locate(folder)
    import pyarrow as pa

    try:
        with files.open_input_stream(f"{path}/{MANIFEST}") as stream:
            manifest = parse_manifest(os.fspath(folder), stream.read())
            if manifest.log:  # which is not read here
                raise FormatError(f"{folder}: rows were added one by one: compact it first")
            return manifest
    except (FileNotFoundError, NotADirectoryError):
        raise no_manifest(folder) from None
    except pa.ArrowException as error:
        raise FormatError(f"{folder}: {MANIFEST}: {error!s:.200}") from None


def coder_at(folder: str | os.PathLike[str], name: str = CODER) -> Coder:
    """Read the coder of a collection into memory."""
    files, path = locate(folder)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, CODER)
        try:
            with files.open_input_stream(f"{path}/{name}") as stream:
                copy.write_bytes(stream.read())
        except FileNotFoundError:
            raise FormatError(f"{folder}: damaged: it has no {name}") from None
        try:
            return contents.read_coder(copy, verify=True, mapped=False)
        except FormatError as error:
            reason = str(error).removeprefix(f"{copy}: ")
            raise FormatError(f"{folder}: {CODER}: {reason}") from None


def read_one(files: Any, path: str, name: str) -> Any:
    """One column of a Parquet file, as a pyarrow ChunkedArray."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path, filesystem=files, page_checksum_verification=True)
        if name not in table.schema_arrow.names:
            columns = ", ".join(table.schema_arrow.names)
            raise ReadError(f"{path}: found columns {columns}, expected one named {name!r}")
        parts = [table.metadata.row_group(i).total_byte_size for i in range(table.num_row_groups)]
        kind, packed = table.schema_arrow.field(name).type, files.get_file_info(path).size or 0
        width = kind.byte_width if pa.types.is_fixed_size_binary(kind) else 1
        if (size := max(width * table.metadata.num_rows, sum(parts))) > largest_inside(packed):
            raise FormatError(f"{path}: damaged: {packed:,} bytes that unpack to {size:,}")
        return table.read([name]).column(name)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        folder, _, file = path.rpartition("/")
        raise FormatError(f"{folder}: damaged: {file}: {first_line(error)}") from None


def read_lengths(files: Any, path: str) -> Lengths | None:
    """The lengths of a piece, if they were stored; raises as `read_one` does."""
    import pyarrow.parquet as pq

    metadata = pq.read_schema(path, filesystem=files).metadata or {}
    try:
        if not dict(parse_json(metadata.get(b"embits", b"{}"))).get("lengths"):
            return None
        return Lengths.of(read_one(files, path, LENGTH).to_numpy())
    except (ValueError, TypeError) as error:  # also a ReadError or InputError
        raise FormatError(f"{path}: damaged: the lengths: {first_line(error)}") from None


def locate(address: str | os.PathLike[str]) -> tuple[Any, str]:
    """Find the pyarrow file system of a path or address (s3://, gs://, …), and the path in it."""
    with from_extra("reading and writing Parquet", "parquet"):
        import pyarrow as pa
        from pyarrow import fs
    text = os.fspath(address)
    if not is_address(text):
        return fs.LocalFileSystem(), str(Path(text).resolve())
    try:
        files, path = fs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ReadError(f"{text}: {first_line(error)}") from None
    return files, path.rstrip("/")


def code_matrix(path: Any, column: Any, coder: Coder) -> NDArray[np.uint8]:
    """A column of codes as a matrix, uint8 (n, width)."""
    import pyarrow as pa

    width, parts = coder.n_bytes_, [np.empty((0, coder.n_bytes_), np.uint8)]
    for chunk in filter(len, column.chunks):
        if chunk.type != (kind := pa.binary(width)) or chunk.null_count:
            found = f"codes are {chunk.type} with {chunk.null_count} nulls"
            raise FormatError(f"{path}: {found}, expected {kind} for {coder.n_bits_} bits")
        flat = np.frombuffer(chunk.buffers()[1], np.uint8)
        parts.append(flat[chunk.offset * width :][: len(chunk) * width].reshape(-1, width))
    return np.concatenate(parts)
