"""The folder in which a long job records its progress, so that it can be resumed after a kill.

Files in it only grow. `state.json` holds the length and checksum of each file when all of them were
last flushed to the disk, and the position in the input at that time. Bytes written later are cut
off on resume. If a checksum is wrong, the job starts again.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from embits.collection.changes import LOCK, open_own, writer_lock
from embits.errors import InputError, ReadWarning, warn_caller
from embits.file.atomic import atomic_write

SECONDS_APART = 2.0  # at least, between two records of the state
_BYTES_AT_ONCE = 1 << 20
_STATE = "state.json"
_OURS = (_STATE, "coder", "codes", "lengths", "floats", "words", "ends", "places")


class Checkpoint:
    """The folder of a job, held by one process at a time; that of another job is emptied."""

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        self.folder = folder
        self._job = json.loads(json.dumps(job))
        self._lock = _locked(folder)
        stages = self._read_state()
        if stages is None and (folder / _STATE).exists():
            reason = "left by another command, damaged, or the input has changed"
            warn_caller(f"{folder}: {reason}: starting again", ReadWarning)
            self._empty()
        self.stages: dict[str, Any] = stages or {}
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
        for name in _OURS:
            (self.folder / name).unlink(missing_ok=True)

    def _read_state(self) -> dict[str, Any] | None:
        """The stages of the same job, if all their files are there and intact."""
        try:
            if not (self.folder / _STATE).is_file():
                return None
            text, checksum = (self.folder / _STATE).read_text().rsplit("\n", 1)
            state = json.loads(text)
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


class Stage:
    """One pass over the input: files that grow, and the position in the input they have reached."""

    def __init__(self, checkpoint: Checkpoint, name: str, files: Sequence[str]) -> None:
        kept = checkpoint.stages.get(name, {})
        self._checkpoint, self._name = checkpoint, name
        self._last = time.monotonic()
        self.done: bool = kept.get("done", False)  # perhaps by an earlier process
        self.mark: Any = kept.get("mark")  # what was recorded last; None at the start
        self.files: dict[str, BinaryIO] = {}  # open for writing, while it is not done
        self._recorded = {file: kept.get("files", {}).get(file, (0, 0)) for file in files}
        if not self.done:
            for file, (size, _) in self._recorded.items():
                self.files[file] = open_file(checkpoint.folder / file)
                self.files[file].truncate(size)
                self.files[file].seek(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            file.close()

    def save_now_and_then(self, mark: Any) -> None:
        """Record the position reached, if the last record is some time ago."""
        if time.monotonic() - self._last >= SECONDS_APART:
            self.save(mark)

    def save(self, mark: Any, *, done: bool = False) -> None:
        """Flush what was written to the disk, then record the position reached."""
        for name, file in self.files.items():
            file.flush()
            os.fsync(file.fileno())
            begin, before = self._recorded.get(name, (0, 0))
            end = file.seek(0, os.SEEK_END)
            self._recorded[name] = end, file_checksum(file, begin, end, before)
        self.mark, self.done = mark, done
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
    """A file of the folder, to read and write; made if it is not there."""
    return os.fdopen(open_own(path), "r+b")


def _locked(folder: Path) -> ExitStack:
    """The folder, made and locked; its owner may remove it in the meantime."""
    while True:
        folder.mkdir(exist_ok=True)
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
