"""Quality against bytes, from stored results: docs/images/quality-*.svg and choosing-bits-*.svg.

    python docs/figures/quality.py

The first comes from docs/results (GloVe 840B 300d, `embits compare`), the second from
benchmarks/results/near_lossless.json (three seeds, the CPU's budget).
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import Colours, draw_both

ROOT = Path(__file__).parents[2]
WIDTHS = (64, 128, 256, 512)
TICKS = (8, 16, 32, 64)
DATA = {"glove": "GloVe 6B 100d", "gnews": "GoogleNews 300d", "minilm": "MiniLM sentences 384d"}
FLOAT_BYTES = {"glove": 400, "gnews": 1200, "minilm": 1536}


def main() -> None:
    report = json.loads((ROOT / "docs/results/glove-840B-300d/results.json").read_text())
    scores = {(entry["method"], entry["bits"]): entry for entry in report["results"]}
    draw_both("quality", lambda colours: quality(scores, colours))
    runs = json.loads((ROOT / "benchmarks/results/near_lossless.json").read_text())
    draw_both("choosing-bits", lambda colours: choosing(runs, colours))


def quality(scores: dict[tuple[str, int], Any], colours: Colours) -> Figure:
    """Two panels: what people would say, and who is near whom, against bytes a word."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7))
    figure.subplots_adjust(wspace=0.28)
    raw = 100 * scores["raw", 9600]["similarity"]["fisher_mean"]
    for method, name, colour, offset in (
        ("lsh", "LSH", colours.third, -7),
        ("paper", "the paper's model", colours.second, -3),
        ("near-lossless", "embits", colours.one, 3),
    ):
        people = [100 * scores[method, bits]["similarity"]["fisher_mean"] for bits in WIDTHS]
        near = [100 * scores[method, bits]["neighbors"]["recall_at_10"] for bits in WIDTHS]
        width = 2.6 if method == "near-lossless" else 1.5
        for axes, values in ((left, people), (right, near)):
            axes.plot(TICKS, values, "-", marker="o", color=colour, lw=width, ms=4 + width / 2)
        right.annotate(name, (64, near[-1]), xytext=(9, offset), color=colour, va="center",
                       textcoords="offset points",
                       weight="bold" if method == "near-lossless" else "normal")  # fmt: skip
    floats = 100 * scores["near-lossless", 512]["neighbors"]["asymmetric_recall_at_10"]
    asked = [
        100 * scores["near-lossless", bits]["neighbors"]["asymmetric_recall_at_10"]
        for bits in WIDTHS
    ]
    right.plot(TICKS, asked, ":", marker="o", color=colours.one, lw=1.8, ms=4)
    right.annotate("embits, float query", (64, floats), xytext=(9, 3), color=colours.one,
                   textcoords="offset points", va="center")  # fmt: skip
    own = 100 * scores["near-lossless", 128]["similarity"]["fisher_mean"]
    left.annotate("embits", (16, own), xytext=(6, 9), ha="right", color=colours.one, weight="bold",
                  textcoords="offset points")  # fmt: skip
    left.axhline(raw, color=colours.soft, lw=0.8, ls=(0, (4, 3)))
    left.plot([1200], [raw], "s", color=colours.ink, ms=7)
    left.annotate("the floats\n1,200 bytes", (1200, raw), xytext=(0, -30), ha="center",
                  textcoords="offset points", color=colours.ink)  # fmt: skip
    right.plot([1200], [100], "s", color=colours.ink, ms=7)
    left.set_title("Agreement with people")
    left.set_ylabel("Spearman × 100, mean of five sets")
    right.set_title("Ten nearest words kept")
    right.set_ylabel("% of the floats' ten nearest")
    left.set_ylim(37, 66)
    right.set_ylim(0, 106)
    for axes in (left, right):
        bytes_axis(axes, (*TICKS, 1200))
        axes.set_xlabel("bytes a word")
    figure.text(0.125, -0.06, "GloVe 840B 300d, 33,860 words. Left axis does not begin at zero.",
                color=colours.soft, fontsize=8)  # fmt: skip
    return figure


def choosing(runs: list[dict[str, Any]], colours: Colours) -> Figure:
    """Recall against bytes for three kinds of vectors, by how one asks."""
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True)
    figure.subplots_adjust(wspace=0.12)
    for axes, (data, title) in zip(panels, DATA.items(), strict=True):
        for measure, name, style in (
            ("s40", "float query, 40 rescored by the floats", "--"),
            ("asym", "float query", ":"),
            ("r@10", "bits against bits", "-"),
        ):
            values = [mean(runs, data, bits, measure) for bits in WIDTHS]
            colour = colours.second if measure == "s40" else colours.one
            axes.plot(TICKS, values, style, marker="o", color=colour, ms=4.5, lw=2, label=name)
        axes.set_title(f"{title} ({FLOAT_BYTES[data]:,} bytes)", fontsize=9.5)
        axes.set_xlabel("bytes a vector")
        bytes_axis(axes, TICKS)
    panels[0].set_ylabel("% of the floats' ten nearest")
    panels[0].set_ylim(0, 103)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3,
                  frameon=False, bbox_to_anchor=(0.5, -0.12))  # fmt: skip
    return figure


def mean(runs: list[dict[str, Any]], data: str, bits: int, measure: str) -> float:
    cells = [
        100 * run[measure]
        for run in runs
        if (run["data"], run["method"], run["budget"]) == (data, "neighbors", "cpu")
        and run["bits"] == bits
    ]
    return statistics.mean(cells)


def bytes_axis(axes: Axes, ticks: tuple[int, ...]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", lw=0.7)
    axes.set_axisbelow(True)


if __name__ == "__main__":
    main()
