"""Results as nested dictionaries, and their conversion to JSON and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from typing import Any

from embits.evaluation.tasks import TASKS

LABELS = {
    "ag_news": "AG-News",
    "dbpedia": "DBpedia",
    "yahoo_answers": "Yahoo Answers",
    "amazon_full": "Amazon Full",
    "amazon_polarity": "Amazon Polarity",
    "yelp_full": "Yelp Full",
    "yelp_polarity": "Yelp Polarity",
    "trec": "TREC",
    "sst2": "SST-2",
    "mr": "MR",
    "subj": "Subj",
}

WAYS = {
    "floats": "floats",
    "hamming": "Hamming",
    "asymmetric": "float query",
    "decoded": "decoded",
    "rescored": "rescored",
}
MEASURES = {
    "ndcg@10": "nDCG@10",
    "recall@10": "recall@10",
    "recall@100": "recall@100",
    "mrr": "MRR",
}


def jsonable(value: Any) -> Any:
    """The value with NaN replaced by None, because JSON has no NaN.

    Example:
        >>> jsonable({"spearman": float("nan"), "pairs": 0})
        {'spearman': None, 'pairs': 0}
    """
    if isinstance(value, dict):
        return {name: jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def flat_rows(entries: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Every number as (method, bits, "similarity.MEN.spearman", value, low, high, spread).

    The last three are the ends of the 95 % interval and the standard deviation over the seeds;
    None if they were not computed.

    Example:
        >>> list(flat_rows([{"method": "lsh", "bits": 64, "file": "x", "speed": {"top_1_ms": 2}}]))
        [('lsh', 64, 'speed.top_1_ms', 2, None, None, None)]
    """
    for entry in entries:
        spread = entry.get("spread") or {}
        scores = {name: item for name, item in entry.items() if name not in ("spread", "seeds")}
        for name, value in _leaves(scores, ""):
            if name not in ("method", "bits", "file"):
                low, high = interval(entry, name) or (None, None)
                yield entry["method"], entry["bits"], name, value, low, high, spread.get(name)


def csv_text(entries: Iterable[dict[str, Any]]) -> str:
    """All numbers as one CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "bits", "score", "value", "low", "high", "spread"])
    writer.writerows(flat_rows(entries))
    return text.getvalue()


def interval(entry: dict[str, Any] | None, path: str) -> tuple[float, float] | None:
    """The 95 % interval of a score of an entry; None if there is none."""
    found = ((entry or {}).get("intervals") or {}).get(path)
    if found is None or None in found or any(map(math.isnan, found)):
        return None
    return found[0], found[1]


def has_score(entry: dict[str, Any]) -> bool:
    """Whether an entry has at least one score: a finite fraction, correlation, error or time.

    Example:
        >>> has_score({"bits": 64, "similarity": {"fisher_mean": float("nan")}})
        False
    """
    for task in TASKS:
        for _, value in _leaves(entry.get(task), ""):
            if isinstance(value, float) and math.isfinite(value):
                return True
    return False


def at(entry: Any, *path: str) -> Any:
    """The value at a path of names, or None."""
    for name in path:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return entry


def score_lines(entries: Iterable[dict[str, Any]], task: str) -> list[tuple[str, tuple[str, ...]]]:
    """Label and path of each score of a task, in the order of the tables.

    Example:
        >>> score_lines([{"classification": {"ag_news": {"accuracy": 0.9}}}], "classification")
        [('AG-News', ('classification', 'ag_news', 'accuracy'))]
    """
    names = dict.fromkeys(name for entry in entries for name in at(entry, task) or ())
    if task == "similarity":
        sets = [(name, (task, name, "spearman")) for name in names if name != "fisher_mean"]
        return [*sets, ("Fisher mean", (task, "fisher_mean"))] if sets else []
    if task == "analogy":
        return [
            (f"{kind.capitalize()} analogy", (task, kind, "accuracy"))
            for kind in ("semantic", "syntactic")
            if kind in names
        ]
    return [(LABELS.get(name, name), (task, name, "accuracy")) for name in names]


def retrieval_lines(entries: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Data set, measure and way to search of each retrieval score, in the order of the tables.

    Example:
        >>> entry = {"retrieval": {"scifact": {"hamming": {"mrr": 0.5, "ndcg@10": 0.4}}}}
        >>> list(retrieval_lines([entry]))
        [('scifact', 'ndcg@10', 'hamming'), ('scifact', 'mrr', 'hamming')]
    """
    found = [at(entry, "retrieval") or {} for entry in entries]
    for name in dict.fromkeys(name for sets in found for name in sets):
        for measure in MEASURES:
            for way in WAYS:
                if any(at(sets, name, way, measure) is not None for sets in found):
                    yield name, measure, way


def retrieval_path(entry: dict[str, Any], name: str, way: str, measure: str) -> tuple[str, ...]:
    """The path of a score; that of the floats if the entry is of the raw vectors."""
    return "retrieval", name, "floats" if entry["method"] == "raw" else way, measure


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, int | float | str):
        yield name, value
