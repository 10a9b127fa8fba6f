"""The figures of the report.

Methods differ in color (Okabe & Ito's palette for color-blind readers), marker and line style, and
are labelled at the end of their lines, so the figures can be read in grayscale.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embits.errors import MissingExtraError
from embits.evaluation.report.document import Picture
from embits.evaluation.report.labels import Line, Points, label_lines
from embits.evaluation.report.results import at, interval

STYLES = {
    "near-lossless": ("#0072B2", "o", "-"),
    "paper": ("#D55E00", "s", "-"),
    "itq": ("#009E73", "^", "--"),
    "lsh": ("#555555", "v", ":"),
    "sign": ("#CC79A7", "D", "-"),
    "sparse": ("#E69F00", "P", "-."),
}
_OTHER = ("#000000", "x", "-")


@dataclass(frozen=True)
class Figure:
    """A figure of the report: the arguments of `score_by_bits`, its file name and its caption."""

    name: str
    panels: Sequence[tuple[str, tuple[str, ...]]]
    label: str
    raw_path: tuple[str, ...] | None
    caption: str


FIGURES = (
    Figure(
        "similarity.png",
        (
            ("codes, Sokal-Michener similarity", ("similarity", "fisher_mean")),
            (
                "floats rebuilt from the codes, cosine",
                ("reconstruction", "similarity", "fisher_mean"),
            ),
        ),
        "Fisher mean of Spearman × 100",
        ("similarity", "fisher_mean"),
        "Figure N. Fisher mean of the similarity scores by width. The dashed line shows the raw "
        "floats.",
    ),
    Figure(
        "neighbors.png",
        (
            ("codes against codes (Hamming)", ("neighbors", "recall_at_10")),
            ("float queries against codes", ("neighbors", "asymmetric_recall_at_10")),
        ),
        "recall@10 of raw-cosine neighbors, %",
        None,
        "Figure N. Recall@10 by width: the share of a row's ten nearest by raw cosine that are "
        "among the ten nearest codes.",
    ),
)


def figures_of(
    entries: Sequence[dict[str, Any]], notes: list[str], formats: Sequence[str] = ()
) -> list[Picture]:
    """The figures for which there are results; without Matplotlib, a note in `notes` instead.

    Args:
        entries: Results of an `Evaluator`.
        notes: Receives the notes.
        formats: Formats to draw besides PNG, such as "pdf" and "svg".
    """
    pictures = []
    coded = [entry for entry in entries if entry["method"] != "raw"]
    for figure in (*FIGURES, *_retrieval_figures(coded)):
        panels = [
            (title, path)
            for title, path in figure.panels
            if any(at(entry, *path) is not None for entry in coded)
        ]
        if not panels:
            continue
        try:
            png, *others = score_by_bits(
                entries, panels, figure.label, figure.raw_path, ("png", *formats)
            )
        except MissingExtraError as error:
            notes.append(f"{figure.name}: {error}")
        else:
            drawn = dict(zip(formats, others, strict=True))
            pictures.append(Picture(figure.name, png, figure.caption, drawn))
    return pictures


def _retrieval_figures(coded: Sequence[dict[str, Any]]) -> list[Figure]:
    """A figure for each retrieval set."""
    names = dict.fromkeys(name for entry in coded for name in at(entry, "retrieval") or ())
    return [
        Figure(
            f"retrieval-{name}.png",
            (
                ("codes against codes (Hamming)", ("retrieval", name, "hamming", "ndcg@10")),
                ("float queries against codes", ("retrieval", name, "asymmetric", "ndcg@10")),
            ),
            "nDCG@10 × 100",
            ("retrieval", name, "floats", "ndcg@10"),
            f"Figure N. nDCG@10 on {name} by width. The dashed line shows the floats.",
        )
        for name in names
    ]


def score_by_bits(
    entries: Sequence[dict[str, Any]],
    panels: Sequence[tuple[str, tuple[str, ...]]],
    label: str,
    raw_path: tuple[str, ...] | None,
    formats: Sequence[str] = ("png",),
) -> list[bytes]:
    """Plot a score by the number of bits, with a line for each method.

    Bars show the 95 % intervals of entries that have them.

    Args:
        entries: Results of an `Evaluator`.
        panels: Title and path of the score of each panel; the panels share the y axis.
        label: Label of the y axis.
        raw_path: Path of the raw vectors' score, drawn as a horizontal line; None draws none, and
            the y axis shows 0 to 100.
        formats: "png", "pdf" or "svg".

    Returns:
        The file of each format.
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4.6 * len(panels) + 0.6, 3.9), sharey=True, squeeze=False
    )
    coded = [entry for entry in entries if entry["method"] != "raw"]
    raw = next((at(e, *raw_path) for e in entries if raw_path and e["method"] == "raw"), None)
    lines = [_lines(coded, path) for _, path in panels]
    level = None
    for axis, (title, _), drawn in zip(axes[0], panels, lines, strict=True):
        _draw_panel(axis, title, drawn, coded)
        if raw is not None:
            level = _draw_raw(axis, 100 * raw, coded)
    if raw_path is None:
        axes[0][0].set_ylim(0, 100)
    axes[0][0].set_ylabel(label)
    figure.tight_layout()
    for axis, drawn in zip(axes[0], lines, strict=True):
        label_lines(axis, list(drawn.values()), level)
    files = [_file(figure, kind) for kind in formats]
    pyplot.close(figure)
    return files


