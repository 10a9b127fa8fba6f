"""A file of vectors in blocks: scan its words, copy the rows to fit on, encode all rows.

A long job records its progress in a folder, whose files only grow. `state.json` holds the length
and checksum of each when all were last flushed to the disk, and the position in the input. What was
written later is cut off; if a checksum is wrong, the job starts again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import errors
from embits.arrays import BLOCK_ROWS, LazyRows
from embits.binary_vectors import BinaryVectors
from embits.bounded_json import Limits, parse_json
from embits.checks import read_small
from embits.coders import Coder, draw_rows
from embits.collection.changes import LOCK, open_own, writer_lock
from embits.errors import EmbitsError, InputError, ReadError, TrainingError, warn_caller
from embits.file import store
from embits.file.atomic import atomic_write
from embits.file.contents import read_coder, write_coder
from embits.ids.keys import Ids, RowNumbers
from embits.ids.segments import SegmentIds
from embits.ids.vocabulary import Vocabulary
from embits.readers import open_blocks
from embits.readers.blocks import Block, Blocks, Findings, Position
from embits.readers.source import Source, is_compressed
from embits.search.stored import RowMap
from embits.segment import LENGTHS, Lengths, Segment, vector_lengths

StepProgress: TypeAlias = Callable[[str, int, int], None]  # the step's name, done, total
Places: TypeAlias = NDArray[np.int64]

STREAM_FROM = 64 << 20  # bytes of a file; a smaller one is read whole, for the same result
STREAM_PACKED_FROM = 16 << 20
SHUFFLED = 8  # times larger, if the fit shuffles rows: it needs them in memory to be fast
SECONDS_APART = 2.0  # at least, between two records of the state
_BYTES_AT_ONCE = 1 << 20
_MAX_STATE = 1 << 26
_STATE = "state.json"
_JOB_FILES = (_STATE, "coder", "codes", "lengths", "floats", "words", "ends", "places")


class Steps:
    """A caller's progress callback, and the name of the step that is under way."""

    name = "checking"

    def __init__(self, progress: StepProgress | None) -> None:
        self._progress = progress

    def __call__(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self.name, done, total)

    def start(self, name: str) -> Steps:
        """Begin another step; the object itself is its callback."""
        self.name = name
        self(0, 1)  # the total is not known yet
        return self


def open_large(source: Source, steps: Steps, fits: Coder | None = None) -> Blocks | None:
    """The file to be read in blocks, to fit a coder on it if one is given; None: read it whole."""
    if not all(path.is_file() for path in source.files or [source.path]):
        return None  # the reader raises the error
    is_packed = not source.files and is_compressed(source.path)
    least = STREAM_PACKED_FROM if is_packed else STREAM_FROM
    if source.size <= least * (SHUFFLED if fits is not None and fits.shuffles_rows else 1):
        return None
    return open_blocks(replace(source, progress=steps))


def input_fingerprint(source: Source) -> str:
    """The fingerprint of an input: it differs for another input, and if a file has changed."""
    words, fetched = source.words, source.fetched
    if words is not None and not isinstance(words, str | os.PathLike):
        run = "\0".join(map(str, words)).encode(errors="surrogatepass")
        words = hashlib.sha256(run).hexdigest()
    facts: list[object] = [fetched and [source.name, fetched.checksum], words and str(words)]
    for path in source.paths()[1 if fetched else 0 :]:
        status = path.stat()
        facts.append([str(path.resolve()), status.st_size, status.st_mtime_ns])
    names = ("limit", "on_bad", "repeats", "ids", "column", "encoding")
    facts += [getattr(source, name) for name in names]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@contextmanager
def checkpoint_beside(target: Path, job: Mapping[str, object]) -> Iterator[Checkpoint]:
    """The folder of a job: removed when it ends or its input is wrong, kept when it is stopped."""
    target = target.resolve()
    job = {**job, "numpy": np.__version__, "writer": store.WRITER}
    checkpoint = Checkpoint(target.with_name(f".{target.name}.partial"), job)
    hint = f"progress is kept in {checkpoint.folder}: run the same command again to resume"
    try:
        yield checkpoint
        checkpoint.remove()
    except EmbitsError:
        checkpoint.remove()
        raise
    except KeyboardInterrupt:
        checkpoint.close()
        raise KeyboardInterrupt(f"interrupted; {hint}") from None
    except BaseException:
        checkpoint.close()
        warn_caller(hint, errors.ReadWarning)
        raise


