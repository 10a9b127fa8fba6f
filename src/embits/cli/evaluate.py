"""`embits evaluate`: score files of codes on standard tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from embits.cli.evaluation_options import (
    FORCE_HELP,
    bootstrap_option,
    check_dims,
    check_raw,
    check_scored,
    csv_option,
    data_folder,
    data_option,
    fisher_option,
    fit_rows_option,
    latex_option,
    note_missing_figures,
    possible_tasks,
    tasks_option,
    write_csv,
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
    interval,
    jsonable,
    retrieval_lines,
    retrieval_path,
    score_lines,
)
from embits.evaluation.report.write import write_report
from embits.file.overwrite import check_target


@click.command()
@files_argument
@click.option("--raw", "raw_file", type=FILE, help="Float vectors from which the files were made.")
@data_option
@tasks_option()
@fit_rows_option(
    "Fit a new coder on N rows and measure the neighbors of the others; all measures the codes of "
    "the file [default: half of the rows if they have no words]."
)
@bootstrap_option(0)
@fisher_option
@click.option("--report", type=FOLDER, metavar="DIR", help="Write a report into this folder.")
@latex_option
@csv_option
@force_option(help=FORCE_HELP)
@reading_options
@json_option
def command(
    files: tuple[Path, ...],
    raw_file: Path | None,
    data: Path | None,
    tasks: tuple[str, ...],
    fit_rows: int | None,
    bootstrap: int,
    fisher: str,
    report: Path | None,
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
    check_raw(tasks, raw_file)
    if latex and report is None:
        raise click.UsageError("--latex writes into the folder of --report: give both")
    if csv_file is not None:
        check_target(csv_file, [files[0]], force)
    if report is not None:
        check_report_folder(report, force)
    opened = [(file, load(file)) for file in files]
    if raw_file is not None:
        tasks = possible_tasks(tasks, data)
    folder = data_folder(data, tasks)
    floats = read(raw_file, quiet=as_json, **reading) if raw_file else None
    if raw_file is not None and floats is not None:
        check_dims(raw_file, floats.dims, {file: bits.dims for file, bits in opened})
    entries = []
    with status_line(quiet=as_json) as status:
        current = ""

        def say(step: str) -> None:
            status(f"{current}: {step}")

        evaluator = Evaluator(
            folder, floats, tasks, raw_file, say, fit_rows,
            n_resamples=bootstrap, by_pairs=fisher == "pairs",
        )  # fmt: skip
        if floats is not None:
            current = "raw"
            entries.append(evaluator.evaluate_raw())
        for file, bits in opened:
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
    if csv_file is not None:
        write_csv(csv_file, entries)
    for note in evaluator.notes:
        click.echo(f"embits: note: {note}", err=True)
    if as_json:
        print_json(jsonable(entries))
    else:
        _show(entries)


def _column_name(entry: dict[str, Any]) -> str:
    return "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"


def _percent(value: float | None, ends: tuple[float, float] | None = None) -> str:
    if value is None:
        return ""
    text = "-" if math.isnan(value) else f"{100 * value:.1f}"
    return f"{text} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else text


def _text(value: str | None, _: object = None) -> str:
    return value or ""


def _number(value: float | None, _: object = None) -> str:
    return "" if value is None else f"{value:.3f}"


def _show(entries: list[dict[str, Any]]) -> None:
    """Print the scores as one table with a column for each file."""
    rows = [("", *map(_column_name, entries))]

    def add(label: str, *path: str, shown: Callable[..., str] = _percent) -> None:
        rows.append((label, *(shown(at(e, *path), interval(e, ".".join(path))) for e in entries)))

    for part, mark in (((), ""), (("reconstruction",), ", rebuilt")):
        for task in ("similarity", "analogy", "classification"):
            for label, path in score_lines([at(entry, *part) for entry in entries], task):
                add(label + mark, *part, *path)
    for name in dict.fromkeys(name for entry in entries for name in at(entry, "neighbors") or ()):
        if "recall" in name:
            add(name.replace("_at_", "@").replace("_", " "), "neighbors", name)
    add("Rows of recall", "neighbors", "rows", shown=_text)
    has_raw = any(entry["method"] == "raw" for entry in entries)
    for name, measure, way in retrieval_lines(entries):
        if has_raw and way == "floats":  # in the column of the raw vectors
            continue
        paths = [retrieval_path(entry, name, way, measure) for entry in entries]
        cells = (
            _percent(at(entry, *path), interval(entry, ".".join(path)))
            for entry, path in zip(entries, paths, strict=True)
        )
        rows.append((f"{name} {MEASURES[measure]}, {WAYS[way]}", *cells))
    add("Cosine to raw, rebuilt", "reconstruction", "cosine")
    add("Rows of the cosine", "reconstruction", "rows", shown=_text)
    add("Top-10 query, ms", "speed", "top_10_ms", shown=_number)
    has_rows = any(row[0].startswith("Rows of") and any(row[1:]) for row in rows)
    about_rows = " Rows outside the fit are unseen." if has_rows else ""
    click.echo(
        f"× 100: Spearman's ρ, accuracy, recall, nDCG, MRR and cosine. Times in ms.{about_rows}"
    )
    table([row for row in rows if any(row[1:])], indent="")
