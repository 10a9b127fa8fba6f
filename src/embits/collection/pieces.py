"""The files of a collection: pieces, the bitmaps of their removed rows, and the coder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.bits import packed_width
from embits.coders import Coder
from embits.coders.identity import coder_checksum
from embits.collection.manifest import CODER, Manifest, Piece, Removed
from embits.errors import FormatError, ReadError
from embits.file.atomic import atomic_write
from embits.file.contents import open_piece, read_coder, write_piece
from embits.file.header import MAX_HEADER
from embits.ids.keys import RowNumbers
from embits.ids.pieces import PieceIds


class Rows(NamedTuple):
    """Rows of one piece: their ids and codes."""

    ids: PieceIds
    codes: NDArray[np.uint8]


class OpenPiece(NamedTuple):
    """A piece that is mapped.

    Attributes:
        entry: What the manifest says of it.
        rows: Its ids and codes, with those that are removed.
        removed: The removed rows, ascending.
    """

    entry: Piece
    rows: Rows
    removed: NDArray[np.int64]


class MissingPieceError(FormatError):
    """A file that the manifest lists is not there; another writer may have replaced it."""


def open_coder(folder: Path, manifest: Manifest, *, verify: bool) -> Coder:
    """The coder that all pieces share.

    Raises:
        FormatError: It is missing, damaged, or not the one of the manifest.
    """
    with _named(folder, CODER):
        coder = read_coder(folder / CODER, verify=verify)
    found = coder.method, coder.n_bits_, coder.n_features_in_
    is_other = found != (manifest.method, manifest.bits, manifest.dims)
    if is_other or (verify and manifest.coder and coder_checksum(coder) != manifest.coder):
        raise FormatError(f"{folder / CODER} is not the coder of this collection: {_RESTORE}")
    return coder


def save_piece(folder: Path, number: int, rows: Rows, coder: Coder) -> Piece:
    """Write rows to a new file.

    Raises:
        OSError: It could not be written.
    """
    name = piece_name(number)
    first = rows.ids.first if isinstance(rows.ids, RowNumbers) else 0
    write_piece(folder / name, rows.ids, rows.codes, coder)
    return Piece(name, len(rows.codes), first=first, header=header_digest(folder / name))


def piece_name(number: int) -> str:
    """The name of a new piece."""
    return f"piece-{number:08d}.safetensors"


def open_one(folder: Path, entry: Piece, coder: Coder, *, verify: bool = False) -> OpenPiece:
    """Map a piece, and read its removed rows.

    Raises:
        MissingPieceError: A file is not there.
        FormatError: A file is damaged, or is not the one that the manifest lists.
    """
    if entry.header is None:
        return _open_parquet(folder, entry, coder)
    path = folder / entry.file
    with _named(folder, entry.file):
        if header_digest(path) != entry.header:
            raise FormatError(f"{path}: not the file that the manifest lists")
        ids, codes = open_piece(path, coder, verify=verify)
    if len(codes) != entry.rows:
        raise FormatError(f"{path}: {len(codes)} rows, expected {entry.rows}: {_RESTORE}")
    if isinstance(ids, RowNumbers):
        ids = RowNumbers(len(ids), entry.first)
    return OpenPiece(entry, Rows(ids, codes), read_removed(folder, entry))


def _open_parquet(folder: Path, entry: Piece, coder: Coder) -> OpenPiece:
    from embits.collection.parquet import parquet_rows  # only here: other pieces need no pyarrow

    with _named(folder, entry.file):
        return OpenPiece(entry, parquet_rows(folder, entry, coder), read_removed(folder, entry))


def header_digest(path: Path) -> str:
    """The SHA-256 of a file's header."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return hashlib.sha256(file.read(min(length, MAX_HEADER))).hexdigest()


def save_removed(folder: Path, number: int, piece: Piece, rows: NDArray[np.int64]) -> Removed:
    """Write the bitmap of the removed rows of a piece.

    Args:
        folder: The collection.
        number: The number of the change.
        piece: The piece.
        rows: All of its removed rows.
    """
    bitmap = np.zeros(packed_width(piece.rows), np.uint8)
    np.bitwise_or.at(bitmap, rows >> 3, (128 >> (rows & 7)).astype(np.uint8))
    content = bitmap.tobytes()
    name = f"{Path(piece.file).stem}.removed-{number:08d}"
    with atomic_write(folder / name) as file:
        file.write(content)
    return Removed(name, len(rows), hashlib.sha256(content).hexdigest())


def read_removed(folder: Path, piece: Piece) -> NDArray[np.int64]:
    """The removed rows of a piece, ascending.

    Raises:
        MissingPieceError: The bitmap is not there.
        FormatError: It is damaged.
    """
    if piece.removed is None:
        return np.empty(0, np.int64)
    with _named(folder, piece.removed.file):
        content = (folder / piece.removed.file).read_bytes()
    is_as_long = len(content) == packed_width(piece.rows)
    if not is_as_long or hashlib.sha256(content).hexdigest() != piece.removed.sha256:
        raise FormatError(f"{folder / piece.removed.file}: damaged: {_RESTORE}")
    bitmap = np.frombuffer(content, np.uint8)
    places = np.flatnonzero(bitmap)  # few bytes have a bit
    flags = np.unpackbits(bitmap[places, np.newaxis], axis=1)
    rows: NDArray[np.int64] = (8 * places[:, np.newaxis] + np.arange(8))[flags.view(bool)]
    if len(rows) != piece.removed.rows or (len(rows) and rows[-1] >= piece.rows):
        raise FormatError(f"{folder / piece.removed.file}: damaged: {_RESTORE}")
    return rows


_RESTORE = "restore it from a copy"


@contextmanager
def _named(folder: Path, name: str) -> Iterator[None]:
    """Name the file that is missing or damaged, and say what to do."""
    try:
        yield
    except FileNotFoundError:
        raise MissingPieceError(
            f"{folder / name} is missing, and the manifest lists it: {_RESTORE}"
        ) from None
    except (FormatError, ReadError) as error:  # ReadError: a Parquet file lacks the column
        text: Any = str(error)
        raise FormatError(text if _RESTORE in text else f"{text}: {_RESTORE}") from None
