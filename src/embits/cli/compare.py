"""`embits compare`: the paper's tables and figures, on your own vectors."""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from embits.cli import evaluation_options as scoring
from embits.cli import options
from embits.cli.output import print_json, table
from embits.cli.progress import status_line
from embits.coders import METHODS, register_coder
from embits.evaluation.compare import BITS, Comparison
from embits.evaluation.results import percent
from embits.evaluation.statistics import N_RESAMPLES
from embits.evaluation.tasks import TASKS, all_scores

_RECORDED = ("bits", "methods", "tasks", "seeds", "data")  # in every recorded command


def _coders(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Register coders MODULE:CLASS, so that --methods takes their names. Returns them by name."""
    found = {}
    sys.path.insert(0, "")  # as `python -m` does: modules of the current folder
    try:
        for value in values:
            module, _colon, name = value.partition(":")
            coder = register_coder(getattr(importlib.import_module(module), name))
            found[coder.method] = value
    except (ImportError, AttributeError, ValueError) as error:
        raise click.BadParameter(f"{value!r}: expected MODULE:CLASS ({error})") from None
    finally:
        sys.path.remove("")
    return found


def _seeds(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    try:
        seeds = list(dict.fromkeys(int(seed) for seed in value.split(",")))
    except ValueError:
        seeds = [-1]
    if min(seeds) < 0:
        raise click.BadParameter(f"{value!r}: expected numbers from 0, such as 0,1,2")
    return seeds


@click.command()
@click.argument("vectors", type=options.FILE)
@options.widths_option(",".join(map(str, BITS)), "Bits per code.")
@click.option(
    "--coder", "coders", multiple=True, callback=_coders, is_eager=True, metavar="MODULE:CLASS",
    help="A coder of your own, which is compared as well. May be repeated.",
)  # fmt: skip
@click.option(
    "--methods", default="all", callback=scoring.names_of(METHODS), metavar="METHOD,...",
    help="The coders.",
)  # fmt: skip
@click.option(
    "--seeds", "--seed", "seeds", default="0", callback=_seeds, metavar="N,...",
    help="Random seeds of the training. With several, the report shows means.",
)  # fmt: skip
@options.params_option("A parameter, given to every method that takes it.")
@click.option(
    "--report", type=options.FOLDER, required=True, metavar="DIR", help="Folder of the report."
)
@scoring.scoring_options(
    [task for task in TASKS if task != "retrieval"],
    N_RESAMPLES,
    "Fit on N rows and measure the others [default: half of the rows; all word vectors].",
)
@options.reading_options
@options.json_option
def command(
    vectors: Path,
    bits: list[int],
    coders: dict[str, str],
    methods: tuple[str, ...],
    seeds: list[int],
    params: dict[str, Any],
    report: Path,
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
    """Train and score several methods and widths on VECTORS.

    Writes a report with the tables and figures of the paper: report.md, results.json, results.csv
    and figures/. Trained codes and their scores are kept in codes/. Run the same command again to
    resume after an interruption. Run it with --force and other methods or widths to add them: the
    report shows every code in the folder.

    Without a folder of data sets, the tasks that need none run: neighbors, reconstruction and
    speed. Retrieval runs only if --tasks names it. Every method is then fitted on the documents.

    \b
    embits compare glove.txt --data ~/data --report glove-report
    embits compare docs.npy --tasks neighbors,retrieval --data ~/data --report docs-report
    embits compare glove.txt --bits 256 --methods paper,lsh,sign --report glove-report
    embits compare glove.txt --seeds 0,1,2 --latex --report glove-report
    """
    start = time.perf_counter()
    scoring.check_outputs(report, csv_file, vectors, force)
    tasks, folder = scoring.possible_tasks(tasks, data)
    floats = options.read(vectors, **reading, quiet=as_json)
    with status_line(quiet=as_json) as status:

        def say(text: str) -> None:
            if ": done in" in text or "is skipped" in text:
                click.echo(f"embits: {text}", err=True)
            status(text)

        comparison = Comparison(
            floats, report, folder, bits, dict.fromkeys([*methods, *coders]), tasks, seeds, vectors,
            say, fit_rows=fit_rows, n_resamples=bootstrap, by_pairs=fisher == "pairs",
            params=params,
        )  # fmt: skip
        if not force:
            comparison.check_folder()
        try:
            entries = comparison.run()
        except KeyboardInterrupt:
            click.echo("embits: interrupted; run the same command again to resume", err=True)
            sys.exit(130)
        scoring.check_scored(entries[1:], comparison.notes)
        settings = {"vectors": vectors.name, "SHA-256 of vectors": _sha256(vectors)}
        settings["command"] = _recorded_command(comparison)
        comparison.write_report(f"Bits of {vectors.name}", settings, overwrite=force, latex=latex)
    scoring.finish(entries, csv_file, comparison.notes)
    scoring.note_missing_figures()
    if as_json:
        print_json(entries)
        return
    _print_summary(entries)
    facts = [f"{time.perf_counter() - start:.0f} s"]
    if len(seeds) > 1:
        facts.append(f"means over {len(seeds)} fits")
    if "neighbors" in tasks:
        rows = "outside the fit (unseen)" if comparison.split else "of the fit"
        facts.append(f"recall of rows {rows}")
    click.echo(f"\n{report / 'report.md'} ({'; '.join(facts)})")


def _sha256(path: Path) -> str:
    """The checksum of a file; "-" for what is not a file, such as "gensim:NAME"."""
    if not path.is_file():
        return "-"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _recorded_command(comparison: Comparison) -> str:
    """The command that makes the report again, with every option but no local folders."""
    context = click.get_current_context()
    given = dict(context.params) | {"force": False, "as_json": False, "csv_file": None}
    given["bits"] = sorted(
        {n for method, n in comparison.plan if method != "sign"} or given["bits"]
    )
    given["methods"] = list(dict.fromkeys(method for method, _ in comparison.plan))
    given["tasks"] = comparison.evaluator.tasks
    given["fit_rows"] = given["fit_rows"] and (comparison.settings["fit_rows"] or "all")
    given["coders"] = list(given["coders"].values())
    given["params"] = [f"{name}={value}" for name, value in given["params"].items()]
    given["data"] = "DATA" if comparison.evaluator.data else None
    given["report"] = "DIR"
    parts = ["embits", "compare", given["vectors"].name]
    for option in context.command.params[1:]:
        is_default = context.get_parameter_source(str(option.name)) is ParameterSource.DEFAULT
        value = given.get(str(option.name), not is_default)
        if value in (None, False, (), []) or (is_default and option.name not in _RECORDED):
            continue
        if isinstance(option, click.Option) and option.is_flag:
            parts.append(option.opts[0])
        elif option.multiple:
            parts += [f"{option.opts[0]} {each}" for each in value]
        else:
            value = value.name if isinstance(value, Path) else value
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            parts.append(f"{option.opts[0]} {text}")
    return " ".join(parts)


def _print_summary(entries: list[dict[str, Any]]) -> None:
    """Print the main scores, one line per code."""
    columns = [score for score in all_scores(entries) if score.column]
    shown = [score for score in columns if any(score.of(entry) for entry in entries[1:])]
    rows = [("", *(score.column for score in shown))]
    for entry in entries:
        scores = (percent(score.of(entry)) for score in shown)
        rows.append((scoring.column_name(entry), *scores))
    table(rows, indent="")
