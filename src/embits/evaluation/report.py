"""The report: the paper's tables and figures as Markdown, LaTeX, JSON and pictures.

Words and file names are data: they are escaped.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._version import __version__
from embits.arrays import invert
from embits.binary_vectors import BinaryRows
from embits.checks import whole
from embits.errors import InputError, MissingExtraError
from embits.evaluation.results import Entry, Grid, Score, Table, at, interval, jsonable
from embits.evaluation.tasks import TASKS, all_scores
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_folder
from embits.integrations import package
from embits.search import top_k

FILES = ("report.md", "results.json", "figures", "tables")  # of a report


def check_report_folder(folder: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse a folder that has a report, or files of the same names, unless `overwrite`."""
    existing = [path for name in FILES if (path := Path(folder, name)).exists()]
    if existing and not overwrite:
        replace = "replace its files with --force (in Python: overwrite=True)"
        raise InputError(
            f"{existing[0]} exists: choose another folder for the report, or {replace}"
        )


def write_report(
    folder: str | os.PathLike[str],
    title: str,
    entries: Sequence[Entry],
    settings: Mapping[str, object],
    *,
    notes: Sequence[str] = (),
    overwrite: bool = False,
    tests: Sequence[Entry] = (),
    latex: bool = False,
    picture: bytes = b"",
) -> list[Path]:
    """Write report.md, results.json and figures/ into a folder; returns the files.

    Args:
        folder: Created if it does not exist.
        entries: Results of an `Evaluator`; at most one has the method "raw".
        settings: Facts for the table of settings, which also lists the versions in use.
        notes: What could not be measured. The report adds that figures could not be drawn.
        overwrite: Replace the files of an earlier report (InputError without it), and no others.
        tests: Result of `paired_tests`.
        latex: Write the tables as LaTeX into tables/, and the figures as PDF and SVG, too.
        picture: A PNG of bits, as `bit_picture` draws it.
    """
    check_report_folder(folder, overwrite)
    grid = Grid(entries)
    settings = dict(settings) | {
        "embits": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": f"{sys.platform} {platform.machine()}, search kernels: {_core.simd()}",
    }
    report = Report(f"# {_marked(title)}", notes, latex=latex)
    if any(entry.get("intervals") or entry.get("seeds") for entry in entries):
        report.add(_SPREAD)
    for task in TASKS.values():
        if table := task.table(grid):
            report.add(f"## {task.title}", table)
            main = [score for score in task.scores(entries) if score.heading]
            main += [score.rebuilt() for score in main if task.of_rebuilt]
            report.add_figure(
                task.name,
                f"{task.title} by width, with 95 % intervals. The dashed line: raw floats.",
                partial(draw_scores, main, grid),
            )
    if table := _tests(grid, tests):
        report.add("## Differences between methods", table)
    if picture:
        report.add("## Bits of neighbors")
        report.add_figure("bits", _PICTURE, lambda _: {"png": picture})
    if report.notes:
        report.add("## Skipped", *map(_marked, report.notes))
    facts = [[name, str(value)] for name, value in settings.items()]
    report.add("## Settings", Table(["", "value"], facts, of_text=True))
    results = {"settings": settings, "results": entries} | ({"tests": tests} if tests else {})
    files = report.files | {
        "results.json": json.dumps(jsonable(results), ensure_ascii=False, indent=1).encode(),
        "report.md": report.markdown().encode(),
    }
    check_folder(folder, files, overwrite=True)  # other files in the folder stay
    contents = {Path(folder, name): content for name, content in files.items()}
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(content)
    return list(contents)


_PICTURE = (
    "The codes of a word's 50 closest words, above the line of its 50 furthest words, one row of "
    "pixels each. Red is 1, white is 0. Vertical stripes are bits that neighbors share."
)
_SPREAD = (
    "± after the name of a score is the largest half-width of its 95 % bootstrap intervals, and "
    '"fits" the largest standard deviation over the fits, if there are several seeds. Scores are '
    "then means over the fits."
)


