"""The report: the paper's tables and figures as Markdown, LaTeX, JSON, CSV and pictures.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._version import __version__
from embits.arrays import invert
from embits.binary_vectors import BinaryVectors
from embits.checks import whole
from embits.errors import InputError, MissingExtraError
from embits.evaluation.results import Figure, Grid, Table, at, csv_text, interval, jsonable, number
from embits.evaluation.tasks import TASKS, all_scores
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_folder
from embits.integrations import package
from embits.search import top_k

FILES = ("report.md", "results.json", "results.csv", "figures", "tables")  # of a report


class Picture(NamedTuple):
    """A picture of the report: its file in figures/, and its caption."""

    name: str
    png: bytes
    caption: str
    has_number: bool = False


Block: TypeAlias = str | Table | Picture
"""A part of the report; a string is Markdown."""
Draw: TypeAlias = Callable[..., list[Block]]  # as `_figure`, from its argument `name` on


def check_report_folder(folder: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse a folder that has a report, or files of the same names, unless `overwrite`."""
    found = [path for name in FILES if (path := Path(folder, name)).exists()]
    if found and not overwrite:
        replace = "replace its files with --force (in Python: overwrite=True)"
        raise InputError(f"{found[0]} exists: choose another folder for the report, or {replace}")


def write_report(
    folder: str | os.PathLike[str], title: str, entries: Sequence[dict[str, Any]],
    settings: Mapping[str, Any], pictures: Sequence[Picture] = (), notes: Sequence[str] = (),
    overwrite: bool = False, *, tests: Sequence[dict[str, Any]] = (), latex: bool = False,
) -> list[Path]:  # fmt: skip
    """Write report.md, results.json, results.csv and figures/ into a folder; returns the files.

    Args:
        folder: Created if it does not exist.
        entries: Results of an `Evaluator`; at most one has the method "raw".
        settings: Facts for the table of settings, which also lists the versions in use.
        pictures: Pictures of bits.
        notes: What could not be measured. The report adds figures that could not be drawn.
        overwrite: Replace the files of an earlier report (InputError without it), and no others.
        tests: Result of `paired_tests`.
        latex: Write the tables as LaTeX into tables/, and the figures as PDF and SVG, too.
    """
    check_report_folder(folder, overwrite)
    grid, notes = Grid(entries), list(notes)
    settings = dict(settings) | {
        "embits": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": f"{sys.platform} {platform.machine()}, search kernels: {_core.simd()}",
    }
    with suppress(ImportError):
        import matplotlib

        settings["Matplotlib"] = matplotlib.__version__
    files: dict[str, bytes] = {}
    blocks: list[Block] = [f"# {_marked(title)}", *_about_intervals(grid)]
    draw = partial(_figure, notes, files, ("png", "pdf", "svg") if latex else ("png",))
    blocks += _sections(grid, draw)
    blocks += _tests(grid, tests)
    if pictures:
        blocks += ["## Bits of neighbors", _PICTURES, *pictures]
    blocks += _training(grid, draw)
    if notes:
        blocks += ["## Skipped", *map(_marked, notes)]
    facts = [[name, str(value)] for name, value in settings.items()]
    blocks += ["## Settings", Table(["", "value"], facts, of_text=True, has_number=False)]
    markdown, tables = rendered(blocks)
    results = {"settings": settings, "results": list(entries)}
    results |= {"tests": list(tests)} if tests else {}
    files |= {f"figures/{picture.name}": picture.png for picture in pictures}
    files |= {f"tables/{name}": text.encode() for name, text in tables.items() if latex}
    files["results.csv"] = csv_text(entries).encode()
    files["results.json"] = json.dumps(jsonable(results), ensure_ascii=False, indent=1).encode()
    files["report.md"] = markdown.encode()
    check_folder(folder, files, overwrite=True)  # other files in the folder stay
    written = {Path(folder, name): content for name, content in files.items()}
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(content)
    return list(written)


