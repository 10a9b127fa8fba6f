"""All rows that score at least a similarity against float queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.search.arguments import wanted_results
from embits.search.radius import too_many
from embits.search.results import WithinScoreResult

_FIRST_K = 64
_GROWTH = 8
_Best: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]
_TopK: TypeAlias = Callable[[NDArray[np.intp], int], _Best]


def scores_from(
    best: _TopK, n_queries: int, n: int, similarity: float, max_results: int | None
) -> WithinScoreResult:
    """All rows that score `similarity` or more, by top-k searches of a growing k.

    A query is done when its last row scores less. The scores are compared as they are returned.

    Args:
        best: Gives scores and rows, each (q, k), of some queries and a k; fewer columns, or scores
            of -inf, where fewer rows pass a filter.
        n_queries: How many queries there are.
        n: How many rows there are.
        similarity: The lowest score.
        max_results: As in `within`.
    """
    most = wanted_results(max_results)
    found: dict[int, _Best] = {}
    left, k = np.arange(n_queries), min(_FIRST_K, n)
    while len(left):
        unfinished = []
        # All rows of one query may be needed, but never those of many queries at a time.
        for batch in np.array_split(left, -(-len(left) * k // max(n, most // 8, 1)) or 1):
            scores, rows = best(batch, k)
            counts = (scores >= similarity).sum(axis=1)
            for q, count, of_scores, of_rows in zip(batch, counts, scores, rows, strict=True):
                if count == k < n:
                    unfinished.append(q)
                else:
                    found[int(q)] = of_scores[:count].copy(), of_rows[:count].copy()
            if sum(len(of_rows) for _, of_rows in found.values()) > most:
                raise too_many(most, f"similarity {similarity}")
        left, k = np.array(unfinished, dtype=np.intp), min(k * _GROWTH, n)
    return _joined([found[q] for q in range(n_queries)])


def _joined(of_queries: list[_Best]) -> WithinScoreResult:
    offsets = np.cumsum([0, *(len(rows) for _, rows in of_queries)], dtype=np.int64)
    rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in of_queries)])
    scores = np.concatenate([np.empty(0, np.float32), *(scores for scores, _ in of_queries)])
    return WithinScoreResult(offsets, rows, scores)
