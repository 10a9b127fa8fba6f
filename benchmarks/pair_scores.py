"""Agreement with human similarity scores where some files lack some words.

Smaller vocabularies know fewer pairs, so a score over the known pairs alone would favor them. The
score is the Fisher mean of Spearman's correlations over all pairs of each set. A pair with an
unknown word gets the median similarity of the set's other pairs: a guess without knowledge. Only
ranks count, so this means the same for cosines and for shares of equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.evaluation import Lookup, fisher_mean, spearman
from embits.evaluation.data import Pairs
from embits.evaluation.spaces import Space


class Scorer:
    """Scores of spaces on the similarity sets.

    Args:
        datasets: Word pairs by name.
        common: The words of the smallest vocabulary.
    """

    def __init__(self, datasets: Mapping[str, Pairs], common: Lookup) -> None:
        self.datasets = datasets
        self.common = {
            name: known_pairs(common.rows(pairs.first), common.rows(pairs.second))
            for name, pairs in datasets.items()
        }

    def row(self, space: Space) -> dict[str, Any]:
        """Three scores, and the number of pairs with two known words.

        Returns:
            `score` as described above; `lowest`, where pairs with an unknown word get the lowest
            similarity; `common`, over the pairs that the smallest vocabulary knows; and `pairs`.
        """
        found: dict[str, list[float]] = {"score": [], "lowest": [], "common": []}
        n_known = 0
        for name, pairs in self.datasets.items():
            a, b = space.lookup.rows(pairs.first), space.lookup.rows(pairs.second)
            known = known_pairs(a, b)
            n_known += int(known.sum())
            ours = np.full(len(pairs), np.nan)
            ours[known] = space.similarities(a[known], b[known])
            common = self.common[name] & known
            found["score"].append(agreement(pairs.scores, ours, np.median))
            found["lowest"].append(agreement(pairs.scores, ours, np.min))
            found["common"].append(spearman(pairs.scores[common], ours[common]))
        means = {name: round(fisher_mean(values), 4) for name, values in found.items()}
        return {**means, "pairs": n_known}


def known_pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = (a >= 0) & (b >= 0)
    return known


def agreement(
    human: NDArray[np.float64],
    ours: NDArray[np.float64],
    guess: Callable[[NDArray[np.float64]], float],
) -> float:
    """Spearman's correlation over all pairs; 0 if fewer than two pairs are known.

    Args:
        human: Human scores.
        ours: Similarities; NaN for a pair with an unknown word.
        guess: The similarity of a pair with an unknown word, from those of the others.
    """
    known = ~np.isnan(ours)
    if known.sum() < 2:
        return 0.0
    return spearman(human, np.where(known, ours, guess(ours[known])))
