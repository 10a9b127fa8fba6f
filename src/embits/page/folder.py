"""The folder of a page: only files that embits wrote are replaced or removed.

`embits-page.json` lists the files of the page with their checksums. While a page is written, it
lists the old and the new checksums, so that an interrupted write can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from embits.errors import InputError
from embits.file.atomic import atomic_write

MARKER = "embits-page.json"
_COPY_BYTES = 1 << 30


class PageFolder:
    """A folder that takes the files of a page.

    Args:
        folder: Where to write.
        checksums: SHA-256 of every file of the new page, by name.
        overwrite: Replace files of the old page that were changed since.

    Raises:
        InputError: The folder holds files that embits did not write, or that were changed since
            and `overwrite` is false.
    """

    def __init__(self, folder: Path, checksums: Mapping[str, str], overwrite: bool = False) -> None:
        self.folder = folder
        self.new = dict(checksums)
        self.old = _listed(folder)
        for name in self.old.keys() | self.new.keys():
            if not (overwrite and name in self.old):
                self._check(name)

    def begin(self) -> None:
        """Create the folder and list the files that are about to change."""
        self.folder.mkdir(parents=True, exist_ok=True)
        both = {name: [*self.old.get(name, []), sha] for name, sha in self.new.items()}
        self._write_marker(self.old | both)

    def write(self, name: str, content: bytes) -> None:
        """Write one file."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        with atomic_write(path) as file:
            file.write(content)

    def copy(self, source: Path, name: str) -> None:
        """Copy the vectors, unless the copy is there already.

        Raises:
            InputError: The source changed in the meantime.
        """
        path = self.folder / name
        if path.is_file() and _sha256(path) == self.new[name]:
            return
        with source.open("rb") as original, atomic_write(path) as copy:
            _clone(original, copy)
            copy.flush()
            if _sha256(Path(copy.name)) != self.new[name]:
                raise InputError(f"{source}: changed while it was copied; try again")

    def finish(self) -> list[Path]:
        """Remove what only the old page had, and return the files of the page."""
        for name in self.old.keys() - self.new.keys():
            (self.folder / name).unlink(missing_ok=True)
        self._write_marker({name: [sha] for name, sha in self.new.items()})
        return [self.folder / name for name in (*self.new, MARKER)]

    def _check(self, name: str) -> None:
        path = self.folder / name
        if not path.exists() and not path.is_symlink():
            return
        known = [*self.old.get(name, []), self.new.get(name)]
        if not path.is_file() or _sha256(path) not in known:
            raise InputError(
                f"{path}: embits did not write this file, or it was changed since; "
                "move it away, choose another folder, or replace a changed page with --force"
            )

    def _write_marker(self, files: Mapping[str, list[str]]) -> None:
        self.write(MARKER, json.dumps({"files": files}, indent=1, sort_keys=True).encode())


def _listed(folder: Path) -> dict[str, list[str]]:
    """Return the files of the page in a folder with their checksums; none in an empty folder.

    Hidden files, such as .git, are ignored: a page has none.

    Raises:
        InputError: The folder is not empty and has no page that embits wrote.
    """
    if not folder.is_dir() or all(entry.name.startswith(".") for entry in folder.iterdir()):
        return {}
    try:
        listed = json.loads((folder / MARKER).read_bytes())["files"]
        files = {str(name): [str(sha) for sha in shas] for name, shas in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        files = {"..": []}
    if not all(_is_inside(name) for name in files):
        raise InputError(
            f"{folder}: the folder is not empty, and embits did not write it; choose another folder"
        )
    return files


def _is_inside(name: str) -> bool:
    path = Path(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _clone(source: BinaryIO, copy: BinaryIO) -> None:
    """Copy a file; file systems that can share the blocks until one of the two changes."""
    try:
        while os.copy_file_range(source.fileno(), copy.fileno(), _COPY_BYTES):
            pass
    except (AttributeError, OSError):  # another system, or two file systems
        source.seek(0)
        copy.seek(0)
        copy.truncate()
        shutil.copyfileobj(source, copy, 1 << 20)
