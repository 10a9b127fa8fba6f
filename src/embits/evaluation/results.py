"""Entries of scores, and how they become tables and JSON.

An entry is a nested dictionary: the scores of one file, in the shape of `evaluate --json`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from embits.coders import DEFAULT_METHOD
from embits.evaluation.statistics import Entry as Entry

Path: TypeAlias = tuple[str, ...]
"""Names that lead to a score of an entry."""

# Methods whose rebuilt floats have rows beside those of their codes, as in the paper.
REBUILT = ("paper", "near-lossless", "neural")


def percent(value: float | None) -> str:
    """A fraction × 100 with one decimal, or a dash."""
    return "-" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def number(value: float | None, decimals: int = 3) -> str:
    """A number, or a dash."""
    return "-" if value is None or math.isnan(value) else f"{value:.{decimals}f}"


@dataclass(frozen=True)
class Score:
    """A score as tables show it."""

    label: str
    path: Path  # where it is in an entry: ("similarity", "MEN", "spearman")
    raw: Path = ()  # where it is in the entry of the raw vectors; () if they do not have it
    as_text: Callable[[float | None], str] = percent  # turns its value into text
    heading: str = ""  # of a main measure: summaries, figures and paired tests have only these

    @property
    def key(self) -> str:
        """The path as one string, by which intervals and replicates are found."""
        return ".".join(self.path)

    def of(self, entry: Entry) -> Any:
        path = self.raw if entry.get("method") == "raw" else self.path
        return at(entry, *path) if path else None

    def rebuilt(self) -> Score:
        """The same score of the floats rebuilt from codes."""
        return Score(f"{self.label}, rebuilt", ("reconstruction", *self.path), as_text=self.as_text)


@dataclass(frozen=True)
class Table:
    """A table: the first column is aligned left, the others right, or left if `of_text`.

    A row whose first cell starts with a space belongs to the last row above whose first cell does
    not. A cell written as *x* is bold. A table with a caption is numbered, and written as LaTeX.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    of_text: bool = False


class Grid:
    """Entries by method and width; `raw` is that of the raw vectors, `coded` are the others."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.raw = next((entry for entry in entries if entry["method"] == "raw"), None)
        self.coded = [entry for entry in entries if entry["method"] != "raw"]
        self.methods: list[str] = list(dict.fromkeys(entry["method"] for entry in self.coded))
        self.widths: list[int] = sorted({entry["bits"] for entry in self.coded})

    @property
    def main_method(self) -> str:
        """The default method, or the first if there are no codes of it."""
        return DEFAULT_METHOD if DEFAULT_METHOD in self.methods else next(iter(self.methods), "")

    def line(self, method: str, path: Path) -> list[float | None]:
        """The scores of a method at a path, one for each width."""
        by_width = {e["bits"]: at(e, *path) for e in self.coded if e["method"] == method}
        return [by_width.get(width) for width in self.widths]

    def table(self, scores: Sequence[Score], caption: str, *, rebuilt: bool = False) -> Table:
        """For each score a row of the raw floats, then rows of each method, also if `rebuilt`."""
        rows: list[list[str]] = []
        for score in scores:
            raw = score.as_text(score.of(self.raw or {"method": "raw"})) if score.raw else ""
            rows.append([score.label + self._spread(score), raw, *[""] * len(self.widths)])
            of_rebuilt = self._cells(score.rebuilt(), REBUILT if rebuilt else ())
            for method, cells in self._cells(score, self.methods).items():
                rows.append([f" {method} bin" if rebuilt else f" {method}", "", *cells])
                if any(of_rebuilt.get(method, ())):
                    rows.append([f" {method} rec", "", *of_rebuilt[method]])
        header = ["", "raw", *map(str, self.widths)]
        if not any(score.raw for score in scores):
            header, *rows = ([row[0], *row[2:]] for row in (header, *rows))
        return Table(header, rows, caption)

    def _spread(self, score: Score) -> str:
        """The largest half-width of the 95 % intervals, and the largest spread over fits."""
        if score.as_text is not percent:
            return ""
        ends = [interval(entry, score.key) for entry in self.entries]
        halves = [(end[1] - end[0]) / 2 for end in ends if end]
        spreads = [at(entry, "spread", score.key) or 0 for entry in self.entries]
        parts = [f"± {100 * max(halves):.1f}"] if halves else []
        parts += [f"fits {100 * max(spreads):.1f}"] if any(spreads) else []
        return f" ({'; '.join(parts)})" if parts else ""

    def _cells(self, score: Score, methods: Iterable[str]) -> dict[str, list[str]]:
        """A line of text for each method; the best of each width that several have is bold."""
        lines = {name: self.line(name, score.path) for name in methods if name in self.methods}
        cells = {
            name: ["" if value is None else score.as_text(value) for value in line]
            for name, line in lines.items()
        }
        for place, column in enumerate(zip(*lines.values(), strict=True)):
            known = [value for value in column if value is not None and not math.isnan(value)]
            if len(known) > 1 and score.as_text is percent:  # of an error, less is better
                best = percent(max(known))
                for line in cells.values():
                    line[place] = f"*{best}*" if line[place] == best else line[place]
        return cells


def at(entry: Entry | None, *path: str) -> Any:
    """The value at a path of names, or None."""
    value: Any = entry
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def names_at(entries: Iterable[Entry], *path: str) -> list[str]:
    """The names below a path in any of the entries, in order of appearance."""
    return list(dict.fromkeys(name for entry in entries for name in at(entry, *path) or ()))


def interval(entry: Entry | None, key: str) -> tuple[float, float] | None:
    """The 95 % interval of a score of an entry; None if there is none."""
    ends = at(entry, "intervals", key)
    if not ends or None in ends or any(map(math.isnan, ends)):
        return None
    return ends[0], ends[1]


def jsonable(value: Any) -> Any:
    """The value with NaN replaced by None, because JSON has no NaN."""
    if isinstance(value, dict):
        return {name: jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
