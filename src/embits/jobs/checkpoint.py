"""The folder in which a long job records its progress, so that it can be resumed after a kill.

Files in it only grow. `state.json` holds the length and checksum of each file when all of them were
last flushed to the disk, and the position in the input at that time. Bytes written later are cut
off on resume. If a checksum is wrong, the job starts again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, ReadWarning
from embits.file.atomic import atomic_write

try:
    import fcntl
except ImportError:  # Windows: two jobs are not kept apart
    fcntl = None  # type: ignore[assignment]

SECONDS_APART = 2.0  # at least, between two records of the state
_BYTES_AT_ONCE = 1 << 20
_LOCK, _STATE = "lock", "state.json"
_OURS = {_LOCK, _STATE, "coder", "codes", "lengths", "floats", "words", "ends", "places",
         "vocabulary.npz", "dropped.npy"}  # fmt: skip


class Checkpoint:
    """The folder of a job, held by one process at a time.

    Args:
        folder: Made if it does not exist.
        job: What identifies the job; a folder of another job is emptied.

    Raises:
        InputError: Another process is using it, or it is a link.
    """

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        self.folder = folder
        self._job = json.loads(json.dumps(job))
        self._lock = _locked(folder)
        stages = self._read_state()
        if stages is None and (folder / _STATE).exists():
            reason = "left by another command, damaged, or the input has changed"
            warnings.warn(f"{folder}: {reason}: starting again", ReadWarning, stacklevel=2)
            self._empty()
        self._stages: dict[str, Any] = stages or {}
        self._write_state()

    def stage(self, name: str) -> dict[str, Any]:
        """What was recorded of a stage; empty if it has not begun."""
        kept: dict[str, Any] = self._stages.get(name, {})
        return kept

    def record(self, name: str, stage: Mapping[str, Any]) -> None:
        """Write a stage's state to the disk, atomically."""
        self._stages[name] = dict(stage)
        self._write_state()

    def remove(self) -> None:
        """Remove the folder; files in it that are not of a job stay."""
        self._empty()
        self.close()
        with contextlib.suppress(OSError):
            (self.folder / _LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def close(self) -> None:
        """Release the lock; the folder stays."""
        self._lock.close()

    def _empty(self) -> None:
        for name in _OURS - {_LOCK}:
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
                    with open_own(self.folder / name) as file:
                        if file_checksum(file, 0, size) != expected:
                            return None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        return stages

    def _write_state(self) -> None:
        text = json.dumps({"job": self._job, "stages": self._stages})
        with atomic_write(self.folder / _STATE) as file:
            file.write(f"{text}\n{zlib.crc32(text.encode())}".encode())


class Stage:
    """One pass over the input: files that grow, and the position in the input they have reached.

    Attributes:
        done: Whether it was finished, perhaps by an earlier process.
        mark: The position recorded last, as it was given to `save`; None at the start.
        facts: What else was recorded.
        files: The files by name, open for writing, while it is not done.
    """

    def __init__(self, checkpoint: Checkpoint, name: str, files: Sequence[str]) -> None:
        kept = checkpoint.stage(name)
        self._checkpoint, self._name = checkpoint, name
        self._last = time.monotonic()
        self.done: bool = kept.get("done", False)
        self.mark: Any = kept.get("mark")
        self.facts: dict[str, Any] = kept.get("facts", {})
        self.files: dict[str, BinaryIO] = {}
        self._recorded = {file: kept.get("files", {}).get(file, (0, 0)) for file in files}
        if not self.done:
            for file, (size, _) in self._recorded.items():
                self.files[file] = open_own(checkpoint.folder / file)
                self.files[file].truncate(size)
                self.files[file].seek(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            file.close()

    def save_now_and_then(self, mark: Any, facts: Mapping[str, Any] | None = None) -> None:
        """Record the position reached, if the last record is some time ago."""
        if time.monotonic() - self._last >= SECONDS_APART:
            self.save(mark, facts)

    def save(
        self, mark: Any, facts: Mapping[str, Any] | None = None, *, done: bool = False
    ) -> None:
        """Flush what was written to the disk, then record the position reached."""
        for name, file in self.files.items():
            file.flush()
            os.fsync(file.fileno())
            begin, before = self._recorded.get(name, (0, 0))
            end = file.seek(0, os.SEEK_END)
            self._recorded[name] = end, file_checksum(file, begin, end, before)
        self.mark, self.done, self.facts = mark, done, dict(facts or {})
        record = {"mark": mark, "facts": self.facts, "done": done, "files": self._recorded}
        self._checkpoint.record(self._name, record)
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


def open_own(path: Path) -> BinaryIO:
    """A file of the folder, to read and write; made if it is not there.

    Raises:
        InputError: It is a link, or no regular file: another user may have prepared it.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path}: is a link, expected a file of this job: remove it") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path}: is not a regular file: remove it")
    return os.fdopen(descriptor, "r+b")


def _locked(folder: Path) -> BinaryIO:
    """The folder's lock file, locked; the folder may be removed by its owner in the meantime."""
    path = folder / _LOCK
    while True:
        folder.mkdir(exist_ok=True)
        if folder.is_symlink():
            raise InputError(f"{folder}: is a link, expected a folder of this job: remove it")
        try:
            file = open_own(path)
        except FileNotFoundError:
            continue
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except BlockingIOError:
            file.close()
            raise InputError(f"{folder}: another process is writing the same file") from None
        except OSError:  # a file system without locks
            return file
        file.close()
