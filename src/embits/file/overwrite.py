"""What a new file or folder may replace: never an input, and nothing else without `overwrite`.

There is one exception: a job that writes codes replaces an earlier file of codes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from embits.bounded_json import parse_json
from embits.errors import InputError
from embits.file.store import FORMAT, MAX_HEADER
from embits.remote import refuse_output

OVERWRITE = "overwrite it (overwrite=True, --force)"
AnyPath: TypeAlias = str | os.PathLike[str]


def check_target(
    target: AnyPath, inputs: Iterable[AnyPath] = (), overwrite: bool = False, *, codes: bool = False
) -> None:
    """Refuse a file that cannot be written, that is an input, or that exists and is not empty.

    A new file of `codes` may replace one: any other output may not without `overwrite`, because
    training the codes again can take hours. Of `inputs`, names that are not files are ignored.
    """
    refuse_output(target)
    target = Path(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, expected a file", str(target))
    if (target.parent / "_embits.json").is_file():
        raise InputError(f"{target} is in the folder of a collection: choose another output")
    if not target.exists():
        return
    for each in inputs:
        if is_same_file(target, each):
            raise InputError(f"{target} is an input of this job: choose another output")
    if not target.is_file():
        raise InputError(f"{target} is not a regular file: choose another output")
    if overwrite or target.stat().st_size == 0 or (codes and is_embits_file(target)):
        return
    raise InputError(f"{target} exists: choose another output, or {OVERWRITE}")


def check_folder(folder: AnyPath, names: Iterable[str], overwrite: bool = False) -> None:
    """Refuse to write files into a folder that has others; hidden ones, such as .git, are ignored.

    With `overwrite`, files of these `names` are replaced, and all others stay.
    """
    folder = Path(folder)
    if not folder.exists():
        return
    if not overwrite and any(not entry.name.startswith(".") for entry in folder.iterdir()):
        others = "replace the files that have the names of the new ones (overwrite=True, --force)"
        raise InputError(f"{folder} is not empty: choose another folder, or {others}")
    for name in names:
        path = folder / name
        parents = [folder / parent for parent in Path(name).parents][:-1]
        kinds = [(path, Path.is_file), *((parent, Path.is_dir) for parent in parents)]
        if any(each.is_symlink() or (each.exists() and not is_it(each)) for each, is_it in kinds):
            raise InputError(f"{path} is a link or not a regular file: move it away")


def is_same_file(a: AnyPath, b: AnyPath) -> bool:
    """Whether two names are one file on the disk; False if one does not exist."""
    try:
        return Path(a).samefile(b)
    except (OSError, ValueError):
        return False


def is_embits_file(path: AnyPath) -> bool:
    """Whether a file's header says that embits wrote it. The rest of the file is not read."""
    if not Path(path).is_file():  # opening a pipe would block
        return False
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = parse_json(file.read(length)) if length <= MAX_HEADER else {}
        return bool(header["__metadata__"]["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False
