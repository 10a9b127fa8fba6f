"""The tables of the report, in the paper's layout: one column per width, scores × 100."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from embits.evaluation.report.document import Table
from embits.evaluation.report.published import PUBLISHED, WIDTHS
from embits.evaluation.report.results import (
    MEASURES,
    WAYS,
    at,
    interval,
    retrieval_lines,
    score_lines,
)

Entry: TypeAlias = dict[str, Any]

# Methods whose rebuilt floats have their own rows, as in the paper; the table of reconstruction
# has all methods.
REBUILT = ("paper", "near-lossless")


class Grid:
    """Results by method and width.

    Attributes:
        raw: The entry of the raw vectors, or None.
        methods: In order of appearance.
        widths: All numbers of bits, ascending.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.raw = next((entry for entry in entries if entry["method"] == "raw"), None)
        self.coded = [entry for entry in entries if entry["method"] != "raw"]
        self.methods = list(dict.fromkeys(entry["method"] for entry in self.coded))
        self.widths = sorted({entry["bits"] for entry in self.coded})

    @property
    def header(self) -> list[str]:
        """The columns: raw, then the widths."""
        return ["", "raw", *map(str, self.widths)]

    def line(self, method: str, path: Sequence[str]) -> list[float | None]:
        """A score of one method at every width."""
        by_width = {e["bits"]: at(e, *path) for e in self.coded if e["method"] == method}
        return [by_width.get(width) for width in self.widths]


def score_table(grid: Grid, tasks: Sequence[str], caption: str) -> Table:
    """Tables 1 and 2: for each data set the raw score, then rows of codes and rebuilt floats."""
    rows: list[list[str]] = []
    for task in tasks:
        for label, path in score_lines(grid.entries, task):
            rows.append(
                [
                    label + _spread(grid, path),
                    percent(at(grid.raw, *path)),
                    *[""] * len(grid.widths),
                ]
            )
            coded = {method: grid.line(method, path) for method in grid.methods}
            rebuilt = {
                method: grid.line(method, ("reconstruction", *path))
                for method in grid.methods
                if method in REBUILT
            }
            best_coded, best_rebuilt = _best(coded), _best(rebuilt)
            for method, line in coded.items():
                rows.append(_score_row(f" {method} bin", line, best_coded))
                if any(score is not None for score in rebuilt.get(method, ())):
                    rows.append(_score_row(f" {method} rec", rebuilt[method], best_rebuilt))
    return Table(grid.header, rows, caption)


def neighbors_table(grid: Grid, caption: str) -> Table:
    """Recall of the raw neighbors, by Hamming distance and with float queries."""
    rows: list[list[str]] = []
    for k in (1, 10, 100):
        for name, label in (("recall", "Hamming"), ("asymmetric_recall", "float query")):
            path = ("neighbors", f"{name}_at_{k}")
            lines = {method: grid.line(method, path) for method in grid.methods}
            if any(score is not None for line in lines.values() for score in line):
                title = f"Recall@{k}, {label}{_spread(grid, path)}"
                rows.append([title, "", *[""] * len(grid.widths)])
                best = _best(lines)
                rows += [_score_row(f" {method}", line, best) for method, line in lines.items()]
    without_raw = [[row[0], *row[2:]] for row in rows]
    return Table(["", *map(str, grid.widths)], without_raw, caption)


def query_rows_text(grid: Grid, task: str) -> str:
    """Whether the rows of a task are outside the fit, in a sentence."""
    found = [at(entry, task) or {} for entry in grid.coded]
    fitted = {int(about["fit_rows"]) for about in found if about.get("rows") == "unseen"}
    if not fitted:
        return "The rows are rows of the fit (seen)."
    rows = " or ".join(f"{number:,}" for number in sorted(fitted))
    if all(about.get("rows") == "unseen" for about in found if about):
        return f"The rows are outside the fit (unseen); the fit used {rows} rows."
    return (
        "The rows of files without words are outside the fit (unseen), the others are rows of the "
        "fit (seen)."
    )


def retrieval_table(grid: Grid, caption: str) -> Table:
    """Retrieval scores by way to search, with those of the floats in the column raw."""
    rows: list[list[str]] = []
    for name, measure, way in retrieval_lines(grid.coded):
        if way == "floats":
            continue
        raw = at(grid.raw, "retrieval", name, "floats", measure)
        path = ("retrieval", name, way, measure)
        title = f"{name} {MEASURES[measure]}, {WAYS[way]}{_spread(grid, path)}"
        rows.append([title, percent(raw), *[""] * len(grid.widths)])
        lines = {m: grid.line(m, path) for m in grid.methods}
        best = _best(lines)
        rows += [_score_row(f" {method}", line, best) for method, line in lines.items()]
    return Table(grid.header, rows, caption)


