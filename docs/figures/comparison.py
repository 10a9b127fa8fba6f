"""Quantizers on unseen rows, from a stored run: docs/images/comparison.svg.

    python docs/figures/comparison.py

The run is benchmarks/results/comparison.json, which benchmarks/comparison.py writes.
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, save

TICKS = (8, 16, 32, 64, 128, 256, 512)


def main() -> None:
    run = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())
    save(comparison(run["sets"]["minilm"]["rows"]), "comparison")


def comparison(rows: list[dict[str, Any]]) -> Figure:
    """Recall@10 against bytes of a row, and against the time of a query."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.3), sharey=True)
    figure.subplots_adjust(wspace=0.08)
    for name, colour, style, match in (
        ("embits, float query", LIGHT.one, "o-", lambda m: "embits" in m and "float" in m),
        ("embits, decoded", LIGHT.one, "o:", lambda m: "embits" in m and "decoded" in m),
        ("embits, Hamming", LIGHT.one, "o--", lambda m: "embits" in m and "Hamming" in m),
        ("PQ", LIGHT.grey, "s-", lambda m: m.startswith("FAISS PQ")),
        ("OPQ", LIGHT.blue, "s-", lambda m: m.startswith("FAISS OPQ")),
        ("RaBitQ, 1, 2, 4 bits", LIGHT.ink, "^-", lambda m: "RaBitQ" in m),
        ("EDEN, 1, 2, 4 bits", LIGHT.soft, "v-", lambda m: m.startswith("EDEN")),
        ("4- and 8-bit scalar", LIGHT.grey, "D:", lambda m: m in ("FAISS SQ4", "FAISS SQ8")),
        ("residual quantizer", LIGHT.ink, "P", lambda m: m.startswith("FAISS RQ")),
    ):
        chosen = sorted((row for row in rows if match(row["method"])), key=lambda r: r["bytes"])
        recalls = [row["recall_at_10"] for row in chosen]
        bold = colour == LIGHT.one
        how = {"color": colour, "lw": 2.0 if bold else 1.2, "ms": 5, "label": name}
        left.plot([row["bytes"] for row in chosen], recalls, style, **how)
        if "EDEN" not in name:  # searched as floats here
            right.plot([row["query_ms"] for row in chosen], recalls, style, **how)
    finish(left, "bytes a row", TICKS)
    finish(right, "milliseconds a query, 31,600 rows, one thread", (0.1, 0.2, 0.5, 1, 2))
    left.set_ylabel("recall@10, rows not in the fit")
    left.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def finish(axes: Axes, title: str, ticks: tuple[float, ...]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(title)
    axes.set_ylim(0.15, 1.02)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
