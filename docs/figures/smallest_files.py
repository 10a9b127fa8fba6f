"""Quality against the size of a file, from a stored run: docs/images/smallest-files.svg.

    python docs/figures/smallest_files.py

The run is benchmarks/results/quality_per_megabyte.json, which benchmarks/quality_per_megabyte.py
writes. A line joins the files of a family that no smaller file of the family reaches. Prints the
tables of docs/smallest-files.md: the best score of each family up to a size.
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, save

LIMITS = (0.25, 0.5, 1, 2, 5, 10, 20)  # MB
TITLES = {"glove-6b-100d": "GloVe 6B 100d", "glove-840b-300d": "GloVe 840B 300d"}
FAMILIES = {
    "embits": ("o-", LIGHT.one, lambda name: name.startswith("embits")),
    "whitened PCA, 2 or 4 bits": ("v-", LIGHT.ochre, lambda name: "whitened" in name),
    "PCA, float16 to 4 bits": ("^-", LIGHT.blue, lambda name: name.endswith(", PCA")),
    "product quantization": ("s-", LIGHT.green, lambda name: name in ("PQ", "compress-fasttext")),
    "int8 and float16": ("D-", LIGHT.grey, lambda name: name in ("int8", "float16")),
    "WordLlama": ("P-", LIGHT.pink, lambda name: name == "WordLlama"),
}


def main() -> None:
    run = json.loads((ROOT / "benchmarks/results/quality_per_megabyte.json").read_text())
    save(smallest_files(run), "smallest-files")
    for source in run["sources"].values():
        print(table(source["rows"]), end="\n\n")


def smallest_files(run: dict[str, Any]) -> Figure:
    """A panel for each source of vectors: the score against megabytes."""
    figure, panels = plt.subplots(1, 2, figsize=(10.4, 4.6))
    figure.subplots_adjust(wspace=0.16)
    for axes, (name, source) in zip(panels, run["sources"].items(), strict=True):
        for label, (style, colour, match) in FAMILIES.items():
            rows = frontier([row for row in source["rows"] if match(row["method"])])
            bold = label == "embits"
            axes.plot(
                [row["bytes"] / 1e6 for row in rows], [100 * row["score"] for row in rows], style,
                color=colour, label=label, lw=2.4 if bold else 1.3, ms=5.5 if bold else 4.5,
                zorder=3 if bold else 2,
            )  # fmt: skip
        finish(axes, 100 * source["floats"]["score"])
        axes.set_title(f"{TITLES[name]}, up to {source['words']:,} words")
    publish(panels[0], run["published"])
    panels[0].set_ylabel("similarity score × 100; unknown words count")
    lines, labels = panels[0].get_legend_handles_labels()
    figure.legend(lines, labels, frameon=False, ncol=3, loc="upper center",
                  bbox_to_anchor=(0.5, 0.01))  # fmt: skip
    return figure


def table(rows: list[dict[str, Any]]) -> str:
    """The best score of each family in files of up to so many megabytes, best in bold."""
    lines = [f"| up to | {' | '.join(FAMILIES)} |", "|---:" * (len(FAMILIES) + 1) + "|"]
    for limit in LIMITS:
        small = [row for row in rows if row["bytes"] <= 1e6 * limit]
        best = [
            max((100 * row["score"] for row in small if match(row["method"])), default=0.0)
            for _, _, match in FAMILIES.values()
        ]
        cells = [f"**{x:.1f}**" if x == max(best) else f"{x:.1f}" if x else "–" for x in best]
        lines.append(f"| {limit:g} MB | {' | '.join(cells)} |")
    return "\n".join(lines)


def frontier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that no smaller file reaches, smallest first."""
    best, kept = -1.0, []
    for row in sorted(rows, key=lambda row: (row["bytes"], -row["score"])):
        if row["score"] > best:
            best = row["score"]
            kept.append(row)
    return kept


def finish(axes: Axes, floats: float) -> None:
    axes.set_xscale("log")
    ticks = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("megabytes, with the words")
    axes.grid(axis="y", lw=0.7)
    axes.set_axisbelow(True)
    axes.axhline(floats, color=LIGHT.soft, lw=0.8, ls=(0, (4, 3)))
    axes.annotate("all words, float32", (0, floats), xycoords=("axes fraction", "data"),
                  xytext=(6, 4), textcoords="offset points", ha="left", color=LIGHT.soft,
                  fontsize=8)  # fmt: skip


def publish(axes: Axes, models: list[dict[str, Any]]) -> None:
    """Mark published sizes of models that were not scored on the axis of sizes."""
    for model in models:
        size = model["bytes"] / 1e6
        axes.annotate(model["name"].replace("model2vec potion-base-", "model2vec "), (size, 0),
                      xycoords=("data", "axes fraction"), xytext=(0, 8), rotation=90, ha="center",
                      textcoords="offset points", color=LIGHT.soft, fontsize=7.5)  # fmt: skip
        axes.plot([size], [0.01], "|", color=LIGHT.soft, ms=8, transform=axes.get_xaxis_transform())


if __name__ == "__main__":
    main()
