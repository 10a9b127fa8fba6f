"""The files of a collection, opened: the coder, the pieces, and a snapshot of all of them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.arrays import blocks, packed_width
from embits.binary_vectors import BinaryVectors, check_same_coder
from embits.checks import open_regular, read_small
from embits.coders import METHODS, Coder, coder_checksum
from embits.collection.log import Log, open_log
from embits.collection.manifest import (
    CODER,
    MANIFEST,
    Beside,
    Manifest,
    Piece,
    Removed,
    read_manifest,
    with_rows,
)
from embits.columns import ColumnTable, arrow, arrow_type, kind_of
from embits.errors import ENCODE_AGAIN, FormatError, InputError, ReadError, first_line
from embits.file.atomic import atomic_write
from embits.file.contents import open_piece, read_coder, write_piece
from embits.file.store import MAX_HEADER
from embits.ids.keys import RowNumbers, number_keys
from embits.ids.vocabulary import Vocabulary
from embits.search.stored import RowMap
from embits.segment import FLOATS, Segment
from embits.snapshot import Snapshot

MAX_TRIES = 100
MAX_MAPPED = 128  # pieces: each mapping keeps a file open, of which a process may have but 256
_RESTORE = "restore it from a copy"
_UNREADABLE = errno.EISDIR, errno.EACCES, errno.ELOOP, errno.EIO
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 26  # of a file's record batches


class OpenPiece(NamedTuple):
    """A piece that is mapped."""

    entry: Piece  # what the manifest says of it
    segment: Segment  # with the rows that are removed
    removed: NDArray[np.int64]  # rows, ascending

    @property
    def rows(self) -> RowMap:
        """Its rows."""
        return RowMap([len(self.segment)], self.removed)


class MissingPieceError(FormatError):
    """A file that the manifest lists is not there; another writer may have replaced it."""


@dataclass(frozen=True)
class State:
    """A collection at one moment, mapped: what its folder holds. Later changes do not alter it."""

    folder: Path
    manifest: Manifest
    coder: Coder
    pieces: tuple[OpenPiece, ...]
    listed: Manifest | None = None  # the manifest without the rows of the log
    log: Log | None = None  # its rows are the last piece

    @LazyProperty
    def snapshot(self) -> Snapshot:
        """The rows that are left, to be searched."""
        check = partial(_check, self.folder, self.manifest, self.coder, self.pieces)
        return replace(
            snapshot_of(self.coder, self.pieces, self.manifest), state=self.manifest, check=check
        )

    @LazyProperty
    def bits(self) -> BinaryVectors:
        """The same, as users hold them."""
        return BinaryVectors.of(self.snapshot)


def snapshot_of(coder: Coder, pieces: Sequence[OpenPiece], manifest: Manifest) -> Snapshot:
    """The rows that are left of some pieces."""
    nothing = Segment(RowNumbers(0), np.empty((0, coder.n_bytes_), np.uint8))
    segments = tuple(piece.segment for piece in pieces) or (nothing,)
    rows = RowMap.of_segments([*map(len, segments)], [piece.removed for piece in pieces])
    numbered = manifest.ids == "numbers"
    return Snapshot(coder, segments, rows, numbered=numbered, kinds=manifest.columns)


# -- open ------------------------------------------------------------------------------------------


def open_state(
    folder: Path,
    *,
    verify: bool = False,
    before: State | None = None,
    manifest: Manifest | None = None,
) -> State:
    """Open the latest state of a collection; pieces that are open `before` are used again."""
    manifest = manifest or read_manifest(folder)
    for _ in range(MAX_TRIES):
        try:
            return _opened(folder, manifest, verify, before)
        except MissingPieceError:  # a writer may have replaced it since the manifest was read
            latest = read_manifest(folder)
            if latest == manifest:  # nobody did: it is lost
                raise
            manifest = latest
    return _opened(folder, manifest, verify, before)


def _opened(folder: Path, manifest: Manifest, verify: bool, before: State | None) -> State:
    known: dict[Piece, OpenPiece] = {}
    if before is not None and before.manifest.coder == manifest.coder:
        coder = before.coder
        known = {replace(piece.entry, removed=None): piece for piece in before.pieces}
    else:
        coder = open_coder(folder, manifest, verify=verify)
        try:
            if before is not None and before.manifest.coder not in manifest.past:
                check_same_coder(before.coder, coder)
        except InputError as error:
            raise InputError(f"{folder} is another collection: {error}; open it again") from None
    known_log = before.log if before else None
    with _named(folder, str(manifest.log)):
        log = open_log(folder, manifest, coder, known_log)
    if before is not None and before.listed is manifest and log is known_log:
        return before
    how: Any = {"kinds": manifest.columns, "verify": verify}
    pieces = tuple(
        _reused(folder, entry, known.get(replace(entry, removed=None)))
        or open_one(folder, entry, coder, mapped=place < MAX_MAPPED, **how)
        for place, entry in enumerate(manifest.pieces)
    )
    listed = manifest
    if log is not None:
        manifest = with_rows(manifest, len(log.rows), len(log.changes))
        piece = OpenPiece(manifest.pieces[-1], log.rows, np.empty(0, np.int64))
        pieces = (*pieces, piece)
    if manifest.keep and not all(FLOATS in piece.segment.columns for piece in pieces):
        raise FormatError(f"{folder}: damaged: a piece keeps no floats: {_RESTORE}")
    if manifest.ids != "numbers" and any(isinstance(p.segment.ids, RowNumbers) for p in pieces):
        raise FormatError(f"{folder}: damaged: the rows have ids, but a piece has none")
    # Writers of Parquet pieces do not know of each other: an id may repeat between them.
    unsure = [p for p in pieces if before is None and (verify or p.entry.column)]
    if len(unsure) > 1 or (unsure and verify and manifest.ids == "numbers"):
        words, repeated = Vocabulary.with_repeats(snapshot_of(coder, unsure, manifest).ids)
        numbers, are_numbers = number_keys(words.text, words.ends)
        if manifest.ids == "numbers" and not (are_numbers & (numbers < manifest.next_number)).all():
            raise FormatError(f"{folder}: damaged: ids are not those of rows that were added")
        if repeated:
            column = f", column {unsure[0].entry.column!r}" if unsure[0].entry.column else ""
            found = f"the id {words[repeated[0]]!r} appears twice: {ENCODE_AGAIN}"
            raise FormatError(f"{folder}{column}: {found}")
    return State(folder, manifest, coder, pieces, listed, log)


def _reused(folder: Path, entry: Piece, known: OpenPiece | None) -> OpenPiece | None:
    """A piece that is open, with the rows that are removed now."""
    if known is None or known.entry == entry:
        return known
    return known._replace(entry=entry, removed=read_removed(folder, entry))


def open_coder(folder: Path, manifest: Manifest, *, verify: bool) -> Coder:
    """The coder that all pieces share."""
    name = manifest.coder_file or CODER
    if not manifest.dims:  # there are no rows yet to fit it on
        if manifest.pieces or manifest.method not in METHODS:
            raise FormatError(f"{folder}: {MANIFEST} is damaged: it has no dims: {_RESTORE}")
        kind = METHODS[manifest.method]
        params = {"n_bits": manifest.bits} if "n_bits" in kind.param_names() else {}
        return kind.left_out(params, 0, manifest.bits)
    with _named(folder, name):
        coder = read_coder(folder / name, verify=verify)
    found = coder.method, coder.n_bits_, coder.n_features_in_
    is_other = found != (manifest.method, manifest.bits, manifest.dims)
    if is_other or (verify and manifest.coder and coder_checksum(coder) != manifest.coder):
        raise FormatError(f"{folder / name} is not the coder of this collection: {_RESTORE}")
    return coder


def open_one(
    folder: Path,
    entry: Piece,
    coder: Coder,
    kinds: Mapping[str, str] | None = None,
    *,
    verify: bool = False,
    mapped: bool = True,
) -> OpenPiece:
    """Map a piece with its columns, or read it if it is Parquet; and read its removed rows."""
    with _named(folder, entry.file):
        if entry.header is None:
            from embits.collection.parquet import parquet_rows  # other pieces need no pyarrow

            if isinstance(folder, Path):  # or an address of an object store
                open_regular(folder / entry.file).close()  # pyarrow would wait for a pipe
            rows = parquet_rows(folder, entry, coder)
        else:
            path = folder / entry.file
            if header_digest(path) != entry.header:
                raise FormatError(f"{path}: not the file that the manifest lists")
            rows = open_piece(path, coder, verify=verify, mapped=mapped)
            if len(rows) != entry.rows:
                raise FormatError(f"{path}: {len(rows)} rows, expected {entry.rows}")
    if isinstance(rows.ids, RowNumbers):
        rows = replace(rows, ids=RowNumbers(len(rows), entry.first))
    if entry.columns and kinds is not None:
        with _named(folder, entry.columns.file):
            digest = entry.columns.sha256 if verify else None
            table = open_columns(folder / entry.columns.file, len(rows), kinds, digest)
        rows = replace(rows, table=table)
    return OpenPiece(entry, rows, read_removed(folder, entry))


def header_digest(path: Path) -> str:
    """The SHA-256 of a file's header."""
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        return hashlib.sha256(file.read(min(length, MAX_HEADER))).hexdigest()