def _file(figure: Any, kind: str) -> bytes:
    """A figure as a file. Without dates and versions, the same numbers give the same bytes."""
    import matplotlib

    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "embits"}):
        figure.savefig(file, format=kind, dpi=150, metadata=metadata[kind])
    return file.getvalue()


def _lines(coded: Sequence[dict[str, Any]], path: tuple[str, ...]) -> dict[str, Line]:
    """The line of each method that has the score."""
    lines = {}
    ticks = _shared_widths(coded)
    for method in dict.fromkeys(entry["method"] for entry in coded):
        points = sorted(
            (entry["bits"], 100 * score)
            for entry in coded
            if entry["method"] == method and (score := at(entry, *path)) is not None
        )
        bars = _bars(coded, method, path, points)
        if points:
            has_tick = len(points) > 1 or not ticks or points[0][0] in ticks
            label = method if has_tick else f"{method} {points[0][0]}"
            lines[method] = Line(label, STYLES.get(method, _OTHER)[0], points, bars)
    return lines


def _bars(
    coded: Sequence[dict[str, Any]], method: str, path: tuple[str, ...], points: Points
) -> list[tuple[float, float]]:
    """The 95 % interval of each point; none if one is missing."""
    found = {e["bits"]: interval(e, ".".join(path)) for e in coded if e["method"] == method}
    known = [ends for bits, _ in points if (ends := found.get(int(bits))) is not None]
    return [(100 * low, 100 * high) for low, high in known] if len(known) == len(points) else []


def _draw_panel(
    axis: Any, title: str, lines: dict[str, Line], coded: Sequence[dict[str, Any]]
) -> None:
    widths = sorted({entry["bits"] for entry in coded})
    ticks = _shared_widths(coded) or widths
    for method, line in lines.items():
        _draw(axis, method, line)
    axis.set_title(title, fontsize=10.5, loc="left")
    axis.set_xscale("log", base=2)
    axis.set_xlim(widths[0] / 1.15, widths[-1] * (widths[-1] / widths[0]) ** 0.22 * 1.35)
    axis.set_xticks(ticks, [str(width) for width in ticks])
    axis.minorticks_off()
    axis.set_xlabel("bits per code")
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_raw(axis: Any, score: float, coded: Sequence[dict[str, Any]]) -> Line:
    """A dashed line behind the others, over the same range; over all of the axis for one width."""
    widths = {entry["bits"] for entry in coded}
    ends = (min(widths), max(widths)) if len(widths) > 1 else axis.get_xlim()
    axis.plot(ends, [score] * 2, color="black", linewidth=1, dashes=(6, 3), zorder=1)
    return Line(f"raw floats {score:.1f}", "black", [(ends[0], score), (ends[1], score)])


def _draw(axis: Any, method: str, line: Line) -> None:
    color, marker, dashes = STYLES.get(method, _OTHER)
    x, y = zip(*line.points, strict=True)
    axis.plot(
        x, y, color=color, marker=marker, linestyle=dashes, linewidth=1.6,
        markersize=5.5, markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip
    if line.bars:
        low, high = zip(*line.bars, strict=True)
        axis.vlines(x, low, high, color=color, linewidth=1)


def _shared_widths(coded: Sequence[dict[str, Any]]) -> list[int]:
    """Widths of at least two methods; other widths would crowd the axis."""
    methods: dict[int, set[str]] = {}
    for entry in coded:
        methods.setdefault(entry["bits"], set()).add(entry["method"])
    return sorted(width for width, having in methods.items() if len(having) > 1)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("drawing figures", "plots") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    return pyplot
