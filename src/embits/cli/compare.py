"""`embits compare`: the paper's tables and figures, on your own vectors."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from embits.cli.comparison_report import (
    examples,
    facts_of,
    print_summary,
    report_settings,
    without_folder,
)
from embits.cli.evaluation_options import (
    FORCE_HELP,
    bootstrap_option,
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
    force_option,
    json_option,
    read,
    reading_options,
    widths_option,
)
from embits.cli.output import print_json
from embits.cli.progress import status_line
from embits.coders import METHODS
from embits.evaluation.compare import BITS, Comparison
from embits.evaluation.report.folder import check_report_folder
from embits.evaluation.report.paired import paired_tests
from embits.evaluation.report.write import write_report
from embits.evaluation.resampling import N_RESAMPLES
from embits.evaluation.tasks import TASKS
from embits.file.overwrite import check_target


def _methods(_: click.Context, __: click.Parameter, value: str | None) -> list[str]:
    methods = list(METHODS) if value is None else list(dict.fromkeys(value.split(",")))
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}: expected some of {', '.join(METHODS)}")
    return methods


def _seeds(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    try:
        seeds = list(dict.fromkeys(int(seed) for seed in value.split(",")))
    except ValueError:
        seeds = [-1]
    if min(seeds) < 0:
        raise click.BadParameter(f"{value!r}: expected numbers from 0, such as 0,1,2")
    return seeds


@click.command()
@click.argument("vectors", type=FILE)
@widths_option(",".join(map(str, BITS)), "Bits per code.")
@click.option(
    "--methods",
    callback=_methods,
    metavar="METHOD,...",
    help="The coders [default: all].",
)
@data_option
@tasks_option(",".join(task for task in TASKS if task != "retrieval"))
@click.option(
    "--seeds",
    "--seed",
    "seeds",
    default="0",
    callback=_seeds,
    metavar="N,...",
    help="Random seeds of the training. With several, the report shows means.",
)
@fit_rows_option(
    "Fit on N rows and measure the others [default: half of the rows; all word vectors]."
)
@bootstrap_option(N_RESAMPLES)
@fisher_option
@latex_option
@csv_option
@click.option("--report", type=FOLDER, required=True, metavar="DIR", help="Folder of the report.")
@force_option(help=FORCE_HELP)
@reading_options
@json_option
def command(
    vectors: Path,
    bits: list[int],
    methods: list[str],
    data: Path | None,
    tasks: tuple[str, ...],
    seeds: list[int],
    fit_rows: int | None,
    bootstrap: int,
    fisher: str,
    latex: bool,
    csv_file: Path | None,
    report: Path,
    force: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Train and score several methods and widths on VECTORS.

    Writes a report with the tables and figures of the paper: report.md, report.html,
    results.json, results.csv and figures/. Trained codes and their scores are kept in codes/.
    Run the same command again to resume. Run it with other methods or widths to add them: the
    report shows every code in the folder. A folder with results of other vectors, rows, tasks or
    seeds is refused unless --force is given.

    Without a folder of data sets, the tasks that need none run: neighbors, reconstruction and
    speed. Retrieval runs only if --tasks names it. Every method is then fitted on the documents.

    \b
    embits compare glove.txt --data ~/data --report glove-report
    embits compare docs.npy --tasks neighbors,retrieval --data ~/data --report docs-report
    embits compare glove.txt --bits 256 --methods paper,lsh,sign --report glove-report
    embits compare glove.txt --seeds 0,1,2 --latex --report glove-report
    """
    start = time.perf_counter()
    check_report_folder(report, force)
    if csv_file is not None:
        check_target(csv_file, [vectors], force)
    tasks = possible_tasks(tasks, data)
    folder = data_folder(data, tasks)
    floats = read(vectors, quiet=as_json, **reading)
    with status_line(quiet=as_json) as status:
        comparison = Comparison(
            floats, report, folder, bits, methods, tasks, seeds, vectors, _said(status),
            fit_rows=fit_rows, n_resamples=bootstrap, by_pairs=fisher == "pairs",
        )  # fmt: skip
        if not force:
            comparison.check_folder()
        entries = _run(comparison)
        pictures, moved = examples(comparison)
    options = {
        "limit": reading["limit"],
        "fit-rows": fit_rows and (comparison.settings["fit_rows"] or "all"),
    }
    settings = report_settings(comparison, vectors, bits, options, fisher)
    tests = paired_tests(entries, comparison.replicates) if bootstrap else []
    write_report(
        report, f"Bits of {vectors.name}", entries, settings, pictures, moved,
        without_folder(comparison.notes, folder), force, tests=tests, latex=latex,
    )  # fmt: skip
    if csv_file is not None:
        write_csv(csv_file, entries)
    for note in comparison.notes:
        click.echo(f"embits: note: {note}", err=True)
    note_missing_figures()
    if as_json:
        print_json(entries)
        return
    print_summary(entries)
    facts = [f"{time.perf_counter() - start:.0f} s", *facts_of(comparison)]
    click.echo(f"\n{report / 'report.html'} ({'; '.join(facts)})")


def _said(status: Callable[[str], None]) -> Callable[[str], None]:
    """Show steps in the status line, and print those that stay of interest."""

    def say(text: str) -> None:
        if ": done in" in text or "is skipped" in text:
            click.echo(f"embits: {text}", err=True)
        status(text)

    return say


def _run(comparison: Comparison) -> list[dict[str, Any]]:
    try:
        entries = comparison.run()
    except KeyboardInterrupt:
        click.echo("embits: interrupted; run the same command again to resume", err=True)
        sys.exit(130)
    check_scored([entry for entry in entries if entry["method"] != "raw"], comparison.notes)
    return entries
