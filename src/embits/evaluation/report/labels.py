"""Labels of lines in a figure, placed so that they do not overlap and belong to one line each.

Positions are computed in pixels, so the limits and the layout of the axes must be final.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Points: TypeAlias = Sequence[tuple[float, float]]

FONT_SIZE = 8.5
_GAP = 24  # points between the end of a line and its label
_SPACING = 1.25 * FONT_SIZE
_CLEARANCE = 3  # points between a label beside a marker and the other lines


@dataclass(frozen=True)
class Line:
    """A line of the figure: its label, color, points (x, y), and their intervals (low, high)."""

    label: str
    color: str
    points: Points
    bars: Sequence[tuple[float, float]] = ()


def label_lines(axis: Any, lines: Sequence[Line]) -> None:
    """Label the lines that reach the right end in a column there, the others beside their end."""
    right = max((line.points[-1][0] for line in lines), default=0)
    ends = [line for line in lines if line.points[-1][0] == right]
    heights = [float(_pixels(axis, line.points)[-1, 1]) / _scale(axis) for line in ends]
    for line, own, height in zip(ends, heights, spread(heights, _SPACING), strict=True):
        _write_label(axis, line, np.array([_GAP, height - own]), "left", has_leader=True)
    for line in lines:
        if line not in ends:
            _label_beside(axis, line, lines)


def write(
    axis: Any, text: str, point: tuple[float, float], offset: tuple[float, float], color: str,
    **settings: Any,
) -> None:  # fmt: skip
    """Write text at an offset in points, with a white outline to stay readable over lines."""
    from matplotlib.patheffects import withStroke

    axis.annotate(
        text, point, offset, textcoords="offset points", fontsize=FONT_SIZE, color=color,
        path_effects=[withStroke(linewidth=2.5, foreground="white")], zorder=5, **settings,
    )  # fmt: skip


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """The closest positions to `heights` that keep their order and are `apart` or more.

    Isotonic regression: neighbors that are too close are pooled and centered on their mean.

    Example:
        >>> spread([0, 1, 10], 4)
        [-1.5, 2.5, 10.0]
    """
    order = np.argsort(heights, kind="stable")
    pools: list[tuple[float, int]] = []  # mean of height - rank × apart, number of labels
    for rank, place in enumerate(order.tolist()):
        mean, count = heights[place] - rank * apart, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    placed = np.empty(len(heights))
    placed[order] = np.array(flat) + apart * np.arange(len(flat))
    return [float(height) for height in placed]


def _label_beside(axis: Any, line: Line, lines: Sequence[Line]) -> None:
    """Write the label at the free place closest to the line's end, or where there is most room."""
    scale = _scale(axis)
    end = _pixels(axis, line.points)[-1] / scale
    others = [_dense(_pixels(axis, other.points) / scale) for other in lines if other is not line]
    taken = np.concatenate([*others, np.full((1, 2), 1e6)])
    half = np.array([0.32 * FONT_SIZE * len(line.label), 0.55 * FONT_SIZE])  # of the label's size
    low, high = axis.bbox.get_points() / scale

    def room(offset: NDArray[np.float64]) -> float:
        center = end + offset
        if (center - half < low).any() or (center + half > high).any():
            return -1.0
        outside = np.maximum(np.abs(taken - center) - half, 0)
        return min(float(_CLEARANCE), float(np.hypot(*outside.T).min()))

    offset = max(_offsets(half), key=room)  # the first of equals: the closest
    far = bool(np.hypot(*np.maximum(np.abs(offset) - half, 0)) > 6.5)
    _write_label(axis, line, offset, "center", has_leader=far)


def _offsets(half: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Offsets in points from a marker to the center of its label, the closest first."""
    angles = np.pi / 4 * np.arange(8)
    sides = np.stack([np.cos(angles), np.sin(angles)], axis=1).round(6)
    return [sides[i] * gap + np.sign(sides[i]) * half for gap in range(6, 90, 6) for i in range(8)]


def _write_label(
    axis: Any, line: Line, offset: NDArray[np.float64], ha: str, *, has_leader: bool
) -> None:
    leader = {"arrowstyle": "-", "color": line.color, "linewidth": 0.6, "shrinkB": 5}
    write(
        axis, line.label, line.points[-1], (float(offset[0]), float(offset[1])), line.color,
        ha=ha, va="center", arrowprops=leader if has_leader else None,
    )  # fmt: skip


def _dense(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on the segments between points."""
    places = np.linspace(0, len(points) - 1, 40 * len(points))
    columns = [np.interp(places, np.arange(len(points)), column) for column in points.T]
    return np.stack(columns, axis=1)


def _pixels(axis: Any, points: Points) -> NDArray[np.float64]:
    return np.asarray(axis.transData.transform(np.asarray(points, dtype=np.float64)))


def _scale(axis: Any) -> float:
    """Pixels per point."""
    return float(axis.figure.dpi) / 72
