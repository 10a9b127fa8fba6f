"""Atomic file replacement."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: stale files stay, as their writer may still run
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def atomic_write(
    path: Path, *, like: Path | None = None, check: Callable[[], None] | None = None
) -> Iterator[BinaryIO]:
    """A file to write, which replaces `path` once it is complete and on the disk.

    Until then only its owner may open it. The target of a symbolic link is replaced. With `like`,
    the link itself is, and the file gets the permissions of `like`. `check` is called last.
    """
    path = path.absolute() if like else path.resolve()
    _remove_stale(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        mode = _final_mode(like or path, temporary)
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # some file systems have no locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
            with contextlib.suppress(OSError, AttributeError):  # no permissions here
                os.fchmod(file.fileno(), mode)
        if check:
            check()
        temporary.replace(path)
    except BaseException as error:  # Ctrl-C too: no incomplete file stays behind
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)
            del error.filename2  # set to None, it would be printed as " -> None"
        raise
    sync_folder(path.parent)  # the rename itself must reach the disk


def _final_mode(old: Path, temporary: Path) -> int:
    """The permissions of the old file, or those that new files get here."""
    with contextlib.suppress(OSError):
        return old.stat().st_mode & 0o777
    try:  # of an empty file: reading the umask sets it for all threads
        with temporary.open("xb") as empty:
            return os.fstat(empty.fileno()).st_mode & 0o777
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "posix":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _remove_stale(path: Path) -> None:
    """Remove the temporary files that killed writers of `path` have left beside it.

    Their lock must be free too: a process in another container has another number, but holds it.
    """
    if fcntl is None:
        return
    ours = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})-[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):  # the write itself reports what is wrong
        for entry in os.scandir(path.parent):
            match = ours.fullmatch(entry.name)
            if not match or not entry.is_file(follow_symlinks=False):
                continue
            try:
                os.kill(int(match[1]), 0)  # signal 0: nothing is sent
            except ProcessLookupError:
                with contextlib.suppress(OSError), Path(entry.path).open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()
            except OSError:
                continue  # it runs for another user
