"""Output of the verbs: JSON for programs, tables, sizes and progress for people, one-line errors.

`embits --help` and completion import this module: what describes files is imported when needed.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from embits.arrays import Progress
    from embits.binary_vectors import BinaryRows
    from embits.file.store import Contents
    from embits.jobs.stream import StepProgress

Facts: TypeAlias = dict[str, Any]  # that are printed as JSON

LOG_AFTER = 2.0  # seconds

# Control characters, line separators, marks of the direction of writing, and invisible tags.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


def print_json(value: object) -> None:
    """Print one JSON value on standard output."""
    click.echo(json_text(value))


def json_text(value: object) -> str:
    """JSON of one line, in which control characters are escaped as in `printable`."""
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def say(message: str) -> None:
    """Print a line about the command on standard error."""
    print(f"embits: {printable(message)}", file=sys.stderr, flush=True)


def show(facts: Facts, line: str, as_json: bool) -> None:
    """Print the facts as JSON for programs, or the line for people."""
    if as_json:
        print_json(facts)
    else:
        click.echo(printable(line))


def table(rows: Sequence[tuple[str, ...]], indent: str = "  ") -> None:
    """Print rows in columns: the first aligned left, the others right."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        click.echo((indent + "  ".join(cells)).rstrip())


def megabytes(size: float) -> str:
    """A number of bytes in units of 1000, such as 512 B, 13.0 MB or 2.4 GB."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def printable(text: str) -> str:
    """The text with control characters escaped, so that it cannot change the terminal's state."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(error: BaseException) -> str:
    """An error as one line, such as "a.txt: no such file"."""
    if isinstance(error, MemoryError):  # NumPy's has a text, Python's own has none
        reason = f" ({error})" if str(error) else ""
        return f"not enough memory{reason}: use fewer bits or fewer rows"
    if isinstance(error, OSError) and error.strerror and error.filename:
        reason = error.strerror.lower().replace("no such file or directory", "no such file")
        return f"{error.filename}: {reason}"
    return " ".join(str(error).split("\n"))


def describe(path: Path | str, bits: BinaryRows | Contents) -> Facts:
    """The facts of `info --json`; sizes in bytes. `Contents` are those of an unknown coder."""
    from embits.binary_vectors import BinaryRows
    from embits.collection import Collection
    from embits.text.answers import ENCODER

    size = size_on_disk(path)
    parts: Facts = {}
    rest: Facts = {}
    if isinstance(bits, BinaryRows):
        rows, method, params = len(bits), bits.coder.method, bits.coder.get_params()
        counts = bits.byte_counts()._asdict()
        if (encoder := Path(path, ENCODER)).is_file():  # of texts
            counts["encoder"] = encoder.stat().st_size
        parts = {"parts": counts | {"header": max(0, size - sum(counts.values()))}}
        rest = {"subwords": bits.subwords is not None}
        if (centers := bits.current.centers) is not None:
            rest["cells"] = len(centers)
    else:
        rows, method, params = len(bits.codes), bits.method, dict(bits.params)
    if isinstance(bits, Collection):
        pieces = bits.manifest.pieces
        rest |= {"pieces": len(pieces), "removed": sum(each.rows - each.live for each in pieces)}
        if bits.manifest.columns:
            rest["columns"] = dict(bits.manifest.columns)
    floats = rows * bits.dims * 4
    facts = {"words": rows, "bits": bits.n_bits, "dims": bits.dims, "method": method, "bytes": size}
    facts |= parts | {"bytes_per_word": round(size / rows, 2) if rows else 0.0}
    facts |= {"float_bytes": floats, "ratio": round(floats / size, 2), "params": params}
    return facts | rest


def size_on_disk(path: Path | str) -> int:
    """Bytes of a file, or of the files in a folder; also at an address."""
    from embits.remote import is_address, size_at

    if is_address(path):
        return size_at(path)
    path = Path(path)
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def counted(n: int, noun: str = "row") -> str:
    """A number with its noun, such as "1 row" or "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """A progress bar as a callback (done, total); None when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description:<9}"), BarColumn(), TimeRemainingColumn()
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def steps_progress(title: str, *, quiet: bool = False) -> Iterator[StepProgress | None]:
    """The progress of a job of several named steps, as a callback (step, done, total).

    On a terminal each step has a bar. Elsewhere, such as in a log file, a job that takes longer
    than `LOG_AFTER` seconds prints its title, and a line for each step.
    """
    bars: dict[str, Progress | None] = {}
    begin, unprinted = time.monotonic(), [title]

    def report(step: str, done: int, total: int) -> None:
        seconds = time.monotonic() - begin
        if step not in bars:
            opened.close()  # the bar of the previous step
            bars[step] = opened.enter_context(progress_bar(step))
            unprinted.append(f"{step} (after {seconds:.0f} s)")
        if (bar := bars[step]) is not None:
            bar(done, total)
        elif seconds >= LOG_AFTER:
            for line in unprinted:
                say(line)
            unprinted.clear()

    with contextlib.ExitStack() as opened:
        yield None if quiet else report


@contextlib.contextmanager
def status_line(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A status line on a terminal, as the callback that sets its text."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text.replace("[", "\\["))
