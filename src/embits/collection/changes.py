"""Atomic changes to a collection, by one writer at a time.

New files are written and flushed first; then the manifest is replaced, which makes the change; then
files that no manifest lists are deleted, also those of a writer that stopped half-way.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import LazyRows, check_padding
from embits.coders import Coder, coder_checksum
from embits.collection.log import MAX_ADDED, MAX_BYTES, MAX_ROWS, append_line, log_line
from embits.collection.manifest import MANIFEST, Manifest, Piece, read_manifest, write_manifest
from embits.collection.pieces import (
    OpenPiece,
    State,
    open_state,
    save_piece,
    snapshot_of,
    verified,
    with_bitmap,
)
from embits.errors import InputError, LockedError, UnconfirmedError
from embits.file.atomic import atomic_write, sync_folder
from embits.file.contents import write_coder
from embits.search.cells import Centers, cells_bytes, wanted_cells
from embits.search.stored import RowMap
from embits.segment import FLOATS, LENGTHS, Floats, Lengths, Segment
from embits.snapshot import in_cells, in_new_cells

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "_lock"
# Pieces of this many rows in all are merged when rows are added, and larger ones if there are many.
MAX_MERGED_ROWS = 1 << 16
MAX_PIECES = 100
_MAX_CELLS_SHARE = 0.25  # of the bytes of the codes: cells cost new pieces no more
_WAIT_SECONDS = 0.02
_WORKING = ".embits-add-"
_OURS = r"piece-\d{8,}\.(?:safetensors|arrow)|log-\d{8,}\.jsonl|" + (
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.removed-\d{8,}"
)
_CODERS = r"_coder(?:-\d{8,})?\.safetensors"  # of which the manifest lists one
_TEMPORARY = rf"\.({_OURS}|_embits\.json|{_CODERS})\.\d+-[0-9a-f]{{8}}\.tmp"


# -- one writer ------------------------------------------------------------------------------------


_held: dict[int, int] = {}  # the files of locks that this process has open, and their threads


@contextmanager
def writer_lock(folder: Path, timeout: float = 0) -> Iterator[None]:
    """Hold the lock of a collection: of its file, and of the folder, which nobody deletes."""
    path, end, thread, handle = folder / LOCK, time.monotonic() + timeout, get_ident(), -1
    directory = -1 if fcntl is None else os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    _held[directory] = thread
    try:
        while True:
            _held[handle := open_own(path)] = thread
            if _taken_folder(directory) and _taken(handle) and _is_file(handle, path):
                break
            os.lseek(handle, 0, os.SEEK_SET)  # where the holder wrote its number
            holder = os.read(handle, 20).decode(errors="replace").strip() or "?"
            handle = _closed(handle)
            if time.monotonic() >= end:
                what = f"process {holder}, which is writing to it: try again when it has finished"
                raise LockedError(f"{folder} is locked by {what}")
            time.sleep(_WAIT_SECONDS)
        os.lseek(handle, 0, os.SEEK_SET)
        with suppress(OSError):  # on a full disk, the holder has no number
            os.write(handle, f"{os.getpid():<20}".encode())
        yield
    finally:
        _closed(handle)
        _closed(directory)


def _closed(handle: int) -> int:
    """Close a file, which frees its lock, if it is open; not in a child that was forked since."""
    if _held.pop(handle, None) is not None and handle >= 0:
        os.close(handle)
    return -1


def _is_file(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False


def check_locked(folder: Path) -> None:
    """Refuse to go on without the lock of this thread: another process may hold a new one."""
    own = [handle for handle, thread in list(_held.items()) if thread == get_ident()]
    if not any(_is_file(handle, folder / LOCK) for handle in own):
        lost = f"{folder / LOCK} was deleted or replaced during a change, so another process may"
        raise LockedError(f"{lost} be writing: nothing was changed; try again, and never delete it")


def _let_go() -> None:
    """A forked child does not write: without this, the lock would last as long as the child."""
    while _held:
        _closed(next(iter(_held)))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def open_own(path: Path, mode: int = 0o666) -> int:
    """A file to read and write. A link or anything else that is no file of ours is refused."""
    flags = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
    options = sum(getattr(os, flag, 0) for flag in flags)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | options, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            what = "is a link, which is not written through"
        elif path.is_dir():  # a PermissionError on Windows
            what = "is a folder, expected a file"
        else:
            raise
        raise InputError(f"{path} {what}: delete it") from None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return handle
    os.close(handle)
    raise InputError(f"{path} is not a regular file of its own: delete it")


def _taken(handle: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:  # pragma: no cover
            import msvcrt

            os.lseek(handle, 1 << 30, os.SEEK_SET)  # a byte past the number, which others read
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # Windows raises the latter
        return False
    return True


def _taken_folder(handle: int) -> bool:
    try:
        return handle < 0 or _taken(handle)
    except OSError:  # of a file system that locks no folders
        return True


@contextmanager
def working_folder(collection: Path) -> Iterator[Path]:
    """A new folder for one process. It is locked, so that other writers leave it alone."""
    read_manifest(collection)  # it may have been deleted
    folder = Path(tempfile.mkdtemp(dir=collection, prefix=_WORKING))
    try:
        with writer_lock(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- changes ---------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, before: State | None, timeout: float = 0) -> Iterator[State]:
    """Hold the lock for one change; gives the latest state."""
    read_manifest(folder)  # the folder may have been deleted
    with writer_lock(folder, timeout):
        manifest = read_manifest(folder)
        delete_unlisted(folder, manifest)
        try:
            yield open_state(folder, before=before, manifest=manifest)
        except UnconfirmedError:  # after a loss of power, the files before the change are needed
            raise
        except BaseException:  # Ctrl-C too: delete what was written, unless it has become a change
            with suppress(Exception):
                check_locked(folder)
                delete_unlisted(folder, read_manifest(folder))
            raise


def delete_unlisted(folder: Path, manifest: Manifest, *, is_on_disk: bool = False) -> None:
    """Delete files of our names that no manifest lists, and working folders that nobody locks."""
    listed, stale = manifest.files(), []
    for path in folder.iterdir():
        if re.fullmatch(rf"{re.escape(_WORKING)}\w+", path.name, re.ASCII):
            if path.is_symlink() or not (path / LOCK).is_file():
                continue  # it is being made
            with suppress(InputError, OSError):  # a process holds its lock: it was not killed
                with writer_lock(path):
                    pass
                shutil.rmtree(path, ignore_errors=True)
        elif is_leftover(path.name) and path.name not in listed:
            stale.append(path)
    if stale and not is_on_disk:  # a writer that was killed may not have waited for the disk
        sync_folder(folder)
    for path in stale:
        with suppress(OSError):  # on Windows, of a file that a reader has open
            path.unlink()


def is_leftover(name: str) -> bool:
    """Whether this is a file that a writer, stopped half-way, may leave."""
    return re.fullmatch(f"{_OURS}|{_CODERS}|{_TEMPORARY}", name, re.ASCII) is not None


def append(latest: State, manifest: Manifest, rows: Segment, replaced: NDArray[np.int64]) -> None:
    """Add rows at the end: a few to the log. Others are merged with it and small pieces before."""
    is_same = replace(manifest, next_number=latest.manifest.next_number) == latest.manifest
    if is_same and latest.pieces and not len(replaced) and _added_to_log(latest, rows):
        return
    state = replace(latest, manifest=manifest)
    pieces = _without(state, replaced) if len(replaced) else state.pieces
    start = _first_merged(pieces, len(rows))
    new = OpenPiece(Piece("", len(rows)), rows, np.empty(0, np.int64))
    _commit(state, pieces[:start], pieces[start:], [new])


def _added_to_log(state: State, rows: Segment) -> bool:
    """Add a line to the log, or make one; False if it would be too large."""
    folder, manifest, log = state.folder, state.manifest, state.log
    name = manifest.log or f"log-{manifest.next_piece:08d}.jsonl"
    number, n_rows, size = (len(log.changes), len(log.rows), len(log.content)) if log else (0, 0, 0)
    if len(rows) > MAX_ADDED or n_rows + len(rows) > MAX_ROWS:
        return False
    check_padding(rows.codes, state.coder.n_bits_)
    line = log_line(folder / name, number, rows, manifest.columns)
    if size + len(line) > MAX_BYTES:
        return False
    if log:
        append_line(folder / name, log, line, lambda: check_locked(folder))
    else:
        with atomic_write(folder / name, like=folder / MANIFEST) as file:
            file.write(line)
        _replace_manifest(folder, replace(manifest, log=name, next_piece=manifest.next_piece + 1))
    return True


def _folded(state: State) -> State:
    """The same rows, with those of the log in a piece."""
    if state.log is None:
        return state
    _commit(state, state.pieces)
    return open_state(state.folder, before=state)


def remove(state: State, rows: NDArray[np.int64]) -> None:
    """Remove rows of the state: pieces that lose some get a new bitmap."""
    _commit(state, _without(state, rows))


def compact(state: State, cells: int | str | None = None) -> None:
    """Merge all pieces into one, without removed rows, in new cells if there are to be some.

    None makes as many as there are; if "auto" chose them, as many as it chooses now.
    """
    pieces = state.pieces
    is_one = len(pieces) == 1 and pieces[0].entry.header and not len(pieces[0].removed)
    if pieces and not (is_one and cells is None):
        _commit(state, [], pieces, cells=cells)


def recalibrate(state: State, centers: Centers) -> None:
    """Store another curve of the cells: the pieces that are in them are written again."""
    state = _folded(state)
    folder, before = state.folder, state.manifest
    entries, number = [], before.next_piece
    for piece in verified(folder, state.coder, before.columns, state.pieces):
        entry, cells = piece.entry, piece.segment.cells
        if cells is not None and cells.centers.digest == centers.digest:
            segment = replace(piece.segment, cells=replace(cells, centers=centers))
            new = save_piece(folder, number, segment, state.coder, {}, [])
            entry = replace(new, columns=entry.columns, removed=entry.removed)
            number += 1
        entries.append(entry)
    after = replace(before, generation=before.generation + 1, next_piece=number)
    _replace_manifest(folder, replace(after, pieces=tuple(entries)))


def _as_many(state: State) -> int | str | None:
    """The cell count for a rebuild, or None."""
    if (centers := state.snapshot.centers) is None:
        return None
    sizes = (
        len(segment)
        for segment in state.snapshot.segments
        if segment.cells and segment.cells.centers.digest == centers.digest
    )
    is_auto = len(centers) == wanted_cells("auto", next(sizes), centers.n_bits)
    return "auto" if is_auto else len(centers)


def _arranged(
    segment: Segment, coder: Coder, centers: Centers | None, cells: int | str | None
) -> Segment:
    """A segment to be written: in new cells, in cells of these centers, or in row order."""
    if cells is not None:
        return in_new_cells(segment, coder, wanted_cells(cells, len(segment), coder.n_bits_))
    if centers is None or cells_bytes(centers) > _MAX_CELLS_SHARE * segment.codes.nbytes:
        return segment  # few rows are read whole
    return in_cells(segment, centers)


def adopt(state: State, coder: Coder, n_rows: int, refit_at: int | None) -> State:
    """The state with another coder, whose file is written; a change then makes it so."""
    before = state.manifest
    name = f"_coder-{before.next_piece:08d}.safetensors"
    write_coder(state.folder / name, coder)
    after = replace(
        before, bits=coder.n_bits_, dims=coder.n_features_in_, method=coder.method,
        coder=coder_checksum(coder), coder_file=name, next_piece=before.next_piece + 1,
        past=(*before.past, before.coder), fitted_rows=n_rows, refit_at=refit_at,
    )  # fmt: skip
    return replace(state, manifest=after, coder=coder)


def recode(
    state: State, coder: Coder, vectors: Any, refit_at: int | None, *, are_new: bool
) -> None:
    """Another coder for the vectors of all rows, which are kept if they are new.

    Pieces are written again with the same rows; columns and bitmaps stay.
    """
    state = _folded(state)
    folder, before = state.folder, state.manifest
    after = adopt(state, coder, len(vectors), refit_at).manifest
    entries, first, centers = [], 0, None
    for piece in verified(folder, state.coder, before.columns, state.pieces):
        if piece.entry.header is None:
            raise InputError(f"{piece.entry.file} is Parquet: compact the collection first")
        live = piece.rows
        own = _own_vectors(vectors, live, first)
        first += len(live)
        columns = dict(piece.segment.columns)
        if are_new and LENGTHS in columns:
            columns[LENGTHS] = Lengths.of_vectors(own)
        if are_new and before.keep:
            columns[FLOATS] = Floats.of(own, before.keep)
        segment = Segment(piece.segment.ids, coder.encode(own), columns)
        if (old_cells := piece.segment.cells) is not None:  # other codes need other ones
            if centers is None:
                segment = _arranged(segment, coder, None, len(old_cells))
                centers = segment.cells.centers if segment.cells else None
            else:  # as those of the first piece
                segment = in_cells(segment, centers)
        entry = save_piece(folder, after.next_piece, segment, coder, {}, [])
        old = piece.entry
        entries.append(replace(entry, columns=old.columns, removed=old.removed))
        after = replace(after, next_piece=after.next_piece + 1)
    after = replace(after, pieces=tuple(entries), generation=after.generation + 1)
    _replace_manifest(folder, after)


def _own_vectors(vectors: Any, live: RowMap, first: int) -> LazyRows:
    """The vectors of the stored rows of a piece; those of removed rows are zeros."""

    def take(stored: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = live.live(stored)
        found = np.zeros((len(rows), vectors.shape[1]), np.float32)
        found[rows >= 0] = vectors[first + rows[rows >= 0]]
        return found

    return LazyRows(take, live.n_stored, vectors.shape[1])


def _without(state: State, rows: NDArray[np.int64]) -> list[OpenPiece]:
    """The pieces with more rows removed; pieces without a row left are dropped."""
    rows, left, start = np.sort(rows), [], 0
    for piece in state.pieces:
        live = piece.rows
        first, last = np.searchsorted(rows, [start, start + len(live)])
        removed = np.union1d(piece.removed, live.stored(rows[first:last] - start))
        if len(removed) < len(piece.segment):
            left.append(piece._replace(removed=removed) if first < last else piece)
        start += len(live)
    return left


def _first_merged(pieces: Sequence[OpenPiece], n_new: int) -> int:
    """The first of the pieces at the end that have no more rows than what follows them."""
    # Rows are so written again only when their number doubles. Of too many pieces, half stay.
    start, total = len(pieces), n_new
    if pieces and pieces[-1].entry.file.endswith(".jsonl"):
        start, total = start - 1, total + len(pieces[-1].segment)
    most = MAX_PIECES // 2 if len(pieces) >= MAX_PIECES else len(pieces)
    while start:
        piece = pieces[start - 1]
        live = len(piece.rows)
        is_small = live <= total and (total + live <= MAX_MERGED_ROWS or start > most)
        if not is_small or piece.entry.header is None:
            break
        start, total = start - 1, total + live
    return start


def _commit(
    state: State,
    kept: Sequence[OpenPiece],
    merged: Sequence[OpenPiece] = (),
    new: Sequence[OpenPiece] = (),
    *,
    cells: int | str | None = None,
) -> None:
    """Write one piece of the merged and the new rows, and the manifest that lists it last."""
    folder, before, number = state.folder, state.manifest, state.manifest.generation + 1
    added = []
    if cells is None and not kept:  # rows have doubled since there are cells, or they are compacted
        cells = _as_many(state)
    if kept and kept[-1].entry.file == before.log:
        kept, merged = kept[:-1], [kept[-1], *merged]
    if merged or new:
        parts = [*verified(folder, state.coder, before.columns, merged), *new]
        left = snapshot_of(state.coder, parts, before).merged_segment()
        segment = _arranged(left, state.coder, state.snapshot.centers, cells)
        n = before.next_piece
        added = [save_piece(folder, n, segment, state.coder, before.columns, parts)]
    entries = (*(with_bitmap(folder, number, piece) for piece in kept), *added)
    after = replace(before, pieces=entries, generation=number, next_piece=before.next_piece + 1)
    _replace_manifest(folder, replace(after, log=None))


def _replace_manifest(folder: Path, after: Manifest) -> None:
    """Make the change, and delete the files that are no longer listed."""
    try:
        write_manifest(folder, after, lambda: check_locked(folder))
    except OSError as error:
        if read_manifest(folder) != after:
            raise
        made = "the change was made, but the disk did not confirm it"
        text = f"{made}, and a loss of power may undo it; do not repeat it ({error.strerror})"
        raise UnconfirmedError(error.errno, text, str(folder)) from error
    delete_unlisted(folder, after, is_on_disk=True)
