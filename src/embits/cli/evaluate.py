"""`embits evaluate`: score files of codes on standard tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from embits.cli.evaluation_options import (
    FORCE_HELP,
    check_raw,
    check_scored,
    data_folder,
    data_option,
    tasks_option,
)
from embits.cli.options import (
    FILE,
    FOLDER,
    files_argument,
    force_option,
    json_option,
    read,
    reading_options,
)
from embits.cli.output import print_json, table
from embits.cli.progress import status_line
from embits.collection import load
from embits.evaluation.evaluator import Evaluator
from embits.evaluation.report.folder import check_report_folder
from embits.evaluation.report.results import (
    MEASURES,
    WAYS,
    at,
    jsonable,
    retrieval_lines,
    retrieval_score,
    score_lines,
)
from embits.evaluation.report.write import write_report

if TYPE_CHECKING:
    from embits.readers.source import Repeats


@click.command()
@files_argument
@click.option("--raw", "raw_file", type=FILE, help="Float vectors from which the files were made.")
@data_option
@tasks_option()
@click.option("--report", type=FOLDER, metavar="DIR", help="Write a report into this folder.")
@force_option(help=FORCE_HELP)
@reading_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    raw_file: Path | None,
    data: Path | None,
    tasks: tuple[str, ...],
    report: Path | None,
    force: bool,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    as_json: bool,
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
    check_raw(ctx, tasks, raw_file)
    if report is not None:
        check_report_folder(report, force)
    folder = data_folder(data, tasks)
    floats = (
        read(raw_file, limit, words_file, skip_bad, repeats, quiet=as_json) if raw_file else None
    )
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
    check_scored(entries, evaluator.notes)
    if report is not None:
        facts = {"raw": raw_file.name if raw_file else "-", "tasks": ", ".join(tasks)}
        write_report(
            report, "Scores of binary codes", entries, facts, notes=evaluator.notes, overwrite=force
        )
    for note in evaluator.notes:
        click.echo(f"embits: note: {note}", err=True)
    if as_json:
        print_json(jsonable(entries))
    else:
        _show(entries)


def _show(entries: list[dict[str, Any]]) -> None:
    """Print the scores as one table with a column for each file."""
    rows = [("", *map(_column_name, entries))]
    for part, mark in (((), ""), (("reconstruction",), ", rebuilt")):
        for task in ("similarity", "analogy", "classification"):
            for label, path in score_lines([at(entry, *part) for entry in entries], task):
                rows.append((label + mark, *(_percent(at(e, *part, *path)) for e in entries)))
    for name in dict.fromkeys(name for entry in entries for name in at(entry, "neighbors") or ()):
        if name != "queries":
            label = name.replace("_at_", "@").replace("_", " ")
            rows.append((label, *(_percent(at(entry, "neighbors", name)) for entry in entries)))
    has_raw = any(entry["method"] == "raw" for entry in entries)
    for name, measure, way in retrieval_lines(entries):
        if has_raw and way == "floats":  # in the column of the raw vectors
            continue
        scores = (_percent(retrieval_score(entry, name, way, measure)) for entry in entries)
        rows.append((f"{name} {MEASURES[measure]}, {WAYS[way]}", *scores))
    for label, path, shown in (
        ("Cosine to raw, rebuilt", ("reconstruction", "cosine"), _percent),
        ("Top-10 query, ms", ("speed", "top_10_ms"), _number),
    ):
        rows.append((label, *(shown(at(entry, *path)) for entry in entries)))
    click.echo("× 100: Spearman's ρ, accuracy, recall, nDCG, MRR and cosine. Times in ms.")
    table([row for row in rows if any(row[1:])], indent="")


def _column_name(entry: dict[str, Any]) -> str:
    return "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"


def _percent(value: float | None) -> str:
    return "" if value is None else "-" if math.isnan(value) else f"{100 * value:.1f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