# -- sections --------------------------------------------------------------------------------------

_PICTURES = (
    "For each word: the codes of its 50 closest words above the line and of its 50 furthest words "
    "below, one row of pixels each. Red is 1, white is 0. Vertical stripes are bits that neighbors "
    "share."
)
_LOSSES = "Loss of the training, over its first value; of neural codes, that of their thresholds."
_CORRELATION = Figure(
    "correlation", [("Correlation of bits", ("bit_correlation",))], "mean |correlation| × 100",
    "Absolute correlation of two bits of a code, the mean over all pairs, × 100.", highest=None,
)  # fmt: skip


def _about_intervals(grid: Grid) -> list[Block]:
    """What the numbers in brackets after the name of a score are."""
    text = ""
    if any(entry.get("intervals") for entry in grid.entries):
        text = "± after the name of a score is the largest half-width of its 95 % bootstrap "
        text += "intervals. "
    if fits := max((len(entry.get("seeds") or ()) for entry in grid.entries), default=0):
        text += f'Scores are means over {fits} fits, each with another seed; "fits" is the '
        text += "largest standard deviation over the fits."
    return [text.strip()] if text else []


def _sections(grid: Grid, draw: Draw) -> list[Block]:
    """The tables and figures of all tasks, and of the training."""
    blocks: list[Block] = []
    for task in TASKS.values():
        section: list[Block] = [*task.tables(grid)]
        for figure in task.figures(grid):
            section += draw(figure.name, figure.caption, partial(drawn, figure, grid))
        blocks += [f"## {task.title}", *section] if section else []
    return blocks


def _training(grid: Grid, draw: Draw) -> list[Block]:
    """The losses, the correlation of bits, and a table of each code that `compare` trained."""
    trained = []
    for entry in grid.coded:
        params = (f"{name}={value}" for name, value in (entry.get("params") or {}).items())
        seconds = number(entry.get("seconds"), 1)
        trained.append([f"{entry['method']} {entry['bits']}", seconds, ", ".join(params)])
    header, caption = ["", "s", "parameters"], "Training of each code: time in seconds, parameters."
    table = Table(header, trained, caption, of_text=True, has_number=False)
    figures = draw("loss", _LOSSES, partial(_losses, grid))
    figures += draw("correlation", _CORRELATION.caption, partial(drawn, _CORRELATION, grid))
    return ["## Training", *figures, table] if trained else []


def _figure(
    notes: list[str], files: dict[str, bytes], formats: Sequence[str],
    name: str, caption: str, make: Callable[[Sequence[str]], dict[str, bytes]],
) -> list[Block]:  # fmt: skip
    """The picture of a figure, whose files are added to `files`; a note if it cannot be drawn."""
    try:
        made = make(formats)
    except MissingExtraError as error:
        notes.append(f"{name}: {error}")
        return []
    files |= {f"figures/{name}.{kind}": data for kind, data in made.items()}
    return [Picture(f"{name}.png", made["png"], caption, True)] if made else []


def _tests(grid: Grid, tests: Sequence[dict[str, Any]]) -> list[Block]:
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
        for other, found in others.items():
            rows.append([f" {reference} – {other}", *(found.get(width, "") for width in widths)])
    caption = (
        f"Difference of {reference} and each other method, × 100, with the two-sided p-value of a "
        "paired bootstrap over the same queries, pairs, questions or rows. P-values are not "
        "corrected for the number of tests."
    )
    table = Table(["", *map(str, widths)], rows, caption)
    return ["## Differences between methods", table] if rows else []


# -- Markdown and LaTeX ----------------------------------------------------------------------------


