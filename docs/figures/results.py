"""The results pages: figures and a table from docs/results/scores.json, and new pages from a run.

    python docs/figures/results.py
    python docs/figures/results.py --run REPORT --name glove-840B-300d
    python docs/figures/results.py --run REPORT --name glove-840B-300d --target similarity

REPORT is a folder that `embits compare --report` wrote. The main rows of its report become
docs/results/NAME.md, the scores that figures and the README show go to scores.json, and the figures
are drawn again. Of a run with --param target=similarity, only the scores are taken. The table of
docs/results/README.md has the scores of all runs, and those of NearLossless in version 0.2.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from style import LIGHT, ROOT, WIDTHS, bytes_axis, save

RESULTS = ROOT / "docs" / "results"
SCORES = RESULTS / "scores.json"
WIDEST = 1024
NOTHING = r"(?!)"  # an expression that matches no row
INDENT = " \u00a0"  # of the rows of a group
PICTURE = "queen"  # the one word whose bits a page shows
# Parts of a report that its page leaves out: whole sections, and rows by "group: method" in the
# sections that start with these titles.
SECTIONS_LEFT_OUT = ("Differences between methods", "Training")
REST = r"(.* rec|(lsh|sign|itq) bin)"  # all but the codes of embits and of the paper
ROWS_LEFT_OUT = {
    "Semantic similarity": rf"(?!Fisher|Semantic|Syntactic).*: {REST}",
    "Classification": rf".*: {REST}",
    "Neighbors": r"Recall@(1|100),.*",
}
METHODS = {
    "near-lossless": ("NearLossless", LIGHT.one, "-", "o"),
    "neural": ("Neural", LIGHT.one, "--", "*"),
    "paper": ("paper", LIGHT.blue, "-", "s"),
    "itq": ("ITQ", LIGHT.green, "--", "^"),
    "sparse": ("sparse", LIGHT.ochre, "-.", "P"),
    "lsh": ("LSH", LIGHT.grey, ":", "v"),
    "sign": ("sign", LIGHT.pink, "", "D"),
}
SIMILARITY = {
    "similarity": "bits: share that agree",
    "rebuilt_similarity": "floats rebuilt from the bits: cosine",
}
HISTORY = {  # rows of the table
    "paper": "the paper's model",
    "near-lossless, version 0.2": "`NearLossless` of version 0.2",
    "near-lossless": "`NearLossless`",
    "near-lossless, similarity": 'the same, `target="similarity"`',
    "neural": "`Neural`",
    "neural, similarity": 'the same, `target="similarity"`',
}
SHOWN = ("similarity", "rebuilt_similarity", "recall_at_10", "asymmetric_recall_at_10")
NEIGHBORS = {"recall_at_10": "bits against bits", "asymmetric_recall_at_10": "float query"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", type=Path, help="a folder of `embits compare --report`")
    parser.add_argument("--name", help="name of its page")
    parser.add_argument("--target", default="", help="of the coders, where they have another")
    args = parser.parse_args()
    if args.run:
        if not args.target:
            take_over(args.run, args.name)
        store(args.run, args.name, args.target)
    stored = json.loads(SCORES.read_text())
    page = RESULTS / "README.md"
    table = "\n".join(history(stored))
    text = re.sub(
        r"(?s)<!-- history -->.*<!-- /history -->",
        lambda _: f"<!-- history -->\n\n{table}\n\n<!-- /history -->",
        page.read_text(encoding="utf-8"),
    )
    page.write_text(text, encoding="utf-8")
    for name, scores in stored.items():
        draw(f"{name}-similarity", scores, SIMILARITY, "Spearman × 100, mean of five sets")
        draw(f"{name}-neighbors", scores, NEIGHBORS, "recall@10, %")


def take_over(run: Path, name: str) -> None:
    """The page of a run, and its one picture of bits."""
    page = (run / "report.md").read_text(encoding="utf-8")
    page = re.sub(rf"!\[(?!{PICTURE})[^\]]*\]\(figures/bits-.*\)\n\n.*\n*", "", page)
    page = page.replace(f"figures/bits-{PICTURE}.png", f"{name}-bits.png")
    page = re.sub(r"\(figures/(similarity|neighbors)\.png\)", rf"({name}-\1.svg)", page)
    page = page.replace("&nbsp;", "\u00a0")  # a third of the length
    (RESULTS / f"{name}.md").write_text(shortened(page), encoding="utf-8")
    shutil.copy(run / "figures" / f"bits-{PICTURE}.png", RESULTS / f"{name}-bits.png")


def store(run: Path, name: str, target: str) -> None:
    """Replace the scores of the methods of a run; with a target, they are rows of their own."""
    scores = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    found = scores_of(json.loads((run / "results.json").read_text())["results"])
    if target:
        found = {f"{method}, {target}": of for method, of in found.items() if method != "raw"}
    scores[name] = scores.get(name, {}) | found
    SCORES.write_text(json.dumps(scores, indent=1, sort_keys=True) + "\n")


def history(stored: dict[str, Any]) -> Iterator[str]:
    """A table of each set of vectors: a row a method, a column a width."""
    widths = [str(width) for width in (*WIDTHS, WIDEST)]
    for name, scores in stored.items():
        yield f"| {name} | {' | '.join(f'{width} bits' for width in widths)} |"
        yield f"|---|{'---|' * len(widths)}"
        for method, title in HISTORY.items():
            if method in scores:
                cells = [scores[method].get(width) for width in widths]
                shown = [" · ".join(f"{c[key]:.1f}" for key in SHOWN) if c else "" for c in cells]
                yield f"| {title} | {' | '.join(shown)} |"
        raw = next(iter(scores["raw"].values()))["similarity"]
        yield f"| the floats | {' | '.join(f'{raw:.1f}' for _ in widths)} |"
        yield ""


def shortened(page: str) -> str:
    """Return a report with its main rows only, and its tables numbered again."""
    lines: list[str] = []
    section, group, rows_out = "", "", NOTHING
    for line in page.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").split(":")[0]
            found = [rows for title, rows in ROWS_LEFT_OUT.items() if section.startswith(title)]
            rows_out = found[0] if found else NOTHING
        if section in SECTIONS_LEFT_OUT:
            continue
        if line.startswith("| "):
            label = line.split("|")[1]
            if not label.startswith(INDENT):
                group = label.strip()
            row = f"{group}: {label.strip()}" if label.startswith(INDENT) else group
            if re.fullmatch(rows_out, row):
                continue
        lines.append(line)
    number = itertools.count(1)
    text = re.sub(r"(?m)^Table \d+\.", lambda _: f"Table {next(number)}.", "\n".join(lines))
    return text.rstrip() + "\n"


def scores_of(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """What the figures and the README need: {method: {bits: {score: value}}}, × 100."""
    methods: dict[str, Any] = {}
    for entry in entries:
        found = {"similarity": entry["similarity"]["fisher_mean"]}
        if "neighbors" in entry:
            found |= {measure: entry["neighbors"][measure] for measure in NEIGHBORS}
            found["rebuilt_similarity"] = entry["reconstruction"]["similarity"]["fisher_mean"]
        cell = {measure: round(100 * value, 3) for measure, value in found.items()}
        methods.setdefault(entry["method"], {})[str(entry["bits"])] = cell
    return methods


def draw(name: str, scores: dict[str, Any], measures: dict[str, str], label: str) -> None:
    """One panel for each measure, one line for each method, against the bits of a code."""
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.7), sharey=True)
    figure.subplots_adjust(wspace=0.3)
    ends = [curves(axes, scores, measure) for axes, measure in zip(panels, measures, strict=True)]
    for axes, names, (measure, title) in zip(panels, ends, measures.items(), strict=True):
        label_ends(axes, names)
        axes.set_title(title)
        axes.set_xlabel("bits")
        bytes_axis(axes, (*WIDTHS, WIDEST))
        axes.set_xlim(56, 1.1 * WIDEST)
        if "similarity" in measure:
            raw = next(iter(scores["raw"].values()))["similarity"]
            axes.axhline(raw, color=LIGHT.soft, lw=0.8, ls=(0, (4, 3)))
            axes.text(64, raw + 0.5, f"floats {raw:.1f}", color=LIGHT.soft, fontsize=8.5)
    panels[0].set_ylabel(label)
    save(figure, name, RESULTS)


def curves(axes: Axes, scores: dict[str, Any], measure: str) -> list[tuple[float, str, str]]:
    """Draw each method's line; returns where it ends, its name and its colour."""
    ends: list[tuple[float, str, str]] = []
    for method, (title, colour, line, marker) in METHODS.items():
        if method not in scores:
            continue
        points = sorted((int(bits), cell[measure]) for bits, cell in scores[method].items())
        bits, values = zip(*points, strict=True)
        axes.plot(bits, values, line, marker=marker, color=colour, ms=5, lw=1.8)
        if len(points) > 1:
            ends.append((values[-1], title, colour))
        else:
            axes.annotate(f"{title} {bits[0]}", (bits[0], values[0]), xytext=(6, -12), color=colour,
                          textcoords="offset points", fontsize=8.5)  # fmt: skip
    return sorted(ends)


def label_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names at the right ends of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap, place = (high - low) / 16, low
    for value, title, colour in ends:
        place = max(value, place + gap)
        axes.annotate(title, (WIDEST, place), xytext=(10, 0), color=colour, va="center",
                      textcoords="offset points", annotation_clip=False)  # fmt: skip


if __name__ == "__main__":
    main()
