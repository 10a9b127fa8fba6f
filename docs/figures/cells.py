"""Recall of true neighbors against the time of a query, and bytes a row: cells and other indexes.

Drawn from `benchmarks/results/cells.json`, which `benchmarks/recall_time.py --write` stores. On the
left is what orders a shortlist by the floats, or walks them; in the middle what has codes alone.
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from style import LIGHT, ROOT, save

LOOKS = {
    "embits, cells, rescored": (LIGHT.one, "o", "-"),
    "embits, exact, rescored": (LIGHT.one, "s", ":"),
    "embits, cells": (LIGHT.one, "o", "-"),
    "embits, Neural, cells, second look": (LIGHT.ochre, "o", "-"),
    "FAISS IVF, PQ, refined": (LIGHT.blue, "^", "-"),
    "FAISS IVF, RaBitQ, refined": (LIGHT.blue, "v", "--"),
    "FAISS IVF, PQ": (LIGHT.blue, "^", "-"),
    "FAISS IVF, RaBitQ": (LIGHT.blue, "v", "--"),
    "FAISS IVF, SQ8": (LIGHT.pink, "D", "-"),
    "ScaNN": (LIGHT.green, "P", "-"),
    "hnswlib": (LIGHT.ink, "x", "-"),
    "usearch": (LIGHT.grey, "+", "-"),
    "all floats (FAISS)": (LIGHT.soft, "*", ""),
}
CODES_ALONE = (
    "embits, cells", "embits, Neural, cells, second look", "FAISS IVF, PQ", "FAISS IVF, RaBitQ",
    "FAISS IVF, SQ8",
)  # fmt: skip
SETS = (("words-0", 50, ()), ("sentences-0", 50, ()), ("mixed-1000000", 50, ("mixed-10000000",)))
LEAST = 10  # bytes, where the bars start
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


def draw_recall(axes: Axes, curves: list[dict[str, Any]], least: int, label: str = "") -> None:
    for curve in curves:
        colour, marker, line = LOOKS[curve["name"]]
        points = [(ms, 100 * recall) for _, recall, ms in curve["points"]]
        points = [point for point in points if point[1] >= least]
        ours = curve["name"].startswith("embits")
        axes.plot(
            *zip(*points, strict=True) if points else ((), ()), color=colour, marker=marker,
            linestyle="-." if label else line, linewidth=2 if ours else 1, markersize=4,
        )  # fmt: skip
        if label and points:
            axes.annotate(label, points[0], (8, 0), textcoords="offset points", color=colour,
                          fontsize=8)  # fmt: skip
    axes.set(xscale="log", xlabel="ms a query, one thread")
    axes.set_ylim(least, 101)
    low, high = axes.get_xlim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.set_xticks([], minor=True)
    axes.set_xlim(low, high)
    axes.grid(linewidth=0.5)


def draw_bytes(axes: Axes, curves: list[dict[str, Any]]) -> None:
    """Bars, with the names and marks of the other two panels."""
    for place, curve in enumerate(curves):
        colour, marker, _ = LOOKS[curve["name"]]
        axes.barh(place, curve["bytes"] - LEAST, 0.6, left=LEAST, color=colour, alpha=0.85)
        axes.text(curve["bytes"] * 1.08, place, f"{curve['bytes']:,.0f}", va="center", fontsize=8)
        axes.plot([-0.04], [place], color=colour, marker=marker, markersize=5, clip_on=False,
                  transform=axes.get_yaxis_transform())  # fmt: skip
    names = [curve["name"] for curve in curves]
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.tick_params(axis="y", length=0, pad=12)
    axes.set(xscale="log", xlabel="bytes a row in memory", xlim=(LEAST, 8000))
    axes.set_xticks((10, 100, 1000), ("10", "100", "1,000"))
    axes.set_xticks([], minor=True)
    axes.set_ylim(len(names) - 0.4, -0.6)


def main() -> None:
    stored = json.loads((ROOT / "benchmarks/results/cells.json").read_text())
    sets = [each for each in SETS if each[0] in stored]
    size = (13, 4.3 * len(sets))
    figure, rows = plt.subplots(
        len(sets), 3, figsize=size, width_ratios=(1.25, 1.25, 0.8), squeeze=False
    )
    for (name, least, larger), (left, middle, right) in zip(sets, rows, strict=True):
        curves = sorted(stored[name]["curves"], key=lambda curve: list(LOOKS).index(curve["name"]))
        for axes, alone in ((left, False), (middle, True)):
            draw_recall(axes, [c for c in curves if (c["name"] in CODES_ALONE) == alone], least)
            for other in filter(stored.__contains__, larger):
                some = [c for c in stored[other]["curves"] if (c["name"] in CODES_ALONE) == alone]
                some = [c for c in some if "cells" in c["name"]]
                draw_recall(axes, some, least, "10 million rows")
        left.set_ylabel("recall@10, %")
        left.set_title(f"{stored[name]['title']}: with floats")
        middle.set_title("codes alone")
        right.set_title("memory")
        draw_bytes(right, curves)
    figure.tight_layout()
    save(figure, "cells")


if __name__ == "__main__":
    main()
