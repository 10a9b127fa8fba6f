"""The report: the paper's tables and figures as Markdown, LaTeX, JSON and CSV.

Words and file names are data: they are escaped.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from embits import _core
from embits._version import __version__
from embits.errors import InputError, MissingExtraError
from embits.evaluation.figures import drawn
from embits.evaluation.results import Grid, Table, csv_text, jsonable, number
from embits.evaluation.tasks import TASKS, all_scores
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_folder

FILES = ("report.md", "results.json", "results.csv", "figures", "tables")
"""What a report writes into its folder."""


class Picture(NamedTuple):
    """A picture of the report: its file in figures/, and its caption."""

    name: str
    png: bytes
    caption: str
    has_number: bool = False


Block: TypeAlias = str | Table | Picture
"""A part of the report; a string is Markdown."""


def check_report_folder(folder: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse a folder that has a report, or files of the same names, unless `overwrite`."""
    found = [name for name in FILES if (Path(folder) / name).exists()]
    if found and not overwrite:
        raise InputError(
            f"{Path(folder) / found[0]} exists: choose another folder for the report, or replace "
            "its files with --force (in Python: overwrite=True)"
        )


def write_report(
    folder: str | os.PathLike[str],
    title: str,
    entries: Sequence[dict[str, Any]],
    settings: Mapping[str, Any],
    pictures: Sequence[Picture] = (),
    notes: Sequence[str] = (),
    overwrite: bool = False,
    *,
    tests: Sequence[dict[str, Any]] = (),
    latex: bool = False,
) -> list[Path]:
    """Write report.md, results.json, results.csv and figures/ into a folder.

    Args:
        folder: Created if it does not exist.
        title: Title of the report.
        entries: Results of an `Evaluator`; at most one has the method "raw".
        settings: Facts for the table of settings, which also lists the versions in use.
        pictures: Pictures of bits.
        notes: What could not be measured. The report adds figures that could not be drawn.
        overwrite: Replace the files of an earlier report. Other files in the folder stay.
        tests: Result of `paired_tests`.
        latex: Write the tables as LaTeX into tables/, and the figures as PDF and SVG, too.

    Returns:
        The files written.

    Raises:
        InputError: The folder has a report, or files of the same names, and `overwrite` is false.
    """
    check_report_folder(folder, overwrite)
    grid, notes = Grid(entries), list(notes)
    settings = dict(settings) | versions()
    files: dict[str, bytes] = {}
    blocks: list[Block] = [f"# {_marked(title)}", *_about_intervals(grid)]
    blocks += _sections(grid, notes, files, ("png", "pdf", "svg") if latex else ("png",))
    blocks += _tests(grid, tests)
    if pictures:
        blocks += ["## Bits of neighbors", _PICTURES, *pictures]
    if notes:
        blocks += ["## Skipped", *map(_marked, notes)]
    blocks += ["## Settings", *_settings_tables(grid, settings)]
    markdown, tables = rendered(blocks)
    results = {"settings": settings, "results": list(entries)}
    results |= {"tests": list(tests)} if tests else {}
    files |= {f"figures/{picture.name}": picture.png for picture in pictures}
    files |= {f"tables/{name}": text.encode() for name, text in tables.items() if latex}
    files["results.csv"] = csv_text(entries).encode()
    files["results.json"] = json.dumps(jsonable(results), ensure_ascii=False, indent=1).encode()
    files["report.md"] = markdown.encode()
    return _written(Path(folder), files)


def _written(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    check_folder(folder, files, overwrite=True)  # other files in the folder stay
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / name) as file:
            file.write(content)
    return [folder / name for name in files]


def versions() -> dict[str, str]:
    """Versions of the software, and the machine."""
    found: dict[str, str] = {
        "embits": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": f"{sys.platform} {platform.machine()}, search kernels: {_core.simd()}",
    }
    with suppress(ImportError):
        import matplotlib

        found["Matplotlib"] = matplotlib.__version__
    return found


# -- sections --------------------------------------------------------------------------------------

_PICTURES = (
    "For each word: the codes of its 50 closest words above the line and of its 50 furthest words "
    "below, one row of pixels each. Red is 1, white is 0. Vertical stripes are bits that neighbors "
    "share."
)


def _about_intervals(grid: Grid) -> list[Block]:
    """What the numbers in brackets after the name of a score are."""
    text = []
    if any(entry.get("intervals") for entry in grid.entries):
        text.append(
            "± after the name of a score is the largest half-width of its 95 % bootstrap intervals."
        )
    fits = max((len(entry.get("seeds") or ()) for entry in grid.entries), default=0)
    if fits:
        text.append(
            f'Scores are means over {fits} fits, each with another seed; "fits" is the largest '
            "standard deviation over the fits."
        )
    return [" ".join(text)] if text else []


def _sections(
    grid: Grid, notes: list[str], files: dict[str, bytes], formats: Sequence[str]
) -> list[Block]:
    """The tables and figures of all tasks; the files of the figures are added to `files`."""
    blocks: list[Block] = []
    for task in TASKS.values():
        section: list[Block] = list(task.tables(grid))
        for figure in task.figures(grid):
            try:
                made = drawn(figure, grid, formats)
            except MissingExtraError as error:
                notes.append(f"{figure.name}: {error}")
                continue
            files |= {f"figures/{figure.name}.{kind}": data for kind, data in made.items()}
            if made:
                section.append(Picture(f"{figure.name}.png", made["png"], figure.caption, True))
        blocks += [f"## {task.title}", *section] if section else []
    return blocks