class Passes:
    """The passes over a file that is read in blocks. Each resumes where a checkpoint left it.

    The first finds bad rows, repeated words, and the `ids` of the other rows. It is left out if
    rows have no words and their number is known.
    """

    def __init__(self, checkpoint: Checkpoint, blocks: Blocks, steps: Steps) -> None:
        self._checkpoint, self._blocks, self._steps = checkpoint, blocks, steps
        self._folder = checkpoint.folder
        self._dropped: Places = np.empty(0, np.int64)  # good rows that repeat a word, ascending
        self.ids: Ids
        if not blocks.has_words and blocks.n_rows is not None:
            self.ids = RowNumbers(blocks.n_rows)
        else:
            with Stage(checkpoint, "scan", ("words", "ends", "places")) as stage:
                self._scan(stage)
            blocks.findings.warn(blocks.source)
            self.ids = self._index(n_read=stage.mark[0][2])
        self.n_rows = len(self.ids)

    def fit(self, coder: Coder, sample: int | None) -> Coder:
        """The coder, fitted on the rows that it reads; or as it was before the job was stopped."""
        path, dims = self._folder / "coder", self._blocks.dims
        with Stage(self._checkpoint, "fit", ()) as stage:
            if stage.done:
                return read_coder(path, verify=True)
            drawn = draw_rows(self.n_rows, sample, coder)
            n = self.n_rows if drawn is None else len(drawn)
            read = _rows_for_fit(coder, n, dims)
            self._steps.start("sampling")
            self._copy_floats(read if drawn is None else drawn if read is None else drawn[read])
            floats = _floats(self._folder / "floats", n, dims, read)
            coder.fit(floats, progress=self._steps.start("fitting"))
            if self._checkpoint.is_kept:
                write_coder(path, coder)
                stage.files["coder"] = stage.enter_context(open_file(path))
                self._checkpoint.stages["sample"] = {"done": True, "files": {}}
            stage.save(None, done=True)
            (self._folder / "floats").unlink()
        return coder

    def encode(self, coder: Coder, lengths: bool, *, in_memory: bool) -> BinaryVectors:
        """Encode the rows that are kept. Their codes are mapped, or read into memory."""
        # In the blocks of `Coder.encode`: a matrix product may round differently in another block.
        self._steps.start("encoding")
        with Stage(self._checkpoint, "encode", ("codes", "lengths")) as stage:
            if not stage.done:
                position, skip = stage.mark or (self._blocks.first, 0)
                codes = stage.files["codes"]
                for rows, mark in self._in_chunks(Position(*position), skip):
                    append(codes, coder.encode(rows))
                    if lengths:
                        append(stage.files["lengths"], vector_lengths(rows))
                    stage.save_now_and_then(mark)
                if codes.tell() != self.n_rows * coder.n_bytes_:
                    raise ReadError(f"{self._blocks.source.name}: it has changed while it was read")
                stage.save(None, done=True)
        kept = {LENGTHS: Lengths.of(np.fromfile(self._folder / "lengths"))} if lengths else {}
        path = self._folder / "codes"
        flat = np.fromfile(path, np.uint8) if in_memory else np.memmap(path, np.uint8, "r")
        return BinaryVectors.of_segment(
            Segment(self.ids, flat.reshape(self.n_rows, -1), kept), coder
        )

    def _scan(self, stage: Stage) -> None:
        blocks, end = self._blocks, self._blocks.first
        if stage.mark is not None:
            end, found = Position(*stage.mark[0]), Findings(**stage.mark[1])
            found.bad, found.escaped = (*found.bad,), (*found.escaped,)  # JSON has lists for tuples
            blocks.findings = found
        if stage.done:
            return
        text, ends, places = stage.files.values()
        for block in blocks.read(end, words=blocks.has_words):
            words = block.words
            if words is None:  # ids, if bad rows are left out: the rows after them move up
                words = list(map(str, block.places.tolist()))
            encoded = [word.encode() for word in words]
            sizes = np.fromiter(map(len, encoded), np.uint64, len(encoded))
            append(ends, np.uint64(text.tell()) + np.cumsum(sizes, dtype=np.uint64))
            text.write(b"".join(encoded))
            append(places, block.places)
            end = block.end
            stage.save_now_and_then((end, asdict(blocks.findings)))
        stage.save((end, asdict(blocks.findings)), done=True)

    def _index(self, n_read: int) -> Ids:
        if not (self._blocks.has_words or self._blocks.findings.is_numbered):
            return RowNumbers(n_read)
        text = np.fromfile(self._folder / "words", np.uint8)
        ends = np.fromfile(self._folder / "ends", np.uint64)
        words, repeated = Vocabulary.from_run(text, ends)
        if repeated:
            first = repeated[0]
            place = np.fromfile(self._folder / "places", np.int64, 1, offset=8 * first)[0]
            self._blocks.report_repeats(len(repeated), int(place), words[first])
            self._dropped = np.array(repeated, np.int64)
            return SegmentIds([words], RowMap([len(words)], self._dropped)).merged()
        return words

    def _copy_floats(self, wanted: Places | None) -> None:
        with Stage(self._checkpoint, "sample", ("floats",)) as stage:
            if stage.done:
                return
            end = Position(*stage.mark) if stage.mark else self._blocks.first
            for block, first, matrix in self._kept(end):
                if wanted is not None:
                    begin, stop = np.searchsorted(wanted, (first, first + len(matrix)))
                    matrix = matrix[wanted[begin:stop] - first]
                append(stage.files["floats"], matrix)
                end = block.end
                stage.save_now_and_then(end)
            stage.save(end, done=True)

    def _in_chunks(
        self, start: Position, skip: int
    ) -> Iterator[tuple[NDArray[np.float32], tuple[Position, int]]]:
        """Kept rows from the `skip`-th after `start` on, BLOCK_ROWS at a time; where to resume."""
        chunk = np.empty((BLOCK_ROWS, self._blocks.dims), np.float32)
        filled, end = 0, start
        for block, _, matrix in self._kept(start):
            end, used = block.end, min(skip, len(matrix))
            skip -= used
            while used < len(matrix):
                size = min(BLOCK_ROWS - filled, len(matrix) - used)
                chunk[filled : filled + size] = matrix[used : used + size]
                filled, used = filled + size, used + size
                if filled == BLOCK_ROWS:
                    yield chunk, (block.start, used)
                    filled = 0
        if filled:
            yield chunk[:filled], (end, 0)

    def _kept(self, start: Position) -> Iterator[tuple[Block, int, NDArray[np.float32]]]:
        """The blocks; with each, its kept rows, and the number of the first among all kept."""
        for block in self._blocks.read(start):
            first, matrix = block.start.rows, block.matrix
            before, after = np.searchsorted(self._dropped, (first, block.end.rows)).tolist()
            if after > before:
                matrix = np.delete(matrix, self._dropped[before:after] - first, axis=0)
            yield block, first - before, matrix


