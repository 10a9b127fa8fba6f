"""`embits evaluate`: score files of codes on standard tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from embits.cli import evaluation_options as scoring
from embits.cli import options
from embits.cli.output import print_json, table
from embits.cli.progress import status_line
from embits.collection import load
from embits.errors import InputError
from embits.evaluation.evaluator import Evaluator
from embits.evaluation.report import write_report
from embits.evaluation.results import Entry, Score, at, interval, jsonable, percent
from embits.evaluation.tasks import DEFAULT_TASKS, TASKS, all_scores


@click.command()
@options.files_argument
@options.file_option("--raw", "raw_file", help="Float vectors from which the files were made.")
@click.option(
    "--report", type=options.FOLDER, metavar="DIR", help="Write a report into this folder."
)
@scoring.scoring_options(
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
    if raw_file is None and missing and scoring.are_tasks_named():
        raise click.UsageError(
            f"the float vectors are needed for {' and '.join(missing)}: give --raw FILE"
        )
    if latex and report is None:
        raise click.UsageError("--latex writes into the folder of --report: give both")
    scoring.check_outputs(report, csv_file, files[0], force)
    opened = {file: load(file) for file in files}
    tasks, folder = scoring.possible_tasks(tasks, data, leave_out=raw_file is not None)
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
    scoring.check_scored(entries, evaluator.notes)
    if report is not None:
        facts = {"raw": raw_file.name if raw_file else "-", "tasks": ", ".join(tasks)}
        write_report(
            report, "Scores of binary codes", entries, facts, notes=evaluator.notes,
            overwrite=force, latex=latex,
        )  # fmt: skip
        scoring.note_missing_figures()
    scoring.finish(entries, csv_file, evaluator.notes)
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
    table([("", *map(scoring.column_name, entries)), *rows, *measured], indent="")


def _cell(score: Score, entry: Entry) -> str:
    """A score with its interval; empty if the entry does not have it."""
    value = score.of(entry)
    if value is None:
        return ""
    ends = interval(entry, score.key) if score.shown is percent else None
    return score.shown(value) + (f" [{percent(ends[0])}, {percent(ends[1])}]" if ends else "")