def read_removed(folder: Path, piece: Piece) -> NDArray[np.int64]:
    """The removed rows of a piece, ascending."""
    if piece.removed is None:
        return np.empty(0, np.int64)
    with _named(folder, piece.removed.file):
        content = read_small(folder / piece.removed.file, packed_width(piece.rows))
    bitmap = np.frombuffer(content, np.uint8)
    places = np.flatnonzero(bitmap)  # few bytes have a bit
    flags = np.unpackbits(bitmap[places, np.newaxis], axis=1)
    rows: NDArray[np.int64] = (8 * places[:, np.newaxis] + np.arange(8))[flags.view(bool)]
    found = len(content), len(rows), hashlib.sha256(content).hexdigest()
    is_whole = found == (packed_width(piece.rows), piece.removed.rows, piece.removed.sha256)
    if not is_whole or (len(rows) and rows[-1] >= piece.rows):
        raise FormatError(f"{folder / piece.removed.file}: damaged: {_RESTORE}")
    return rows


def verified(
    folder: Path, coder: Coder, kinds: Mapping[str, str], pieces: Sequence[OpenPiece]
) -> list[OpenPiece]:
    """The pieces with every byte checked: a copy gets checksums of its own, which hide damage."""
    checked = list(pieces)
    for place, piece in enumerate(pieces):
        if piece.entry.header:
            mapped = place < MAX_MAPPED // 4
            again = open_one(folder, piece.entry, coder, kinds, verify=True, mapped=mapped)
            checked[place] = again._replace(removed=piece.removed)
    return checked


