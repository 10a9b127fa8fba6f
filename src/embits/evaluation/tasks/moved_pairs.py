"""Word pairs that binarization moved most towards human judgement, or away from it.

Similarities of codes, cosines and human scores have different scales, so pairs are compared by
their rank in the data set: 0 is the least similar pair, 1 the most similar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from embits.evaluation.data.files import Pairs
from embits.evaluation.spaces import BitSpace, FloatSpace
from embits.evaluation.statistics import ranks
from embits.evaluation.tasks.similarity import score_pairs


@dataclass(frozen=True)
class MovedPair:
    """A pair of words before and after binarization.

    Attributes:
        dataset, first, second: The data set and the two words.
        human, binary, cosine: The human score scaled to [0, 1], the share of equal bits, the
            cosine.
        ranks: Their ranks in the data set, from 0 to 1, in the same order.
        moved: How much closer to the human rank the codes are than the cosine; negative if they
            are further away.
    """

    dataset: str
    first: str
    second: str
    human: float
    binary: float
    cosine: float
    ranks: tuple[float, float, float]
    moved: float


def moved_pairs(
    raw: FloatSpace, bits: BitSpace, datasets: Mapping[str, Pairs], n: int = 6
) -> tuple[list[MovedPair], list[MovedPair]]:
    """The n pairs moved most towards the human scores, and the n moved most away."""
    found = []
    for name, pairs in datasets.items():
        cosine, binary = score_pairs(raw, pairs), score_pairs(bits, pairs)
        if not np.array_equal(cosine.known, binary.known) or len(cosine.ours) < 2:
            continue
        columns = (binary.human, binary.ours, cosine.ours)
        placed = [(ranks(column) - 1) / (len(column) - 1) for column in columns]
        moved = np.abs(placed[2] - placed[0]) - np.abs(placed[1] - placed[0])
        low, span = pairs.scores.min(), max(float(np.ptp(pairs.scores)), 1e-12)
        rows = np.flatnonzero(cosine.known)
        order = np.argsort(-moved, kind="stable")
        found += [
            MovedPair(
                name,
                pairs.first[rows[i]],
                pairs.second[rows[i]],
                float((binary.human[i] - low) / span),
                float(binary.ours[i]),
                float(cosine.ours[i]),
                (float(placed[0][i]), float(placed[1][i]), float(placed[2][i])),
                float(moved[i]),
            )
            for i in {*order[:n].tolist(), *order[-n:].tolist()}
        ]
    found.sort(key=lambda pair: (-pair.moved, pair.dataset, pair.first, pair.second))
    return found[:n], found[-n:][::-1]
