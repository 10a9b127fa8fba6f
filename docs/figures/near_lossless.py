"""The figures of docs/near-lossless.md, from the runs stored in benchmarks/results.

python docs/figures/near_lossless.py
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, WIDTHS, bytes_axis, save

RUNS = ROOT / "benchmarks" / "results"
NAMES = {"glove": "GloVe 6B 100d", "gnews": "GoogleNews 300d", "minilm": "MiniLM sentences 384d"}
METHODS = {
    "lsh": ("LSH", LIGHT.grey),
    "paper": ("the paper's model", LIGHT.blue),
    "neighbors": ("NearLossless", LIGHT.one),
    "similarity": ('NearLossless, target="similarity"', LIGHT.ochre),
}
RAW_SIMILARITY = {"glove": 43.0, "gnews": 59.4}


def main() -> None:
    runs = stored("near_lossless")
    save(recalls(runs), "near-lossless-recall")
    save(similarity(runs), "near-lossless-similarity")
    save(ablation(stored("near_lossless_ablation")), "near-lossless-ablation")
    save(curve(stored("near_lossless_curve")), "near-lossless-curve")


def stored(name: str) -> Any:
    return json.loads((RUNS / f"{name}.json").read_text())


def recalls(runs: list[dict[str, Any]]) -> Figure:
    """Recall by Hamming distance and by float query, against bits."""
    figure, axes = plt.subplots(
        2, 3, figsize=(9.2, 5.4), layout="constrained", sharex=True, sharey="row"
    )
    for column, data in enumerate(NAMES):
        for row, measure in enumerate(("r@10", "asym")):
            lines(axes[row, column], runs, data, measure, ("lsh", "paper", "neighbors"))
        axes[0, column].set_title(NAMES[data])
        axes[1, column].set_xlabel("bits")
    axes[0, 0].set_ylabel("recall@10, Hamming")
    axes[1, 0].set_ylabel("recall@10, float query")
    legend(figure, axes[0, 0])
    return figure


def similarity(runs: list[dict[str, Any]]) -> Figure:
    """Agreement with human similarity scores, against bits."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    for ax, (data, raw) in zip(axes, RAW_SIMILARITY.items(), strict=True):
        lines(ax, runs, data, "F", METHODS)
        ax.axhline(raw, color=LIGHT.soft, lw=0.8, ls=(0, (4, 3)), label="floats")
        ax.set_title(NAMES[data])
        ax.set_xlabel("bits")
    axes[0].set_ylabel("Spearman × 100, mean of five sets")
    legend(figure, axes[0])
    return figure


def lines(
    axes: Axes, runs: list[dict[str, Any]], data: str, measure: str, methods: Iterable[str]
) -> None:
    """Mean over the seeds, against bits: one line for each method."""
    for method in methods:
        cells = defaultdict(list)
        for run in runs:
            if (run["data"], run["method"]) == (data, method) and run["budget"] != "cpu":
                cells[run["bits"]].append(run[measure])
        bits = sorted(cells)
        name, color = METHODS[method]
        axes.plot(bits, [np.mean(cells[b]) for b in bits], "o-", color=color, label=name, ms=4)
    bytes_axis(axes, WIDTHS)


def ablation(runs: list[dict[str, Any]]) -> Figure:
    """Both recalls with one part of the method left out."""
    parts = list(dict.fromkeys(run["part"] for run in runs))
    figure, axes = plt.subplots(1, 3, figsize=(9.2, 3.8), layout="constrained", sharey=True)
    for ax, data in zip(axes, NAMES, strict=True):
        for measure, label, color in (
            ("r@10", "Hamming", LIGHT.one),
            ("asym", "float query", LIGHT.ochre),
        ):
            shown = [
                (number, np.mean(values))
                for number, part in enumerate(parts)
                if (values := [r[measure] for r in runs if (r["data"], r["part"]) == (data, part)])
            ]
            ax.plot([v for _, v in shown], [n for n, _ in shown], "o", color=color, label=label)
            ax.axvline(shown[0][1], color=color, linewidth=0.6)
        ax.set_yticks(range(len(parts)), parts)
        ax.set_title(NAMES[data])
        ax.set_xlabel("recall@10, 128 bits")
        ax.grid(axis="y", lw=0.7)
    axes[0].invert_yaxis()
    legend(figure, axes[0])
    return figure


def curve(points: list[list[float]]) -> Figure:
    """Loss and held-out recall during a fit."""
    steps, losses, found = np.array(points).T
    figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    ax.plot(steps, losses, color=LIGHT.blue)
    ax.set_xlabel("steps")
    ax.set_ylabel("loss", color=LIGHT.blue)
    other = ax.twinx()
    other.spines["right"].set_visible(True)
    other.plot(steps, found, color=LIGHT.one)
    other.set_ylabel("held-out recall@10", color=LIGHT.one)
    return figure


def legend(figure: Figure, axes: Axes) -> None:
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, frameon=False, loc="outside lower center", ncols=len(handles[0]))


if __name__ == "__main__":
    main()
