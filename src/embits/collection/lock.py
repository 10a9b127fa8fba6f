"""One writer at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from embits.errors import LockedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "_lock"
_WAIT_SECONDS = 0.02


@contextlib.contextmanager
def writer_lock(folder: Path, timeout: float = 0) -> Iterator[None]:
    """Hold the lock of a collection.

    Args:
        folder: The collection.
        timeout: Seconds to wait for another writer.

    Raises:
        LockedError: Another writer holds it; names its process.
        OSError: The lock file cannot be opened, such as in a folder that is read-only.
    """
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        end = time.monotonic() + timeout
        while not _taken(handle):
            if time.monotonic() >= end:
                raise LockedError(
                    f"{folder} is locked by process {_holder(handle)}, which is writing to it: try "
                    "again when it has finished"
                )
            time.sleep(_WAIT_SECONDS)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"{os.getpid():<20}".encode())
        yield
    finally:
        os.close(handle)  # which frees the lock


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


def _holder(handle: int) -> str:
    """The process that wrote its number last."""
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 20).decode(errors="replace").strip() or "?"
