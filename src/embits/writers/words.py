"""A file of words, and words that a format cannot hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from embits.errors import InputError
from embits.file.atomic import atomic_write


def write_words(path: Path, words: Sequence[str]) -> None:
    """Write one word a line. The file is replaced atomically.

    Raises:
        InputError: A word holds a line end.
        OSError: The file could not be written.
    """
    check_words(words, r"[\r\n]", "a file of one word a line")
    with atomic_write(path) as file:
        file.writelines(word.encode() + b"\n" for word in words)


def check_words(words: Sequence[str], forbidden: str, what: str) -> None:
    """Refuse words that match the pattern of what a format, named `what`, cannot hold.

    Raises:
        InputError: A word matches.
    """
    pattern = re.compile(forbidden)
    for row, word in enumerate(words):
        if pattern.search(word):
            raise InputError(f"the word {word!r} of row {row} cannot be written to {what}")
