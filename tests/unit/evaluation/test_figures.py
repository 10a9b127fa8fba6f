"""Figures and tables of the report: labels belong to one line, bold to one width."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embits.evaluation.report.labels import Line, label_lines, spread, within
from embits.evaluation.report.tables import Grid, neighbors_table, score_table

heights = st.lists(st.floats(-1e3, 1e3), max_size=9)


@given(heights, st.floats(0.5, 50))
def test_spread_heights_keep_their_order_and_their_distance(values, apart):
    placed = spread(values, apart)
    order = np.argsort(values, kind="stable")
    assert all(np.diff(np.array(placed)[order]) >= apart - 1e-6)
    if len(values) > 1 and np.diff(np.sort(values)).min() >= apart:
        assert placed == pytest.approx(values, abs=1e-6)
    assert np.mean(placed or [0]) == pytest.approx(np.mean(values or [0]), abs=1e-6)


@given(heights, st.floats(0.5, 50))
def test_a_column_within_limits_keeps_its_order_and_its_distance(values, apart):
    column = spread(values, apart)
    placed = np.array(within(column, apart, -2000, 2000))
    assert all(np.diff(placed[np.argsort(column, kind="stable")]) >= apart - 1e-6)
    assert all((placed >= -2000) & (placed <= 2000))


def labelled(lines, level=None):
    """The boxes of the labels in pixels, and where each line ends."""
    figure, axis = pytest.importorskip("matplotlib.pyplot").subplots(figsize=(5, 4))
    for line in lines:
        axis.plot(*zip(*line.points, strict=True))
    axis.set_xlim(50, 1200)
    figure.tight_layout()
    label_lines(axis, lines, level)
    figure.canvas.draw()
    from matplotlib.text import Text  # its box has no leader line

    boxes = {text.get_text(): Text.get_window_extent(text) for text in axis.texts}
    ends = {line.label: axis.transData.transform(line.points[-1]) for line in lines}
    return boxes, ends, axis


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_overlap_and_stand_in_the_order_of_their_lines(seed):
    rng = np.random.default_rng(seed)
    lines = [
        Line(f"method {i}", "C0", [(64, rng.uniform(0, 50)), (512, rng.uniform(50, 60))])
        for i in range(6)
    ]
    lines.append(Line("single 300", "C1", [(300, 55.0)]))
    boxes, ends, axis = labelled(lines)
    for a, b in itertools.combinations(boxes.values(), 2):
        assert not a.overlaps(b)
    at_the_end = [line.label for line in lines[:-1]]
    by_line = sorted(at_the_end, key=lambda name: ends[name][1])
    assert by_line == sorted(at_the_end, key=lambda name: boxes[name].y0)
    single = boxes["single 300"]
    for line in lines[:-1]:
        path = axis.transData.transform(np.linspace(*line.points, 200))
        assert not any(single.contains(*point) for point in path)
    figure_box = axis.figure.bbox
    assert all(figure_box.contains(box.x1, box.y1) for box in boxes.values())


@pytest.mark.parametrize("score", [50.0, 55.0, 58.0, 59.9])
def test_the_label_of_the_raw_floats_and_single_points_keep_clear_of_other_labels(score):
    lines = [Line(f"method {i}", "C0", [(64, 50.0 + i), (512, 58.0 + i / 3)]) for i in range(4)]
    lines += [Line("single 300", "C1", [(300, 59.0)]), Line("single 1000", "C2", [(1000, 58.5)])]
    level = Line("raw floats", "black", [(64, score), (1000, score)])
    boxes, _, axis = labelled(lines, level)
    assert len(boxes) == 7
    for a, b in itertools.combinations(boxes.values(), 2):
        assert not a.overlaps(b)
    assert all(box.y1 <= axis.bbox.y1 for box in boxes.values())


def entries(scores):
    """Results of methods at widths: {(method, bits): score}."""
    return [
        {
            "method": method, "bits": bits,
            "similarity": {"MEN": {"spearman": score}, "fisher_mean": score},
            "neighbors": {"recall_at_10": score},
        }
        for (method, bits), score in scores.items()
    ]  # fmt: skip


def test_bold_is_the_best_method_of_each_width():
    grid = Grid(
        entries({
            ("lsh", 64): 0.3, ("itq", 64): 0.4, ("lsh", 128): 0.6, ("itq", 128): 0.5,
            ("sign", 300): 0.9,
        })
    )  # fmt: skip
    for table, first in (
        (score_table(grid, ("similarity",), ""), 2),
        (neighbors_table(grid, ""), 1),
    ):
        rows = {row[0].split()[0]: row[first:] for row in table.rows[1:4]}
        assert rows["lsh"] == ["30.0", "*60.0*", ""]
        assert rows["itq"] == ["*40.0*", "50.0", ""]
        assert rows["sign"] == ["", "", "90.0"]  # alone at its width


def test_the_axis_of_a_percentage_has_ticks_from_0_to_100(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from embits.evaluation.report.plots import figures_of

    drawn = []
    monkeypatch.setattr(pyplot, "close", drawn.append)
    figures_of(entries({("lsh", 64): 0.3, ("itq", 64): 0.99, ("lsh", 128): 0.999}), [])
    axis = drawn[1].axes[0]
    low, high = axis.get_ylim()
    assert (low, high) == (0, 100)
    assert {0.0, 100.0} <= set(axis.get_yticks())
    pyplot.close("all")
