"""`embits evaluate`: what the bits cost, task by task."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from embits.binary_vectors import load
from embits.cli.common import (
    json_option,
    print_json,
    read,
    reading_options,
    status_line,
    table,
)
from embits.cli.completing import BITS_FILE, FLOATS_FILE, FOLDER, comma_list
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.evaluator import TASKS, Evaluator
from embits.evaluation.report.results import at, jsonable, score_lines
from embits.evaluation.report.write import write_report

DEFAULT_TASKS = ",".join(TASKS[:5])


def task_list(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """`--tasks` as names, checked."""
    tasks = TASKS if value == "all" else tuple(filter(None, value.replace(" ", "").split(",")))
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        raise click.BadParameter(f"{value!r}: expected some of {', '.join(TASKS)}, or all")
    return tasks


data_option = click.option(
    "--data", type=FOLDER, metavar="DIR", help="Folder of data sets [default: $EMBITS_DATA]."
)


@click.command()
@click.argument("files", type=BITS_FILE, nargs=-1, required=True, metavar="FILE...")
@click.option("--raw", "raw_file", type=FLOATS_FILE, help="The float vectors behind the files.")
@data_option
@click.option(
    "--tasks",
    default=DEFAULT_TASKS,
    callback=task_list,
    metavar="TASK,...",
    shell_complete=comma_list(TASKS),
    help="What to score, or all.",
)
@click.option("--report", type=FOLDER, metavar="DIR", help="Write a report there as well.")
@reading_options
@json_option
def command(
    files: tuple[Path, ...],
    raw_file: Path | None,
    data: Path | None,
    tasks: tuple[str, ...],
    report: Path | None,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Score the bits of each FILE, and the raw floats beside them.

    The tasks: similarity, analogy, classification; neighbors and reconstruction, measured
    against --raw; and speed. --data is a folder with similarity/, analogy/ and classification/
    in it, laid out as the data sets are given out.

    \b
    embits evaluate glove.256.safetensors --raw glove.txt --data ~/data
    embits evaluate glove.*.safetensors --raw glove.txt --tasks similarity,analogy --json
    """
    folder = DataFolder.at(data) if needs_data(tasks) else None
    floats = read(raw_file, limit, words_file, skip_bad, quiet=as_json) if raw_file else None
    entries = []
    with status_line(quiet=as_json) as status:
        current = ""

        def say(step: str) -> None:
            status(f"{current}: {step}")

        evaluator = Evaluator(folder, floats, tasks, raw_file, say)
        if floats is not None:
            current = "raw"
            entries.append(evaluator.evaluate_raw())
        for file in files:
            current = file.name
            entries.append(evaluator.evaluate_bits(load(file), file))
    if report is not None:
        facts = {"raw": raw_file.name if raw_file else "-", "tasks": ", ".join(tasks)}
        write_report(report, "Scores of bits", entries, facts, notes=evaluator.notes)
    for note in evaluator.notes:
        click.echo(f"embits: note: {note}", err=True)
    if as_json:
        print_json(jsonable(entries))
    else:
        show(entries)


def needs_data(tasks: tuple[str, ...]) -> bool:
    """Whether any of the tasks reads data sets."""
    return bool({"similarity", "analogy", "classification"} & set(tasks))


def show(entries: list[dict[str, Any]]) -> None:
    """The scores as one table: a column for each file."""
    rows = [("", *map(_column_name, entries))]
    for part, mark in (((), ""), (("reconstruction",), ", rebuilt")):
        for task in ("similarity", "analogy", "classification"):
            for label, path in score_lines([at(entry, *part) for entry in entries], task):
                rows.append((label + mark, *(_percent(at(e, *part, *path)) for e in entries)))
    for name in dict.fromkeys(name for entry in entries for name in at(entry, "neighbors") or ()):
        if name != "queries":
            label = name.replace("_at_", "@").replace("_", " ")
            rows.append((label, *(_percent(at(entry, "neighbors", name)) for entry in entries)))
    for label, path, shown in (
        ("Cosine to raw, rebuilt", ("reconstruction", "cosine"), _percent),
        ("Top-10 query, ms", ("speed", "top_10_ms"), _number),
    ):
        rows.append((label, *(shown(at(entry, *path)) for entry in entries)))
    click.echo("Times 100: Spearman's ρ (similarity), accuracy, recall, cosine; times in ms")
    table([row for row in rows if any(row[1:])], indent="")


def _column_name(entry: dict[str, Any]) -> str:
    return "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"


def _percent(value: float | None) -> str:
    return "" if value is None else "-" if math.isnan(value) else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
