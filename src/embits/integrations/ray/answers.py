"""What workers do for a search: the answers of one span to a block of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.integrations.ray.merging import Found
from embits.integrations.ray.spans import OpenSpan, Span, open_span
from embits.integrations.ray.steps import SharedCoder
from embits.search import asymmetric_top_k, top_k, within
from embits.search.filters import Filters
from embits.search.metrics import Prepared
from embits.search.radius import scores_from
from embits.search.rescoring import exact_scores


@dataclass(frozen=True)
class Nearest:
    """The k nearest rows of each query."""

    k: int

    def __call__(self, opened: OpenSpan, prepared: Prepared, where: Filters) -> Found:
        codes, (queries, offsets) = opened.codes, prepared
        if offsets is None:
            return Found(*top_k(codes, queries, self.k, 1, where=where), None)
        scores, rows = asymmetric_top_k(codes, queries, self.k, 1, where=where)
        places, columns = np.nonzero(rows >= 0)
        exact = scores.astype(np.float64)  # -inf beside row -1
        found = rows[places, columns]
        exact[places, columns] = exact_scores(codes[found], queries[places])
        return Found(exact, rows, offsets)


@dataclass(frozen=True)
class WithinDistance:
    """All rows within a Hamming distance."""

    distance: int
    most: int

    def __call__(self, opened: OpenSpan, prepared: Prepared, where: Filters) -> Found:
        found = within(
            opened.codes, prepared.queries, self.distance, 1, where=where, max_results=self.most
        )
        return Found(found.distances, found.rows, None, found.offsets)


@dataclass(frozen=True)
class WithinScore:
    """All rows of at least a score."""

    similarity: float
    most: int

    def __call__(self, opened: OpenSpan, prepared: Prepared, where: Filters) -> Found:
        weights, offsets = prepared
        assert offsets is not None

        def best(of: NDArray[np.intp], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            some = [where[q] for q in of] if isinstance(where, list) else where
            scores, rows = asymmetric_top_k(opened.codes, weights[of], k, 1, where=some)
            return scores + offsets[of], rows

        n = len(opened.codes)
        found = scores_from(best, len(weights), n, self.similarity, self.most)
        queries = np.repeat(np.arange(len(weights)), np.diff(found.offsets))
        exact = exact_scores(opened.codes[found.rows], weights[queries])
        return Found(exact, found.rows, offsets, found.offsets)


def answer(
    number: int,
    question: Nearest | WithinDistance | WithinScore,
    span: Span,
    coder: SharedCoder,
    prepared: Prepared,
    where: Filters,
) -> tuple[int, int, Found]:
    """Search a span. Runs in a worker.

    Returns:
        The number of the block of queries, the rows that were searched, and what was found.
    """
    found = question(open_span(span, coder), prepared, where)
    rows = np.where(found.rows < 0, found.rows, found.rows + span.first)
    return number, span.rows, found._replace(rows=rows)


def names_of(
    places: NDArray[np.int64], span: Span, coder: SharedCoder, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The ids of rows of a span, and the places that were given with them. Runs in a worker."""
    return places, open_span(span, coder).names(rows - span.first)


def rows_of(span: Span, coder: SharedCoder, ids: list[str]) -> NDArray[np.int64]:
    """The rows of ids that are in a span; -1 for others. Runs in a worker."""
    rows = open_span(span, coder).find(ids)
    return np.where(rows < 0, rows, rows + span.first)
