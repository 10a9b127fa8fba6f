"""Output of the verbs: JSON for programs, tables and sizes for people, one-line errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import click

# Control characters, and those that change the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False))


def neighbor_dicts(neighbors: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    """(word, similarity) pairs as JSON objects, similarities rounded to 6 decimals."""
    return [{"word": word, "similarity": round(similarity, 6)} for word, similarity in neighbors]


def neighbor_table(neighbors: Iterable[tuple[str, float]]) -> None:
    """Print (word, similarity) pairs as a table."""
    table([(word, f"{similarity:.3f}") for word, similarity in neighbors] or [("none",)])


def table(rows: Sequence[tuple[str, ...]], indent: str = "  ") -> None:
    """Print rows in columns: the first aligned left, the others right."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        click.echo((indent + "  ".join(cells)).rstrip())


def megabytes(size: float) -> str:
    """A number of bytes in units of 1000.

    >>> megabytes(13_000_000), megabytes(512), megabytes(2_400_000_000)
    ('13.0 MB', '512 B', '2.4 GB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def printable(text: str) -> str:
    """The text with control characters escaped, so that it cannot change the terminal's state.

    >>> printable("\\x1b[31mred")
    '\\\\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(error: BaseException) -> str:
    """An error as one line.

    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.txt"))
    'a.txt: no such file'
    """
    if isinstance(error, MemoryError):
        return _out_of_memory(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        reason = error.strerror.lower().replace("no such file or directory", "no such file")
        return f"{error.filename}: {reason}"
    return " ".join(str(error).split("\n"))


def _out_of_memory(error: MemoryError) -> str:
    """NumPy's message names the size and the array; Python's own has no text."""
    reason = f" ({error})" if str(error) else ""
    return f"not enough memory{reason}: use fewer bits or fewer rows"
