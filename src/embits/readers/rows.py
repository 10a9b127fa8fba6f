"""From gathered rows to WordVectors: words decoded, repeats left out, bad rows counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.readers.source import Source
from embits.readers.words_sidecar import Lines
from embits.vectors import WordVectors

Where = Callable[[int], str]  # the line, byte or entry of a row, in words

_WORD_BYTES_AT_ONCE = 1 << 16
# Rows that are moved or checked at a time, so that no second matrix is ever made.
_ROWS_AT_ONCE = 1 << 14


def _by_row(row: int) -> str:
    return f"row {row + 1}"


def new_rows(source: Source, dims: int, first_place: int) -> _core.Rows:
    """An empty collection of rows that the native parsers fill."""
    limit = sys.maxsize if source.limit is None else source.limit
    return _core.Rows(dims, limit, source.on_bad == "skip", first_place)


def finish(source: Source, rows: _core.Rows, unit: str) -> WordVectors:
    """Make WordVectors of what a native parser gathered; `unit` is "line" or "byte"."""
    if rows.n_bad:
        place, found, expected = rows.first_bad
        warn_of_bad(
            source, rows.n_bad, f"{unit} {place}", f"{shown(found)}, expected {shown(expected)}"
        )
    if len(rows) == 0:
        raise source.refusal("no vectors", "at least one row")
    places = rows.take_places()

    def where(row: int) -> str:
        return f"{unit} {places[row]}"

    words = decode_words(source, rows.take_words()[:-1], len(places), where)
    return unique(source, words, rows.take_matrix(), where)


def raise_first_bad(source: Source, rows: _core.Rows, unit: str, hint: str = "") -> None:
    """Refuse the file for the bad row that a parser stopped at, if it stopped at one."""
    if rows.lost or (rows.n_bad and source.on_bad == "raise"):
        place, found, expected = rows.first_bad
        raise source.refusal(shown(found), shown(expected) + hint, f"{unit} {place}")


def warn_of_bad(source: Source, n_bad: int, where: str, found: str) -> None:
    """Say once how many rows `on_bad="skip"` left out."""
    source.warn(f"{_counted(n_bad, 'row')} left out, the first at {where}: found {found}")


def warn_of_escapes(source: Source, n_escaped: int, where: str, word: str) -> None:
    """Say once how many words are not UTF-8."""
    source.warn(
        f"{_counted(n_escaped, 'word')} not in valid UTF-8 and escaped, "
        f"the first at {where}: {word!r}"
    )


def warn_of_repeats(source: Source, n_repeats: int, where: str, word: str) -> None:
    """Say once how many rows were left out as their word had come before."""
    source.warn(f"{_counted(n_repeats, 'repeated word')} left out, the first at {where}: {word!r}")


def decode_words(source: Source, run: bytes, n_words: int, where: Where) -> list[str]:
    """Decode words that lie in one run with newlines between; `where(row)` names a place."""
    words, escaped = decode_run(source, run, n_words)
    if escaped:
        warn_of_escapes(source, len(escaped), where(escaped[0]), words[escaped[0]])
    return words


def decode_run(source: Source, run: bytes, n_words: int) -> tuple[list[str], list[int]]:
    """The words of a run, and the rows of those that are not UTF-8 and were escaped."""
    words: list[str] = []
    escaped: list[int] = []
    start = 0
    while start <= len(run):
        # Piece by piece: one letter outside Latin-1 makes a decoded piece two or four times as big.
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
        raise source.refusal("a newline within a word", "words without line ends")
    return words, escaped


def unique(
    source: Source, words: Sequence[str], matrix: NDArray[np.float32], where: Where = _by_row
) -> WordVectors:
    """Keep the first row of each word."""
    # Sorted hashes take a quarter of the memory of a set; equal ones are looked at below.
    hashes = np.sort(np.fromiter(map(hash, words), np.int64, len(words)))
    if not (hashes[1:] == hashes[:-1]).any():
        return WordVectors(words, matrix)
    first: dict[str, int] = {}
    repeats = [row for row, word in enumerate(words) if first.setdefault(word, row) != row]
    if not repeats:
        return WordVectors(words, matrix)
    warn_of_repeats(source, len(repeats), where(repeats[0]), words[repeats[0]])
    kept = np.fromiter(first.values(), np.int64, len(first))
    return WordVectors(list(first), keep_rows(matrix, kept))


def keep_rows(matrix: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The given rows, ascending; moved within the matrix where it may be written to."""
    if not matrix.flags.writeable:
        return matrix[rows]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        chosen = rows[start : start + _ROWS_AT_ONCE]
        # A kept row only ever moves up, so nothing that is still needed is overwritten.
        matrix[start : start + len(chosen)] = matrix[chosen]
    return matrix[: len(rows)]


def named_rows(
    source: Source, words: Sequence[str] | None, matrix: NDArray[np.float32]
) -> WordVectors:
    """Check a matrix that came whole (.npy, Parquet ...) and put it together with its words."""
    matrix = matrix[: source.rows_wanted(len(matrix))]
    if matrix.size == 0:
        raise source.refusal(f"a matrix of shape {matrix.shape}", "at least one row")
    if isinstance(words, Lines):
        words = list(words)  # beside a matrix in memory they weigh little, and compare as lists do
    if words is not None:
        words = words[: len(matrix)] if source.limit is not None else words
        if len(words) != len(matrix):
            raise source.refusal(f"{len(words)} words for {len(matrix)} rows", "one word a row")
    bad = _rows_not_finite(matrix)
    if len(bad) and source.on_bad == "raise":
        raise source.refusal("nan or inf", "finite float32 values", f"row {bad[0] + 1}")
    if len(bad):
        warn_of_bad(source, len(bad), f"row {bad[0] + 1}", "nan or inf")
        good = np.setdiff1d(np.arange(len(matrix)), bad)
        if len(good) == 0:
            raise source.refusal("no finite row", "at least one")
        matrix = keep_rows(matrix, good)
        words = None if words is None else [words[row] for row in good]
    return WordVectors(None, matrix) if words is None else unique(source, words, matrix)


def as_float32(source: Source, array: NDArray[Any]) -> NDArray[np.float32]:
    """A 2-D matrix of any number type as float32, untouched where it is one already."""
    if array.ndim != 2:
        raise source.refusal(f"an array of shape {array.shape}", "a matrix: (rows, dims)")
    if array.dtype.kind not in "fiu":
        raise source.refusal(f"values of type {array.dtype}", "numbers")
    wanted = array[: source.rows_wanted(len(array))]
    # A float64 too large becomes inf, and is refused as that; a signalling NaN as NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asanyarray(wanted, dtype=np.float32, order="C")


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


def shown(message: bytes) -> str:
    """A native parser's message as text."""
    return message.decode(errors="backslashreplace")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
