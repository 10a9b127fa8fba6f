"""Working folders: files of a change that is being prepared, inside the collection."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embits.collection.lock import LOCK, writer_lock
from embits.errors import LockedError

_PREFIX = ".embits-add-"
_NAME = re.compile(rf"{re.escape(_PREFIX)}\w+", re.ASCII)


@contextmanager
def working_folder(collection: Path) -> Iterator[Path]:
    """A new folder for one process. It is locked, so that other writers leave it alone.

    Raises:
        OSError: It cannot be made.
    """
    folder = Path(tempfile.mkdtemp(dir=collection, prefix=_PREFIX))
    try:
        with writer_lock(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_working_folder(name: str) -> bool:
    """Whether this is the name of a working folder."""
    return bool(_NAME.fullmatch(name))


def delete_abandoned(folder: Path) -> None:
    """Delete a working folder if no process holds its lock: its process was killed."""
    if not (folder / LOCK).is_file():  # it is being made
        return
    with suppress(LockedError, OSError):
        with writer_lock(folder):
            pass
        shutil.rmtree(folder, ignore_errors=True)
