"""The look of the figures in the docs: one SVG for light and dark pages.

A figure is drawn with the light colours. `save` adds a style sheet that replaces each of them when
the reader's system asks for dark pages. Text stays text: it can be searched and selected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTHS = (64, 128, 256, 512)
MEASURED_WITH = "DejaVu Sans"  # wider than most, so that other fonts fit in its place
FONTS = f"system-ui, '{MEASURED_WITH}', sans-serif"


class Colours(NamedTuple):
    """The browser page's colours, and series that people with any color vision can tell apart."""

    paper: str
    ink: str
    soft: str
    line: str
    zero: str
    one: str
    blue: str
    grey: str
    green: str
    ochre: str
    pink: str


LIGHT = Colours(
    paper="#faf7f2", ink="#1d1a17", soft="#655e56", line="#e2dbd0", zero="#fffffe", one="#c92a14",
    blue="#0072b2", grey="#8d8378", green="#00805c", ochre="#a87900", pink="#b3568a",
)  # fmt: skip
DARK = Colours(
    paper="#161412", ink="#f0eae2", soft="#a89f94", line="#38332e", zero="#322d29", one="#f0492f",
    blue="#56b4e9", grey="#9d9388", green="#2fbf94", ochre="#e0ad2e", pink="#dd8fbc",
)  # fmt: skip

SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "embits",
    "svg.fonttype": "none",
    "savefig.dpi": 110,
    "font.family": MEASURED_WITH,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titlepad": 12,
    "figure.facecolor": LIGHT.paper,
    "savefig.facecolor": LIGHT.paper,
    "axes.facecolor": LIGHT.paper,
    "text.color": LIGHT.ink,
    "axes.labelcolor": LIGHT.soft,
    "axes.titlecolor": LIGHT.ink,
    "axes.edgecolor": LIGHT.line,
    "xtick.color": LIGHT.soft,
    "ytick.color": LIGHT.soft,
    "grid.color": LIGHT.line,
}
mpl.rcParams.update(SETTINGS)


def save(figure: Figure, name: str, folder: Path = IMAGES) -> None:
    """Write NAME.svg for both kinds of pages; the same numbers give the same bytes."""
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plt.close(figure)
    path.write_text(_themed(path.read_text()), encoding="utf-8")


def _themed(svg: str) -> str:
    svg = svg.replace(f"'{MEASURED_WITH}'", FONTS)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"(?m)^<!DOCTYPE.*\n.*dtd\">\n", "", svg)
    svg = re.sub(r"(?<=[ \"(,])-?\d+\.\d{3,}(?=[ \",)\n])", lambda n: f"{float(n[0]):.2f}", svg)
    sheet = "\n".join(["@media (prefers-color-scheme: dark) {", *_rules(), "}"])
    svg = svg.replace("<defs>", f"<style>\n{sheet}\n</style>\n<defs>", 1)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def _rules() -> Iterator[str]:
    for light, dark in zip(LIGHT, DARK, strict=True):
        for kind in ("fill", "stroke"):
            yield f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}'


def bytes_axis(axes: Axes, ticks: tuple[int, ...]) -> None:
    """A logarithmic axis of sizes with these ticks, and lines to read values by."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", lw=0.7)
    axes.set_axisbelow(True)