def _rows_for_fit(coder: Coder, n: int, dims: int) -> Places | None:
    """The rows that `rows_for_fit` returns; TrainingError if they break its contract."""
    if (numbers := coder.rows_for_fit(n, dims)) is None:
        return None
    rows: Places = np.asarray(numbers)
    ascending = rows.ndim == 1 and rows.dtype.kind in "iu" and bool((np.diff(rows) > 0).all())
    if not ascending or (len(rows) and not 0 <= rows[0] <= rows[-1] < n):
        what = f"row numbers from 0 to {n - 1}, ascending and each once, or None"
        raise TrainingError(f"rows_for_fit of {type(coder).__name__} must return {what}")
    return rows.astype(np.int64)


def _floats(path: Path, n_rows: int, dims: int, stored: Places | None) -> LazyRows:
    """A matrix of n rows, of which a file holds the floats of the `stored` ones (None: all)."""

    def take(rows: Places) -> NDArray[np.float32]:
        at = rows
        if stored is not None:
            at = np.searchsorted(stored, rows)
            is_stored = stored[np.minimum(at, len(stored) - 1)] == rows
            if not is_stored.all():
                left_out = f"row {rows[~is_stored][0]}, which its rows_for_fit leaves out"
                raise TrainingError(f"the coder's fit reads {left_out}")
        out = np.empty((len(rows), dims), np.float32)
        stops = [*np.flatnonzero(np.diff(at) != 1) + 1, len(at)] if len(at) else []
        with path.open("rb") as file:
            for start, stop in pairwise([0, *stops]):
                file.seek(4 * dims * int(at[start]))
                part = out[start:stop].data.cast("B")
                if file.readinto(part) < len(part):
                    raise ReadError(f"{path}: cut short while it was read")
        return out

    return LazyRows(take, n_rows, dims)


# -- the folder in which a job records its progress ------------------------------------------------


