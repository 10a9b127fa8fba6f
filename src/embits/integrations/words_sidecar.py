"""The words of a file of codes, in a `.words` file of the same name: one per line, unchanged."""

from __future__ import annotations

from pathlib import Path

from embits.errors import ReadError
from embits.file.overwrite import check_target
from embits.ids.keys import Keys, RowNumbers
from embits.writers import write_words


def check_targets(path: Path, words: Keys, overwrite: bool) -> None:
    """Check that a file and its `.words` file may be written.

    Raises:
        InputError: One of them exists and `overwrite` is false.
    """
    check_target(path, overwrite=overwrite)
    if not isinstance(words, RowNumbers):
        check_target(path.with_suffix(".words"), overwrite=overwrite)


def write_words_sidecar(path: Path, words: Keys) -> None:
    """Write the words of `path` atomically; nothing if the rows have no words.

    Raises:
        InputError: A word contains a line end.
    """
    if not isinstance(words, RowNumbers):
        write_words(path.with_suffix(".words"), words)


def read_words_sidecar(path: Path) -> list[str] | None:
    """Read what `write_words_sidecar` wrote; None if there is no such file.

    Raises:
        ReadError: The file is not UTF-8.
    """
    sidecar = path.with_suffix(".words")
    if not sidecar.is_file():
        return None
    try:
        return sidecar.read_bytes().decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{sidecar}, byte {error.start}: found a word that is not UTF-8, expected UTF-8"
        ) from None
