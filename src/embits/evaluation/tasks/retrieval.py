"""Retrieval: nDCG@10, recall@10, recall@100 and MRR of judged queries, scored as by trec_eval.

Gains are the relevance scores; above 0 is relevant. A relevant document that is not in the corpus
counts as not found. Queries without judgements are left out, those with none relevant score 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors, MetricName
from embits.coders import Coder
from embits.errors import InputError
from embits.evaluation.data import RetrievalSet
from embits.evaluation.results import Entry, Score, at, names_at
from embits.evaluation.spaces import BitSpace
from embits.evaluation.statistics import NO_SAMPLES, Samples
from embits.evaluation.tasks.base import Subject, Task
from embits.evaluation.tasks.neighbors import best_rows
from embits.search.plan import Rescore

DEPTH = 100  # documents of a ranking
OVERSAMPLE = 4  # rescored: times k documents are found by Hamming distance, then ordered by cosine
MAIN = "ndcg@10"
MEASURES = {MAIN: "nDCG@10", "recall@10": "recall@10", "recall@100": "recall@100", "mrr": "MRR"}
METRICS: tuple[MetricName, ...] = ("hamming", "asymmetric", "decoded")
WAYS = {name: name for name in ("floats", *METRICS, "rescored")}
WAYS |= {"hamming": "Hamming", "asymmetric": "float query"}
"""The ways to search, and their names in tables."""

Scores: TypeAlias = dict[str, NDArray[np.float64]]


class Judged(NamedTuple):
    """The judged queries of a data set."""

    queries: NDArray[np.float32]
    gains: list[dict[int, float]]  # relevance of the judged documents by row, at least 0
    n_relevant: NDArray[np.int64]  # counts those that are not in the corpus, too
    ideal: NDArray[np.float64]  # the largest possible DCG@10


def judged_queries(data: RetrievalSet) -> Judged:
    """The queries of a data set that have judgements, in the order of their file."""
    rows = {document: row for row, document in enumerate(data.corpus.words or ())}
    queries = {row: name for row, name in enumerate(data.queries.words or ()) if name in data.qrels}
    graded = [
        {document: float(max(score, 0)) for document, score in data.qrels[query].items()}
        for query in queries.values()
    ]
    best = [sorted(grades.values(), reverse=True)[:10] for grades in graded]
    return Judged(
        data.queries.matrix[list(queries)],
        [{rows[doc]: gain for doc, gain in grades.items() if doc in rows} for grades in graded],
        np.array([sum(gain > 0 for gain in grades.values()) for grades in graded]),
        np.array([float(dcg(np.array([gains]))[0]) for gains in best]),
    )


def dcg(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of gain / log2(rank + 1) of each row, ranks from 1."""
    total: NDArray[np.float64] = gains @ (1 / np.log2(np.arange(2, gains.shape[1] + 2)))
    return total


def score_rankings(judged: Judged, rankings: NDArray[np.int64]) -> Scores:
    """Each of `MEASURES` of each query, for rows of documents of shape (q, k), best first."""
    pairs = zip(judged.gains, rankings.tolist(), strict=True)
    gains = np.array([[grades.get(row, 0.0) for row in line] for grades, line in pairs])
    is_relevant = gains > 0
    n_relevant = np.maximum(judged.n_relevant, 1)
    first = np.where(is_relevant.any(axis=1), is_relevant.argmax(axis=1), np.inf)
    return {
        "ndcg@10": dcg(gains[:, :10]) / np.where(judged.ideal > 0, judged.ideal, 1),
        "recall@10": is_relevant[:, :10].sum(axis=1) / n_relevant,
        "recall@100": is_relevant[:, :DEPTH].sum(axis=1) / n_relevant,
        "mrr": 1 / (first + 1),
    }


def score_codes(data: RetrievalSet, coder: Coder) -> dict[str, Scores]:
    """The measures of each query by way of searching: each metric, and "rescored"."""
    if coder.n_features_in_ != data.dims:
        raise InputError(f"embeddings of {data.dims} dimensions, expected {coder.n_features_in_}")
    judged = judged_queries(data)
    bits = BinaryVectors(None, coder.encode(data.corpus.matrix), coder)
    scores: dict[str, Scores] = {
        metric: score_rankings(judged, bits.search(judged.queries, DEPTH, metric=metric).rows)
        for metric in METRICS
    }
    # Each measure belongs to a search of its own depth: a longer shortlist would help nDCG@10.
    floats = data.corpus.matrix
    short, long = (
        bits.search(
            judged.queries, k, metric="hamming", rescore=Rescore(OVERSAMPLE * k, floats)
        ).rows
        for k in (10, DEPTH)
    )
    recall = score_rankings(judged, long)["recall@100"]
    return scores | {"rescored": score_rankings(judged, short) | {"recall@100": recall}}


def evaluate_retrieval(
    data: RetrievalSet, coder: Coder | None = None, samples: Samples = NO_SAMPLES, name: str = ""
) -> Entry:
    """Scores of a data set by a fitted coder, or of its floats, in the shape of `evaluate --json`.

    It is `{"hamming": {"ndcg@10", "recall@10", "recall@100", "mrr"}, "asymmetric", "decoded",
    "rescored"}`, or `{"floats": ...}` without a coder; values in [0, 1]. `samples` receives the
    scores of each query, under `name`. A coder of other dimensions raises an InputError.
    """
    if coder is None:
        judged, documents = judged_queries(data), unit_rows(data.corpus.matrix)
        queries = unit_rows(judged.queries)
        rows = best_rows(lambda block: queries @ documents[block].T, len(documents), DEPTH)
        scores = {"floats": score_rankings(judged, rows)}
    else:
        scores = score_codes(data, coder)
    result: Entry = {way: {} for way in scores}
    for way, measures in scores.items():
        for measure, values in measures.items():
            result[way][measure] = float(values.mean())
            samples.add_mean(f"retrieval.{name}.{way}.{measure}", values, f"retrieval.{name}")
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
        space, samples = subject.space, subject.samples
        scores: Entry = {}
        for name, data in self.datasets(subject).items():
            if isinstance(space, BitSpace) and not subject.fit and space.bits.dims != data.dims:
                note = f"{name} is skipped for {subject.file or 'the codes'}: embeddings of "
                note += f"{data.dims} dimensions, expected {space.bits.dims}"
                subject.context.notes[note] = None
                continue
            subject.context.say(f"{self.name}: {name}")
            scores[name] = {}
            if not isinstance(space, BitSpace) or not subject.context.has_raw:
                scores[name] = evaluate_retrieval(data, None, samples, name)
            if isinstance(space, BitSpace):
                coder = subject.fit(data.corpus.matrix) if subject.fit else space.bits.coder
                scores[name] |= evaluate_retrieval(data, coder, samples, name)
        return scores or None

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        entries, scores = list(entries), []
        has_raw = any(entry.get("method") == "raw" for entry in entries)
        names, ways = names_at(entries, self.name), list(WAYS)[has_raw:]  # without "floats"
        for name, measure, way in product(names, MEASURES, ways):
            path = (self.name, name, way, measure)
            if any(at(entry, *path) is not None for entry in entries):
                label = f"{name} {MEASURES[measure]}, {WAYS[way]}"
                raw = (self.name, name, "floats", measure) if has_raw else ()
                scores.append(Score(label, path, raw, heading=label if measure == MAIN else ""))
        return scores
