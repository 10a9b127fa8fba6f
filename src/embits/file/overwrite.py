"""The rule for what a new file may replace: never an input, no foreign file unless it is asked for.

A file that embits wrote can be made again from its input; any other may be a user's only copy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from embits.errors import InputError
from embits.file.header import FORMAT, MAX_HEADER


def check_target(
    target: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
) -> None:
    """Refuse to write a file over an input, or over a file that embits did not write.

    Args:
        target: The file to be written. An empty file, or one that embits wrote, may be replaced.
        inputs: The files that are read. Names that are not files, such as "gensim:NAME", are
            ignored.
        overwrite: Allow any regular file that is not an input to be replaced.

    Raises:
        InputError: The target may not be replaced.
    """
    target = Path(target)
    if not target.exists() or target.is_dir():  # a folder is refused when it is written to
        return
    for each in inputs:
        if is_same_file(target, each):
            raise InputError(f"{target} is an input of this job: choose another output")
    if not target.is_file():
        raise InputError(f"{target} is not a regular file: choose another output")
    if not overwrite and target.stat().st_size and not is_embits_file(target):
        raise InputError(
            f"{target} exists, and embits did not write it: choose another output, or allow it to "
            "be replaced with overwrite=True (--force on the command line)"
        )


def is_same_file(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> bool:
    """Whether two names are one file on the disk; a file that is not there is no other's equal."""
    try:
        return Path(a).samefile(b)
    except (OSError, ValueError):
        return False


def is_embits_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file's header says that embits wrote it. The rest of the file is not read."""
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= MAX_HEADER else {}
        return bool(header["__metadata__"]["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
