"""Options of the verbs that score codes, and what both do with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli import options
from embits.errors import InputError
from embits.evaluation.data import DataFolder
from embits.evaluation.evaluator import ALL_ROWS
from embits.evaluation.report import check_report_folder
from embits.evaluation.results import Entry, csv_text
from embits.evaluation.tasks import TASKS, all_scores
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target


def scoring_options(
    tasks: Iterable[str], bootstrap: int, fit_rows: str
) -> Callable[[options.Command], options.Command]:
    """The options of both verbs: defaults of --tasks and --bootstrap, help of --fit-rows."""
    shared = (
        click.option(
            "--data", type=options.FOLDER, metavar="DIR",
            help="Folder of data sets [default: $EMBITS_DATA].",
        ),
        click.option(
            "--tasks", default=",".join(tasks), callback=names_of(TASKS), metavar="TASK,...",
            help=f"Tasks to run, or all: {', '.join(TASKS)}.",
        ),
        click.option("--fit-rows", callback=_fit_rows, metavar="N|all", help=fit_rows),
        click.option(
            "--bootstrap", type=options.WholeNumber(min=0), default=bootstrap, show_default=True,
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
        options.file_option("--csv", "csv_file", help="Write all scores into one CSV file."),
        options.force_option(
            help="Replace the files of an earlier report, or results of other vectors."
        ),
    )  # fmt: skip

    def added(command: options.Command) -> options.Command:
        for option in reversed(shared):
            command = option(command)
        return command

    return added


def _fit_rows(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None or value == "all":
        return None if value is None else ALL_ROWS
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise click.BadParameter(f"{value!r}: expected a number of rows from 1, or all")
    return int(value)


def names_of(known: Mapping[str, Any]) -> Callable[..., tuple[str, ...]]:
    """The callback of an option that takes some of these names, separated by commas, or all."""

    def parse(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
        given = known if value == "all" else value.replace(" ", "").split(",")
        names = tuple(dict.fromkeys(filter(None, given)))
        if set(names) - set(known) or not names:
            raise click.BadParameter(f"{value!r}: expected some of {', '.join(known)}, or all")
        return names

    return parse


def are_tasks_named() -> bool:
    """Whether --tasks is on the command line."""
    source = click.get_current_context().get_parameter_source("tasks")
    return source is ParameterSource.COMMANDLINE


def check_outputs(report: Path | None, csv_file: Path | None, source: Path, force: bool) -> None:
    """Refuse outputs that exist, or that are the source, before anything is computed."""
    if csv_file is not None:
        check_target(csv_file, [source], force)
    if report is not None:
        check_report_folder(report, force)


def possible_tasks(
    tasks: tuple[str, ...], data: Path | None, *, leave_out: bool = True
) -> tuple[tuple[str, ...], DataFolder | None]:
    """The tasks, and the folder of data sets if one of them reads it.

    Without a folder, the tasks of the default that read data sets are left out.
    """
    is_given = data is not None or "EMBITS_DATA" in os.environ
    if leave_out and not is_given and not are_tasks_named():
        missing = [task for task in tasks if TASKS[task].reads_data]
        note(
            f"without a folder of data sets (--data DIR, or EMBITS_DATA), {', '.join(missing)} are "
            "left out"
        )
        tasks = tuple(task for task in tasks if task not in missing)
    return tasks, DataFolder.at(data) if any(TASKS[task].reads_data for task in tasks) else None


def check_scored(entries: Sequence[Entry], notes: Sequence[str]) -> None:
    """Refuse results without any score, for the reasons in `notes`."""
    values = (score.of(entry) for entry in entries for score in all_scores([entry]))
    if not any(isinstance(value, float) and math.isfinite(value) for value in values):
        reasons = notes or ["no word of the data sets is in the vocabulary"]
        raise InputError(f"nothing could be scored: {'; '.join(reasons)}")


def finish(entries: Iterable[Entry], csv_file: Path | None, notes: Sequence[str]) -> None:
    """Write the CSV file, if one is asked for, and print the notes."""
    if csv_file is not None:
        with atomic_write(csv_file) as file:
            file.write(csv_text(entries).encode())
    note(*notes)


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
