"""Recall of true neighbors against the time of a query, and against memory: cells and others.

Drawn from `benchmarks/results/cells.json`, which `benchmarks/cells.py curves --write` stores.
"""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
from style import LIGHT, ROOT, save

COLOURS = (
    LIGHT.soft, LIGHT.one, LIGHT.ochre, LIGHT.blue, LIGHT.green, LIGHT.pink, LIGHT.grey, LIGHT.ink,
)  # fmt: skip
LEAST = 40  # % of the neighbors: less is not drawn


def main() -> None:
    stored = json.loads((ROOT / "benchmarks/results/cells.json").read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.9), sharey=True)
    names = list(dict.fromkeys(each["name"] for each in stored["curves"]))
    for name, colour in zip(names, COLOURS, strict=False):
        mine = [each for each in stored["curves"] if each["name"] == name]
        mine = [each for each in mine if 100 * each["recall"] >= LEAST]
        style = {"color": colour, "marker": "o", "markersize": 3, "label": name}
        style["linewidth"] = 2 if name.startswith("embits") else 1
        recalls = [100 * each["recall"] for each in mine]
        left.plot([each["ms"] for each in mine], recalls, **style)
        right.plot([each["bytes"] for each in mine], recalls, **style)
    left.set(xscale="log", xlabel="ms a query, one thread", ylabel="recall@10, %")
    right.set(xscale="log", xlabel="bytes a row in memory")
    left.set_ylim(LEAST, 101)
    left.set_title(stored["title"])
    for axes, ticks in ((left, (0.02, 0.05, 0.1, 0.2, 0.5)), (right, (30, 50, 100, 200, 400))):
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.grid(linewidth=0.5)
    right.legend(loc="lower center", frameon=False, fontsize=8)
    figure.tight_layout()
    save(figure, "cells")


if __name__ == "__main__":
    main()
