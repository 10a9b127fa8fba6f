"""Quality against size, from stored results: docs/images/quality.svg and choosing-bits.svg.

    python docs/figures/quality.py

The first comes from docs/results/scores.json (GloVe 840B 300d, `embits compare`), the second from
benchmarks/results/comparison.json (`benchmarks/comparison`, rows that are not in the fit).
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, WIDTHS, bytes_axis, save

TICKS = (8, 16, 32, 64)
SIZES = (8, 16, 32, 64, 128)
DATA = {
    "minilm": "MiniLM sentences",
    "mpnet": "MPNet sentences",
    "gnews": "GoogleNews words",
}


def main() -> None:
    scores = json.loads((ROOT / "docs/results/scores.json").read_text())["glove-840B-300d"]
    save(quality(scores), "quality")
    run = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())
    save(choosing(run["sets"]), "choosing-bits")


def quality(scores: dict[str, Any]) -> Figure:
    """Two panels against bytes per word: agreement with human judgements, and recall@10."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7))
    figure.subplots_adjust(wspace=0.28)
    for method, name, colour, offset in (
        ("lsh", "LSH", LIGHT.grey, -7),
        ("paper", "the paper's model", LIGHT.blue, -3),
        ("near-lossless", "embits", LIGHT.one, 3),
    ):
        bold = method == "near-lossless"
        people, near = (values(scores[method], key) for key in ("similarity", "recall_at_10"))
        for axes, curve in ((left, people), (right, near)):
            axes.plot(TICKS, curve, "-", marker="o", color=colour, lw=2.6 if bold else 1.5,
                      ms=5.3 if bold else 4.7)  # fmt: skip
        name_at(right, name, (64, near[-1]), (9, offset), colour, bold)
        if bold:
            name_at(left, name, (32, people[2]), (0, 11), colour, bold, ha="center")
    asked = values(scores["near-lossless"], "asymmetric_recall_at_10")
    right.plot(TICKS, asked, ":", marker="o", color=LIGHT.one, lw=1.8, ms=4)
    name_at(right, "embits, float query", (64, asked[-1]), (9, 3), LIGHT.one)
    raw = scores["raw"]["9600"]["similarity"]
    left.axhline(raw, color=LIGHT.soft, lw=0.8, ls=(0, (4, 3)))
    left.plot([1200], [raw], "s", color=LIGHT.ink, ms=7)
    right.plot([1200], [100], "s", color=LIGHT.ink, ms=7)
    name_at(left, "floats\n1,200 bytes", (1200, raw), (0, -22), LIGHT.ink, ha="center")
    finish(left, "Agreement with human similarity scores", "Spearman × 100, mean of five sets")
    finish(right, "Nearest neighbors", "recall@10, %")
    left.set_ylim(37, 66)
    right.set_ylim(0, 106)
    figure.text(0.125, -0.06, "GloVe 840B 300d, 33,860 words. Left axis does not begin at zero.",
                color=LIGHT.soft, fontsize=8)  # fmt: skip
    return figure


def values(widths: dict[str, Any], measure: str) -> list[float]:
    return [widths[str(bits)][measure] for bits in WIDTHS]


def name_at(
    axes: Axes,
    name: str,
    point: tuple[float, float],
    offset: tuple[float, float],
    colour: str,
    bold: bool = False,
    ha: str = "left",
) -> None:
    """Write a line's name beside one of its points, `offset` in typographic points."""
    axes.annotate(name, point, xytext=offset, color=colour, ha=ha, va="center",
                  textcoords="offset points", weight="bold" if bold else "normal")  # fmt: skip


def finish(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(label)
    axes.set_xlabel("bytes per word")
    bytes_axis(axes, (*TICKS, 1200))


def choosing(sets: dict[str, Any]) -> Figure:
    """Recall against bytes for three kinds of vectors and three kinds of search."""
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True)
    figure.subplots_adjust(wspace=0.12)
    for axes, (data, title) in zip(panels, DATA.items(), strict=True):
        rows = {row["method"]: row for row in sets[data]["rows"]}
        for way, measure, name, style in (
            (
                "float query",
                "recall_at_40",
                "float query, 40 rescored with floats",
                "--",
            ),
            ("float query", "recall_at_10", "float query", ":"),
            ("Hamming", "recall_at_10", "bits against bits", "-"),
        ):
            curve = [100 * rows[f"NearLossless {8 * size}, {way}"][measure] for size in SIZES]
            colour = LIGHT.blue if measure == "recall_at_40" else LIGHT.one
            axes.plot(SIZES, curve, style, marker="o", color=colour, ms=4.5, lw=2, label=name)
        axes.set_title(f"{title} ({4 * sets[data]['dims']:,} bytes)", fontsize=9.5)
        axes.set_xlabel("bytes per vector")
        bytes_axis(axes, SIZES)
    panels[0].set_ylabel("recall@10, %")
    panels[0].set_ylim(0, 103)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3,
                  frameon=False, bbox_to_anchor=(0.5, -0.14))  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
