"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: stale files stay, as nothing there tells that their writer is gone
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` once it is whole and on the disk.

    Raises:
        OSError: The disk said no; it names `path`, which is as it was before.
    """
    path = path.resolve()  # through a symlink: replace what it points to, not the link
    _remove_stale(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:  # Ctrl-C too: nothing half-written stays behind
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename, error.filename2 = str(path), None
        raise
    if os.name == "posix":  # the rename itself must reach the disk
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _remove_stale(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it.

    Only files of exactly our names, whose process is gone and whose lock is free: the process
    may live in another container, where its number says nothing, and then its lock is held.
    """
    if fcntl is None:
        return
    ours = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})-[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):  # whatever is wrong here, the write itself will say
        for entry in os.scandir(path.parent):
            match = ours.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False) and not _is_running(int(match[1])):
                _remove_unlocked(Path(entry.path))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)  # signal 0: nothing is sent
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove_unlocked(temporary: Path) -> None:
    with contextlib.suppress(OSError), temporary.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink()


def _lock(file: BinaryIO) -> None:
    """Hold a lock for as long as this process writes; some file systems have none."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