def rendered(blocks: Sequence[Block]) -> tuple[str, dict[str, str]]:
    """The report as Markdown, and its tables as LaTeX by file name; both are numbered from 1."""
    parts: list[str] = []
    tables: dict[str, str] = {}
    n_figures = 0
    for block in blocks:
        if isinstance(block, str):
            parts.append(block)
            continue
        caption = _marked(block.caption)
        if isinstance(block, Picture):
            n_figures += block.has_number
            caption = f"Figure {n_figures}. {caption}" if block.has_number else caption
            parts += [f"![{caption}](figures/{block.name})", caption]
            continue
        if block.has_number:
            n = len(tables) + 1
            tables[f"table-{n}.tex"] = to_latex(block, f"tab:embits-{n}")
            caption = f"Table {n}. {caption}"
        parts += [caption, _markdown_table(block)] if caption else [_markdown_table(block)]
    return "\n\n".join(parts) + "\n", tables


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


_SPECIAL = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "×": r"$\times$", "±": r"$\pm$", "–": "--", "ρ": r"$\rho$", "λ": r"$\lambda$", "−": r"$-$",
    "≤": r"$\leq$",
})  # fmt: skip


def to_latex(table: Table, name: str) -> str:
    """A table environment with the label `name`; it needs booktabs."""
    columns = "l" + ("l" if table.of_text else "r") * (len(table.header) - 1)
    header, *rows = (
        " & ".join(_cells(row, r"\quad ", escaped, r"\textbf{@}")) + r" \\"
        for row in (table.header, *table.rows)
    )
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escaped(table.caption)}}}",
        rf"\label{{{name}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header,
        r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return text.translate(_SPECIAL)


# -- figures ---------------------------------------------------------------------------------------

# Methods differ in color (Okabe & Ito's palette for color-blind readers), marker and line style, so
# the figures can be read in grayscale. Pictures of bits as PNG need no plotting library.
STYLES = {
    "near-lossless": ("#0072B2", "o", "-"), "paper": ("#D55E00", "s", "-"),
    "itq": ("#009E73", "^", "--"), "lsh": ("#555555", "v", ":"), "sign": ("#CC79A7", "D", "-"),
    "sparse": ("#E69F00", "P", "-."), "neural": ("#56B4E9", "X", "-"),
}  # fmt: skip

N_WORDS = 50
PALETTE = np.array([(255, 255, 255), (205, 28, 28), (70, 70, 70)], np.uint8)  # 0, 1, separator
PICTURE_FORMATS = (".png", ".svg", ".pdf")
_GAP = 3


def drawn(figure: Figure, grid: Grid, formats: Sequence[str] = ("png",)) -> dict[str, bytes]:
    """The files of a figure by format, "png", "pdf" or "svg"; none if no code has its scores."""
    panels = [
        (title, path)
        for title, path in figure.panels
        if any(at(entry, *path) is not None for entry in grid.coded)
    ]
    if not panels:
        return {}
    canvas, axes = _canvas(len(panels))
    raw = at(grid.raw, *figure.raw) if figure.raw else None
    dashed = {"color": "black", "linewidth": 1, "dashes": (6, 3), "zorder": 1}
    for axis, (title, path) in zip(axes, panels, strict=True):
        axis.set_title(title, fontsize=10.5, loc="left")
        _draw(axis, grid, path)
        if raw is not None:
            axis.axhline(100 * raw, label=f"raw floats {100 * raw:.1f}", **dashed)
    if not figure.raw:
        axes[0].set_ylim(0, figure.highest)
    axes[0].set_ylabel(figure.label)
    names: dict[str, Any] = {}
    for axis in axes:
        lines, labels = axis.get_legend_handles_labels()
        names |= zip(labels, lines, strict=True)
    where = {"loc": "outside lower center", "ncols": min(len(names), 4 * len(panels))}
    canvas.legend(names.values(), names, frameon=False, fontsize=9, **where)
    return {kind: _file(canvas.savefig, kind) for kind in formats}


