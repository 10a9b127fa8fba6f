"""`embits compare`: the paper's tables and figures, on your own vectors."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    tasks_option,
    write_csv,
)
from embits.cli.options import (
    FILE,
    FOLDER,
    check_output,
    force_option,
    json_option,
    read,
    reading_options,
    widths_option,
)
from embits.cli.output import print_json, table
from embits.cli.progress import status_line
from embits.coders import DEFAULT_METHOD, METHODS
from embits.evaluation.compare import BITS, Comparison
from embits.evaluation.evaluator import TASKS
from embits.evaluation.report.document import Picture
from embits.evaluation.report.folder import check_report_folder
from embits.evaluation.report.paired import paired_tests
from embits.evaluation.report.picture import bit_picture
from embits.evaluation.report.results import (
    MEASURES,
    WAYS,
    at,
    retrieval_lines,
    retrieval_path,
)
from embits.evaluation.report.tables import percent
from embits.evaluation.report.write import write_report
from embits.evaluation.resampling import N_RESAMPLES
from embits.evaluation.spaces import BitSpace, FloatSpace
from embits.evaluation.tasks.moved_pairs import MovedPair, moved_pairs

PICTURED = ("queen", "automobile", "jupiter", "man")  # the paper's words

if TYPE_CHECKING:
    from embits.readers.source import Repeats


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
    help="Random seeds of the training; of several, the report shows means [default: 0].",
)
@fit_rows_option("Fit on N rows and measure the others [default: half; all of word vectors].")
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
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    as_json: bool,
) -> None:
    """Train and score several methods and widths on VECTORS.

    Writes a report with the tables and figures of the paper: report.md, report.html,
    results.json, results.csv and figures/. Trained codes and their scores are kept in codes/.
    Run the same command again to resume. Run it with other methods or widths to add them: the
    report shows every code in the folder. A folder with results of other vectors, rows, tasks or
    another seed is refused, unless --force is given.

    The task retrieval is run if it is named: every method is fitted on the documents.

    \b
    embits compare glove.txt --data ~/data --report glove-report
    embits compare docs.npy --tasks neighbors,retrieval --data ~/data --report docs-report
    embits compare glove.txt --bits 256 --methods paper,lsh,sign --report glove-report
    embits compare glove.txt --seeds 0,1,2 --latex --report glove-report
    """
    start = time.perf_counter()
    check_report_folder(report, force)
    if csv_file is not None:
        check_output(csv_file, vectors, force)
    folder = data_folder(data, tasks)
    floats = read(vectors, limit, words_file, skip_bad, repeats, quiet=as_json)
    with status_line(quiet=as_json) as status:

        def say(text: str) -> None:
            if ": done in" in text or "is skipped" in text:
                click.echo(f"embits: {text}", err=True)
            status(text)

        comparison = Comparison(
            floats, report, folder, bits, methods, tasks, seeds, vectors, say,
            fit_rows=fit_rows, n_resamples=bootstrap, by_pairs=fisher == "pairs",
        )  # fmt: skip
        if not force:
            comparison.check_folder()
        try:
            entries = comparison.run()
        except KeyboardInterrupt:
            click.echo("embits: interrupted; run the same command again to resume", err=True)
            sys.exit(130)
        check_scored([entry for entry in entries if entry["method"] != "raw"], comparison.notes)
        pictures, moved = _examples(comparison)
    options: dict[str, Sequence[object]] = {
        "bits": sorted({width for method, width in comparison.plan if method != "sign"} or bits),
        "methods": list(dict.fromkeys(method for method, _ in comparison.plan)),
        "tasks": tasks,
        "seeds": seeds,
    }
    fitted = comparison.settings["fit_rows"]
    options |= {"limit": [limit]} if limit else {}
    options |= {"fit-rows": [fitted or "all"]} if fit_rows else {}
    options |= {"fisher": [fisher]} if fisher != "equal" else {}
    settings = {
        "vectors": vectors.name,
        "words": f"{len(floats):,}",
        "dimensions": floats.dims,
        "seeds": ", ".join(map(str, seeds)),
        "Fisher mean": "sets weighed " + ("equally" if fisher == "equal" else "by their pairs"),
        "rows of the fit": f"{fitted or len(floats):,}",
        "command": _command_line(vectors, options),
    }
    notes = comparison.notes
    shown = [note.replace(f"{folder.path}{os.sep}", "") if folder else note for note in notes]
    tests = paired_tests(entries, comparison.replicates) if bootstrap else []
    write_report(
        report, f"Bits of {vectors.name}", entries, settings, pictures, moved, shown, force,
        tests=tests, latex=latex,
    )  # fmt: skip
    if csv_file is not None:
        write_csv(csv_file, entries)
    for note in notes:
        click.echo(f"embits: note: {note}", err=True)
    if as_json:
        print_json(entries)
        return
    _summary(entries)
    facts = [f"{time.perf_counter() - start:.0f} s"]
    facts += [f"means over {len(seeds)} fits"] if len(seeds) > 1 else []
    if "neighbors" in tasks:
        facts.append("recall of rows " + ("outside the fit (unseen)" if fitted else "of the fit"))
    click.echo(f"\n{report / 'report.html'} ({'; '.join(facts)})")


def _command_line(vectors: Path, options: Mapping[str, Sequence[object]]) -> str:
    """The command that makes the report again, without local folders."""
    given = (f"--{name} {','.join(map(str, values))}" for name, values in options.items())
    return f"embits compare {vectors.name} {' '.join(given)} --report DIR"


def _summary(entries: list[dict[str, Any]]) -> None:
    """Print the main scores, one line per code."""
    columns = (
        ("Fisher mean", ("similarity", "fisher_mean")),
        ("semantic", ("analogy", "semantic", "accuracy")),
        ("syntactic", ("analogy", "syntactic", "accuracy")),
        ("recall@10", ("neighbors", "recall_at_10")),
        ("float query", ("neighbors", "asymmetric_recall_at_10")),
        ("rebuilt", ("reconstruction", "cosine")),
        *(
            (f"{name} {MEASURES[measure]}, {WAYS[way]}", ("retrieval", name, way, measure))
            for name, measure, way in retrieval_lines(entries)
            if measure == "ndcg@10" and way != "floats"
        ),
    )
    known = [(name, path) for name, path in columns if any(at(e, *path) for e in entries[1:])]
    rows = [("", *(name for name, _ in known))]
    for entry in entries:
        label = "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"
        rows.append((label, *(percent(_score(entry, path)) for _, path in known)))
    table(rows, indent="")


def _score(entry: dict[str, Any], path: tuple[str, ...]) -> float | None:
    if path[0] == "retrieval":
        path = retrieval_path(entry, *path[1:])
    score: float | None = at(entry, *path)
    return score


def _examples(
    comparison: Comparison,
) -> tuple[list[Picture], tuple[list[MovedPair], list[MovedPair]] | None]:
    """Pictures of the widest codes and pairs moved at 256 bits, for the default method."""
    raw = comparison.evaluator.raw
    methods = [method for method, _ in comparison.plan]
    method = DEFAULT_METHOD if DEFAULT_METHOD in methods else methods[0]
    widths = [width for name, width in comparison.plan if name == method]
    widest = comparison.codes(method, max(widths))
    pictures = []
    for word in PICTURED:
        if word in widest:
            caption = f"{word}: {method}, {widest.n_bits} bits"
            pictures.append(Picture(f"bits-{word}.png", bit_picture(widest, [word]), caption))
    if "similarity" not in comparison.evaluator.tasks or not isinstance(raw, FloatSpace):
        return pictures, None
    bits = comparison.codes(method, min(widths, key=lambda width: abs(width - 256)))
    return pictures, moved_pairs(raw, BitSpace(bits, raw.lookup), comparison.evaluator.pairs)
