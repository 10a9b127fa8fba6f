"""Quantizers on unseen rows, from a stored run: docs/images/comparison.svg and comparison-time.svg.

    python docs/figures/comparison.py

The run is benchmarks/results/comparison.json, which benchmarks/comparison writes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, save

TITLES = {"minilm": "MiniLM sentences", "mpnet": "MPNet sentences", "gnews": "GoogleNews words"}
BYTES = (8, 16, 32, 64, 128, 256, 512)
MILLISECONDS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5)
SERIES = (  # name, color, line and marker, methods
    ("Neural long, for floats", LIGHT.one, "o-", r"Neural long float \d+, float query"),
    ("Neural", LIGHT.one, "s-", r"Neural \d+, float query"),
    ("Neural, Hamming", LIGHT.one, "s--", r"Neural \d+, Hamming"),
    ("NearLossless", LIGHT.one, "^:", r"NearLossless.*float query"),
    ("RQ, cosine", LIGHT.ink, "P-", r"FAISS RQ.*cosine"),
    ("RQ", LIGHT.ink, "P:", r"FAISS RQ \d+$"),
    ("LSQ", LIGHT.ink, "x:", r"FAISS LSQ \d+$"),
    ("PRQ", LIGHT.soft, "P:", r"FAISS PRQ \d+$"),
    ("OPQ", LIGHT.blue, "s-", r"FAISS OPQ"),
    ("PQ", LIGHT.grey, "s-", r"FAISS PQ"),
    ("ScaNN", LIGHT.green, "D-", r"ScaNN"),
    ("RaBitQ, FAISS", LIGHT.ochre, "^-", r"FAISS RaBitQ"),
    ("RaBitQ, rabitqlib", LIGHT.ochre, "v:", r"rabitqlib"),
    ("turbovec", LIGHT.pink, "v-", r"turbovec"),
    ("EDEN", LIGHT.pink, "^:", r"EDEN"),
    ("sign, float query", LIGHT.ink, "*", r"sign.*float query"),
    ("sign, Hamming", LIGHT.grey, "*", r"sign.*Hamming"),
    ("scalar, 4 and 8 bits", LIGHT.blue, "D:", r"FAISS SQ[48]"),
)
Rows = list[dict[str, Any]]


def main() -> None:
    run = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())
    save(against_bytes(run["sets"]), "comparison")
    timed = [row for row in run["sets"]["minilm"]["rows"] if "query_ms" in row]
    if timed:
        save(against_time(timed), "comparison-time")


def against_bytes(sets: dict[str, dict[str, Any]]) -> Figure:
    """Recall@10 against bytes of a row, a panel for each set."""
    names = [name for name in TITLES if name in sets]
    figure, panels = plt.subplots(1, len(names), figsize=(11.6, 6.4), sharey=True)
    figure.subplots_adjust(wspace=0.06, bottom=0.21, left=0.06, right=0.99)
    for name, axes in zip(names, panels, strict=True):
        rows = sets[name]["rows"]
        unseen = [row for row in rows if "unseen_at_10" in row]
        draw(axes, unseen or rows, "bytes", "unseen_at_10" if unseen else "recall_at_10")
        finish(axes, BYTES, "bytes a row")
        among = "unseen rows" if unseen else "all rows"
        axes.set_title(f"{TITLES[name]}, {sets[name]['dims']} dimensions,\namong {among}")
    panels[0].set_ylabel("recall@10, queries not in the fit")
    legend(figure, *panels)
    return figure


def against_time(rows: Rows) -> Figure:
    """Recall@10 against the time of a query."""
    figure, axes = plt.subplots(figsize=(8.2, 5.4))
    figure.subplots_adjust(bottom=0.22)
    draw(axes, rows, "query_ms", "recall_at_10")
    finish(axes, MILLISECONDS, "milliseconds a query, 31,600 rows, one thread")
    axes.set_ylabel("recall@10, rows not in the fit")
    legend(figure, axes)
    return figure


def draw(axes: Axes, rows: Rows, measure: str, recall: str) -> None:
    for name, color, style, pattern in SERIES:
        chosen = [row for row in rows if re.match(pattern, row["method"])]
        chosen.sort(key=lambda row: row["bytes"])
        axes.plot(
            [row[measure] for row in chosen], [row[recall] for row in chosen], style,
            color=color, label=name, ms=8 if style[0] in "*x" else 5,
            lw=2.0 if color == LIGHT.one else 1.2,
        )  # fmt: skip


def finish(axes: Axes, ticks: tuple[float, ...], title: str) -> None:
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(title)
    axes.set_xlim(ticks[0] / 1.25, ticks[-1] * 1.6)
    axes.set_ylim(0.15, 1.02)
    axes.grid(axis="y", lw=0.6)
    axes.set_axisbelow(True)


def legend(figure: Figure, *panels: Axes) -> None:
    """The names of all lines, in the order of SERIES."""
    lines = [line for axes in panels for line in axes.get_lines() if len(line.get_xdata())]
    drawn = {line.get_label(): line for line in lines}
    handles = [drawn[name] for name, *_ in SERIES if name in drawn]
    figure.legend(handles=handles, frameon=False, fontsize=8.5, loc="lower center", ncols=5)


if __name__ == "__main__":
    main()