def _check(folder: Path, manifest: Manifest, coder: Coder, pieces: Sequence[OpenPiece]) -> None:
    """Check every byte of the pieces and the coder, but not pieces that were deleted meanwhile."""
    for piece in pieces:
        with suppress(FileNotFoundError, MissingPieceError):
            with _named(folder, piece.entry.file):
                is_there = piece.entry.header == header_digest(folder / piece.entry.file)
            if is_there:
                verified(folder, coder, manifest.columns, [piece])
    open_coder(folder, manifest, verify=True)


@contextmanager
def _named(folder: Path, name: str) -> Iterator[None]:
    """Name the file that is missing or damaged, and say what to do."""
    try:
        yield
    except FileNotFoundError:
        lost = f"{folder}/{name} is missing, and the manifest lists it"
        raise MissingPieceError(f"{lost}: {_RESTORE}") from None
    except (FormatError, ReadError) as error:  # ReadError: a Parquet file lacks the column
        text = str(error)
        has_hint = _RESTORE in text or ENCODE_AGAIN in text
        raise FormatError(text if has_hint else f"{text}: {_RESTORE}") from None
    except OSError as error:
        if error.errno not in _UNREADABLE:  # such as too many open files
            raise
        found = f"{folder}/{name} cannot be read ({error.strerror})"
        raise FormatError(f"{found}: {_RESTORE}") from None


# -- save ------------------------------------------------------------------------------------------


def save_piece(
    folder: Path,
    number: int,
    rows: Segment,
    coder: Coder,
    kinds: Mapping[str, str],
    parts: Sequence[OpenPiece],
) -> Piece:
    """Write rows to a new file, and the columns that the `parts` have to another."""
    name, manifest = f"piece-{number:08d}.safetensors", folder / MANIFEST
    first = rows.ids.first if isinstance(rows.ids, RowNumbers) else 0
    write_piece(folder / name, rows, coder, manifest)
    entry = Piece(name, len(rows.codes), first=first, header=header_digest(folder / name))
    tables = [part.segment.table for part in parts]
    there = {
        name: kind
        for name, kind in kinds.items()
        if kind != "null" and any(table and table.has(name) for table in tables)
    }
    if not there:
        return entry
    name = f"piece-{number:08d}.arrow"
    with atomic_write(folder / name, like=manifest) as file:
        digest = write_columns(file, there, parts)
    return replace(entry, columns=Beside(name, digest))


