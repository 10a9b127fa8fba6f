"""A snapshot: a collection as it was at one moment, mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors.concat import check_same_coder
from embits.coders import Coder
from embits.collection.manifest import Manifest, Piece, read_manifest
from embits.collection.pieces import MissingPieceError, OpenPiece, open_coder, open_one
from embits.errors import FormatError, InputError
from embits.ids.keys import RowNumbers
from embits.ids.pieces import PieceIds, PieceWords
from embits.ids.vocabulary import Vocabulary
from embits.search.pieces import CodePieces

MAX_TRIES = 100


@dataclass(frozen=True)
class Snapshot:
    """The pieces of a collection at one moment. Later changes do not alter it.

    Attributes:
        manifest: What it consists of.
        coder: The coder that the pieces share.
        pieces: The pieces in row order, mapped.
    """

    manifest: Manifest
    coder: Coder
    pieces: tuple[OpenPiece, ...]

    def words(self) -> PieceWords | PieceIds:
        """The ids of the rows that are left."""
        if self._is_whole() and self._needs_no_offset():
            return self.pieces[0].rows.ids
        if not self.pieces:
            return RowNumbers(0)
        return joined_words(self.pieces, numbered=self.manifest.ids == "numbers")

    def codes(self) -> NDArray[np.uint8] | CodePieces:
        """The codes of the rows that are left."""
        if self._is_whole():
            return self.pieces[0].rows.codes
        if not self.pieces:
            return np.empty((0, self.coder.n_bytes_), np.uint8)
        return joined_codes(self.pieces)

    def _is_whole(self) -> bool:
        return len(self.pieces) == 1 and not len(self.pieces[0].removed)

    def _needs_no_offset(self) -> bool:
        ids = self.pieces[0].rows.ids
        is_plain = isinstance(ids, RowNumbers) and ids.first == 0
        return is_plain or (not isinstance(ids, RowNumbers) and self.manifest.ids == "given")


def open_snapshot(
    folder: Path,
    *,
    verify: bool = False,
    before: Snapshot | None = None,
    manifest: Manifest | None = None,
) -> Snapshot:
    """Open the latest state of a collection.

    A writer may replace pieces between the reading of the manifest and their opening: then the
    manifest is read again.

    Args:
        folder: The collection.
        verify: Read every byte and check it against the checksums.
        before: An earlier snapshot, whose open pieces are used again.
        manifest: The manifest, if it was just read.

    Raises:
        FormatError: It is not a collection, or a file of it is missing or damaged.
        InputError: Its coder is not that of the earlier snapshot.
        OSError: A file cannot be opened.
    """
    manifest = manifest or read_manifest(folder)
    for _ in range(MAX_TRIES):
        try:
            return _opened(folder, manifest, verify, before)
        except MissingPieceError:
            latest = read_manifest(folder)
            if latest == manifest:  # nobody replaced it: it is lost
                raise
            manifest = latest
    return _opened(folder, manifest, verify, before)


def _opened(folder: Path, manifest: Manifest, verify: bool, before: Snapshot | None) -> Snapshot:
    reuse = before is not None and before.manifest.coder == manifest.coder
    coder = before.coder if before and reuse else open_coder(folder, manifest, verify=verify)
    if before and not reuse:
        _check_not_replaced(folder, before.coder, coder)
    known = {piece.entry: piece for piece in before.pieces} if before and reuse else {}

    def opened(entry: Piece) -> OpenPiece:
        return known.get(entry) or open_one(folder, entry, coder, verify=verify)

    pieces = tuple(map(opened, manifest.pieces))
    if manifest.ids != "numbers" and any(isinstance(p.rows.ids, RowNumbers) for p in pieces):
        raise FormatError(f"{folder}: damaged: the rows have ids, but a piece has none")
    if before is None:
        _check_parquet_ids(folder, pieces)
    return Snapshot(manifest, coder, pieces)


def _check_not_replaced(folder: Path, before: Coder, coder: Coder) -> None:
    """Refuse a collection that was put in the place of another one, with another coder."""
    try:
        check_same_coder(before, coder)
    except InputError as error:
        raise InputError(
            f"{folder} was replaced by another collection: {error}; open it again"
        ) from None


def _check_parquet_ids(folder: Path, pieces: Sequence[OpenPiece]) -> None:
    """Refuse ids that repeat between Parquet pieces: their writers do not know of each other."""
    pieces = [piece for piece in pieces if piece.entry.column is not None]
    if len(pieces) < 2:
        return
    words, repeated = Vocabulary.with_repeats(joined_words(pieces))
    if repeated:
        raise FormatError(
            f"{folder}, column {pieces[0].entry.column!r}: the id {words[repeated[0]]!r} appears "
            "twice"
        )


def joined_words(pieces: Sequence[OpenPiece], *, numbered: bool = False) -> PieceWords:
    """The ids of the rows that are left of several pieces, in order."""
    ids = [piece.rows.ids for piece in pieces]
    return PieceWords(ids, removed_rows(pieces), numbered=numbered)


def joined_codes(pieces: Sequence[OpenPiece]) -> CodePieces:
    """The codes of the rows that are left of several pieces, in order."""
    return CodePieces([piece.rows.codes for piece in pieces], removed_rows(pieces))


def removed_rows(pieces: Sequence[OpenPiece]) -> NDArray[np.int64]:
    """The removed rows, ascending, counted over all pieces."""
    starts = np.cumsum([0, *(len(piece.rows.codes) for piece in pieces)])
    shifted = (piece.removed + start for piece, start in zip(pieces, starts, strict=False))
    return np.concatenate([np.empty(0, np.int64), *shifted])
