"""Figures and tables of the report: a line for each method, bold for the best of a width."""

import pytest

from embits.evaluation import report
from embits.evaluation.report import draw_scores
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
        table = TASKS[task].table(grid)
        rows = {row[0].split()[0]: row[first:] for row in table.rows[1:4]}
        assert rows["lsh"] == ["30.0", "*60.0*", ""]
        assert rows["itq"] == ["*40.0*", "50.0", ""]
        assert rows["sign"] == ["", "", "90.0"]  # alone at its width


def test_a_figure_names_every_method_once_and_shows_0_to_100(monkeypatch):
    pytest.importorskip("matplotlib")
    canvases, make = [], report._canvas
    monkeypatch.setattr(report, "_canvas", lambda n: canvases.append(made := make(n)) or made)
    results = entries({("lsh", 64): 0.3, ("itq", 64): 0.99, ("lsh", 128): 0.999, ("sign", 300): 1})
    scores = TASKS["neighbors"].scores(results)
    files = draw_scores(scores, Grid(results), ("png", "svg", "pdf"))
    assert files["png"].startswith(b"\x89PNG")
    assert files["pdf"].startswith(b"%PDF")
    assert b"<svg" in files["svg"]
    assert files == draw_scores(scores, Grid(results), ("png", "svg", "pdf"))  # the same bytes
    canvas, _ = canvases[0]
    axis = canvas.axes[0]
    assert axis.get_ylim() == (0, 100)
    assert {0.0, 100.0} <= set(axis.get_yticks())
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["lsh", "itq 64", "sign 300"]
    box = legend.get_window_extent()
    assert box.y1 <= axis.get_window_extent().y0  # below the plot, not over it


def test_a_figure_has_a_panel_for_each_score_that_codes_have(monkeypatch):
    pytest.importorskip("matplotlib")
    canvases, make = [], report._canvas
    monkeypatch.setattr(report, "_canvas", lambda n: canvases.append(made := make(n)) or made)
    results = entries({("lsh", 64): 0.3, ("lsh", 128): 0.5})
    for place, entry in enumerate(results):
        entry["classification"] = {
            name: {"accuracy": 0.1 * (place + 1)} for name in ("a", "b", "c", "d", "e")
        }
    scores = [*TASKS["classification"].scores(results), *TASKS["analogy"].scores(results)]
    assert draw_scores(TASKS["analogy"].scores(results), Grid(results)) == {}
    draw_scores(scores, Grid(results))
    ((_, axes),) = canvases
    assert [axis.get_title(loc="left") for axis in axes] == ["a", "b", "c", "d", "e"]
    assert [list(line.get_ydata()) for line in axes[4].get_lines()] == [[10, 20]]
