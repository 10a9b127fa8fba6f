"""Options of the verbs that score codes: `evaluate` and `compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli.options import FOLDER, Command
from embits.errors import InputError
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.evaluator import DATA_TASKS, RAW_TASKS, TASKS
from embits.evaluation.report.results import has_score

FORCE_HELP = "Replace the results, also files that you changed or that embits did not write."
DEFAULT_TASKS = ",".join(TASKS[:-1])

data_option = click.option(
    "--data", type=FOLDER, metavar="DIR", help="Folder of data sets [default: $EMBITS_DATA]."
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


def check_raw(ctx: click.Context, tasks: tuple[str, ...], raw: Path | None) -> None:
    """Refuse tasks named on the command line that need --raw, if that is not given."""
    named = ctx.get_parameter_source("tasks") is ParameterSource.COMMANDLINE
    if raw is None and named and (missing := [task for task in tasks if task in RAW_TASKS]):
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
