"""Semantic similarity: Spearman's correlation of similarities with human scores of word pairs.

The similarity is the cosine for floats and Sokal-Michener for codes (the paper, "Semantic word
similarity"). Letter case is folded (`Lookup`). Pairs with an unknown word are skipped and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.evaluation.data import Pairs, read_pairs
from embits.evaluation.results import Entry, Figure, Grid, Score, names_at
from embits.evaluation.spaces import Lookup, Space, as_space
from embits.evaluation.statistics import NO_SAMPLES, Samples, fisher_mean, pearson, spearman
from embits.evaluation.tasks.base import Subject, Task


class PairScores(NamedTuple):
    """Which pairs of a data set have known words, their human scores, and their similarities."""

    known: NDArray[np.bool_]
    human: NDArray[np.float64]
    ours: NDArray[np.float64]

    @property
    def spearman(self) -> float:
        """Spearman's rank correlation."""
        return spearman(self.human, self.ours)

    @property
    def pearson(self) -> float:
        """Pearson's correlation."""
        return pearson(self.human, self.ours)

    @property
    def oov(self) -> int:
        """Number of pairs with an unknown word."""
        return int((~self.known).sum())


def score_pairs(space: Space, pairs: Pairs, lookup: Lookup | None = None) -> PairScores:
    """Score the pairs of a data set whose two words are known.

    Args:
        space: The words and their vectors or codes.
        pairs: The data set.
        lookup: Replaces the lookup of the space.
    """
    lookup = space.lookup if lookup is None else lookup
    a, b = lookup.rows(pairs.first), lookup.rows(pairs.second)
    known = (a >= 0) & (b >= 0)
    return PairScores(known, pairs.scores[known], space.similarities(a[known], b[known]))


def evaluate_similarity(
    space: Space,
    datasets: Mapping[str, Pairs],
    samples: Samples = NO_SAMPLES,
    *,
    by_pairs: bool = False,
) -> dict[str, Any]:
    """Spearman per data set and their Fisher mean, in the shape of `evaluate --json`.

    Args:
        space: The words and their vectors or codes.
        datasets: Word pairs by name.
        samples: Receives the scores of each pair.
        by_pairs: Weigh the data sets in the Fisher mean by their number of scored pairs; the paper
            weighs them equally.

    Returns:
        `{name: {"spearman", "pairs", "oov"}, ..., "fisher_mean"}`: `pairs` were scored, `oov`
        skipped; correlations in [-1, 1].
    """
    scores = {name: score_pairs(space, pairs) for name, pairs in datasets.items()}
    correlations = {name: score.spearman for name, score in scores.items()}
    result: dict[str, Any] = {
        name: {"spearman": correlations[name], "pairs": len(score.ours), "oov": score.oov}
        for name, score in scores.items()
    }
    weights = [len(score.ours) for score in scores.values()] if by_pairs else None
    result["fisher_mean"] = fisher_mean(correlations.values(), weights)
    paths = {f"similarity.{name}.spearman": score for name, score in scores.items()}
    for path, score in paths.items():
        samples.add_spearman(path, score.human, score.ours, path.removesuffix(".spearman"))
    samples.add_combined(
        "similarity.fisher_mean", list(paths), lambda drawn: fisher_mean(drawn, weights)
    )
    return result


def evaluate_word_pairs(
    vectors: Any,
    pairs: str | os.PathLike[str],
    restrict_vocab: int | None = 300_000,
    case_insensitive: bool = True,
    dummy4unknown: bool = False,
    *,
    delimiter: str | None = None,
) -> tuple[float, float, float]:
    """gensim's `evaluate_word_pairs`, for codes and floats.

    Args:
        vectors: BinaryVectors or WordVectors.
        pairs: File of `word word score` lines, as `read_pairs` reads it.
        restrict_vocab: Use only this many first rows; None uses all.
        case_insensitive: Fold letter case.
        dummy4unknown: Score pairs with unknown words 0 instead of skipping them.
        delimiter: What separates the fields; None detects it. gensim's default is a tab.

    Returns:
        Pearson's correlation, Spearman's correlation, and the percentage of pairs with unknown
        words. gensim also returns a p-value with each correlation.
    """
    space = as_space(vectors)
    data = read_pairs(pairs, delimiter)
    scores = score_pairs(
        space, data, Lookup(space.words, restrict_vocab, case_insensitive, exact_first=False)
    )
    oov = 100 * scores.oov / len(data)
    if dummy4unknown:
        ours = np.zeros(len(data))
        ours[scores.known] = scores.ours
        return pearson(data.scores, ours), spearman(data.scores, ours), oov
    return scores.pearson, scores.spearman, oov


class Similarity(Task):
    """Spearman's correlation on every data set, and their Fisher mean."""

    name = "similarity"
    title = "Semantic similarity"
    caption = (
        "Spearman's rank correlation with human scores, × 100, for codes (bin), floats rebuilt "
        "from them (rec) and raw floats. Bold: the best codes, and the best rebuilt floats, of "
        "each width."
    )
    reads_data = of_rebuilt = True
    counted = "pairs"

    def run(self, subject: Subject) -> Entry:
        pairs, samples = self.datasets(subject), subject.samples
        return evaluate_similarity(subject.space, pairs, samples, by_pairs=subject.by_pairs)

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        names = [name for name in names_at(entries, self.name) if name != "fisher_mean"]
        mean = self.score("Fisher mean", "fisher_mean", column="Fisher mean", is_tested=True)
        return [*(self.score(name, name, "spearman") for name in names), mean] if names else []

    def figures(self, grid: Grid) -> list[Figure]:
        mean = (self.name, "fisher_mean")
        panels = (
            ("codes, Sokal-Michener similarity", mean),
            ("floats rebuilt from the codes, cosine", ("reconstruction", *mean)),
        )
        caption = "Fisher mean of the similarity scores by width. The dashed line: raw floats."
        return [Figure(self.name, panels, "Fisher mean of Spearman × 100", caption, mean)]
