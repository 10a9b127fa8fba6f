"""Rows on their way to WordVectors: words are decoded, bad rows and repeats left out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.readers.source import Source

Where = Callable[[int], str]  # row -> its line, byte or entry, as in "line 7"

_WORD_BYTES_AT_ONCE = 1 << 16
# Rows that are moved or checked at a time, so that the matrix is never copied as a whole.
_ROWS_AT_ONCE = 1 << 14


def new_rows(source: Source, dims: int, first_place: int, n_read: int = 0) -> _core.Rows:
    """An empty collection of rows that the native parsers fill, after `n_read` rows before it."""
    limit = sys.maxsize if source.limit is None else source.limit - n_read
    return _core.Rows(dims, limit, source.on_bad == "skip", first_place)


def raise_first_bad(source: Source, rows: _core.Rows, unit: str, hint: str = "") -> None:
    """Raise the error of the bad row that a parser stopped at, if it stopped at one."""
    if rows.lost or (rows.n_bad and source.on_bad == "raise"):
        place, found, expected = rows.first_bad
        raise source.read_error(as_text(found), as_text(expected) + hint, f"{unit} {place}")


def warn_of_bad(
    source: Source, n_bad: int, where: str, found: str, *, is_numbered: bool = False
) -> None:
    """Warn of the rows that `on_bad="skip"` left out."""
    ids = "; the other rows have their numbers in the file as ids" if is_numbered else ""
    source.warn(f"{_counted(n_bad, 'row')} left out, the first at {where}: found {found}{ids}")


def as_float32(
    values: NDArray[Any], convert: Callable[..., NDArray[Any]] = np.asanyarray
) -> NDArray[np.float32]:
    """Rows as float32; too large values become infinite, to be refused with their row."""
    with np.errstate(over="ignore", invalid="ignore"):
        return convert(values, dtype=np.float32, order="C")


def what_is_not_finite(row: NDArray[Any]) -> str:
    """What a row holds, as it was before it became float32, that is not finite as float32."""
    if not np.isfinite(row).all():
        return "nan or inf"
    return f"{row[np.abs(row).argmax()]:g}, too large for float32"


def warn_of_escapes(source: Source, n_escaped: int, where: str, word: str) -> None:
    """Warn of words that are not UTF-8."""
    source.warn(
        f"{_counted(n_escaped, 'word')} not in valid UTF-8 and escaped, "
        f"the first at {where}: {word!r}"
    )


def warn_of_repeats(source: Source, n_repeats: int, where: str, word: str) -> None:
    """Warn of rows that were left out because an earlier row has the same word."""
    source.warn(f"{_counted(n_repeats, 'repeated word')} left out, the first at {where}: {word!r}")


def decode_words(source: Source, run: bytes, n_words: int, where: Where) -> list[str]:
    """Decode words separated by newlines, and warn of those that are not UTF-8.

    `where(row)` is the place of a row in a message.
    """
    words, escaped = decode_run(source, run, n_words)
    if escaped:
        warn_of_escapes(source, len(escaped), where(escaped[0]), words[escaped[0]])
    return words


def decode_run(source: Source, run: bytes, n_words: int) -> tuple[list[str], list[int]]:
    """Words separated by newlines, and the rows of those that are not UTF-8 and were escaped."""
    words: list[str] = []
    escaped: list[int] = []
    start = 0
    while start <= len(run):
        # In pieces: one letter outside Latin-1 makes a decoded piece two or four times as large.
        cut = run.find(b"\n", start + _WORD_BYTES_AT_ONCE)
        piece = run[start : cut if cut >= 0 else len(run)]
        try:
            words += piece.decode().split("\n")
        except UnicodeDecodeError:
            pairs = enumerate(piece.split(b"\n"), len(words))
            escaped += [row for row, word in pairs if not _is_utf8(word)]
            words += piece.decode(errors="backslashreplace").split("\n")
        start += len(piece) + 1
    if len(words) != n_words:
        raise source.read_error("a newline within a word", "words without line ends")
    return words, escaped


def keep_rows(matrix: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The given rows, ascending; moved within the matrix if it is writable."""
    if not matrix.flags.writeable:
        return matrix[rows]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        chosen = rows[start : start + _ROWS_AT_ONCE]
        # A kept row only moves up, so no row that is still needed is overwritten.
        matrix[start : start + len(chosen)] = matrix[chosen]
    return matrix[: len(rows)]


def finite_rows(
    source: Source, words: list[str] | None, matrix: NDArray[np.float32], values: NDArray[Any]
) -> tuple[list[str] | None, NDArray[np.float32]]:
    """The finite rows of a matrix that is in memory or mapped, and their words.

    Without words, the rows that remain have their numbers as ids if others are left out.
    `values` is the matrix as it was before it became float32.

    Raises:
        ReadError: A row is not finite and bad rows are not skipped, or none is finite.
    """
    bad = _rows_not_finite(matrix)
    if not len(bad):
        return words, matrix
    found = what_is_not_finite(values[bad[0]])
    if source.on_bad == "raise":
        raise source.read_error(found, "finite float32 values", f"row {bad[0]}")
    warn_of_bad(source, len(bad), f"row {bad[0]}", found, is_numbered=words is None)
    good = np.setdiff1d(np.arange(len(matrix)), bad)
    if len(good) == 0:
        raise source.read_error("no finite row", "at least one")
    kept = [str(row) if words is None else words[row] for row in good.tolist()]
    return kept, keep_rows(matrix, good)


def _rows_not_finite(matrix: NDArray[np.float32]) -> NDArray[np.int64]:
    bad = [
        start + np.flatnonzero(~np.isfinite(matrix[start : start + _ROWS_AT_ONCE]).all(axis=1))
        for start in range(0, len(matrix), _ROWS_AT_ONCE)
    ]
    return np.concatenate(bad)


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(message: bytes) -> str:
    """The message of a native parser as text."""
    return message.decode(errors="backslashreplace")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
