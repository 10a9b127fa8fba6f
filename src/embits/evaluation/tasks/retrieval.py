"""Retrieval: nDCG@10, recall@10, recall@100 and MRR of judged queries, scored as by trec_eval.

Every query is searched among all documents. Gains are the relevance scores, and a score above 0 is
relevant. A relevant document that is not in the corpus counts as not found. Queries without
judgements are left out; queries with judgements but without a relevant document score 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import InputError
from embits.evaluation.data.retrieval import RetrievalSet
from embits.evaluation.results import Entry, Figure, Grid, Score, at, names_at
from embits.evaluation.spaces import BitSpace
from embits.evaluation.statistics import Samples
from embits.evaluation.tasks.base import Subject, Task
from embits.evaluation.tasks.neighbors import best_rows

DEPTH = 100  # documents of a ranking
OVERSAMPLE = 4  # rescored: times k documents are found by Hamming distance, then ordered by cosine
MEASURES = {
    "ndcg@10": "nDCG@10",
    "recall@10": "recall@10",
    "recall@100": "recall@100",
    "mrr": "MRR",
}
WAYS = {
    "floats": "floats",
    "hamming": "Hamming",
    "asymmetric": "float query",
    "decoded": "decoded",
    "rescored": "rescored",
}

Scores: TypeAlias = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Judged:
    """The judged queries of a data set.

    Attributes:
        queries: Their embeddings, float32 (q, dims).
        keys: Query number × documents + document row of each judged document, ascending.
        scores: The relevance of each key, at least 0.
        n_relevant: Relevant documents of each query, also those that are not in the corpus.
        ideal: The largest possible DCG@10 of each query.
        n_documents: Size of the corpus.
    """

    queries: NDArray[np.float32]
    keys: NDArray[np.int64]
    scores: NDArray[np.float64]
    n_relevant: NDArray[np.int64]
    ideal: NDArray[np.float64]
    n_documents: int

    def relevance(self, found: NDArray[np.int64]) -> NDArray[np.float64]:
        """The relevance of found documents, shape (q, k); 0 if not judged."""
        wanted = np.arange(len(found))[:, np.newaxis] * self.n_documents + found
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[place] == wanted, self.scores[place], 0.0)


def judged_queries(data: RetrievalSet) -> Judged:
    """The queries of a data set that have judgements, in the order of their file."""
    rows = {document: row for row, document in enumerate(data.corpus.words or ())}
    queries = enumerate(data.queries.words or ())
    asked = [(row, data.qrels[query]) for row, query in queries if query in data.qrels]
    keys, scores, n_relevant, ideal = [], [], [], []
    for number, (_, judged) in enumerate(asked):
        gains = sorted((float(max(score, 0)) for score in judged.values()), reverse=True)
        n_relevant.append(sum(gain > 0 for gain in gains))
        ideal.append(dcg(np.array([gains[:10]]))[0])
        for document, score in judged.items():
            if document in rows:
                keys.append(number * len(rows) + rows[document])
                scores.append(float(max(score, 0)))
    order = np.argsort(keys) if keys else np.empty(0, np.int64)
    return Judged(
        data.queries.matrix[[row for row, _ in asked]],
        np.array([*np.array(keys, np.int64)[order], np.iinfo(np.int64).max]),
        np.array([*np.array(scores)[order], 0.0]),
        np.array(n_relevant),
        np.array(ideal),
        len(rows),
    )


def dcg(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of gain / log2(rank + 1) of each row, ranks from 1."""
    total: NDArray[np.float64] = gains @ (1 / np.log2(np.arange(2, gains.shape[1] + 2)))
    return total


def score_rankings(judged: Judged, found: NDArray[np.int64]) -> Scores:
    """The measures of each query.

    Args:
        judged: The queries.
        found: Rows of documents, shape (q, k), best first.

    Returns:
        The values of each of `MEASURES`, shape (q,).
    """
    gains = judged.relevance(found)
    is_relevant = gains > 0
    n_relevant = np.maximum(judged.n_relevant, 1)
    first = np.where(is_relevant.any(axis=1), is_relevant.argmax(axis=1), np.inf)
    ideal = np.where(judged.ideal > 0, judged.ideal, 1)
    return {
        "ndcg@10": dcg(gains[:, :10]) / ideal,
        "recall@10": is_relevant[:, :10].sum(axis=1) / n_relevant,
        "recall@100": is_relevant[:, :DEPTH].sum(axis=1) / n_relevant,
        "mrr": 1 / (first + 1),
    }


def float_rankings(data: RetrievalSet, judged: Judged) -> NDArray[np.int64]:
    """The documents with the largest cosine to each judged query, shape (q, 100)."""
    documents, queries = unit_rows(data.corpus.matrix), unit_rows(judged.queries)
    return best_rows(lambda block: queries @ documents[block].T, len(documents), DEPTH)


def score_floats(data: RetrievalSet) -> dict[str, Scores]:
    """The measures of each query with float vectors: `{"floats": {"ndcg@10": ..., ...}}`."""
    judged = judged_queries(data)
    return {"floats": score_rankings(judged, float_rankings(data, judged))}


