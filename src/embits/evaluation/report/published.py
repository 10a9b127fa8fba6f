"""The scores published in the paper's Tables 1 and 2.

The paper used other vectors, so its scores cannot be compared with others directly. The differences
between codes and raw floats can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTHS = (64, 128, 256, 512)


class Published(NamedTuple):
    """Scores × 100 on one data set, of dict2vec, fastText and GloVe.

    Attributes:
        raw: Scores of the raw floats.
        bin: Scores of the paper's codes at each of `WIDTHS`.
        lsh: Scores of LSH at each of `WIDTHS`.
    """

    raw: Sequence[float]
    bin: Sequence[Sequence[float]]
    lsh: Sequence[Sequence[float]]

    def gaps(self, kind: str, width: int) -> list[float]:
        """Score of the codes minus score of the raw floats, for the three vectors.

        Example:
            >>> [round(gap, 1) for gap in PUBLISHED["MEN"].gaps("bin", 256)]
            [-4.3, -4.8, -4.3]
        """
        place = WIDTHS.index(width)
        scores: Sequence[Sequence[float]] = getattr(self, kind)
        return [line[place] - raw for line, raw in zip(scores, self.raw, strict=True)]


PUBLISHED = {
    "MEN": Published(
        raw=(74.6, 80.7, 73.7),
        bin=((66.1, 71.3, 70.3, 71.3), (57.9, 72.0, 75.9, 76.3), (46.1, 63.3, 69.4, 72.7)),
        lsh=((47.7, 56.2, 62.6, 67.8), (47.7, 60.7, 70.0, 75.0), (50.8, 62.0, 64.9, 71.0)),
    ),
    "RW": Published(
        raw=(50.5, 53.8, 41.2),
        bin=((36.5, 42.0, 45.6, 45.6), (36.8, 44.7, 52.7, 52.7), (25.1, 34.3, 40.7, 40.2)),
        lsh=((26.4, 37.2, 41.7, 46.2), (34.5, 40.3, 47.5, 46.5), (26.3, 33.0, 35.8, 38.3)),
    ),
    "SimLex": Published(
        raw=(45.2, 44.1, 37.1),
        bin=((32.0, 38.1, 44.8, 42.9), (25.1, 38.0, 44.6, 43.0), (20.5, 31.4, 37.2, 36.8)),
        lsh=((29.6, 35.9, 40.2, 39.5), (28.7, 32.0, 38.6, 41.1), (24.7, 30.5, 33.1, 34.6)),
    ),
    "SimVerb": Published(
        raw=(41.7, 35.6, 22.7),
        bin=((25.3, 36.6, 38.4, 35.5), (19.2, 26.7, 33.7, 35.1), (7.8, 18.7, 22.9, 23.0)),
        lsh=((22.0, 27.5, 31.6, 36.9), (20.5, 23.3, 30.7, 30.2), (14.6, 17.4, 18.8, 20.7)),
    ),
    "WS353": Published(
        raw=(72.5, 69.7, 60.9),
        bin=((63.7, 71.6, 69.6, 66.6), (50.3, 69.1, 70.0, 70.3), (30.1, 44.9, 56.6, 60.3)),
        lsh=((45.5, 56.9, 64.9, 65.5), (46.7, 53.2, 58.6, 63.8), (41.1, 44.4, 50.5, 57.8)),
    ),
    "semantic": Published(
        raw=(59.6, 37.6, 77.4),
        bin=((2.6, 12.0, 26.7, 30.1), (2.3, 7.5, 18.0, 25.0), (8.5, 26.7, 53.4, 65.3)),
        lsh=((0.8, 4.6, 14.9, 29.9), (0.8, 6.4, 13.0, 20.4), (6.1, 25.9, 47.9, 59.3)),
    ),
    "syntactic": Published(
        raw=(54.0, 87.4, 67.0),
        bin=((3.5, 16.7, 34.8, 36.2), (8.0, 34.5, 57.3, 64.7), (7.3, 23.9, 46.3, 52.4)),
        lsh=((1.7, 7.8, 23.4, 35.8), (4.0, 21.5, 46.2, 65.7), (5.6, 21.6, 39.1, 52.3)),
    ),
    "ag_news": Published(
        raw=(89.0, 86.9, 89.5),
        bin=((85.3, 85.9, 87.7, 87.8), (84.5, 85.9, 87.3, 87.7), (84.0, 87.2, 88.5, 88.5)),
        lsh=((78.8, 82.6, 86.1, 88.1), (77.5, 83.3, 86.1, 88.8), (83.5, 86.6, 88.4, 88.6)),
    ),
    "dbpedia": Published(
        raw=(97.6, 95.0, 97.2),
        bin=((94.1, 96.1, 97.0, 97.3), (91.7, 95.1, 96.6, 97.3), (90.9, 95.0, 96.8, 97.2)),
        lsh=((89.6, 94.2, 96.5, 97.4), (87.4, 93.8, 96.2, 97.2), (90.4, 94.2, 96.3, 97.2)),
    ),
    "yahoo_answers": Published(
        raw=(68.1, 67.2, 68.1),
        bin=((60.7, 63.8, 66.0, 66.8), (60.4, 63.9, 66.4, 67.8), (57.5, 62.5, 66.4, 66.1)),
        lsh=((52.3, 59.9, 64.5, 67.1), (52.2, 59.5, 64.9, 66.9), (56.8, 62.0, 65.3, 67.0)),
    ),
    "amazon_full": Published(
        raw=(47.5, 49.0, 47.1),
        bin=((39.9, 43.9, 46.8, 47.7), (39.0, 43.9, 47.9, 49.8), (37.4, 42.6, 46.7, 47.8)),
        lsh=((38.3, 42.5, 45.6, 48.1), (38.6, 42.7, 47.3, 49.5), (37.9, 43.0, 45.9, 48.6)),
    ),
    "amazon_polarity": Published(
        raw=(84.2, 85.6, 83.8),
        bin=((76.3, 80.7, 83.2, 83.8), (75.1, 80.2, 84.5, 85.8), (73.1, 78.9, 83.2, 84.4)),
        lsh=((74.3, 79.0, 81.9, 84.5), (73.8, 78.5, 83.4, 85.7), (74.7, 79.1, 82.1, 85.0)),
    ),
    "yelp_full": Published(
        raw=(52.5, 52.1, 52.7),
        bin=((45.1, 48.7, 51.6, 52.0), (44.2, 49.7, 53.0, 54.6), (42.7, 48.4, 51.8, 53.2)),
        lsh=((43.0, 47.7, 51.0, 53.1), (44.3, 47.6, 52.4, 54.3), (43.6, 48.2, 51.5, 53.4)),
    ),
    "yelp_polarity": Published(
        raw=(87.8, 88.0, 87.9),
        bin=((80.8, 84.5, 86.6, 87.6), (80.1, 84.5, 88.1, 89.5), (77.8, 84.2, 86.9, 88.7)),
        lsh=((77.9, 82.8, 86.1, 88.0), (80.3, 82.2, 87.2, 89.8), (79.0, 83.1, 86.6, 88.6)),
    ),
}