class Checkpoint:
    """The folder of a job, held by one process at a time; that of another job is emptied.

    Without a job nothing is recorded: the folder is removed when the job ends, however it ends.
    """

    def __init__(self, folder: Path, job: Mapping[str, object] | None = None) -> None:
        self.folder, self.is_kept = folder, job is not None
        self.stages: dict[str, Any] = {}
        if job is None:
            return
        self._job = json.loads(json.dumps(job))
        self._lock = _locked(folder)
        stages = self._read_state()
        if stages is None and (folder / _STATE).exists():
            reason = "left by another command, damaged, or the input has changed"
            warn_caller(f"{folder}: {reason}: starting again", errors.ReadWarning)
            self._empty()
        self.stages = stages or {}
        self.save()

    def save(self) -> None:
        """Write the state of all stages to the disk, atomically."""
        text = json.dumps({"job": self._job, "stages": self.stages})
        with atomic_write(self.folder / _STATE) as file:
            file.write(f"{text}\n{zlib.crc32(text.encode())}".encode())

    def remove(self) -> None:
        """Remove the folder; files in it that are not of a job stay."""
        self._empty()
        if os.name == "nt":  # an open file cannot be deleted there
            self.close()
        with suppress(OSError):
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()
        self.close()

    def close(self) -> None:
        """Release the lock; the folder stays."""
        self._lock.close()

    def _empty(self) -> None:
        for name in _JOB_FILES:
            (self.folder / name).unlink(missing_ok=True)

    def _read_state(self) -> dict[str, Any] | None:
        """The stages of the same job, if all their files are there and intact."""
        try:
            text, checksum = read_small(self.folder / _STATE, _MAX_STATE).decode().rsplit("\n", 1)
            state = parse_json(text, Limits(_MAX_STATE, 1_000_000, 10_000))
            if zlib.crc32(text.encode()) != int(checksum) or state["job"] != self._job:
                return None
            stages: dict[str, Any] = state["stages"]
            for stage in stages.values():
                for name, (size, expected) in stage["files"].items():
                    with open_file(self.folder / name) as file:
                        if file_checksum(file, 0, size) != expected:
                            return None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        return stages


class Stage(ExitStack):
    """One pass over the input: files that grow, and the position in the input they have reached."""

    def __init__(self, checkpoint: Checkpoint, name: str, files: Sequence[str]) -> None:
        super().__init__()
        kept = checkpoint.stages.get(name, {})
        self._checkpoint, self._name = checkpoint, name
        self._last = time.monotonic()
        self.done: bool = kept.get("done", False)  # perhaps by an earlier process
        self.mark: Any = kept.get("mark")  # what was recorded last; None at the start
        self.files: dict[str, BinaryIO] = {}  # open for writing, while it is not done
        self._recorded = {file: kept.get("files", {}).get(file, (0, 0)) for file in files}
        if not self.done:
            for file, (size, _) in self._recorded.items():
                self.files[file] = self.enter_context(open_file(checkpoint.folder / file))
                self.files[file].truncate(size)
                self.files[file].seek(size)

    def save_now_and_then(self, mark: Any) -> None:
        """Record the position reached, if the last record is some time ago."""
        if self._checkpoint.is_kept and time.monotonic() - self._last >= SECONDS_APART:
            self.save(mark)

    def save(self, mark: Any, *, done: bool = False) -> None:
        """Flush what was written to the disk, then record the position reached."""
        self.mark, self.done = mark, done
        if not self._checkpoint.is_kept:
            return
        for name, file in self.files.items():
            file.flush()
            os.fsync(file.fileno())
            begin, before = self._recorded.get(name, (0, 0))
            end = file.seek(0, os.SEEK_END)
            self._recorded[name] = end, file_checksum(file, begin, end, before)
        record = {"mark": mark, "done": done, "files": self._recorded}
        self._checkpoint.stages[self._name] = record
        self._checkpoint.save()
        self._last = time.monotonic()


def append(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write an array's bytes."""
    if array.size:
        file.write(np.ascontiguousarray(array).data.cast("B"))


def file_checksum(file: BinaryIO, begin: int, end: int, before: int = 0) -> int:
    """The CRC-32 of a file up to `end`, given that of its bytes up to `begin`."""
    file.seek(begin)
    while begin < end:
        if not (part := file.read(min(_BYTES_AT_ONCE, end - begin))):
            raise ValueError("the file is too short")
        before, begin = zlib.crc32(part, before), begin + len(part)
    return before


def open_file(path: Path) -> BinaryIO:
    """A file of the folder, to read and write; made if it does not exist."""
    return os.fdopen(open_own(path, 0o600), "r+b")


def _locked(folder: Path) -> ExitStack:
    """The folder, made and locked; its owner may remove it in the meantime."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)  # it may hold a copy of the floats
        if folder.is_symlink():
            raise InputError(f"{folder}: is a link, expected a folder of this job: remove it")
        lock = ExitStack()
        try:
            lock.enter_context(writer_lock(folder))
        except FileNotFoundError:
            continue
        except OSError:  # a file system without locks
            return lock
        if (folder / LOCK).exists():
            return lock
        lock.close()
