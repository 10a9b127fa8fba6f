"""The figures of docs/near-lossless.md, from the runs kept in benchmarks/results.

python benchmarks/near_lossless_plots.py [--results DIR] [--out docs/images]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
NAMES = {"glove": "GloVe 6B 100d", "gnews": "GoogleNews 300d", "minilm": "MiniLM sentences 384d"}
METHODS = {
    "lsh": ("LSH", "#999999"),
    "paper": ("the paper's model", "#d08030"),
    "neighbors": ("NearLossless", "#2060b0"),
    "similarity": ('NearLossless, target="similarity"', "#70a0e0"),
}
RAW_F = {"glove": 43.0, "gnews": 59.4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "images")
    args = parser.parse_args()
    mpl.rcParams.update({"svg.hashsalt": "embits", "font.size": 9, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "figure.constrained_layout.use": True})
    runs = json.loads((args.results / "near_lossless.json").read_text())
    recalls(runs, args.out / "near-lossless-recall.svg")
    similarity(runs, args.out / "near-lossless-similarity.svg")
    ablation(
        json.loads((args.results / "near_lossless_ablation.json").read_text()),
        args.out / "near-lossless-ablation.svg",
    )
    curve(
        json.loads((args.results / "near_lossless_curve.json").read_text()),
        args.out / "near-lossless-curve.svg",
    )


def recalls(runs: list[dict], out: Path) -> None:
    """Recall by Hamming distance and by float query, against bits."""
    figure, axes = plt.subplots(2, 3, figsize=(9, 5.2), sharex=True, sharey="row")
    for column, data in enumerate(NAMES):
        for row, measure in enumerate(("r@10", "asym")):
            lines(axes[row, column], runs, data, measure, ("lsh", "paper", "neighbors"))
        axes[0, column].set_title(NAMES[data])
        axes[1, column].set_xlabel("bits")
    axes[0, 0].set_ylabel("recall@10, Hamming")
    axes[1, 0].set_ylabel("recall@10, float query")
    legend(figure, axes[0, 0])
    save(figure, out)


def similarity(runs: list[dict], out: Path) -> None:
    """Agreement with people's judgements, against bits."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2))
    for ax, (data, raw) in zip(axes, RAW_F.items(), strict=True):
        lines(ax, runs, data, "F", METHODS)
        ax.axhline(raw, color="black", linewidth=0.8, linestyle=":", label="the floats")
        ax.set_title(NAMES[data])
        ax.set_xlabel("bits")
    axes[0].set_ylabel("Fisher mean of Spearman x 100")
    legend(figure, axes[0])
    save(figure, out)


def lines(ax, runs: list[dict], data: str, measure: str, methods) -> None:
    for method in methods:
        cells = defaultdict(list)
        for run in runs:
            if (run["data"], run["method"]) == (data, method) and run["budget"] != "cpu":
                cells[run["bits"]].append(run[measure])
        bits = sorted(cells)
        name, color = METHODS[method]
        ax.plot(bits, [np.mean(cells[b]) for b in bits], "o-", color=color, label=name, ms=4)
    ax.set_xscale("log", base=2)
    ax.set_xticks([64, 128, 256, 512], ["64", "128", "256", "512"])
    ax.grid(axis="y", alpha=0.3)


def ablation(runs: list[dict], out: Path) -> None:
    """Both recalls with a part left out."""
    parts = list(dict.fromkeys(run["part"] for run in runs))
    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.6), sharey=True)
    for ax, data in zip(axes, NAMES, strict=True):
        for measure, label, color in (
            ("r@10", "Hamming", "#2060b0"),
            ("asym", "float query", "#70a0e0"),
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
        ax.grid(axis="y", alpha=0.3)
    axes[0].invert_yaxis()
    legend(figure, axes[0])
    save(figure, out)


def curve(points: list[list[float]], out: Path) -> None:
    """Loss and held-out recall over a fit."""
    steps, losses, found = np.array(points).T
    figure, ax = plt.subplots(figsize=(5, 3))
    ax.plot(steps, losses, color="#d08030")
    ax.set_xlabel("steps")
    ax.set_ylabel("loss", color="#d08030")
    other = ax.twinx()
    other.plot(steps, found, color="#2060b0")
    other.set_ylabel("held-out recall@10", color="#2060b0")
    save(figure, out)


def legend(figure, ax) -> None:
    handles = ax.get_legend_handles_labels()
    figure.legend(*handles, frameon=False, loc="outside lower center", ncols=len(handles[0]))


def save(figure, out: Path) -> None:
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
