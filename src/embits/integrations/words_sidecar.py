"""The words of a file of codes, in a `.words` file beside it: one a line, as they are."""

from __future__ import annotations

from pathlib import Path

from embits.errors import ReadError
from embits.words.vocabulary import Keys, RowNumbers
from embits.writers import write_words


def write_words_beside(path: Path, words: Keys) -> None:
    """Write the words of `path`, whole or not at all; rows that go by their number need none.

    Raises:
        InputError: A word holds a line end.
    """
    if not isinstance(words, RowNumbers):
        write_words(path.with_suffix(".words"), words)


def read_words_beside(path: Path) -> list[str] | None:
    """What `write_words_beside` wrote, or None where it wrote nothing.

    Raises:
        ReadError: The file is not UTF-8.
    """
    beside = path.with_suffix(".words")
    if not beside.is_file():
        return None
    try:
        return beside.read_bytes().decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{beside}, byte {error.start}: found a word that is not UTF-8, expected UTF-8"
        ) from None
