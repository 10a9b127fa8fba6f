"""Arguments and options that several verbs share."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from embits.cli.numbers import WholeNumber
from embits.cli.progress import progress_bar
from embits.cli.suggestions import words_of_file

if TYPE_CHECKING:
    from embits.readers.source import Repeats
    from embits.vectors import WordVectors

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
file_argument = click.argument("file", type=FILE)
where_option = click.option(
    "--where",
    type=FILE,
    metavar="FILE",
    help="Find only these rows: a text file of ids, or a .npy of row numbers or a mask.",
)
exclude_option = click.option(
    "--exclude", type=FILE, metavar="FILE", help="Leave these rows out; FILE is as for --where."
)
files_argument = click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
words_argument = click.argument(
    "words", nargs=-1, required=True, metavar="WORD...", shell_complete=words_of_file
)


def metric_option(default: str) -> Callable[[Command], Command]:
    """How words are compared: by the bits that differ, or by rebuilt vectors."""
    return click.option(
        "--metric",
        type=click.Choice(["hamming", "decoded"]),
        default=default,
        show_default=True,
        help="Compare bits, or the vectors rebuilt from them.",
    )


def output_option(
    kind: click.ParamType[Any] = FILE, *, help: str = "File to write.", **settings: Any
) -> Callable[[Command], Command]:
    """The option -o; it is required unless it has a default."""
    settings.setdefault("required", "default" not in settings)
    return click.option("-o", "--output", type=kind, help=help, **settings)


def force_option(
    *other_names: str, help: str = "Replace an existing file."
) -> Callable[[Command], Command]:
    """The option --force."""
    return click.option("--force", *other_names, "force", is_flag=True, help=help)


def check_writable(path: Path) -> None:
    """Refuse a target that cannot be written, before the work starts.

    Raises:
        FileNotFoundError: Its folder does not exist.
        IsADirectoryError: It is a folder.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, expected a file", str(path))


def check_not_input(path: Path, file: Path) -> None:
    """Refuse a target that is the input `file`.

    Raises:
        InputError: They are the same file.
    """
    from embits.file.overwrite import check_target

    check_target(path, [file], overwrite=True)


def check_output(path: Path, file: Path, force: bool) -> None:
    """Refuse a target that cannot or must not be written, before the work starts.

    Raises:
        OSError: As for `check_writable`.
        InputError: It is the input `file`, or it exists and `force` is false.
    """
    from embits.file.overwrite import check_target

    check_writable(path)
    check_target(path, [file], force)


def words_file_option(help: str) -> Callable[[Command], Command]:
    """The option --words of verbs that read a matrix: the file with its words."""
    return click.option("--words", "words_file", type=FILE, metavar="FILE", help=help)


def reading_options(command: Command) -> Command:
    """The options of every verb that reads float vectors: the arguments of `read`."""
    for option in (
        click.option(
            "--skip-bad", is_flag=True, help="Skip bad rows instead of stopping at the first."
        ),
        click.option(
            "--repeats",
            type=click.Choice(["first", "refuse"]),
            help="Keep the first row of a repeated word (id), or refuse the file [default: refuse"
            " if the words are in another file].",
        ),
        words_file_option("File with the words (ids) of a matrix: one per line, or Parquet."),
        click.option(
            "--limit", type=WholeNumber(min=1), metavar="N", help="Read only the first N rows."
        ),
    ):
        command = option(command)
    return command


def read(
    path: Path,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    *,
    quiet: bool,
) -> WordVectors:
    """Read float vectors with a progress bar."""
    from embits.readers import read_vectors

    with progress_bar("reading", quiet=quiet) as progress:
        return read_vectors(
            path, limit, words_file, "skip" if skip_bad else "raise", progress, repeats
        )


def params_option(help: str, **settings: Any) -> Callable[[Command], Command]:
    """The option --param NAME=VALUE, which may be repeated; --option is its other name."""
    return click.option(
        "--param", "--option", "params", multiple=True, metavar="NAME=VALUE",
        callback=_named_values, help=f"{help} May be repeated.", **settings,
    )  # fmt: skip


def _named_values(
    _: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    """NAME=VALUE texts as a dictionary; numbers, true and false are converted."""
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


def widths_option(default: str, help: str) -> Callable[[Command], Command]:
    """The option --bits N,...: code widths in ascending order, each once."""
    return click.option("--bits", default=default, callback=_widths, metavar="N,...", help=help)


def _widths(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    from embits.coders.checks import MAX_BITS

    try:
        widths = sorted({int(width) for width in value.split(",")})
    except ValueError:
        widths = [0]
    if widths[0] < 1 or widths[-1] > MAX_BITS:
        raise click.BadParameter(
            f"{value!r}: expected numbers from 1 to {MAX_BITS}, such as 64,128,256"
        )
    return widths
