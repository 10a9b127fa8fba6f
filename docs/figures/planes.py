"""Draws docs/images/planes.svg: how a batch is searched by bit planes.

    python docs/figures/planes.py

The bits, the carries and the mask are computed, not invented.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from style import DARK, FONTS, IMAGES, LIGHT

CELL = 15
LIMIT = 3
ROWS, BITS = 8, 8
COLOURS = ("paper", "ink", "soft", "line", "zero", "one", "blue")


def style() -> str:
    light = " ".join(f".{name} {{ fill: {getattr(LIGHT, name)} }}" for name in COLOURS)
    dark = " ".join(f".{name} {{ fill: {getattr(DARK, name)} }}" for name in COLOURS)
    edges = f".edge {{ stroke: {LIGHT.soft}; fill: none }} .cell {{ stroke: {LIGHT.line} }}"
    dark_edges = f".edge {{ stroke: {DARK.soft} }} .cell {{ stroke: {DARK.line} }}"
    return (
        f"<style>text {{ font: 11px {FONTS} }} .small {{ font-size: 10px }} {light} {edges}\n"
        f"@media (prefers-color-scheme: dark) {{ {dark} {dark_edges} }}</style>"
    )


def text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def cells(x: float, y: float, bits: NDArray[np.bool_], one: str = "one") -> str:
    """A row of bits."""
    return "".join(
        f'<rect x="{x + i * CELL}" y="{y}" width="{CELL}" height="{CELL}" '
        f'class="{one if bit else "zero"} cell"/>'
        for i, bit in enumerate(bits)
    )


def frame(x: float, y: float, width: float, height: float) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" class="edge"/>'


def arrow(x: float, y: float, to: float) -> str:
    return f'<path d="M{x} {y} H{to} m-5 -3 l5 3 l-5 3" class="edge"/>'


def carries(planes: NDArray[np.bool_], query: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The carry of each triple: (x0, x1, x2), (parity, x3, x4), ..."""
    inputs = planes ^ query[:, np.newaxis]
    parity, found = inputs[0], []
    for i in range(1, BITS, 2):
        third = inputs[i + 1] if i + 1 < BITS else np.full(ROWS, LIMIT % 2 == 1)
        found.append(parity.astype(int) + inputs[i] + third >= 2)
        parity = parity ^ inputs[i] ^ third
    return np.array(found)


def lookups(query: NDArray[np.bool_]) -> list[int]:
    """The pattern of three query bits that picks each carry."""
    parity, found = int(query[0]), []
    for i in range(1, BITS, 2):
        b, c = int(query[i]), int(query[i + 1]) if i + 1 < BITS else LIMIT % 2
        found.append(parity + 2 * b + 4 * c)
        parity ^= b ^ c
    return found


def draw() -> str:
    rng = np.random.default_rng(5)
    codes = rng.random((ROWS, BITS)) < 0.5
    query = codes[5] ^ (np.arange(BITS) == 3)
    planes = codes.T.copy()
    looked_up, patterns = carries(planes, query), lookups(query)
    distances = (codes ^ query).sum(axis=1)
    parts = [text(52, 24, "rows of a block"), text(52, 40, "one code each", "soft small")]
    parts += [cells(52, 48 + CELL * r, codes[r]) for r in range(ROWS)]
    parts += [text(46, 60 + CELL * r, str(r), "soft small", "end") for r in range(ROWS)]
    parts += [arrow(180, 108, 212), text(196, 182, "transpose", "soft small", "middle")]
    parts += [text(240, 24, "planes"), text(240, 40, "one bit of every row", "soft small")]
    parts += [cells(240, 48 + CELL * j, planes[j]) for j in range(BITS)]
    parts += [text(234, 60 + CELL * j, f"x{j}", "soft small", "end") for j in range(BITS)]
    parts += [text(400, 24, "8 carries"), text(400, 40, "for three planes", "soft small")]
    for i, found in enumerate(looked_up):
        y = 54 + 30 * i
        parts += [arrow(364, y + 8, 394), frame(400, y - 3, 8 * 14 + 6, 21)]
        parts += [
            f'<rect x="{404 + 14 * p}" y="{y}" width="12" height="{CELL}" '
            f'class="{"blue" if p == patterns[i] else "zero"} cell"/>' for p in range(8)
        ]  # fmt: skip
        parts += [cells(534, y, found, "blue")]
    parts += [text(534, 24, "the query picks one"), text(534, 40, "weight 2", "soft small")]
    parts += [arrow(660, 108, 690), frame(694, 84, 62, 48), text(725, 105, "full", "ink", "middle")]
    parts += [text(725, 119, "adders", "ink", "middle")]
    parts += [text(694, 156, f"start: {2**3} − {LIMIT}", "soft small")]
    parts += [arrow(760, 108, 786), cells(790, 100, distances < LIMIT)]
    parts += [
        text(790, 92, f"distance &lt; {LIMIT}"),
        text(790, 132, "mask of the rows", "soft small"),
    ]
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 930 190" width="930" role="img">\n'
        f'{style()}\n<rect width="930" height="190" class="paper"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    (IMAGES / "planes.svg").write_text(draw())