def _tests(grid: Grid, tests: Sequence[Entry]) -> Table | None:
    """The default method, or else the first, minus each other method."""
    reference = grid.main_method
    labels = {score.key: score.label for score in all_scores(grid.entries)}
    widths = sorted({test["bits"] for test in tests})
    cells: dict[str, dict[str, dict[int, str]]] = {}
    for test in tests:
        if reference in (test["a"], test["b"]):
            sign, other = (1, test["b"]) if test["a"] == reference else (-1, test["a"])
            p = f"{test['p']:.3f}".lstrip("0") if test["p"] < 1 else "1"
            p = f"≤ {p}" if test.get("is_bound") else p
            row = cells.setdefault(test["measure"], {}).setdefault(other, {})
            row[test["bits"]] = f"{100 * sign * test['difference']:+.1f} (p {p})"
    rows: list[list[str]] = []
    for measure, others in cells.items():
        rows.append([labels[measure], *[""] * len(widths)])
        for other, row in others.items():
            rows.append([f" {reference} – {other}", *(row.get(width, "") for width in widths)])
    caption = (
        f"Difference of {reference} and each other method, × 100, with the two-sided p-value of a "
        "paired bootstrap over the same queries, pairs, questions or rows. P-values are not "
        "corrected for the number of tests."
    )
    return Table(["", *map(str, widths)], rows, caption) if rows else None


# -- Markdown and LaTeX ----------------------------------------------------------------------------


class Report:
    """The Markdown of a report, whose tables and figures are numbered from 1, and its other files.

    Figures that cannot be drawn are added to the `notes`. With `latex`, `files` has the tables as
    LaTeX, and the figures as PDF and SVG, too.
    """

    def __init__(self, title: str, notes: Iterable[str] = (), *, latex: bool = False) -> None:
        self.notes, self.files = list(notes), dict[str, bytes]()
        self._parts, self._n_tables, self._n_figures, self._latex = [title], 0, 0, latex

    def add(self, *parts: str | Table) -> None:
        """Add Markdown and tables."""
        for part in parts:
            if isinstance(part, Table) and part.caption:
                self._n_tables += 1
                name = f"table-{self._n_tables}"
                if self._latex:
                    latex = to_latex(part, f"tab:embits-{self._n_tables}")
                    self.files[f"tables/{name}.tex"] = latex.encode()
                self._parts.append(f"Table {self._n_tables}. {_marked(part.caption)}")
            self._parts.append(part if isinstance(part, str) else _markdown_table(part))

    def add_figure(
        self, name: str, caption: str, draw: Callable[[Sequence[str]], dict[str, bytes]]
    ) -> None:
        """Add the figure that `draw` returns by format, if there is something to draw."""
        try:
            figure = draw(("png", "pdf", "svg") if self._latex else ("png",))
        except MissingExtraError as error:
            self.notes.append(f"{name}: {error}")
            return
        if figure:
            self._n_figures += 1
            self.files |= {f"figures/{name}.{kind}": data for kind, data in figure.items()}
            caption = f"Figure {self._n_figures}. {_marked(caption)}"
            self._parts += [f"![{caption}](figures/{name}.png)", caption]

    def markdown(self) -> str:
        """The text of the report."""
        return "\n\n".join(self._parts) + "\n"


def _markdown_table(table: Table) -> str:
    rule = ["---", *["---" if table.of_text else "---:"] * (len(table.header) - 1)]
    header, *rows = (
        _cells(row, "&nbsp;&nbsp;", _marked, "**@**") for row in (table.header, *table.rows)
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows))


def _cells(row: Sequence[str], indent: str, escape: Callable[[str], str], bold: str) -> list[str]:
    """The cells of a row: the first may be indented, and those written as *x* are bold."""
    first = (indent if row[0].startswith(" ") else "") + escape(row[0].strip())
    is_bold = re.compile(r"\*[-\d.]+\*").fullmatch
    others = (bold.replace("@", x[1:-1]) if is_bold(x) else escape(x) for x in row[1:])
    return [first, *others]


