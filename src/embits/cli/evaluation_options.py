"""Options of the verbs that score codes: `evaluate` and `compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli.options import FILE, FOLDER, Command, WholeNumber
from embits.errors import InputError
from embits.evaluation.against_raw import RAW_TASKS
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.held_out import ALL_ROWS
from embits.evaluation.report.results import csv_text, has_score
from embits.evaluation.tasks import DATA_TASKS, TASKS

FORCE_HELP = "Replace existing results, even files that you changed or that embits did not write."
DEFAULT_TASKS = ",".join(TASKS[:-1])

data_option = click.option(
    "--data", type=FOLDER, metavar="DIR", help="Folder of data sets [default: $EMBITS_DATA]."
)

latex_option = click.option(
    "--latex", is_flag=True, help="Also write tables as LaTeX, and figures as PDF and SVG."
)
csv_option = click.option(
    "--csv", "csv_file", type=FILE, metavar="FILE", help="Write all scores into one CSV file."
)
fisher_option = click.option(
    "--fisher",
    type=click.Choice(["equal", "pairs"]),
    default="equal",
    show_default=True,
    help="Weights of the sets in the Fisher mean: equal, as in the paper, or by their pairs.",
)


def fit_rows_option(help: str) -> Callable[[Command], Command]:
    """The option --fit-rows N or all."""
    return click.option("--fit-rows", callback=_fit_rows, metavar="N|all", help=help)


def _fit_rows(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None or value == "all":
        return None if value is None else ALL_ROWS
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise click.BadParameter(f"{value!r}: expected a number of rows from 1, or all")
    return int(value)


def bootstrap_option(default: int) -> Callable[[Command], Command]:
    """The option --bootstrap N."""
    return click.option(
        "--bootstrap",
        type=WholeNumber(min=0),
        default=default,
        show_default=True,
        metavar="N",
        help="Resamples for the 95 % intervals of all scores; 0 computes none.",
    )


def tasks_option(default: str = DEFAULT_TASKS) -> Callable[[Command], Command]:
    """The option --tasks NAME,..., as a tuple of names."""
    help = f"Tasks to run, or all: {', '.join(TASKS)}."
    return click.option(
        "--tasks", default=default, callback=_task_names, metavar="TASK,...", help=help
    )


def _task_names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    tasks = TASKS if value == "all" else tuple(filter(None, value.replace(" ", "").split(",")))
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        raise click.BadParameter(f"{value!r}: expected some of {', '.join(TASKS)}, or all")
    return tasks


def _are_named() -> bool:
    """Whether --tasks is on the command line."""
    source = click.get_current_context().get_parameter_source("tasks")
    return source is ParameterSource.COMMANDLINE


def possible_tasks(tasks: tuple[str, ...], data: Path | None) -> tuple[str, ...]:
    """The tasks of the default without those that read data sets, if no folder of them is given."""
    if _are_named() or data is not None or "EMBITS_DATA" in os.environ:
        return tasks
    missing = [task for task in tasks if task in DATA_TASKS]
    click.echo(
        f"embits: note: without a folder of data sets (--data DIR, or EMBITS_DATA), "
        f"{', '.join(missing)} are left out",
        err=True,
    )
    return tuple(task for task in tasks if task not in DATA_TASKS)


def check_raw(tasks: tuple[str, ...], raw: Path | None) -> None:
    """Refuse tasks named on the command line that need --raw, if that is not given."""
    if raw is None and _are_named() and (missing := [task for task in tasks if task in RAW_TASKS]):
        raise click.UsageError(
            f"the float vectors are needed for {' and '.join(missing)}: give --raw FILE"
        )


def data_folder(path: Path | None, tasks: tuple[str, ...]) -> DataFolder | None:
    """The folder of data sets if one of the tasks reads it, else None.

    Raises:
        InputError: A task needs the folder, and it is not given or does not exist.
    """
    return DataFolder.at(path) if DATA_TASKS & set(tasks) else None


def check_scored(entries: Iterable[dict[str, Any]], notes: Sequence[str]) -> None:
    """Refuse results without any score.

    Raises:
        InputError: There is no score; the message gives the reasons in `notes`.
    """
    if not any(map(has_score, entries)):
        reasons = notes or ["no word of the data sets is in the vocabulary"]
        raise InputError(f"nothing could be scored: {'; '.join(reasons)}")


def note_missing_figures() -> None:
    """Print a note if a report has no figures."""
    if find_spec("matplotlib") is None:
        click.echo("embits: note: no figures: pip install 'embits[plots]'", err=True)


def check_dims(raw: Path, dims: int, files: Mapping[Path, int]) -> None:
    """Refuse raw vectors from which none of the files can be made.

    Args:
        raw: The file of the raw vectors.
        dims: Their dimensions.
        files: The dimensions of the vectors of each file of codes.

    Raises:
        InputError: All files have other dimensions.
    """
    if dims not in files.values():
        file, expected = next(iter(files.items()))
        raise InputError(
            f"{raw}: vectors of {dims} dimensions, but {file} was made from {expected} dimensions"
        )


def write_csv(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    """Write all scores into one CSV file."""
    from embits.file.atomic import atomic_write

    with atomic_write(path) as file:
        file.write(csv_text(entries).encode())