def with_bitmap(folder: Path, number: int, piece: OpenPiece) -> Piece:
    """What the manifest says of a piece. One that loses rows, in change `number`, gets a bitmap."""
    entry, rows = piece.entry, piece.removed
    if len(rows) == entry.rows - entry.live:
        return entry
    bitmap = np.zeros(packed_width(entry.rows), np.uint8)
    np.bitwise_or.at(bitmap, rows >> 3, (128 >> (rows & 7)).astype(np.uint8))
    content = bitmap.tobytes()
    name = f"{Path(entry.file).stem}.removed-{number:08d}"
    with atomic_write(folder / name, like=folder / MANIFEST) as file:
        file.write(content)
    return replace(entry, removed=Removed(name, len(rows), hashlib.sha256(content).hexdigest()))


def write_columns(file: Any, kinds: Mapping[str, str], parts: Sequence[OpenPiece]) -> str:
    """Write the columns of pieces without their removed rows as one Arrow file; its SHA-256."""
    pa, held = arrow(), list[Any]()
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()])

    def write() -> None:  # joined: batches of few rows are slow to read
        writer.write_table(pa.concat_tables(held).combine_chunks(), _BATCH_ROWS)
        held.clear()

    with pa.ipc.new_file(file, schema) as writer:
        for piece in parts:
            left = piece.rows.live_in(0)
            table = piece.segment.table or ColumnTable(None, len(piece.segment))
            for some in blocks(len(left), _BATCH_ROWS):
                columns = [table.take(name, kind, left[some]) for name, kind in kinds.items()]
                held.append(pa.table(columns, schema=schema))
                is_full = sum(map(len, held)) >= _BATCH_ROWS
                if is_full or sum(table.nbytes for table in held) >= _BATCH_BYTES:
                    write()
        if held:
            write()
    file.flush()
    with Path(file.name).open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()


def open_columns(
    path: Path, n: int, kinds: Mapping[str, str], sha256: str | None = None
) -> ColumnTable:
    """Map an Arrow file of n rows; with its SHA-256, check every byte of it."""
    pa = arrow()
    with open_regular(path) as file:  # pyarrow would wait for a pipe
        if sha256 and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise FormatError(f"{path}: does not match its checksum")
    try:
        with pa.memory_map(os.fspath(path)) as source:  # what is mapped stays so
            table = pa.Table.from_batches(*_batches(source, n))
        table.validate(full=sha256 is not None)
        names = table.column_names
        good = all(
            kinds.get(field.name, "null") in ("null", kind_of(field.type))
            and field.type == arrow_type(str(kind_of(field.type)))
            for field in table.schema
        )
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, StopIteration) as error:
        raise FormatError(f"{path}: damaged: {first_line(error)}") from None
    if len(table) != n or not good or len(set(names)) < len(names) or not set(names) <= set(kinds):
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise FormatError(f"{path}: damaged: {len(table)} rows of {found:.200}, expected {n}")
    return ColumnTable(table, n, str(path))


def _batches(source: Any, n: int) -> tuple[list[Any], Any]:
    """The record batches of an Arrow file of n rows, none of which is compressed; its schema."""
    pa = arrow()
    source.seek(8)  # the file is a stream between two marks
    messages = pa.ipc.MessageReader.open_stream(source)
    schema, batches = pa.ipc.read_schema(messages.read_next_message()), list[Any]()
    for message in messages:
        if message.type != "record batch" or _is_compressed(memoryview(message.metadata)):
            raise ValueError("compressed, or of another kind than embits writes")
        batches.append(pa.ipc.read_record_batch(message, schema))
        if not len(batches[-1]) or len(batches) > 1000 + n // 100:
            raise ValueError("more record batches than embits writes")
    return batches, schema


def _is_compressed(message: memoryview) -> bool:
    """Whether a record batch has field 3, its compression; it is field 2 of its FlatBuffer."""

    def number(at: int, size: int = 4) -> int:
        return int.from_bytes(message[at : at + size], "little", signed=size == 4)

    def offset(table: int, field: int) -> int:
        offsets, at = table - number(table), 4 + 2 * field
        return number(offsets + at, 2) if at < number(offsets, 2) else 0

    batch = number(0) + offset(number(0), 2)
    return offset(batch + number(batch), 3) != 0
