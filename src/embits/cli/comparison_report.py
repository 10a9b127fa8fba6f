"""What `embits compare` reports beside the scores: settings, pictures, pairs and a summary."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from embits.cli.output import table
from embits.coders import DEFAULT_METHOD
from embits.evaluation.compare import Comparison
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.report.document import Picture
from embits.evaluation.report.picture import bit_picture
from embits.evaluation.report.results import (
    MEASURES,
    WAYS,
    at,
    retrieval_lines,
    retrieval_path,
)
from embits.evaluation.report.tables import percent
from embits.evaluation.spaces import BitSpace, FloatSpace
from embits.evaluation.tasks import DATA_TASKS
from embits.evaluation.tasks.moved_pairs import MovedPair, moved_pairs

PICTURED = ("queen", "automobile", "jupiter", "man")  # the paper's words


def report_settings(
    comparison: Comparison, vectors: Path, bits: list[int], options: dict[str, Any], fisher: str
) -> dict[str, Any]:
    """The settings that the report shows, with the command that makes it again."""
    floats, seeds = comparison.vectors, comparison.seeds
    given: dict[str, Sequence[object]] = {
        "bits": sorted({width for method, width in comparison.plan if method != "sign"} or bits),
        "methods": list(dict.fromkeys(method for method, _ in comparison.plan)),
        "tasks": comparison.evaluator.tasks,
        "seeds": seeds,
    }
    given |= {name: [value] for name, value in options.items() if value}
    given |= {"fisher": [fisher]} if fisher != "equal" else {}
    return {
        "vectors": vectors.name,
        "words": f"{len(floats):,}",
        "dimensions": floats.dims,
        "seeds": ", ".join(map(str, seeds)),
        "Fisher mean": "sets weighed " + ("equally" if fisher == "equal" else "by their pairs"),
        "rows of the fit": f"{comparison.settings['fit_rows'] or len(floats):,}",
        "command": _command_line(vectors, given),
    }


def _command_line(vectors: Path, options: Mapping[str, Sequence[object]]) -> str:
    """The command that makes the report again, without local folders."""
    given = (f"--{name} {','.join(map(str, values))}" for name, values in options.items())
    data = " --data DATA" if DATA_TASKS & set(options["tasks"]) else ""
    return f"embits compare {vectors.name} {' '.join(given)}{data} --report DIR"


def without_folder(notes: list[str], folder: DataFolder | None) -> list[str]:
    """Notes without the local folder of the data."""
    if folder is None:
        return notes
    return [note.replace(f"{folder.path}{os.sep}", "") for note in notes]


def facts_of(comparison: Comparison) -> Iterator[str]:
    """What the last line says of the scores."""
    if len(comparison.seeds) > 1:
        yield f"means over {len(comparison.seeds)} fits"
    if "neighbors" in comparison.evaluator.tasks:
        fitted = comparison.settings["fit_rows"]
        yield "recall of rows " + ("outside the fit (unseen)" if fitted else "of the fit")


def print_summary(entries: list[dict[str, Any]]) -> None:
    """Print the main scores, one line per code."""
    columns = (
        ("Fisher mean", ("similarity", "fisher_mean")),
        ("semantic", ("analogy", "semantic", "accuracy")),
        ("syntactic", ("analogy", "syntactic", "accuracy")),
        ("recall@10", ("neighbors", "recall_at_10")),
        ("float query", ("neighbors", "asymmetric_recall_at_10")),
        ("rebuilt", ("reconstruction", "cosine")),
        *(
            (f"{name} {MEASURES[measure]}, {WAYS[way]}", ("retrieval", name, way, measure))
            for name, measure, way in retrieval_lines(entries)
            if measure == "ndcg@10" and way != "floats"
        ),
    )
    known = [(name, path) for name, path in columns if any(at(e, *path) for e in entries[1:])]
    rows = [("", *(name for name, _ in known))]
    for entry in entries:
        label = "raw" if entry["method"] == "raw" else f"{entry['method']} {entry['bits']}"
        rows.append((label, *(percent(_score(entry, path)) for _, path in known)))
    table(rows, indent="")


def _score(entry: dict[str, Any], path: tuple[str, ...]) -> float | None:
    if path[0] == "retrieval":
        path = retrieval_path(entry, *path[1:])
    score: float | None = at(entry, *path)
    return score


def examples(
    comparison: Comparison,
) -> tuple[list[Picture], tuple[list[MovedPair], list[MovedPair]] | None]:
    """Pictures of the widest codes and pairs moved at 256 bits, for the default method."""
    raw = comparison.evaluator.raw
    methods = [method for method, _ in comparison.plan]
    method = DEFAULT_METHOD if DEFAULT_METHOD in methods else methods[0]
    widths = [width for name, width in comparison.plan if name == method]
    widest = comparison.codes(method, max(widths))
    pictures = []
    for word in PICTURED:
        if word in widest:
            caption = f"{word}: {method}, {widest.n_bits} bits"
            pictures.append(Picture(f"bits-{word}.png", bit_picture(widest, [word]), caption))
    if "similarity" not in comparison.evaluator.tasks or not isinstance(raw, FloatSpace):
        return pictures, None
    bits = comparison.codes(method, min(widths, key=lambda width: abs(width - 256)))
    return pictures, moved_pairs(raw, BitSpace(bits, raw.lookup), comparison.evaluator.pairs)
