"""The scores published in the paper's Tables 1 and 2.

The paper used other vectors, so its scores cannot be compared with others directly. The differences
between codes and raw floats can.
"""

from __future__ import annotations

from embits.evaluation.results import Grid, Table
from embits.evaluation.tasks import all_scores

WIDTHS = (64, 128, 256, 512)

# Scores × 100 of dict2vec, fastText and GloVe: of the raw floats, then of the paper's codes (bin)
# and of LSH at each width.
_TABLE = """
MEN             raw  74.6 80.7 73.7
MEN             bin  66.1 71.3 70.3 71.3  57.9 72.0 75.9 76.3  46.1 63.3 69.4 72.7
MEN             lsh  47.7 56.2 62.6 67.8  47.7 60.7 70.0 75.0  50.8 62.0 64.9 71.0
RW              raw  50.5 53.8 41.2
RW              bin  36.5 42.0 45.6 45.6  36.8 44.7 52.7 52.7  25.1 34.3 40.7 40.2
RW              lsh  26.4 37.2 41.7 46.2  34.5 40.3 47.5 46.5  26.3 33.0 35.8 38.3
SimLex          raw  45.2 44.1 37.1
SimLex          bin  32.0 38.1 44.8 42.9  25.1 38.0 44.6 43.0  20.5 31.4 37.2 36.8
SimLex          lsh  29.6 35.9 40.2 39.5  28.7 32.0 38.6 41.1  24.7 30.5 33.1 34.6
SimVerb         raw  41.7 35.6 22.7
SimVerb         bin  25.3 36.6 38.4 35.5  19.2 26.7 33.7 35.1   7.8 18.7 22.9 23.0
SimVerb         lsh  22.0 27.5 31.6 36.9  20.5 23.3 30.7 30.2  14.6 17.4 18.8 20.7
WS353           raw  72.5 69.7 60.9
WS353           bin  63.7 71.6 69.6 66.6  50.3 69.1 70.0 70.3  30.1 44.9 56.6 60.3
WS353           lsh  45.5 56.9 64.9 65.5  46.7 53.2 58.6 63.8  41.1 44.4 50.5 57.8
semantic        raw  59.6 37.6 77.4
semantic        bin   2.6 12.0 26.7 30.1   2.3  7.5 18.0 25.0   8.5 26.7 53.4 65.3
semantic        lsh   0.8  4.6 14.9 29.9   0.8  6.4 13.0 20.4   6.1 25.9 47.9 59.3
syntactic       raw  54.0 87.4 67.0
syntactic       bin   3.5 16.7 34.8 36.2   8.0 34.5 57.3 64.7   7.3 23.9 46.3 52.4
syntactic       lsh   1.7  7.8 23.4 35.8   4.0 21.5 46.2 65.7   5.6 21.6 39.1 52.3
ag_news         raw  89.0 86.9 89.5
ag_news         bin  85.3 85.9 87.7 87.8  84.5 85.9 87.3 87.7  84.0 87.2 88.5 88.5
ag_news         lsh  78.8 82.6 86.1 88.1  77.5 83.3 86.1 88.8  83.5 86.6 88.4 88.6
dbpedia         raw  97.6 95.0 97.2
dbpedia         bin  94.1 96.1 97.0 97.3  91.7 95.1 96.6 97.3  90.9 95.0 96.8 97.2
dbpedia         lsh  89.6 94.2 96.5 97.4  87.4 93.8 96.2 97.2  90.4 94.2 96.3 97.2
yahoo_answers   raw  68.1 67.2 68.1
yahoo_answers   bin  60.7 63.8 66.0 66.8  60.4 63.9 66.4 67.8  57.5 62.5 66.4 66.1
yahoo_answers   lsh  52.3 59.9 64.5 67.1  52.2 59.5 64.9 66.9  56.8 62.0 65.3 67.0
amazon_full     raw  47.5 49.0 47.1
amazon_full     bin  39.9 43.9 46.8 47.7  39.0 43.9 47.9 49.8  37.4 42.6 46.7 47.8
amazon_full     lsh  38.3 42.5 45.6 48.1  38.6 42.7 47.3 49.5  37.9 43.0 45.9 48.6
amazon_polarity raw  84.2 85.6 83.8
amazon_polarity bin  76.3 80.7 83.2 83.8  75.1 80.2 84.5 85.8  73.1 78.9 83.2 84.4
amazon_polarity lsh  74.3 79.0 81.9 84.5  73.8 78.5 83.4 85.7  74.7 79.1 82.1 85.0
yelp_full       raw  52.5 52.1 52.7
yelp_full       bin  45.1 48.7 51.6 52.0  44.2 49.7 53.0 54.6  42.7 48.4 51.8 53.2
yelp_full       lsh  43.0 47.7 51.0 53.1  44.3 47.6 52.4 54.3  43.6 48.2 51.5 53.4
yelp_polarity   raw  87.8 88.0 87.9
yelp_polarity   bin  80.8 84.5 86.6 87.6  80.1 84.5 88.1 89.5  77.8 84.2 86.9 88.7
yelp_polarity   lsh  77.9 82.8 86.1 88.0  80.3 82.2 87.2 89.8  79.0 83.1 86.6 88.6
"""


def published_gaps(name: str, kind: str, width: int) -> list[float]:
    """Score of the codes ("bin" or "lsh") minus that of the raw floats, for the three vectors.

    Example:
        >>> [round(gap, 1) for gap in published_gaps("MEN", "bin", 256)]
        [-4.3, -4.8, -4.3]
    """
    found = {
        each: [float(score) for score in scores]
        for of, each, *scores in map(str.split, _TABLE.strip().splitlines())
        if of == name
    }
    return [
        score - raw
        for score, raw in zip(found[kind][WIDTHS.index(width) :: 4], found["raw"], strict=True)
    ]


def gap_table(grid: Grid, caption: str = "") -> Table:
    """Scores of codes minus raw scores, here and in the paper."""
    published = {line.split()[0] for line in _TABLE.strip().splitlines()}
    rows: list[list[str]] = []
    for score in all_scores(grid.entries):
        raw = score.of(grid.raw or {"method": "raw"})
        is_of_paper = score.path[1] in published and score.path[0] != "retrieval"
        if not is_of_paper or not isinstance(raw, float):
            continue
        rows.append([score.label, *[""] * len(WIDTHS)])
        for method in grid.methods:
            scores = dict(zip(grid.widths, grid.line(method, score.path), strict=True))
            if any(scores.get(width) is not None for width in WIDTHS):
                rows.append([f" {method}", *(_gap(scores.get(width), raw) for width in WIDTHS)])
        for kind, who in (("bin", "printed: the paper"), ("lsh", "printed: LSH")):
            gaps = [published_gaps(score.path[1], kind, width) for width in WIDTHS]
            rows.append([f" {who}", *(f"{min(g):+.1f} to {max(g):+.1f}" for g in gaps)])
    return Table(["", *map(str, WIDTHS)], rows, caption)


def _gap(score: float | None, raw: float) -> str:
    return "" if score is None else f"{100 * (score - raw):+.1f}"
