"""`embits evaluate`: score files of codes on standard tasks; its options are those of `compare`."""

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
from embits.cli.output import print_json, table
from embits.cli.progress import status_line
from embits.collection import load
from embits.errors import InputError
from embits.evaluation.data import DataFolder
from embits.evaluation.evaluator import ALL_ROWS, Evaluator
from embits.evaluation.report import check_report_folder, write_report
from embits.evaluation.results import Entry, Score, at, csv_text, interval, jsonable, percent
from embits.evaluation.tasks import DEFAULT_TASKS, TASKS, all_scores
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


def _are_tasks_named() -> bool:
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
    if leave_out and not is_given and not _are_tasks_named():
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


@click.command()
@options.files_argument
@options.file_option("--raw", "raw_file", help="Float vectors from which the files were made.")
@click.option(
    "--report", type=options.FOLDER, metavar="DIR", help="Write a report into this folder."
)
@scoring_options(
    DEFAULT_TASKS,
    0,
    "Fit a new coder on N rows and measure the neighbors of the others; all measures the codes of "
    "the file [default: half of the rows if they have no words].",
)
@options.reading_options
@options.json_option
def command(
    files: tuple[Path, ...],
    raw_file: Path | None,
    report: Path | None,
    data: Path | None,
    tasks: tuple[str, ...],
    fit_rows: int | None,
    bootstrap: int,
    fisher: str,
    latex: bool,
    csv_file: Path | None,
    force: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Score the codes of each FILE, and the float vectors of --raw.

    similarity, analogy, classification and retrieval need data sets: --data is a folder with
    similarity/, analogy/, classification/ and retrieval/ in it. For retrieval, the coder of FILE
    encodes documents and queries. neighbors and reconstruction compare with --raw. speed times
    searches.

    \b
    embits evaluate glove.256.safetensors --raw glove.txt --data ~/data
    embits evaluate glove.*.safetensors --raw glove.txt --tasks similarity,analogy --json
    embits evaluate docs.safetensors --tasks retrieval --data ~/data
    """
    missing = [task for task in tasks if TASKS[task].needs_raw]
    if raw_file is None and missing and _are_tasks_named():
        raise click.UsageError(
            f"the float vectors are needed for {' and '.join(missing)}: give --raw FILE"
        )
    if latex and report is None:
        raise click.UsageError("--latex writes into the folder of --report: give both")
    check_outputs(report, csv_file, files[0], force)
    opened = {file: load(file) for file in files}
    tasks, folder = possible_tasks(tasks, data, leave_out=raw_file is not None)
    floats = options.read(raw_file, **reading, quiet=as_json) if raw_file else None
    if floats is not None and floats.dims not in {bits.dims for bits in opened.values()}:
        raise InputError(
            f"{raw_file}: vectors of {floats.dims} dimensions, but {files[0]} was made from "
            f"{opened[files[0]].dims} dimensions"
        )
    with status_line(quiet=as_json) as status:
        current = "raw"
        evaluator = Evaluator(
            folder, floats, tasks, raw_file, lambda step: status(f"{current}: {step}"), fit_rows,
            n_resamples=bootstrap, by_pairs=fisher == "pairs",
        )  # fmt: skip
        entries = [] if floats is None else [evaluator.evaluate_raw()]
        for file, bits in opened.items():
            current = file.name
            entries.append(evaluator.evaluate_bits(bits, file))
    check_scored(entries, evaluator.notes)
    if report is not None:
        facts = {"raw": raw_file.name if raw_file else "-", "tasks": ", ".join(tasks)}
        write_report(
            report, "Scores of binary codes", entries, facts, notes=evaluator.notes,
            overwrite=force, latex=latex,
        )  # fmt: skip
        note_missing_figures()
    finish(entries, csv_file, evaluator.notes)
    if as_json:
        print_json(jsonable(entries))
    else:
        _show(entries)


def _show(entries: list[Entry]) -> None:
    """Print the scores as one table with a column for each file."""
    rows = [
        (score.label, *(_cell(score, entry) for entry in entries)) for score in all_scores(entries)
    ]
    measured = [
        (f"Rows of {name}", *(at(entry, name, "rows") or "" for entry in entries))
        for name, task in TASKS.items()
        if task.needs_raw and any(at(entry, name, "rows") for entry in entries)
    ]
    about_rows = " Rows outside the fit are unseen." if measured else ""
    click.echo(
        f"× 100: Spearman's ρ, accuracy, recall, nDCG, MRR and cosine. Times in ms.{about_rows}"
    )
    table([("", *map(column_name, entries)), *rows, *measured], indent="")


def _cell(score: Score, entry: Entry) -> str:
    """A score with its interval; empty if the entry does not have it."""
    value = score.of(entry)
    if value is None:
        return ""
    ends = interval(entry, score.key) if score.shown is percent else None
    return score.shown(value) + (f" [{percent(ends[0])}, {percent(ends[1])}]" if ends else "")
