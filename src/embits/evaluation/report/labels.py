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


def label_lines(axis: Any, lines: Sequence[Line], level: Line | None = None) -> None:
    """Label the lines that reach the right end in a column there, the others beside their end.

    Args:
        axis: The axes, with final limits and layout.
        lines: The lines.
        level: A horizontal line of two points, labelled above or below it where there is room.
    """
    room = _Room(axis, lines if level is None else [*lines, level])
    groups: dict[float, list[Line]] = {}
    for line in sorted(lines, key=lambda line: -line.points[-1][0]):
        groups.setdefault(line.points[-1][0], []).append(line)
    for place, group in enumerate(groups.values()):
        if place == 0:
            _write_column(axis, group, _column(axis, group, room), room)
            if level is not None:
                _label_level(axis, level, room)
        elif len(group) == 1 or not _label_shifted(axis, group, room):
            for line in group:
                _label_beside(axis, line, room)


class _Room:
    """The room for labels, in points: clear of lines, and of the labels that are there already."""

    def __init__(self, axis: Any, lines: Sequence[Line]) -> None:
        scale = _scale(axis)
        self.low, self.high = axis.bbox.get_points() / scale
        self._taken = [np.full((1, 2), 1e6)]
        self._taken += [_dense(_pixels(axis, line.points) / scale) for line in lines]

    def take(self, center: NDArray[np.float64], half: NDArray[np.float64]) -> None:
        """Place a label with this center and half of its size."""
        across = np.linspace(-1, 1, 40)
        grid = np.stack(np.meshgrid(across, across[::8]), axis=-1).reshape(-1, 2)
        self._taken.append(center + half * grid)

    def around(self, center: NDArray[np.float64], half: NDArray[np.float64]) -> float:
        """The distance to what is there, `_CLEARANCE` at most; -1 outside the axes."""
        if (center - half < self.low).any() or (center + half > self.high).any():
            return -1.0
        outside = np.maximum(np.abs(np.concatenate(self._taken) - center) - half, 0)
        return min(float(_CLEARANCE), float(np.hypot(*outside.T).min()))


def _column(axis: Any, ends: Sequence[Line], room: _Room, shift: float = 0) -> list[float]:
    """The heights of labels in a column beside the ends of lines, within the axes."""
    heights = [float(_pixels(axis, line.points)[-1, 1]) / _scale(axis) for line in ends]
    moved = [height + shift for height in spread(heights, _SPACING)]
    return within(moved, _SPACING, room.low[1] + _SPACING / 2, room.high[1] - _SPACING / 2)


def _label_shifted(axis: Any, ends: Sequence[Line], room: _Room) -> bool:
    """Write a column with room around it, moved up or down if needed; False if there is none."""
    for steps in sorted(range(-6, 7), key=abs):
        column = _column(axis, ends, room, steps * _SPACING / 2)
        centers = _centers(axis, ends, column)
        if all(
            room.around(each, _half(line.label)) > 0
            for line, each in zip(ends, centers, strict=True)
        ):
            _write_column(axis, ends, column, room)
            return True
    return False


def _centers(axis: Any, ends: Sequence[Line], column: Sequence[float]) -> list[NDArray[np.float64]]:
    rights = [_pixels(axis, line.points)[-1, 0] / _scale(axis) + _GAP for line in ends]
    return [
        np.array([x + _half(line.label)[0], y])
        for line, x, y in zip(ends, rights, column, strict=True)
    ]


def _write_column(axis: Any, ends: Sequence[Line], column: Sequence[float], room: _Room) -> None:
    for line, height, center in zip(ends, column, _centers(axis, ends, column), strict=True):
        own = _pixels(axis, line.points)[-1, 1] / _scale(axis)
        _write_label(axis, line, np.array([_GAP, height - own]), "left", has_leader=True)
        room.take(center, _half(line.label))


def _label_level(axis: Any, level: Line, room: _Room) -> None:
    """Write the label of a horizontal line above or below it, at the left if there is room."""
    half = _half(level.label)
    left, right = _pixels(axis, level.points) / _scale(axis)
    lift = half[1] + _CLEARANCE
    places = [
        np.array([x, left[1] + side])
        for x in np.linspace(left[0] + half[0], max(left[0], right[0] - 2 * half[0]) + half[0], 9)
        for side in (lift, -lift)
    ]
    center = max(places, key=lambda place: room.around(place, half))
    room.take(center, half)
    offset = center - left
    write(
        axis, level.label, level.points[0], (float(offset[0]), float(offset[1])), level.color,
        ha="center", va="center",
    )  # fmt: skip


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


def within(heights: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Heights that are `apart` or more, moved as little as needed to lie between two limits.

    Example:
        >>> within([8.0, 12.0], 4, 0, 10)
        [6.0, 10.0]
    """
    ranks = np.argsort(np.argsort(heights, kind="stable"), kind="stable")
    above = len(heights) - 1 - ranks
    lowered = np.minimum(heights, high - apart * above)
    return [float(height) for height in np.maximum(lowered, low + apart * ranks)]


def _label_beside(axis: Any, line: Line, room: _Room) -> None:
    """Write the label at the free place closest to the line's end, or where there is most room."""
    end = _pixels(axis, line.points)[-1] / _scale(axis)
    half = _half(line.label)
    # The first of equals: the closest.
    offset = max(_offsets(half), key=lambda offset: room.around(end + offset, half))
    room.take(end + offset, half)
    far = bool(np.hypot(*np.maximum(np.abs(offset) - half, 0)) > 6.5)
    _write_label(axis, line, offset, "center", has_leader=far)


def _half(label: str) -> NDArray[np.float64]:
    """About half of a label's width and height, in points."""
    return np.array([0.32 * FONT_SIZE * len(label), 0.55 * FONT_SIZE])


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
