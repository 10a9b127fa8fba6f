"""Write the report: the paper's tables and figures as Markdown, HTML, JSON and CSV."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embits import _core
from embits._version import __version__
from embits.coders import DEFAULT_METHOD
from embits.evaluation.report import tables
from embits.evaluation.report.document import (
    Block,
    Heading,
    Picture,
    Table,
    Text,
    to_html,
    to_markdown,
)
from embits.evaluation.report.folder import FIGURES, check_report_folder, write_files
from embits.evaluation.report.latex import latex_tables
from embits.evaluation.report.numbering import numbered
from embits.evaluation.report.paired import tests_table
from embits.evaluation.report.plots import figures_of
from embits.evaluation.report.results import at, csv_text
from embits.evaluation.tasks.moved_pairs import MovedPair


def write_report(
    folder: Path,
    title: str,
    entries: Sequence[dict[str, Any]],
    settings: Mapping[str, Any],
    pictures: Sequence[Picture] = (),
    moved: tuple[Sequence[MovedPair], Sequence[MovedPair]] | None = None,
    notes: Sequence[str] = (),
    overwrite: bool = False,
    *,
    tests: Sequence[dict[str, Any]] = (),
    latex: bool = False,
) -> list[Path]:
    """Write report.md, report.html, results.json, results.csv and figures/ into a folder.

    Args:
        folder: Created if it does not exist.
        title: Title of the report.
        entries: Results of an `Evaluator`; at most one has the method "raw".
        settings: Facts for the table of settings, which also lists the versions in use.
        pictures: Pictures of bits.
        moved: Result of `moved_pairs`.
        notes: What could not be measured. The report adds figures that could not be drawn.
        overwrite: Replace files that embits did not write, or that were changed.
        tests: Result of `paired_tests`.
        latex: Write the tables as LaTeX into tables/, and the figures as PDF and SVG, too.

    Returns:
        The files written.

    Raises:
        InputError: The folder has such files already, embits did not write them or they were
            changed, and `overwrite` is false.
    """
    check_report_folder(folder, overwrite)
    notes = list(notes)
    grid = tables.Grid(entries)
    figures = figures_of(entries, notes, ("pdf", "svg") if latex else ())
    settings = dict(settings) | versions()
    blocks: list[Block] = [
        Heading(title, 1),
        *_about_intervals(grid),
        *_sections(grid, figures),
        *_moved(moved),
    ]
    blocks += [*_gaps(grid), *_tests(grid, tests)]
    if pictures:
        blocks += [Heading("Bits of neighbors"), Text(_PICTURES), *pictures]
    if notes:
        blocks += [Heading("Skipped"), *(Text(note) for note in notes)]
    blocks += [Heading("Settings"), _settings_table(settings), *_training_table(grid)]
    blocks = numbered(blocks)
    files: dict[str, bytes] = {
        "report.md": to_markdown(blocks, FIGURES).encode(),
        "report.html": to_html(title, blocks).encode(),
        "results.csv": csv_text(entries).encode(),
    }
    if latex:
        files |= {f"tables/{name}": text.encode() for name, text in latex_tables(blocks).items()}
    for picture in figures:
        stem = f"{FIGURES}/{Path(picture.name).stem}"
        files |= {f"{stem}.{suffix}": data for suffix, data in picture.others.items()}
    files |= {f"{FIGURES}/{picture.name}": picture.png for picture in (*figures, *pictures)}
    results = {"results": list(entries)} | ({"tests": list(tests)} if tests else {})
    return write_files(folder, settings, results, files, overwrite)


def versions() -> dict[str, str]:
    """Versions of the software, and the machine."""
    found = {
        "embits": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": f"{sys.platform} {platform.machine()}, search kernels: {_core.simd()}",
    }
    try:
        import matplotlib
    except ImportError:
        return found
    return found | {"Matplotlib": matplotlib.__version__}


_PICTURES = (
    "For each word: the codes of its 50 closest words above the line and of its 50 furthest words "
    "below, one row of pixels each. Red is 1, white is 0. Vertical stripes are bits that neighbors "
    "share."
)


_RETRIEVAL = (
    "Table N. Retrieval with judged queries, × 100: codes against codes (Hamming), float queries "
    "against codes, rebuilt queries against codes (decoded), and a Hamming search for four times "
    "as many documents, ordered by the floats (rescored). The column raw shows the floats. Bold: "
    "the best of each width."
)


def _about_intervals(grid: tables.Grid) -> list[Block]:
    """What the numbers in brackets after the name of a score are."""
    has_intervals = any(entry.get("intervals") for entry in grid.entries)
    fits = max((len(entry.get("seeds") or ()) for entry in grid.entries), default=0)
    text = []
    if has_intervals:
        text.append(
            "± after the name of a score is the largest half-width of its 95 % bootstrap intervals."
        )
    if fits:
        text.append(
            f'Scores are means over {fits} fits, each with another seed; "fits" is the largest '
            "standard deviation over the fits."
        )
    return [Text(" ".join(text))] if text else []


def _sections(grid: tables.Grid, figures: Sequence[Picture]) -> list[Block]:
    by_name = {picture.name: picture for picture in figures}
    has = {task for entry in grid.entries for task in entry}
    blocks: list[Block] = []
    if has & {"similarity", "analogy"}:
        caption = (
            "Table N. Spearman's rank correlation with human scores, and accuracy on analogies, "
            "× 100, for codes (bin), floats rebuilt from them (rec) and raw floats. Bold: the best "
            "codes, and the best rebuilt floats, of each width."
        )
        blocks += [
            Heading("Semantic similarity and analogy"),
            tables.score_table(grid, ("similarity", "analogy"), caption),
            *_oov(grid),
        ]
    if "similarity.png" in by_name:
        blocks.append(by_name["similarity.png"])
    if "classification" in has:
        caption = (
            "Table N. Accuracy of a softmax layer on the mean vector of a text, × 100; in brackets "
            "the largest 95 % confidence interval of the data set's scores."
        )
        blocks += [
            Heading("Classification"),
            tables.score_table(grid, ("classification",), caption),
        ]
    if "speed" in has:
        caption = (
            "Table N. Time of one exact top-k query over all words by linear scan on one thread: "
            "median of 35 queries. Loading with the file in the page cache."
        )
        blocks += [Heading("Speed and size"), tables.speed_table(grid, caption)]
    if "neighbors" in has:
        caption = (
            "Table N. Recall of the nearest neighbors by raw cosine, × 100: codes against codes "
            "(Hamming), and float queries against codes. "
            f"{tables.query_rows_text(grid, 'neighbors')} Bold: the best of each width."
        )
        blocks += [Heading("Neighbors"), tables.neighbors_table(grid, caption)]
    if "neighbors.png" in by_name:
        blocks.append(by_name["neighbors.png"])
    if "reconstruction" in has:
        caption = (
            "Table N. Floats rebuilt from the codes. Cosine and Fisher mean × 100. "
            f"{tables.query_rows_text(grid, 'reconstruction')}"
        )
        blocks += [Heading("Reconstruction"), tables.rebuilt_table(grid, caption)]
    if "retrieval" in has:
        blocks += [Heading("Retrieval"), tables.retrieval_table(grid, _RETRIEVAL)]
        blocks += [picture for name, picture in by_name.items() if name.startswith("retrieval")]
    return blocks


def _oov(grid: tables.Grid) -> list[Block]:
    """How much of each data set is in the vocabulary."""
    entry = grid.entries[0]
    rows = []
    for name, score in (at(entry, "similarity") or {}).items():
        if name != "fisher_mean":
            rows.append([name, str(score["pairs"]), str(score["oov"])])
    for kind in ("semantic", "syntactic"):
        score = at(entry, "analogy", kind)
        if score:
            rows.append([f"{kind} analogy", str(score["questions"]), str(score["oov"])])
    caption = "Pairs and questions that were scored, and skipped because of an unknown word."
    return [Table(["", "scored", "skipped"], rows, caption)] if rows else []


def _moved(moved: tuple[Sequence[MovedPair], Sequence[MovedPair]] | None) -> list[Block]:
    if moved is None or not moved[0]:
        return []
    rows = []
    for label, pairs in (("Moved towards human scores", moved[0]), ("Moved away", moved[1])):
        rows.append([label, *[""] * 5])
        for pair in pairs:
            values = (f"{value:.2f}" for value in (pair.human, pair.binary, pair.cosine))
            placed = " / ".join(f"{100 * rank:.0f}" for rank in pair.ranks)
            rows.append([f" {pair.first} – {pair.second}", pair.dataset, *values, placed])
    caption = (
        "Table N. Word pairs that binarization moved most: human score scaled to 0–1, share of "
        "equal bits, cosine, and the percentiles of these three in the data set. Pairs are chosen "
        "by percentiles."
    )
    header = ["Words", "Data set", "Human", "Binary", "Cosine", "Percentiles"]
    return [Heading("Pairs of words"), Table(header, rows, caption)]


def _gaps(grid: tables.Grid) -> list[Block]:
    caption = (
        "Table N. Score of the codes minus score of the raw floats, × 100: here, and the range "
        "published in the paper for its three vectors (dict2vec, fastText, GloVe)."
    )
    table = tables.gap_table(grid, caption)
    return [Heading("Gaps to raw floats, compared with the paper"), table] if table.rows else []


def _tests(grid: tables.Grid, tests: Sequence[dict[str, Any]]) -> list[Block]:
    if not tests:
        return []
    reference = DEFAULT_METHOD if DEFAULT_METHOD in grid.methods else grid.methods[0]
    caption = (
        f"Table N. Difference of {reference} and each other method, × 100, with the two-sided "
        "p-value of a paired bootstrap over the same queries, pairs, questions or rows. P-values "
        "are not corrected for the number of tests."
    )
    table = tests_table(tests, reference, caption)
    return [Heading("Differences between methods"), table] if table.rows else []


def _settings_table(settings: Mapping[str, Any]) -> Table:
    rows = [[name, str(value)] for name, value in settings.items()]
    return Table(["", "value"], rows, of_text=True)


def _training_table(grid: tables.Grid) -> list[Block]:
    rows = []
    for entry in grid.coded:
        params = ", ".join(f"{k}={v}" for k, v in (entry.get("params") or {}).items())
        seconds = tables.number(entry.get("seconds"), 1)
        rows.append([f"{entry['method']} {entry['bits']}", seconds, params])
    caption = "Training of each code: time in seconds, and parameters."
    return [Table(["", "s", "parameters"], rows, caption, of_text=True)] if rows else []
