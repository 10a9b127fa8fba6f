"""Figures and tables of the report: a line for each method, bold for the best of a width."""

import pytest

from embits.evaluation import report
from embits.evaluation.report import drawn
from embits.evaluation.results import Grid
from embits.evaluation.tasks import TASKS


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
    for task, first in (("similarity", 2), ("neighbors", 1)):
        (table,) = (table for table in TASKS[task].tables(grid) if table.has_number)
        rows = {row[0].split()[0]: row[first:] for row in table.rows[1:4]}
        assert rows["lsh"] == ["30.0", "*60.0*", ""]
        assert rows["itq"] == ["*40.0*", "50.0", ""]
        assert rows["sign"] == ["", "", "90.0"]  # alone at its width


def test_a_figure_names_every_method_once_and_shows_0_to_100(monkeypatch):
    pytest.importorskip("matplotlib")
    canvases, make = [], report._canvas
    monkeypatch.setattr(report, "_canvas", lambda n: canvases.append(made := make(n)) or made)
    results = entries({("lsh", 64): 0.3, ("itq", 64): 0.99, ("lsh", 128): 0.999, ("sign", 300): 1})
    (figure,) = TASKS["neighbors"].figures(Grid(results))
    files = drawn(figure, Grid(results), ("png", "svg", "pdf"))
    assert files["png"].startswith(b"\x89PNG")
    assert files["pdf"].startswith(b"%PDF")
    assert b"<svg" in files["svg"]
    assert files == drawn(figure, Grid(results), ("png", "svg", "pdf"))  # the same bytes
    canvas, _ = canvases[0]
    axis = canvas.axes[0]
    assert axis.get_ylim() == (0, 100)
    assert {0.0, 100.0} <= set(axis.get_yticks())
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["lsh", "itq 64", "sign 300"]
    box = legend.get_window_extent()
    assert box.y1 <= axis.get_window_extent().y0  # below the plot, not over it


def test_losses_have_a_panel_for_each_method_that_has_them(monkeypatch):
    pytest.importorskip("matplotlib")
    canvases, make = [], report._canvas
    monkeypatch.setattr(report, "_canvas", lambda n: canvases.append(made := make(n)) or made)
    results = entries({("paper", 64): 0.3, ("lsh", 64): 0.5, ("paper", 128): 0.6})
    assert report._losses(Grid(results), ("png",)) == {}
    for entry, losses in zip(results, ([4.0, 2.0, 1.0], [], [8.0, 6.0]), strict=True):
        entry["loss_curve"] = losses
    assert set(report._losses(Grid(results), ("png", "svg"))) == {"png", "svg"}
    ((_, (axis,)),) = canvases
    lines = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
    assert lines == {"64 bits": [1, 0.5, 0.25], "128 bits": [1, 0.75]}