def score_codes(data: RetrievalSet, coder: Coder) -> dict[str, Scores]:
    """The measures of each query by way of searching the codes of the documents.

    "hamming" and "decoded" encode the queries, "asymmetric" and "rescored" use their floats.
    "rescored" finds four times as many documents by Hamming distance and orders them by cosine.

    Args:
        data: The data set.
        coder: A fitted coder of as many dimensions.

    Raises:
        InputError: The coder has other dimensions.
    """
    if coder.n_features_in_ != data.dims:
        raise InputError(f"embeddings of {data.dims} dimensions, expected {coder.n_features_in_}")
    judged = judged_queries(data)
    bits = BinaryVectors(None, coder.encode(data.corpus.matrix), coder)
    found: dict[str, Scores] = {}
    for metric in ("hamming", "asymmetric", "decoded"):
        rows = bits.search(judged.queries, DEPTH, metric=metric).rows
        found[metric] = score_rankings(judged, rows)
    # Each measure belongs to a search of its own depth: a longer shortlist would help nDCG@10.
    floats = data.corpus.matrix
    short, long = (
        bits.search(judged.queries, k, oversample=OVERSAMPLE, floats=floats).rows
        for k in (10, DEPTH)
    )
    recall = score_rankings(judged, long)["recall@100"]
    found["rescored"] = score_rankings(judged, short) | {"recall@100": recall}
    return found


def evaluate_retrieval(
    data: RetrievalSet,
    coder: Coder | None = None,
    samples: Samples | None = None,
    name: str = "",
) -> dict[str, Any]:
    """Scores of a data set, in the shape of `evaluate --json`.

    Args:
        data: The data set.
        coder: A fitted coder of as many dimensions, or None for the floats.
        samples: Receives the scores of each query.
        name: The data set, for `samples`.

    Returns:
        `{"hamming": {"ndcg@10", "recall@10", "recall@100", "mrr"}, "asymmetric", "decoded",
        "rescored"}`, or `{"floats": ...}`; values in [0, 1].

    Raises:
        InputError: The coder has other dimensions.
    """
    result: dict[str, Any] = {}
    scores = score_floats(data) if coder is None else score_codes(data, coder)
    for way, measures in scores.items():
        result[way] = {measure: float(values.mean()) for measure, values in measures.items()}
        if samples is not None:
            for measure, values in measures.items():
                path = f"retrieval.{name}"
                samples.add_mean(f"{path}.{way}.{measure}", values, path)
    return result


class Retrieval(Task):
    """Every measure of every way to search, on every data set."""

    name = "retrieval"
    title = "Retrieval"
    caption = (
        "Retrieval with judged queries, × 100: codes against codes (Hamming), float queries "
        "against codes, rebuilt queries against codes (decoded), and a Hamming search for four "
        "times as many documents, ordered by the floats (rescored). The column raw shows the "
        "floats. Bold: the best of each width."
    )
    reads_data = True

    def run(self, subject: Subject) -> Entry | None:
        shared, space = subject.shared, subject.space
        sets = shared.once(self.name, lambda: shared.data.retrieval() if shared.data else {})
        found: Entry = {}
        for name, data in sets.items():
            if subject.dims is not None and data.dims != subject.dims:
                what = subject.file or "the codes" if isinstance(space, BitSpace) else "raw"
                shared.note(
                    f"{name} is skipped for {what}: embeddings of {data.dims} dimensions, expected "
                    f"{subject.dims}"
                )
                continue
            shared.say(f"{self.name}: {name}")
            found[name] = {}
            if not isinstance(space, BitSpace) or not shared.has_raw:
                found[name] = evaluate_retrieval(data, None, subject.samples, name)
            if isinstance(space, BitSpace):
                coder = subject.fit(data.corpus.matrix) if subject.fit else space.bits.coder
                found[name] |= evaluate_retrieval(data, coder, subject.samples, name)
        return found or None

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        entries = list(entries)
        has_raw = any(entry.get("method") == "raw" for entry in entries)
        return [
            Score(
                title := f"{name} {MEASURES[measure]}, {WAYS[way]}",
                (self.name, name, way, measure),
                (self.name, name, "floats", measure) if has_raw else (),
                column=title if measure == "ndcg@10" else "",
                is_tested=measure == "ndcg@10",
            )
            for name in names_at(entries, self.name)
            for measure in MEASURES
            for way in WAYS
            if any(at(entry, self.name, name, way, measure) is not None for entry in entries)
            and not (has_raw and way == "floats")
        ]

    def figures(self, grid: Grid) -> list[Figure]:
        return [
            Figure(
                f"retrieval-{name}",
                (
                    ("codes against codes (Hamming)", (self.name, name, "hamming", "ndcg@10")),
                    ("float queries against codes", (self.name, name, "asymmetric", "ndcg@10")),
                ),
                "nDCG@10 × 100",
                f"nDCG@10 on {name} by width. The dashed line: floats.",
                (self.name, name, "floats", "ndcg@10"),
            )
            for name in names_at(grid.coded, self.name)
        ]
