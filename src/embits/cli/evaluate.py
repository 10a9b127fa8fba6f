"""`embits evaluate`, `compare` and `picture`: the paper's tables and figures, of your own codes."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli import options
from embits.cli.output import print_json, say, show, status_line, table
from embits.coders import METHODS
from embits.collection import load
from embits.errors import InputError, MissingExtraError
from embits.evaluation.compare import ALL_ROWS, BITS, Comparison, Evaluator
from embits.evaluation.data import DataFolder
from embits.evaluation.report import N_WORDS, bit_picture, check_report_folder, write_report
from embits.evaluation.results import Entry, Score, at, interval, jsonable, percent
from embits.evaluation.statistics import N_RESAMPLES
from embits.evaluation.tasks import DEFAULT_TASKS, TASKS, all_scores
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target


def _folder_option(
    name: str, help: str, required: bool = False
) -> Callable[[options.Command], options.Command]:
    return click.option(name, type=options.FOLDER, metavar="DIR", required=required, help=help)


def _fit_rows(_: click.Context, __: click.Parameter, rows: int | str | None) -> int | str | None:
    return ALL_ROWS if rows == "all" else rows


def _scoring_options(
    tasks: Iterable[str], bootstrap: int, fit_rows: str
) -> Callable[[options.Command], options.Command]:
    """The options of both verbs: defaults of --tasks and --bootstrap, help of --fit-rows."""
    about = f"Tasks to run, or all: {', '.join(TASKS)}."
    return options.together(
        _folder_option("--data", "Folder of data sets [default: $EMBITS_DATA]."),
        options.choices_option("--tasks", choices=TASKS, default=",".join(tasks), help=about),
        click.option("--fit-rows", type=options.CountOr("all"), callback=_fit_rows, help=fit_rows),
        options.count(
            "--bootstrap", least=0, default=bootstrap, help="Resamples for intervals; 0: none."
        ),
        click.option("--latex", is_flag=True, help="Write LaTeX tables, and PDF and SVG figures."),
        options.force_option(help="Replace an earlier report, or results of other vectors."),
        options.reading_options,
        options.json_option,
    )


def _has_tasks_option() -> bool:
    source = click.get_current_context().get_parameter_source("tasks")
    return source is ParameterSource.COMMANDLINE


def _possible_tasks(
    tasks: list[str], data: Path | None, *, leave_out: bool = True
) -> tuple[list[str], DataFolder | None]:
    """The tasks that can run, and the folder of data sets if one of them reads it."""
    reading = [task for task in tasks if TASKS[task].reads_data]
    has_folder = data is not None or "EMBITS_DATA" in os.environ
    if leave_out and not has_folder and not _has_tasks_option():
        without = "without a folder of data sets (--data DIR, or EMBITS_DATA)"
        say(f"note: {without}, {', '.join(reading)} are left out")
        return [task for task in tasks if task not in reading], None
    return tasks, DataFolder.at(data) if reading else None


def _timed(file: Path | None, reading: dict[str, Any]) -> Path | None:
    """The file whose loading is timed: none if options say what of it to read."""
    return file if {*reading.values()} <= {None, "utf-8", "raise"} else None


def _check_scored(entries: Sequence[Entry], notes: Sequence[str]) -> None:
    """Refuse results without any score, for the reasons in `notes`; else print the notes."""
    values = (score.of(entry) for entry in entries for score in all_scores([entry]))
    if not any(isinstance(value, float) and math.isfinite(value) for value in values):
        reasons = notes or ["no word of the data sets is in the vocabulary"]
        raise InputError(f"nothing could be scored: {'; '.join(reasons)}")
    for note in notes:
        say(f"note: {note}")


def note_missing_figures() -> None:
    """Print a note if a report has no figures."""
    if find_spec("matplotlib") is None:
        say(f"note: {MissingExtraError('figures', 'plots')}")


def _column_name(entry: Entry) -> str:
    return "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"


@click.command()
@options.files_argument
@options.file_option("--raw", "raw_file", help="Float vectors from which the files were made.")
@_folder_option("--report", "Write a report into this folder.")
@_scoring_options(
    DEFAULT_TASKS,
    0,
    "Fit a new coder on N rows and measure the neighbors of the others; all measures the codes of "
    "the file [default: half of the rows if they have no words].",
)
def evaluate(
    files: tuple[Path, ...],
    raw_file: Path | None,
    report: Path | None,
    data: Path | None,
    tasks: list[str],
    fit_rows: int | None,
    bootstrap: int,
    latex: bool,
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
    missing = " and ".join(task for task in tasks if TASKS[task].needs_raw)
    if raw_file is None and missing and _has_tasks_option():
        raise click.UsageError(f"the float vectors are needed for {missing}: give --raw FILE")
    if latex and report is None:
        raise click.UsageError("--latex writes into the folder of --report: give both")
    if report is not None:
        check_report_folder(report, force)
    opened = {file: load(file) for file in files}
    tasks, folder = _possible_tasks(tasks, data, leave_out=raw_file is not None)
    floats = options.read(raw_file, **reading, quiet=as_json) if raw_file else None
    if floats is not None and floats.dims not in {bits.dims for bits in opened.values()}:
        made_from = f"{files[0]} was made from {opened[files[0]].dims} dimensions"
        raise InputError(f"{raw_file}: vectors of {floats.dims} dimensions, but {made_from}")
    name, timed = "raw", _timed(raw_file, reading)
    with status_line(quiet=as_json) as status:

        def say_step(step: str) -> None:
            status(f"{name}: {step}")

        evaluator = Evaluator(
            folder, floats, tasks, timed, say_step, fit_rows, n_resamples=bootstrap
        )
        entries = [] if floats is None else [evaluator.evaluate_raw()]
        for file, bits in opened.items():
            name = file.name
            entries.append(evaluator.evaluate_bits(bits, file))
    title, notes = "Scores of binary codes", evaluator.notes
    _check_scored(entries, notes)
    if report is not None:
        facts = {"raw": raw_file.name if raw_file else "-", "tasks": ", ".join(tasks)}
        write_report(report, title, entries, facts, notes=notes, overwrite=force, latex=latex)
        note_missing_figures()
    if as_json:
        print_json(jsonable(entries))
        return

    def cell(entry: Entry, score: Score) -> str:
        value = score.of(entry)
        ends = interval(entry, score.key) if score.as_text is percent else None
        text = "" if value is None else score.as_text(value)
        return f"{text} [{percent(ends[0])}, {percent(ends[1])}]" if ends else text

    rows = [(s.label, *(cell(entry, s) for entry in entries)) for s in all_scores(entries)]
    about_rows = [
        (f"Rows of {name}", *(at(entry, name, "rows") or "" for entry in entries))
        for name in TASKS
        if any(at(entry, name, "rows") for entry in entries)
    ]
    what = "× 100: Spearman's ρ, accuracy, recall, nDCG, MRR and cosine. Times in ms."
    click.echo(f"{what} Rows outside the fit are unseen." if about_rows else what)
    table([("", *map(_column_name, entries)), *rows, *about_rows], indent="")


@click.command()
@click.argument("vectors", type=options.FILE)
@options.widths_option(default=",".join(map(str, BITS)), help="Bits per code.")
@options.choices_option("--methods", choices=METHODS, default="all", help="The coders.")
@options.numbers_option(
    "--seeds",
    "--seed",
    "seeds",
    default="0",
    example="0,1,2",
    help="Random seeds of the training. With several, the report shows means.",
)
@options.params_option("A parameter, given to every method that takes it.")
@_folder_option("--report", "Folder of the report.", required=True)
@_scoring_options(
    [task for task in TASKS if task != "retrieval"],
    N_RESAMPLES,
    "Fit on N rows and measure the others [default: half of the rows; all word vectors].",
)
def compare(
    vectors: Path,
    bits: list[int],
    methods: list[str],
    seeds: list[int],
    params: dict[str, Any],
    report: Path,
    data: Path | None,
    tasks: list[str],
    fit_rows: int | None,
    bootstrap: int,
    latex: bool,
    force: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Train and score several methods and widths on VECTORS.

    Writes a report with the tables and figures of the paper: report.md, results.json and figures/.
    Trained codes and their scores are kept in codes/. Run the same command again to resume after an
    interruption. Run it with --force and other methods or widths to add them: the report shows
    every code in the folder.

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
    tasks, folder = _possible_tasks(tasks, data)
    floats = options.read(vectors, **reading, quiet=as_json)
    with status_line(quiet=as_json) as status:
        comparison = Comparison(
            floats,
            report,
            folder,
            bits,
            methods,
            tasks,
            seeds,
            _timed(vectors, reading),
            status,
            fit_rows=fit_rows,
            n_resamples=bootstrap,
            params=params,
            report=say,
        )
        try:
            entries = comparison.run(overwrite=force)
        except KeyboardInterrupt:
            say("interrupted; run the same command again to resume")
            sys.exit(130)
        _check_scored(entries[1:], comparison.notes)
        checksum = "-"  # of what is not a file, such as "gensim:NAME"
        if vectors.is_file():
            with vectors.open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
        settings = {"vectors": vectors.name, "SHA-256 of vectors": checksum}
        settings["command"] = _recorded_command()
        comparison.write_report(f"Bits of {vectors.name}", settings, overwrite=force, latex=latex)
    note_missing_figures()
    if as_json:
        print_json(entries)
        return
    main = [score for score in all_scores(entries) if score.heading]
    main = [score for score in main if any(score.of(entry) for entry in entries[1:])]
    lines = [(_column_name(e), *(percent(score.of(e)) for score in main)) for e in entries]
    table([("", *(score.heading for score in main)), *lines], indent="")
    facts = [f"{time.perf_counter() - start:.0f} s"]
    if len(seeds) > 1:
        facts.append(f"means over {len(seeds)} fits")
    if "neighbors" in tasks:
        measured = "outside the fit (unseen)" if comparison.split else "of the fit"
        facts.append(f"recall of rows {measured}")
    click.echo(f"\n{report / 'report.md'} ({'; '.join(facts)})")


def _recorded_command() -> str:
    """The command with its options, without local folders and what does not change the report."""
    context = click.get_current_context()
    parts = ["embits", "compare", context.params["vectors"].name]
    for option in context.command.params[1:]:
        name = str(option.name)
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if is_default or name in ("force", "as_json"):
            continue
        match context.params.get(name):
            case dict() as params:
                values = [f"{key}={value}" for key, value in params.items()]
                parts += [f"{option.opts[0]} {value}" for value in values]
            case list() | tuple() as values:
                parts.append(f"{option.opts[0]} {','.join(map(str, values))}")
            case Path() as path:
                folder = {"report": "DIR", "data": "DATA"}.get(name, path.name)
                parts.append(f"{option.opts[0]} {folder}")
            case value:
                is_flag = isinstance(option, click.Option) and option.is_flag
                text = "all" if value == ALL_ROWS else value
                parts.append(option.opts[0] if is_flag else f"{option.opts[0]} {text}")
    return " ".join(parts)


@click.command()
@options.file_argument
@options.words_argument
@options.output_option(help="File to write: .png, .svg or .pdf.")
@options.force_option()
@options.count("-n", "k", default=N_WORDS, help="Number of closest and of furthest words.")
@options.json_option
def picture(
    file: Path, words: tuple[str, ...], output: Path, force: bool, k: int, as_json: bool
) -> None:
    """Draw the bits of the words closest to each WORD.

    The furthest words are drawn below them, as in the paper's figure. Each row of pixels is a
    word and each column a bit: red is 1, white is 0. Vertical stripes are bits that neighbors
    share. Several words are drawn one below the other, in the order given.

    \b
    embits picture glove.safetensors queen -o queen.png
    embits picture glove.safetensors queen automobile jupiter man -o figure.pdf
    """
    check_target(output, [file], force)
    image = bit_picture(load(file), words, k, output.suffix)
    with atomic_write(output) as target:
        target.write(image)
    facts = {"file": str(output), "words": list(words), "bytes": len(image)}
    show(facts, f"{output}: the bits of {', '.join(words)}", as_json)
