"""The figures of the report.

Methods differ in color (Okabe & Ito's palette for color-blind readers), marker and line style, and
are labelled at the end of their lines, so the figures can be read in grayscale.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from embits.errors import MissingExtraError
from embits.evaluation.report.document import Picture
from embits.evaluation.report.results import at

STYLES = {
    "near-lossless": ("#0072B2", "o", "-"),
    "paper": ("#D55E00", "s", "-"),
    "itq": ("#009E73", "^", "--"),
    "lsh": ("#555555", "v", ":"),
    "sign": ("#CC79A7", "D", "-"),
    "sparse": ("#E69F00", "P", "-."),
}
_OTHER = ("#000000", "x", "-")


def figures_of(entries: Sequence[dict[str, Any]], notes: list[str]) -> list[Picture]:
    """The figures for which there are results; without Matplotlib, a note in `notes` instead."""
    wanted = (
        (
            "similarity.png",
            (
                ("bits, Sokal-Michener similarity", ("similarity", "fisher_mean")),
                ("floats rebuilt from the bits, cosine",
                 ("reconstruction", "similarity", "fisher_mean")),
            ),
            "Fisher mean of Spearman × 100",
            ("similarity", "fisher_mean"),
            "Figure 1. Fisher mean of the similarity scores by width. The dashed line shows the "
            "raw floats.",
        ),
        (
            "neighbors.png",
            (
                ("bits against bits (Hamming)", ("neighbors", "recall_at_10")),
                ("float query against bits", ("neighbors", "asymmetric_recall_at_10")),
            ),
            "recall@10 of raw-cosine neighbors, %",
            None,
            "Figure 2. Recall@10 by width: the share of a word's ten nearest by raw cosine "
            "that are among the ten nearest codes.",
        ),
    )  # fmt: skip
    pictures = []
    for name, panels, label, raw_path, caption in wanted:
        drawn = [
            (t, p)
            for t, p in panels
            if any(at(e, *p) is not None for e in entries if e["method"] != "raw")
        ]
        if not drawn:
            continue
        try:
            png = score_by_bits(entries, drawn, label, raw_path)
        except MissingExtraError as error:
            notes.append(f"{name}: {error}")
        else:
            pictures.append(Picture(name, png, caption))
    return pictures


def score_by_bits(
    entries: Sequence[dict[str, Any]],
    panels: Sequence[tuple[str, tuple[str, ...]]],
    label: str,
    raw_path: tuple[str, ...] | None,
) -> bytes:
    """Plot a score by the number of bits, with a line for each method, as a PNG.

    Args:
        entries: Results of an `Evaluator`.
        panels: Title and path of the score of each panel; the panels share the y axis.
        label: Label of the y axis.
        raw_path: Path of the raw vectors' score, drawn as a horizontal line; None draws none.
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4.6 * len(panels) + 0.6, 3.9), sharey=True, squeeze=False
    )
    coded = [entry for entry in entries if entry["method"] != "raw"]
    widths = sorted({entry["bits"] for entry in coded})
    methods = list(dict.fromkeys(entry["method"] for entry in coded))
    ticks = _shared_widths(coded) or widths
    raw = next((at(e, *raw_path) for e in entries if raw_path and e["method"] == "raw"), None)
    for axis, (title, path) in zip(axes[0], panels, strict=True):
        ends = []
        for method in methods:
            points = sorted(
                (entry["bits"], 100 * score)
                for entry in coded
                if entry["method"] == method and (score := at(entry, *path)) is not None
            )
            if points:
                _draw(axis, method, points)
                own = len(points) == 1 and points[0][0] not in ticks
                ends.append((points[-1], method, f"{method} {points[0][0]}" if own else method))
        if raw is not None:  # behind the lines, over the same range
            axis.plot(
                [widths[0], widths[-1]],
                [100 * raw] * 2,
                color="black",
                linewidth=1,
                dashes=(6, 3),
                zorder=1,
            )
            _write(axis, f"raw floats {100 * raw:.1f}", (widths[0], 100 * raw), (0, 4), "black")
        _name_ends(axis, ends)
        axis.set_title(title, fontsize=10.5, loc="left")
        axis.set_xscale("log", base=2)
        axis.set_xlim(widths[0] / 1.15, widths[-1] * (widths[-1] / widths[0]) ** 0.22 * 1.2)
        axis.set_xticks(ticks, [str(width) for width in ticks])
        axis.minorticks_off()
        axis.set_xlabel("bits of a code")
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel(label)
    figure.tight_layout()
    file = io.BytesIO()
    # Without the Software entry, the same numbers give the same bytes.
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    pyplot.close(figure)
    return file.getvalue()


def _draw(axis: Any, method: str, points: list[tuple[int, float]]) -> None:
    colour, marker, line = STYLES.get(method, _OTHER)
    axis.plot(
        *zip(*points, strict=True), color=colour, marker=marker, linestyle=line, linewidth=1.6,
        markersize=5.5, markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip


def _shared_widths(coded: Sequence[dict[str, Any]]) -> list[int]:
    """Widths of at least two methods; other widths would crowd the axis."""
    methods: dict[int, set[str]] = {}
    for entry in coded:
        methods.setdefault(entry["bits"], set()).add(entry["method"])
    return sorted(width for width, having in methods.items() if len(having) > 1)


def _name_ends(axis: Any, ends: list[tuple[tuple[int, float], str, str]]) -> None:
    """Write each method's name at the right end of its line, without overlaps."""
    low, high = axis.get_ylim()
    apart = 0.055 * (high - low)
    height = -float("inf")
    widest = max((point[0] for point, _, _ in ends), default=0)
    for (bits, score), method, name in sorted(ends, key=lambda end: end[0][1]):
        colour = STYLES.get(method, _OTHER)[0]
        if bits < widest:  # a line that ends early is labelled below its end
            _write(axis, name, (bits, score), (3, -13), colour)
        else:
            height = max(score, height + apart)
            _write(axis, name, (bits, height), (7, -3), colour)


def _write(
    axis: Any, text: str, place: tuple[float, float], offset: tuple[int, int], colour: str
) -> None:
    """Text next to a point, with a white outline to stay readable over lines."""
    from matplotlib.patheffects import withStroke

    axis.annotate(
        text, place, offset, textcoords="offset points", fontsize=8.5, color=colour,
        path_effects=[withStroke(linewidth=2.5, foreground="white")], zorder=5,
    )  # fmt: skip


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("drawing figures", "plots") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    return pyplot