def rebuilt_table(grid: Grid, caption: str) -> Table:
    """Quality of the rebuilt floats, for every method."""
    rows: list[list[str]] = []
    for label, path, shown in (
        ("Cosine to raw", ("cosine",), percent),
        ("Mean squared error", ("mse",), lambda value: number(value, 4)),
        ("Fisher mean of similarity", ("similarity", "fisher_mean"), percent),
    ):
        lines = {m: grid.line(m, ("reconstruction", *path)) for m in grid.methods}
        if any(score is not None for line in lines.values() for score in line):
            raw = percent(at(grid.raw, *path)) if path[0] == "similarity" else ""
            spread = "" if path[0] == "mse" else _spread(grid, ("reconstruction", *path))
            rows.append([label + spread, raw, *[""] * len(grid.widths)])
            rows += [[f" {m}", "", *map(_as_text(shown), line)] for m, line in lines.items()]
    return Table(grid.header, rows, caption)


def speed_table(grid: Grid, caption: str) -> Table:
    """Milliseconds per top-k query of the first method; the others take the same time."""
    columns = {e["bits"]: e for e in reversed(grid.coded) if "speed" in e}
    entries = [columns[width] for width in sorted(columns)]
    rows = []
    for label, name in (
        ("Top 1", "top_1_ms"),
        ("Top 10", "top_10_ms"),
        ("Top 50", "top_50_ms"),
        ("Loading + Top 10", "load_top_10_ms"),
    ):
        cells = [number(at(e, "speed", name), 3) for e in (*entries, grid.raw)]
        rows.append([f"{label}, ms", *cells])
    sizes = [str(at(e, "speed", "bytes_per_word") or "-") for e in (*entries, grid.raw)]
    rows.append(["Bytes per word", *sizes])
    return Table(["", *(f"{e['bits']}-bit" for e in entries), "Real-valued"], rows, caption)


def gap_table(grid: Grid, caption: str) -> Table:
    """Scores of codes minus raw scores, here and in the paper."""
    rows: list[list[str]] = []
    lines = {path[1]: (label, path) for task in ("similarity", "analogy", "classification")
             for label, path in score_lines(grid.entries, task)}  # fmt: skip
    for name, published in PUBLISHED.items():
        label, path = lines.get(name, ("", ()))
        raw = at(grid.raw, *path)
        if not label or not isinstance(raw, float):
            continue
        rows.append([label, *[""] * len(WIDTHS)])
        for method in grid.methods:
            scores = dict(zip(grid.widths, grid.line(method, path), strict=True))
            if any(scores.get(width) is not None for width in WIDTHS):
                rows.append([f" {method}", *(_gap(scores.get(width), raw) for width in WIDTHS)])
        for kind, who in (("bin", "printed: the paper"), ("lsh", "printed: LSH")):
            gaps = [published.gaps(kind, width) for width in WIDTHS]
            rows.append([f" {who}", *(f"{min(g):+.1f} to {max(g):+.1f}" for g in gaps)])
    return Table(["", *map(str, WIDTHS)], rows, caption)


def _gap(score: float | None, raw: float) -> str:
    return "" if score is None else f"{100 * (score - raw):+.1f}"


def percent(value: float | None) -> str:
    """A fraction × 100 with one decimal, or a dash."""
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def number(value: float | None, decimals: int) -> str:
    """A number, or a dash."""
    return "-" if value is None or math.isnan(value) else f"{value:.{decimals}f}"


def _as_text(shown: Callable[[float | None], str]) -> Callable[[float | None], str]:
    return lambda value: "" if value is None else shown(value)


def _score_row(label: str, line: Sequence[float | None], best: Sequence[str]) -> list[str]:
    cells = ["" if score is None else percent(score) for score in line]
    marked = (f"*{c}*" if c and c == top else c for c, top in zip(cells, best, strict=True))
    return [label, "", *marked]


def _best(lines: dict[str, list[float | None]]) -> list[str]:
    """The best score of each width as text; "" for a width that only one method has."""
    best = []
    for column in zip(*lines.values(), strict=True):
        scores = [score for score in column if score is not None and not math.isnan(score)]
        best.append(percent(max(scores)) if len(scores) > 1 else "")
    return best


def _spread(grid: Grid, path: Sequence[str]) -> str:
    """The largest half-width of the 95 % intervals of a score, and its largest spread over fits."""
    name = ".".join(path)
    halves, spreads = [], []
    for entry in grid.entries:
        found = interval(entry, name)
        half = at(entry, *path[:-1], "interval") if found is None else (found[1] - found[0]) / 2
        halves += [half] if isinstance(half, float) else []
        spreads += [spread] if (spread := at(entry, "spread", name)) is not None else []
    shown = [f"± {100 * max(halves):.1f}"] if halves else []
    shown += [f"fits {100 * max(spreads):.1f}"] if spreads else []
    return f" ({'; '.join(shown)})" if shown else ""