def _tests(grid: Grid, tests: Sequence[dict[str, Any]]) -> list[Block]:
    """The default method, or else the first, minus each other method."""
    reference = grid.main_method
    labels = {score.key: score.label for score in all_scores(grid.entries)}
    widths = sorted({test["bits"] for test in tests})
    cells: dict[str, dict[str, dict[int, str]]] = {}
    for test in tests:
        if reference in (test["a"], test["b"]):
            sign = 1 if test["a"] == reference else -1
            other = test["b"] if sign == 1 else test["a"]
            row = cells.setdefault(test["measure"], {}).setdefault(other, {})
            row[test["bits"]] = f"{100 * sign * test['difference']:+.1f} (p {_p(test)})"
    rows: list[list[str]] = []
    for measure, others in cells.items():
        rows.append([labels[measure], *[""] * len(widths)])
        for other, found in others.items():
            rows.append([f" {reference} – {other}", *(found.get(width, "") for width in widths)])
    caption = (
        f"Difference of {reference} and each other method, × 100, with the two-sided p-value of a "
        "paired bootstrap over the same queries, pairs, questions or rows. P-values are not "
        "corrected for the number of tests."
    )
    table = Table(["", *map(str, widths)], rows, caption)
    return ["## Differences between methods", table] if rows else []


def _p(test: Mapping[str, Any]) -> str:
    text = f"{test['p']:.3f}".lstrip("0") if test["p"] < 1 else "1"
    return f"≤ {text}" if test.get("is_bound") else text


def _settings_tables(grid: Grid, settings: Mapping[str, Any]) -> list[Table]:
    facts = [[name, str(value)] for name, value in settings.items()]
    rows = []
    for entry in grid.coded:
        params = ", ".join(f"{k}={v}" for k, v in (entry.get("params") or {}).items())
        rows.append([f"{entry['method']} {entry['bits']}", number(entry.get("seconds"), 1), params])
    tables = [Table(["", "value"], facts, of_text=True, has_number=False)]
    caption = "Training of each code: time in seconds, and parameters."
    if rows:
        tables.append(Table(["", "s", "parameters"], rows, caption, of_text=True, has_number=False))
    return tables


# -- Markdown and LaTeX ----------------------------------------------------------------------------


def rendered(blocks: Sequence[Block]) -> tuple[str, dict[str, str]]:
    """The report as Markdown, and its numbered tables as LaTeX by file name.

    Tables and figures are numbered from 1 in order of appearance.
    """
    parts: list[str] = []
    tables: dict[str, str] = {}
    n_figures = 0
    for block in blocks:
        if isinstance(block, Table):
            caption = _marked(block.caption)
            if block.has_number:
                n = len(tables) + 1
                tables[f"table-{n}.tex"] = to_latex(block, f"tab:embits-{n}")
                caption = f"Table {n}. {caption}"
            parts += [caption, _markdown_table(block)] if caption else [_markdown_table(block)]
        elif isinstance(block, Picture):
            n_figures += block.has_number
            number = f"Figure {n_figures}. " if block.has_number else ""
            caption = number + _marked(block.caption)
            parts += [f"![{caption}](figures/{block.name})", caption]
        else:
            parts.append(block)
    return "\n\n".join(parts) + "\n", tables


def _markdown_table(table: Table) -> str:
    rule = ["---", *["---" if table.of_text else "---:"] * (len(table.header) - 1)]
    lines = [_row(table.header), rule, *map(_row, table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(row: Sequence[str]) -> list[str]:
    indent = "&nbsp;&nbsp;" if row[0].startswith(" ") else ""
    return [indent + _marked(row[0]), *(_bold(cell, "**@**") or _marked(cell) for cell in row[1:])]


def _bold(cell: str, form: str) -> str:
    """The content of a cell *x* in this form; "" for any other cell."""
    return form.replace("@", cell[1:-1]) if re.fullmatch(r"\*[-\d.]+\*", cell) else ""


def _marked(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "±": r"$\pm$", "–": "--", "ρ": r"$\rho$", "λ": r"$\lambda$", "−": r"$-$",
    "≤": r"$\leq$",
}  # fmt: skip


def to_latex(table: Table, name: str) -> str:
    """A table environment with the label `name`; it needs booktabs."""
    columns = "l" + ("l" if table.of_text else "r") * (len(table.header) - 1)
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escaped(table.caption)}}}",
        rf"\label{{{name}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
        f"{' & '.join(map(escaped, table.header))} \\\\", r"\midrule",
        *(f"{' & '.join(_latex_cells(row))} \\\\" for row in table.rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def _latex_cells(row: Sequence[str]) -> list[str]:
    indent = r"\quad " if row[0].startswith(" ") else ""
    first = indent + escaped(row[0].strip())
    return [first, *(_bold(cell, r"\textbf{@}") or escaped(cell) for cell in row[1:])]
