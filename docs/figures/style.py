"""The look of the figures in the docs: one SVG for light and dark pages.

A figure is drawn with the light colours. `save` adds a style sheet that replaces each of them when
the reader's system asks for dark pages. Text stays text: it can be searched and selected.
"""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTHS = (64, 128, 256, 512)
MEASURED_WITH = "DejaVu Sans"  # wider than most, so that other fonts fit in its place
SVG = "{http://www.w3.org/2000/svg}"
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
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
ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def save(figure: Figure, name: str, folder: Path = IMAGES) -> None:
    """Write NAME.svg for both kinds of pages; the same numbers give the same bytes."""
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata=NO_METADATA, bbox_inches="tight")
    plt.close(figure)
    root = ElementTree.fromstring(drawn.getvalue())
    _flatten(root)
    sheet = ElementTree.Element(f"{SVG}style")
    sheet.text = _style_sheet(_classes(root))
    root.insert(0, sheet)
    ElementTree.indent(root, "")
    text = compact(ElementTree.tostring(root, encoding="unicode"))
    (folder / f"{name}.svg").write_text(text + "\n", encoding="utf-8")


def _flatten(parent: ElementTree.Element, in_tick: bool = False) -> None:
    """Take apart the groups that only carry Matplotlib's ids; leave out tick marks and clipping."""
    for child in list(parent):
        _flatten(child, in_tick or child.get("id", "").startswith(("xtick", "ytick")))
        child.attrib.pop("clip-path", None)
        is_mark = in_tick and child.tag in (f"{SVG}use", f"{SVG}defs")
        is_empty = child.tag == f"{SVG}defs" and not len(child)
        if is_mark or is_empty or child.tag in (f"{SVG}metadata", f"{SVG}clipPath"):
            parent.remove(child)
        elif child.tag == f"{SVG}g" and not set(child.attrib) - {"id"}:
            place = list(parent).index(child)
            parent[place : place + 1] = list(child)


def _classes(root: ElementTree.Element) -> dict[str, str]:
    """Replace each distinct style by a class; returns {style: class}."""
    classes: dict[str, str] = {}
    for element in root.iter():
        if style := element.attrib.pop("style", "").replace(f"'{MEASURED_WITH}'", FONTS):
            element.set("class", classes.setdefault(style, f"s{len(classes)}"))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
    return classes


def _style_sheet(classes: dict[str, str]) -> str:
    dark = dict(zip(LIGHT, DARK, strict=True))
    plain, replaced = [], []
    for style, name in classes.items():
        plain.append(f".{name} {{ {style} }}")
        colours = re.findall(r"(fill|stroke): (#\w{6})", style)
        if rules := [f"{kind}: {dark[colour]}" for kind, colour in colours if colour in dark]:
            replaced.append(f".{name} {{ {'; '.join(rules)} }}")
    return "\n".join(["", *plain, "@media (prefers-color-scheme: dark) {", *replaced, "}", ""])


def compact(svg: str) -> str:
    """Shorten numbers, paths and ids."""
    number = r"(?<=[ \"(,])-?\d+\.\d{2,}(?=[ \",)\n])"
    svg = re.sub(number, lambda found: f"{float(found[0]):.1f}", svg)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*([MLCQz])\s*", r"\1", path[0]), svg)
    for place, name in enumerate(dict.fromkeys(re.findall(r'\bid="(\w{8,})"', svg))):
        svg = svg.replace(f'"{name}"', f'"i{place}"').replace(f'"#{name}"', f'"#i{place}"')
    return svg.replace(" />", "/>")


def bytes_axis(axes: Axes, ticks: tuple[int, ...]) -> None:
    """A logarithmic axis of sizes with these ticks, and lines to read values by."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", lw=0.7)
    axes.set_axisbelow(True)
