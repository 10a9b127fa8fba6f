"""One look for the figures of the docs: on light paper, and on dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

IMAGES = Path(__file__).parents[1] / "images"


class Colours(NamedTuple):
    """The browser page's colours, and three more that eyes of every kind tell apart."""

    paper: str
    ink: str
    soft: str
    line: str
    one: str
    zero: str
    second: str
    third: str


LIGHT = Colours(
    "#faf7f2", "#1d1a17", "#655e56", "#e2dbd0", "#c92a14", "#ffffff", "#0072b2", "#8d8378"
)
DARK = Colours(
    "#161412", "#f0eae2", "#a89f94", "#38332e", "#f0492f", "#322d29", "#56b4e9", "#8d8378"
)


def draw_both(name: str, draw: Callable[[Colours], Figure]) -> None:
    """Save NAME-light.svg and NAME-dark.svg; the same numbers give the same bytes."""
    for mode, colours in (("light", LIGHT), ("dark", DARK)):
        with mpl.rc_context(_settings(colours)):
            figure = draw(colours)
            path = IMAGES / f"{name}-{mode}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
            plt.close(figure)
        lines = path.read_text().splitlines()
        path.write_text("\n".join(line.rstrip() for line in lines) + "\n")


def _settings(colours: Colours) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "svg.hashsalt": "embits",
        "savefig.dpi": 160,
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titlepad": 12,
        "figure.facecolor": colours.paper,
        "savefig.facecolor": colours.paper,
        "axes.facecolor": colours.paper,
        "text.color": colours.ink,
        "axes.labelcolor": colours.soft,
        "axes.titlecolor": colours.ink,
        "axes.edgecolor": colours.line,
        "xtick.color": colours.soft,
        "ytick.color": colours.soft,
        "grid.color": colours.line,
    }
    return settings