def _marked(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


_SPECIAL = str.maketrans(
    {character: rf"\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"×": r"$\times$", "±": r"$\pm$", "−": r"$-$", "≤": r"$\leq$", "–": "--"}
)


def to_latex(table: Table, name: str) -> str:
    """A table environment with the label `name`; it needs booktabs."""
    columns = "l" + ("l" if table.of_text else "r") * (len(table.header) - 1)
    header, *rows = (
        " & ".join(_cells(row, r"\quad ", escaped, r"\textbf{@}")) + r" \\"
        for row in (table.header, *table.rows)
    )
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(table.caption)}}}",
            rf"\label{{{name}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            *(r"\toprule", header, r"\midrule", *rows, r"\bottomrule"),
            *(r"\end{tabular}", r"\end{table}", ""),
        ]
    )


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return text.translate(_SPECIAL)


# -- figures ---------------------------------------------------------------------------------------

# Methods differ in color (Okabe & Ito's palette for color-blind readers), marker and line style, so
# the figures can be read in grayscale. Pictures of bits as PNG need no plotting library.
STYLES = {
    "near-lossless": ("#0072B2", "o", "-"),
    "paper": ("#D55E00", "s", "-"),
    "itq": ("#009E73", "^", "--"),
    "lsh": ("#555555", "v", ":"),
    "sign": ("#CC79A7", "D", "-"),
    "sparse": ("#E69F00", "P", "-."),
    "neural": ("#56B4E9", "X", "-"),
}
N_WORDS = 50
PALETTE = np.array([(255, 255, 255), (205, 28, 28), (70, 70, 70)], np.uint8)  # 0, 1, separator
PICTURE_FORMATS = (".png", ".svg", ".pdf")
_GAP = 3
_COLUMNS = 4  # panels side by side


def draw_scores(
    scores: Sequence[Score], grid: Grid, formats: Sequence[str] = ("png",)
) -> dict[str, bytes]:
    """A figure by format, with a panel for each score: a line for each method, by width.

    It is empty if no code has one of the scores.
    """
    panels = [each for each in scores if set(map(each.of, grid.coded)) != {None}]
    if not panels:
        return {}
    canvas, axes = _canvas(len(panels))
    for axis, score in zip(axes, panels, strict=True):
        axis.set_title(score.label, fontsize=10.5, loc="left")
        _draw_methods(axis, grid, score)
        raw = score.of(grid.raw) if grid.raw else None
        if raw is not None:
            axis.axhline(100 * raw, color="black", linewidth=1, dashes=(6, 3), label="raw floats")
    axes[0].set_ylim(*(None, None) if any(each.raw for each in panels) else (0, 100))
    axes[0].set_ylabel("score × 100")
    legend: dict[str, object] = {}
    for axis in axes:
        lines, labels = axis.get_legend_handles_labels()
        legend |= zip(labels, lines, strict=True)
    where = {"loc": "outside lower center", "ncols": min(len(legend), 4 * len(panels))}
    canvas.legend(legend.values(), legend, frameon=False, fontsize=9, **where)
    return {kind: _file(canvas.savefig, kind) for kind in formats}


