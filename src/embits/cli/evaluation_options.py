"""Options of the verbs that score codes, `evaluate` and `compare`, and what both do with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli.options import FILE, FOLDER, Command, WholeNumber, force_option
from embits.errors import InputError
from embits.evaluation.data import DataFolder
from embits.evaluation.evaluator import ALL_ROWS
from embits.evaluation.results import Entry, csv_text
from embits.evaluation.tasks import TASKS, all_scores
from embits.file.atomic import atomic_write


def scoring_options(
    tasks: Iterable[str], bootstrap: int, fit_rows: str
) -> Callable[[Command], Command]:
    """The options of both verbs.

    Args:
        tasks: The default of --tasks.
        bootstrap: The default of --bootstrap.
        fit_rows: The help of --fit-rows.
    """
    options = (
        click.option(
            "--data", type=FOLDER, metavar="DIR",
            help="Folder of data sets [default: $EMBITS_DATA].",
        ),
        click.option(
            "--tasks", default=",".join(tasks), callback=_task_names, metavar="TASK,...",
            help=f"Tasks to run, or all: {', '.join(TASKS)}.",
        ),
        click.option("--fit-rows", callback=_fit_rows, metavar="N|all", help=fit_rows),
        click.option(
            "--bootstrap", type=WholeNumber(min=0), default=bootstrap, show_default=True,
            metavar="N", help="Resamples for the 95 % intervals of all scores; 0 computes none.",
        ),
        click.option(
            "--fisher", type=click.Choice(["equal", "pairs"]), default="equal", show_default=True,
            help="Weights of the sets in the Fisher mean: equal, as in the paper, or by their "
            "pairs.",
        ),
        click.option(
            "--latex", is_flag=True, help="Also write tables as LaTeX, and figures as PDF and SVG."
        ),
        click.option(
            "--csv", "csv_file", type=FILE, metavar="FILE",
            help="Write all scores into one CSV file.",
        ),
        force_option(help="Replace the files of an earlier report, or results of other vectors."),
    )  # fmt: skip

    def added(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def _fit_rows(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None or value == "all":
        return None if value is None else ALL_ROWS
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise click.BadParameter(f"{value!r}: expected a number of rows from 1, or all")
    return int(value)


def _task_names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    names = value.replace(" ", "").split(",")
    tasks = tuple(TASKS) if value == "all" else tuple(filter(None, names))
    if set(tasks) - set(TASKS) or not tasks:
        raise click.BadParameter(f"{value!r}: expected some of {', '.join(TASKS)}, or all")
    return tasks


def are_tasks_named() -> bool:
    """Whether --tasks is on the command line."""
    source = click.get_current_context().get_parameter_source("tasks")
    return source is ParameterSource.COMMANDLINE


def possible_tasks(tasks: tuple[str, ...], data: Path | None) -> tuple[str, ...]:
    """The tasks of the default without those that read data sets, if no folder of them is given."""
    if are_tasks_named() or data is not None or "EMBITS_DATA" in os.environ:
        return tasks
    missing = [task for task in tasks if TASKS[task].reads_data]
    note(
        f"without a folder of data sets (--data DIR, or EMBITS_DATA), {', '.join(missing)} are "
        "left out"
    )
    return tuple(task for task in tasks if task not in missing)


def data_folder(path: Path | None, tasks: Iterable[str]) -> DataFolder | None:
    """The folder of data sets if one of the tasks reads it, else None."""
    return DataFolder.at(path) if any(TASKS[task].reads_data for task in tasks) else None


def check_scored(entries: Sequence[Entry], notes: Sequence[str]) -> None:
    """Refuse results without any score.

    Raises:
        InputError: There is no score; the message gives the reasons in `notes`.
    """
    values = (score.of(entry) for entry in entries for score in all_scores([entry]))
    if not any(isinstance(value, float) and math.isfinite(value) for value in values):
        reasons = notes or ["no word of the data sets is in the vocabulary"]
        raise InputError(f"nothing could be scored: {'; '.join(reasons)}")


def write_csv(path: Path | None, entries: Iterable[Entry]) -> None:
    """Write all scores into one CSV file, if one is asked for."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(csv_text(entries).encode())


def note(*lines: str) -> None:
    """Print notes on standard error."""
    for line in lines:
        click.echo(f"embits: note: {line}", err=True)


def note_missing_figures() -> None:
    """Print a note if a report has no figures."""
    if find_spec("matplotlib") is None:
        note("no figures: pip install 'embits[plots]'")


def column_name(entry: dict[str, Any]) -> str:
    """The name of an entry in tables."""
    return "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"
