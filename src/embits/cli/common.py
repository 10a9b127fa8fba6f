"""What the verbs share: arguments, options, output for machines, progress for people."""

from __future__ import annotations

import contextlib
import errno
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from embits.arrays import Progress
from embits.cli.completing import BITS_FILE, words_of_file
from embits.cli.completing import FILE as FILE  # the verbs take it from here
from embits.vectors import WordVectors

# What steers a terminal: control characters, and those that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
file_argument = click.argument("file", type=BITS_FILE)
words_argument = click.argument(
    "words", nargs=-1, required=True, metavar="WORD...", shell_complete=words_of_file
)


def writable(path: Path) -> Path:
    """Refuse at once what could not be written after minutes of work."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, expected a file", str(path))
    return path


output_option = click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    callback=lambda _, __, path: writable(path),
    help="File to write.",
)

Command = TypeVar("Command", bound=Callable[..., Any])


def reading_options(command: Command) -> Command:
    """The options of every verb that reads float vectors; `read` takes them."""
    for option in (
        click.option(
            "--skip-bad", is_flag=True, help="Leave out bad rows instead of stopping at the first."
        ),
        click.option(
            "--words", "words_file", type=FILE, help="Words of a matrix: one a line, or Parquet."
        ),
        click.option(
            "--limit", type=click.IntRange(min=1), metavar="N", help="Read the first N rows only."
        ),
    ):
        command = option(command)
    return command


def read(
    path: Path, limit: int | None, words_file: Path | None, skip_bad: bool, *, quiet: bool
) -> WordVectors:
    """Read float vectors with a progress bar."""
    from embits.readers import read_vectors

    with progress_bar("reading", quiet=quiet) as progress:
        return read_vectors(
            path, limit, words_file, "skip" if skip_bad else "raise", progress=progress
        )


def named_values(
    _: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    """The callback of a repeated NAME=VALUE option: numbers, true and false as what they are."""
    values = {}
    for text in texts:
        name, _sign, value = text.partition("=")
        if not name or not value:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=param.opts[0])
        values[name.replace("-", "_")] = _value(value)
    return values


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def one_line(error: BaseException) -> str:
    """What went wrong, for people, in one line.

    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.txt"))
    'a.txt: no such file or directory'
    """
    if isinstance(error, MemoryError):
        return f"not enough memory {error}".rstrip()
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split("\n"))


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False))


def megabytes(size: float) -> str:
    """A size for people, in units of 1000.

    >>> megabytes(13_000_000), megabytes(512), megabytes(2_400_000_000)
    ('13.0 MB', '512 B', '2.4 GB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """A progress bar on a terminal, as the callback that long steps take; None elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description:<9}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def steps_bar(*, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar for a job of several named steps, each with its own time that is left."""
    with contextlib.ExitStack() as opened:
        shown: dict[str, Progress | None] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in shown:
                opened.close()  # the bar of the step before
                shown[step] = opened.enter_context(progress_bar(step))
            if (bar := shown[step]) is not None:
                bar(done, total)

        yield None if quiet or not sys.stderr.isatty() else report


@contextlib.contextmanager
def status_line(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what is being done, as the callback that changes it."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text.replace("[", "\\["))


def printable(text: str) -> str:
    """Text that only shows: words and files of strangers do not get to steer the terminal.

    >>> printable("\\x1b[31mred")
    '\\\\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def table(rows: Sequence[tuple[str, ...]], indent: str = "  ") -> None:
    """Print rows as aligned columns: the first to the left, numbers after it to the right."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        click.echo((indent + "  ".join(cells)).rstrip())
