"""Text encoders: score against megabytes, from a stored run: docs/images/text.svg.

    python docs/figures/text.py

The run is benchmarks/results/text_encoder.json, which benchmarks/text_encoder.py writes. A line
joins the tables of a family that no smaller one reaches. Scores of several seeds are averaged.
Prints the tables of docs/text.md.
"""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import LIGHT, ROOT, save

Row = dict[str, Any]
SOURCES = {"wordllama": "WordLlama", "potion": "potion-base-8M", "glove.txt": "words of GloVe"}
SCORES = {"ag_news": "AG News, %", "dbpedia": "DBpedia, %", "scifact": "SciFact, nDCG@10"}
FAMILIES = {  # a regular expression of names, the line, its colour
    "embits: bits + length": (r"\d+ bits \+ length", "o-", LIGHT.one),
    "embits, without lengths": (r"\d+ bits", "o--", LIGHT.one),
    "embits: Neural": (r"Neural.*", "*", LIGHT.one),
    "PQ, OPQ": (r"O?PQ \d+", "s-", LIGHT.green),
    "PCA, 2 or 4 bits + length": (r"PCA.*", "v-", LIGHT.ochre),
    "first dimensions, int8": (r"(first \d+, )?int8", "^-", LIGHT.blue),
    "k-means of rows": (r"k-means.*", "P-", LIGHT.pink),
    "float16": (r"float16", "D", LIGHT.grey),
}
SHOWN = (  # in the tables, when there are such rows
    r"float32|int8|first.*|PCA (64|128), [24] bits.*|O?PQ (15|16|30|32)|k-means 4096.*"
    r"|\d+ bits( \+ length)?|Neural.*"
)
WAYS = ("code", "float query", "with BM25", "with MiniLM", "with MiniLM and BM25")


def main() -> None:
    run = json.loads((ROOT / "benchmarks/results/text_encoder.json").read_text())
    sources = {name: averaged(run["quality"][name]["rows"]) for name in SOURCES}
    save(drawn(sources), "text")
    for name, rows in sources.items():
        print(f"{SOURCES[name]}, {run['quality'][name]['shape']}\n\n{table(rows)}\n")
    print(answers(run["answers"]))


def name_of(row: Row) -> str:
    if "table" in row:
        return str(row["table"])
    kind = "Neural, " if row["method"] == "neural" else ""
    return f"{kind}{row['bits']} bits{' + length' if row['lengths'] else ''}"


def averaged(rows: list[Row]) -> list[Row]:
    """A row of each name, in percent, with the mean of its seeds; smallest first."""
    found = {}
    for name in dict.fromkeys(map(name_of, rows)):
        same = [row for row in rows if name_of(row) == name]
        means = {score: 100 * fmean(row[score] for row in same) for score in SCORES}
        found[name] = {"name": name, "mb": same[0]["bytes"] / 1e6, **means}
    return sorted(found.values(), key=lambda row: row["mb"])


def drawn(sources: dict[str, list[Row]]) -> Figure:
    """A panel for each source and score."""
    figure, panels = plt.subplots(len(sources), len(SCORES), figsize=(11, 8.6))
    figure.subplots_adjust(wspace=0.2, hspace=0.42)
    for line, (name, rows) in zip(panels, sources.items(), strict=True):
        for axes, (score, label) in zip(line, SCORES.items(), strict=True):
            for family, (names, style, colour) in FAMILIES.items():
                chosen = [row for row in rows if re.fullmatch(names, row["name"])]
                chosen = chosen if "-" not in style else frontier(chosen, score)
                bold = family.endswith("length") and colour == LIGHT.one
                axes.plot(
                    [row["mb"] for row in chosen], [row[score] for row in chosen], style,
                    color=colour, label=family, lw=2.4 if bold else 1.2, ms=5 if bold else 4,
                    zorder=3 if bold else 2,
                )  # fmt: skip
            floats = next(row[score] for row in rows if row["name"] == "float32")
            finish(axes, floats)
            axes.set_title(f"{SOURCES[name]}: {label.replace('nDCG@10', 'nDCG@10 × 100')}")
    for axes in panels[-1]:
        axes.set_xlabel("megabytes of the table")
    lines = [line for line in panels[0][0].get_lines() if line.get_label() in FAMILIES]
    lines = [line for line in lines if len(line.get_xdata())]
    figure.legend(handles=lines, frameon=False, ncol=4, loc="upper center",
                  bbox_to_anchor=(0.5, 0.05))  # fmt: skip
    return figure


def frontier(rows: list[Row], score: str) -> list[Row]:
    """The rows that no smaller one reaches, smallest first."""
    best, kept = -1.0, []
    for row in rows:
        if row[score] > best:
            best = row[score]
            kept.append(row)
    return kept


def finish(axes: Axes, floats: float) -> None:
    axes.set_xscale("log")
    ticks = (0.2, 0.5, 1, 2, 5, 10, 20)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", lw=0.7)
    axes.set_axisbelow(True)
    axes.axhline(floats, color=LIGHT.soft, lw=0.8, ls=(0, (4, 3)))
    axes.annotate("float32", (1, floats), xycoords=("axes fraction", "data"), xytext=(-2, -9),
                  textcoords="offset points", ha="right", color=LIGHT.soft,
                  fontsize=7.5)  # fmt: skip


def table(rows: list[Row]) -> str:
    """The rows of the page, largest first."""
    lines = [f"| table | MB | {' | '.join(SCORES.values())} |", "|---" + "|---:" * 4 + "|"]
    for row in reversed(rows):
        if re.fullmatch(SHOWN, row["name"]):
            found = f"{row['ag_news']:.1f} | {row['dbpedia']:.1f} | {row['scifact'] / 100:.3f}"
            lines.append(f"| {row['name']} | {row['mb']:.2f} | {found} |".replace("| 0.", "| ."))
    return "\n".join(lines)


def answers(sources: dict[str, Any]) -> str:
    """nDCG@10 of every encoder, code and way to search; the mean of the seeds."""
    lines = [f"| vectors | codes | {' | '.join(WAYS)} |", "|---|---" + "|---:" * len(WAYS) + "|"]
    for source, found in sources.items():
        coders: dict[Any, list[Row]] = {}
        for row in found["rows"]:
            coders.setdefault((row["method"], row["bits"]), []).append(row)
        for (method, n_bits), same in coders.items():
            means = {way: fmean(row[way] for row in same) for way in WAYS if way in same[0]}
            cells = [f"{means[way]:.3f}" if way in means else "–" for way in WAYS]
            kind = {"near-lossless": "", "neural": "Neural, "}.get(method, "floats")
            codes = kind if n_bits is None else f"{kind}{n_bits} bits"
            encoder = SOURCES.get(source, source)
            lines.append(f"| {encoder} | {codes} | {' | '.join(cells)} |".replace("| 0.", "| ."))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
