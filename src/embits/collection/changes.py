"""Atomic changes to a collection.

New files are written and flushed first; then the manifest is replaced, which makes the change;
then files that it no longer lists are deleted. A writer that stops half-way leaves files that no
manifest lists, and the next writer deletes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits.collection.lock import writer_lock
from embits.collection.manifest import Manifest, Piece, read_manifest, write_manifest
from embits.collection.pieces import (
    MissingPieceError,
    OpenPiece,
    Rows,
    header_digest,
    open_one,
    save_piece,
    save_removed,
)
from embits.collection.snapshot import Snapshot, joined_codes, joined_words, open_snapshot
from embits.collection.working import delete_abandoned, is_working_folder

# Pieces of this many rows in all are merged when rows are added; only `compact` merges larger ones.
MAX_MERGED_ROWS = 1 << 16

_PIECE = r"piece-\d{8,}\.safetensors"
_BITMAP = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.removed-\d{8,}"
_OURS = re.compile(rf"{_PIECE}|{_BITMAP}", re.ASCII)
_TEMPORARY = re.compile(
    rf"\.({_PIECE}|{_BITMAP}|_embits\.json|_coder\.safetensors)\.\d+-[0-9a-f]{{8}}\.tmp", re.ASCII
)


@contextmanager
def locked(folder: Path, before: Snapshot | None, timeout: float = 0) -> Iterator[Snapshot]:
    """Hold the lock for one change; gives the latest snapshot.

    Raises:
        InputError: Another writer holds the lock.
        FormatError: The collection is damaged.
    """
    with writer_lock(folder, timeout):
        manifest = read_manifest(folder)
        delete_unlisted(folder, manifest)
        try:
            yield open_snapshot(folder, before=before, manifest=manifest)
        except BaseException:  # Ctrl-C too: delete what was written, unless it has become a change
            with suppress(Exception):
                delete_unlisted(folder, read_manifest(folder))
            raise


def delete_unlisted(folder: Path, manifest: Manifest) -> None:
    """Delete files of the names that embits gives, if the manifest does not list them."""
    listed = manifest.files()
    for path in folder.iterdir():
        if is_working_folder(path.name):
            delete_abandoned(path)
        stale = _OURS.fullmatch(path.name) and path.name not in listed
        if stale or _TEMPORARY.fullmatch(path.name):
            with suppress(
                OSError
            ):  # on Windows a reader may have it open: the next writer deletes it
                path.unlink()


def is_leftover(name: str) -> bool:
    """Whether this is a file that a writer, stopped half-way, may leave."""
    return bool(_TEMPORARY.fullmatch(name) or _OURS.fullmatch(name))


def append(
    folder: Path, snapshot: Snapshot, rows: Rows, pieces: Sequence[OpenPiece] | None = None
) -> None:
    """Add rows at the end. Small pieces at the end are merged with them.

    Args:
        folder: The collection, locked.
        snapshot: Its latest state.
        rows: The new rows; their ids are new.
        pieces: The pieces before them, if rows of them are removed with the same change.

    Raises:
        FormatError: A piece to merge is damaged. The collection is unchanged.
    """
    pieces = snapshot.pieces if pieces is None else pieces
    start = _first_merged(pieces, len(rows.codes))
    old = _verified(folder, snapshot, pieces[start:])
    merged = _merged([*old, OpenPiece(Piece("", len(rows.codes)), rows, _none())])
    manifest = snapshot.manifest
    new = save_piece(folder, manifest.next_piece, merged, snapshot.coder)
    kept = _with_bitmaps(folder, manifest, pieces[:start])
    _commit(folder, manifest, (*kept, new))


def replace_pieces(folder: Path, snapshot: Snapshot, pieces: Sequence[OpenPiece]) -> None:
    """Make a change that removes rows: bitmaps are written for the pieces that lose some."""
    kept = _with_bitmaps(folder, snapshot.manifest, pieces)
    _commit(folder, snapshot.manifest, kept)


def compact(folder: Path, snapshot: Snapshot) -> None:
    """Merge all pieces into one, without the removed rows.

    Raises:
        FormatError: A piece is damaged. The collection is unchanged.
    """
    pieces = snapshot.pieces
    if not pieces or (len(pieces) == 1 and pieces[0].entry.header and not len(pieces[0].removed)):
        return
    number = snapshot.manifest.next_piece
    rows = _merged(_verified(folder, snapshot, pieces))
    merged = save_piece(folder, number, rows, snapshot.coder)
    _commit(folder, snapshot.manifest, (merged,))


def check_pieces(folder: Path, snapshot: Snapshot) -> None:
    """Check every byte of the pieces. Those that a later change has deleted are not checked.

    Raises:
        FormatError: A piece is damaged.
    """
    for piece in snapshot.pieces:
        with suppress(FileNotFoundError, MissingPieceError):
            if piece.entry.header == header_digest(folder / piece.entry.file):
                _verified(folder, snapshot, [piece])


def without(snapshot: Snapshot, rows: NDArray[np.int64]) -> list[OpenPiece]:
    """The pieces with more rows removed; pieces without a row left are dropped.

    Args:
        snapshot: The collection.
        rows: Rows of the snapshot, each once.
    """
    stored = np.sort(joined_codes(snapshot.pieces).rows.stored(rows))
    left, start = [], 0
    for piece in snapshot.pieces:
        stop = start + len(piece.rows.codes)
        mine = stored[np.searchsorted(stored, start) : np.searchsorted(stored, stop)] - start
        removed = np.union1d(piece.removed, mine)
        if len(removed) < len(piece.rows.codes):
            left.append(piece._replace(removed=removed) if len(mine) else piece)
        start = stop
    return left


def _first_merged(pieces: Sequence[OpenPiece], n_new: int) -> int:
    """The first of the pieces at the end that have no more rows than what follows them.

    Rows are so written again only when their number doubles.
    """
    start, total = len(pieces), n_new
    while start:
        piece = pieces[start - 1]
        live = len(piece.rows.codes) - len(piece.removed)
        is_small = live <= total and total + live <= MAX_MERGED_ROWS
        if not is_small or piece.entry.header is None:
            break
        start, total = start - 1, total + live
    return start


def _verified(folder: Path, snapshot: Snapshot, pieces: Sequence[OpenPiece]) -> list[OpenPiece]:
    """The pieces with every byte checked: a copy gets checksums of its own, which hide damage."""

    def verified(piece: OpenPiece) -> OpenPiece:
        if piece.entry.header is None:  # Parquet, which has no checksums of ours
            return piece
        opened = open_one(folder, piece.entry, snapshot.coder, verify=True)
        return opened._replace(removed=piece.removed)

    return list(map(verified, pieces))


def _merged(pieces: Sequence[OpenPiece]) -> Rows:
    return Rows(joined_words(pieces).merged(), np.asarray(joined_codes(pieces)))


def _with_bitmaps(
    folder: Path, manifest: Manifest, pieces: Sequence[OpenPiece]
) -> tuple[Piece, ...]:
    """The entries of pieces; those that lost rows get a new bitmap."""
    number = manifest.generation + 1

    def entry(piece: OpenPiece) -> Piece:
        before = piece.entry.removed.rows if piece.entry.removed else 0
        if before == len(piece.removed):
            return piece.entry
        return replace(
            piece.entry, removed=save_removed(folder, number, piece.entry, piece.removed)
        )

    return tuple(map(entry, pieces))


def _commit(folder: Path, before: Manifest, pieces: tuple[Piece, ...]) -> None:
    after = replace(
        before, pieces=pieces, generation=before.generation + 1, next_piece=before.next_piece + 1
    )
    write_manifest(folder, after)
    delete_unlisted(folder, after)


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)
