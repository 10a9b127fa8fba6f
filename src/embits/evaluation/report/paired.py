"""Paired tests between methods of the same width, on the same queries, pairs and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.evaluation.report.document import Table
from embits.evaluation.report.results import LABELS, WAYS, at
from embits.evaluation.resampling import paired_test

_MEASURES = {
    "similarity.fisher_mean": "Fisher mean",
    "analogy.semantic.accuracy": "Semantic analogy",
    "analogy.syntactic.accuracy": "Syntactic analogy",
    "neighbors.recall_at_10": "Recall@10, Hamming",
    "neighbors.asymmetric_recall_at_10": "Recall@10, float query",
    "reconstruction.cosine": "Cosine to raw",
}


def paired_tests(
    entries: Sequence[dict[str, Any]], replicates: Sequence[Mapping[str, NDArray[np.float64]]]
) -> list[dict[str, Any]]:
    """Test every two methods of the same width on the main measures.

    Args:
        entries: Results of a comparison.
        replicates: The replicates of each entry.

    Returns:
        `{"measure", "bits", "a", "b", "difference", "low", "high", "p"}` for each test: the score
        of a minus that of b, its 95 % interval, and a two-sided p-value.
    """
    coded = [
        (entry, drawn)
        for entry, drawn in zip(entries, replicates, strict=True)
        if entry["method"] != "raw"
    ]
    tests = []
    for (a, drawn_a), (b, drawn_b) in combinations(coded, 2):
        for path in _tested(drawn_a) if a["bits"] == b["bits"] else ():
            score_a, score_b = (at(entry, *_names(path)) for entry in (a, b))
            if path in drawn_b and score_a is not None and score_b is not None:
                test = paired_test(score_a, score_b, drawn_a[path], drawn_b[path])
                about = {"measure": path, "bits": a["bits"], "a": a["method"], "b": b["method"]}
                tests.append(about | test._asdict())
    return tests


def tests_table(tests: Sequence[dict[str, Any]], reference: str, caption: str) -> Table:
    """The reference method minus each other, × 100, with the p-value."""
    widths = sorted({test["bits"] for test in tests})
    cells: dict[str, dict[str, dict[int, str]]] = {}
    for test in tests:
        if reference in (test["a"], test["b"]):
            sign = 1 if test["a"] == reference else -1
            other = test["b"] if sign == 1 else test["a"]
            row = cells.setdefault(test["measure"], {}).setdefault(other, {})
            row[test["bits"]] = f"{100 * sign * test['difference']:+.1f} (p {_p(test['p'])})"
    rows: list[list[str]] = []
    for measure, others in cells.items():
        rows.append([label(measure), *[""] * len(widths)])
        rows += [
            [f" {reference} – {other}", *(row.get(width, "") for width in widths)]
            for other, row in others.items()
        ]
    return Table(["", *map(str, widths)], rows, caption)


def label(path: str) -> str:
    """The name of a measure in a table.

    Example:
        >>> label("retrieval.scifact.hamming.ndcg@10")
        'scifact nDCG@10, Hamming'
    """
    names = _names(path)
    if names[0] == "retrieval":
        return f"{names[1]} nDCG@10, {WAYS[names[2]]}"
    if names[0] == "classification":
        return LABELS.get(names[1], names[1])
    return _MEASURES[path]


def _tested(replicates: Mapping[str, Any]) -> Iterator[str]:
    for path in replicates:
        is_text = path.startswith("classification.")
        if path in _MEASURES or is_text or _is_ndcg(path):
            yield path


def _is_ndcg(path: str) -> bool:
    return path.startswith("retrieval.") and path.endswith(".ndcg@10")


def _names(path: str) -> tuple[str, ...]:
    """The names of a path. Data sets may have dots in their names."""
    first, *_ = path.split(".", 1)
    if first == "retrieval":
        middle, way, measure = path.removeprefix("retrieval.").rsplit(".", 2)
        return first, middle, way, measure
    if first == "classification":
        return first, *path.removeprefix("classification.").rsplit(".", 1)
    return tuple(path.split("."))


def _p(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if value < 1 else "1"
