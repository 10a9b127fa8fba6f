"""The folder in which a long job records its progress, so that it can be resumed after a kill.

Files in it only grow. `state.json` holds the length of each file when all of them were last flushed
to the disk, and the position in the input at that time. Bytes written later are cut off on resume.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
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
_LOCK, _STATE = "lock", "state.json"
_OURS = {_LOCK, _STATE, "coder", "codes", "floats", "words", "ends", "places",
         "vocabulary.npz", "dropped.npy"}  # fmt: skip


class Checkpoint:
    """The folder of a job, held by one process at a time.

    Args:
        folder: Made if it does not exist.
        job: What identifies the job; a folder of another job is emptied.

    Raises:
        InputError: Another process is using it.
    """

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        self.folder = folder
        self._job = json.loads(json.dumps(job))
        self._lock = _locked(folder)
        self._stages: dict[str, Any] = {}
        if (folder / _STATE).exists():
            state = self._read_state()
            if state is None:
                warnings.warn(
                    f"{folder}: left by another command, or the input has changed: starting again",
                    ReadWarning,
                    stacklevel=2,
                )
                self._empty()
            else:
                self._stages = state
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
        """The stages of the same job, if all their files are there."""
        try:
            state = json.loads((self.folder / _STATE).read_text())
            stages: dict[str, Any] = state["stages"]
            lengths = [pair for stage in stages.values() for pair in stage["lengths"].items()]
            whole = all((self.folder / name).stat().st_size >= size for name, size in lengths)
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        return stages if whole and state["job"] == self._job else None

    def _write_state(self) -> None:
        text = json.dumps({"job": self._job, "stages": self._stages})
        with atomic_write(self.folder / _STATE) as file:
            file.write(text.encode())


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
        if not self.done:
            lengths = kept.get("lengths", {})
            for file in files:
                self.files[file] = _cut_at(checkpoint.folder / file, lengths.get(file, 0))

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
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        self.mark, self.done = mark, done
        self.facts = dict(facts or {})
        lengths = {name: file.tell() for name, file in self.files.items()}
        record = {"mark": mark, "facts": self.facts, "done": done, "lengths": lengths}
        self._checkpoint.record(self._name, record)
        self._last = time.monotonic()


def append(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write an array's bytes."""
    if array.size:
        file.write(np.ascontiguousarray(array).data.cast("B"))


def _cut_at(path: Path, length: int) -> BinaryIO:
    file = path.open("r+b" if path.exists() else "w+b")
    file.truncate(length)
    file.seek(length)
    return file


def _locked(folder: Path) -> BinaryIO:
    """The folder's lock file, locked; the folder may be removed by its owner in the meantime."""
    path = folder / _LOCK
    while True:
        folder.mkdir(exist_ok=True)
        try:
            file = path.open("wb")
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