def _losses(grid: Grid, formats: Sequence[str]) -> dict[str, bytes]:
    """The losses of the methods that have them: a panel each, a line for each width."""
    curves: dict[str, dict[int, list[float]]] = {}
    for entry in grid.coded:
        if entry.get("loss_curve"):
            curves.setdefault(entry["method"], {})[entry["bits"]] = entry["loss_curve"]
    if not curves:
        return {}
    canvas, axes = _canvas(len(curves))
    for axis, (method, of) in zip(axes, curves.items(), strict=True):
        for width, losses in sorted(of.items()):
            done = np.linspace(0, 100, len(losses) + 1)[1:]
            axis.plot(done, np.array(losses) / losses[0], linewidth=1.4, label=f"{width} bits")
        axis.set_title(method, fontsize=10.5, loc="left")
        axis.set_xlabel("% of the training")
        axis.legend(frameon=False, fontsize=9)
    axes[0].set_ylabel("loss / first loss")
    return {kind: _file(canvas.savefig, kind) for kind in formats}


def _canvas(n: int) -> tuple[Any, Any]:
    """A figure with n panels in a row."""
    figure = package("matplotlib.figure", "drawing figures", "plots").Figure
    canvas = figure(figsize=(4.6 * n + 0.6, 4.2), layout="constrained", dpi=150)
    return canvas, canvas.subplots(1, n, sharey=True, squeeze=False)[0]


def _draw(axis: Any, grid: Grid, path: Sequence[str]) -> None:
    """A line for each method, with a bar for each 95 % interval, and the x axis."""
    for place, method in enumerate(grid.methods):
        found = sorted(
            (entry["bits"], 100 * score, interval(entry, ".".join(path)))
            for entry in grid.coded
            if entry["method"] == method and (score := at(entry, *path)) is not None
        )
        if not found:
            continue
        color, marker, dashes = STYLES.get(method, ("#000000", "x", "-"))
        widths, scores, ends = zip(*found, strict=True)
        # Side by side where there are intervals, so that their bars can be told apart.
        aside = 1.012 ** (place - (len(grid.methods) - 1) / 2) if any(ends) else 1
        places = [width * aside for width in widths]
        axis.plot(
            places, scores, color=color, marker=marker, linestyle=dashes, linewidth=1.6,
            markersize=5.5, markeredgecolor="white", markeredgewidth=0.6,
            label=method if len(found) > 1 else f"{method} {widths[0]}",
        )  # fmt: skip
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


def _file(save: Callable[..., Any], kind: str) -> bytes:
    """What `save` writes. Without dates and versions, the same numbers give the same bytes."""
    import matplotlib

    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "embits"}):
        save(file, format=kind, metadata=metadata[kind])
    return file.getvalue()


def bit_rows(bits: BinaryVectors, word: str, n: int = N_WORDS) -> NDArray[np.uint8]:
    """0 and 1 of the n closest other words, closest first, then of the n furthest ones."""
    n, code, own = whole("n", n, 1), bits[word], bits.words.find(word)
    codes = np.ascontiguousarray(bits.codes)
    found = (top_k(codes, query, n + 1)[1] for query in (code, invert(code, bits.n_bits)))
    closest, furthest = (rows[rows != own][:n] for rows in found)
    shown = np.concatenate([closest, furthest[::-1]])
    return np.unpackbits(codes[shown], axis=1, count=bits.n_bits)


def bit_picture(
    bits: BinaryVectors, words: Sequence[str], n: int = N_WORDS, suffix: str = ".png"
) -> bytes:
    """A PNG, SVG or PDF file of `bit_rows` of each word, one below the other: red is 1, white is 0.

    A dark line separates the closest from the furthest words, a thicker one the panels.
    """
    if not words:
        raise InputError("a picture needs at least one word")
    if suffix.lower() not in PICTURE_FORMATS:
        found, known = repr(suffix or "a file without suffix"), ", ".join(PICTURE_FORMATS)
        raise InputError(f"cannot draw a picture as {found}: use one of {known}")
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