def _canvas(n: int) -> tuple[Any, list[Any]]:
    """A figure with n panels."""
    figure = package("matplotlib.figure", "drawing figures", "plots").Figure
    columns = min(n, _COLUMNS)
    lines = -(-n // columns)
    size = (4.6 * columns + 0.6, 3.9 * lines + 0.3)
    canvas = figure(figsize=size, layout="constrained", dpi=150)
    axes = canvas.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axis in axes[n:]:
        axis.remove()
    return canvas, list(axes[:n])


def _draw_methods(axis: Any, grid: Grid, score: Score) -> None:
    """A line for each method, with a bar for each 95 % interval, and the x axis."""
    for place, method in enumerate(grid.methods):
        points = sorted(
            (entry["bits"], 100 * value, interval(entry, score.key))
            for entry in grid.coded
            if entry["method"] == method and (value := at(entry, *score.path)) is not None
        )
        if not points:
            continue
        color, marker, dashes = STYLES.get(method, ("#000000", "x", "-"))
        widths, values, ends = zip(*points, strict=True)
        # Side by side where there are intervals, so that their bars do not overlap.
        aside = 1.012 ** (place - (len(grid.methods) - 1) / 2) if any(ends) else 1
        places = [width * aside for width in widths]
        line = {"color": color, "marker": marker, "linestyle": dashes, "linewidth": 1.6}
        label = method if len(points) > 1 else f"{method} {widths[0]}"
        axis.plot(places, values, markersize=5.5, markeredgecolor="white", label=label, **line)
        for x, bar in zip(places, ends, strict=True):
            if bar is not None:
                axis.vlines(x, 100 * bar[0], 100 * bar[1], color=color, linewidth=1)
    # A tick at each width that two methods have; others would crowd the axis.
    known = [width for width, _ in {(entry["bits"], entry["method"]) for entry in grid.coded}]
    ticks = [width for width in grid.widths if known.count(width) > 1] or grid.widths
    axis.set_xscale("log", base=2)
    axis.set_xlim(grid.widths[0] / 1.15, grid.widths[-1] * 1.15)
    axis.set_xticks(ticks, [str(width) for width in ticks])
    axis.minorticks_off()
    axis.set_xlabel("bits per code")
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _file(save: Callable[..., object], kind: str) -> bytes:
    """What `save` writes. Without dates and versions, the same numbers give the same bytes."""
    import matplotlib

    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "embits"}):
        save(file, format=kind, metadata=metadata[kind])
    return file.getvalue()


def bit_rows(bits: BinaryRows, word: str, n: int = N_WORDS) -> NDArray[np.uint8]:
    """0 and 1 of the n closest other words, closest first, then of the n furthest ones."""
    n, code, own = whole("n", n, 1), bits[word], bits.words.find(word)
    codes = np.ascontiguousarray(bits.codes)
    nearest = (top_k(codes, query, n + 1)[1] for query in (code, invert(code, bits.n_bits)))
    closest, furthest = (rows[rows != own][:n] for rows in nearest)
    rows = np.concatenate([closest, furthest[::-1]])
    return np.unpackbits(codes[rows], axis=1, count=bits.n_bits)


def bit_picture(
    bits: BinaryRows, words: Sequence[str], n: int = N_WORDS, suffix: str = ".png"
) -> bytes:
    """A PNG, SVG or PDF file of `bit_rows` of each word, one below the other: red is 1, white is 0.

    A dark line separates the closest from the furthest words, a thicker one the panels.
    """
    if not words:
        raise InputError("a picture needs at least one word")
    if suffix.lower() not in PICTURE_FORMATS:
        kind, known = repr(suffix or "a file without suffix"), ", ".join(PICTURE_FORMATS)
        raise InputError(f"cannot draw a picture as {kind}: use one of {known}")
    scale = max(1, min(8, 1024 // bits.n_bits))
    line = np.full((_GAP, bits.n_bits * scale), 2, dtype=np.uint8)
    panels = []
    for word in words:
        rows = np.kron(bit_rows(bits, word, n), np.ones((scale, scale), dtype=np.uint8))
        middle = (len(rows) // scale + 1) // 2 * scale
        panels += [rows[:middle], line, rows[middle:], *[line] * 4]
    pixels = np.concatenate(panels[:-4])
    if suffix.lower() == ".png":
        return _png(pixels)
    imsave = package("matplotlib.image", "drawing figures", "plots").imsave
    return _file(partial(imsave, arr=PALETTE[pixels], dpi=72), suffix.lower()[1:])


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of indexes of PALETTE, shape (height, width)."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, indexed color
    scanned = np.pad(pixels, ((0, 0), (1, 0)))  # the first byte of a line is its filter: none
    lines = zlib.compress(scanned.tobytes(), 9)
    parts = {b"IHDR": header, b"PLTE": bytes(PALETTE), b"IDAT": lines, b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
