"""What a new file may replace: never an input, and no other file without `overwrite`.

There is one exception: a job that writes codes replaces an earlier file of codes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from embits.errors import InputError
from embits.file.header import FORMAT, MAX_HEADER

PYTHON_ADVICE = "pass overwrite=True"  # the command line prints the name of its own option


def check_target(
    target: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
    *,
    codes: bool = False,
) -> None:
    """Refuse to write a file over an input, or over an existing file.

    Args:
        target: The file to be written. An empty file may be replaced.
        inputs: The files that are read. Names that are not files, such as "gensim:NAME", are
            ignored.
        overwrite: Allow any regular file that is not an input to be replaced.
        codes: The new file holds codes: it may replace a file of codes. Any other output may not,
            because training the codes again can take hours.

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
    if overwrite or target.stat().st_size == 0 or (codes and is_embits_file(target)):
        return
    raise InputError(f"{target} exists: choose another output, or {PYTHON_ADVICE}")


def is_same_file(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> bool:
    """Whether two names are one file on the disk; a file that is not there is no other's equal."""
    try:
        return Path(a).samefile(b)
    except (OSError, ValueError):
        return False


def is_embits_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file's header says that embits wrote it. The rest of the file is not read."""
    if not Path(path).is_file():  # opening a pipe would block
        return False
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= MAX_HEADER else {}
        return bool(header["__metadata__"]["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
