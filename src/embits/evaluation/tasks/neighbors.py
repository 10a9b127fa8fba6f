"""What codes keep of the raw vectors: nearest neighbors by cosine, and the vectors themselves.

A query is not counted as its own neighbor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, row_cosines
from embits.binary_vectors import BinaryRows
from embits.errors import InputError
from embits.evaluation.results import Entry, Score, names_at, number
from embits.evaluation.spaces import BitSpace, Floats, FloatSpace, Mask, Rows
from embits.evaluation.statistics import NO_SAMPLES, Samples
from embits.evaluation.tasks.base import Subject, Task

N_QUERIES = 1000
FREQUENT = 30_000  # queries are drawn from these first rows: frequent words in a sorted file
MAX_NEIGHBORS = 100
WAYS = {
    "recall": "Hamming",
    "asymmetric_recall": "float query",
    "unseen_recall": "Hamming, unseen rows alone",
    "unseen_asymmetric_recall": "float query, unseen rows alone",
}
HEADINGS = {"recall_at_10": "recall@10", "asymmetric_recall_at_10": "float query"}
_ROWS = 16_384  # rows per block


def query_rows(n: int, n_queries: int = N_QUERIES) -> Rows:
    """The query rows: evenly spaced over the first 30,000."""
    frequent = min(n, FREQUENT)
    n_queries = min(n_queries, frequent)
    return np.arange(n_queries) * frequent // max(1, n_queries)


def float_neighbors(raw: FloatSpace, rows: Rows, k: int, where: Mask | None = None) -> Rows:
    """The k nearest rows of each row by cosine, without itself: shape (len(rows), k)."""
    unit = raw.unit

    def cosines(block: slice) -> Floats:
        product: Floats = unit[rows] @ unit[block].T
        return product if where is None else np.where(where[block], product, np.float32(-2))

    return without_self(best_rows(cosines, len(unit), k + 1), rows, k)


def evaluate_neighbors(
    bits: BinaryRows,
    raw: FloatSpace,
    at: Sequence[int] = (1, 10, 100),
    rows: Rows | None = None,
    truth: Rows | None = None,
    samples: Samples = NO_SAMPLES,
    unseen: Mask | None = None,
) -> Entry:
    """Recall of the raw-cosine neighbors, in the shape of `evaluate --json`.

    It is `{"recall_at_10", "asymmetric_recall_at_10", ...}` for each of `at`, and "queries"; with
    `unseen`, "unseen_recall_at_10" and so on.

    Args:
        raw: The float vectors of the same rows.
        at: Numbers of neighbors.
        rows: The query rows; None takes `query_rows`.
        truth: `float_neighbors` of the query rows; None computes them.
        samples: Receives the recall of each query.
        unseen: A mask of rows. Neighbors are then searched among these alone.
    """
    if len(bits) != len(raw):
        raise InputError(f"{len(raw)} raw vectors for {len(bits)} codes, expected as many")
    rows = query_rows(len(bits)) if rows is None else rows
    at = [k for k in at if k < (len(bits) if unseen is None else unseen.sum())]
    most = max(at, default=0)
    truth = float_neighbors(raw, rows, most, unseen) if truth is None else truth
    by_code = bits.search(bits.codes[rows], most + 1, where=unseen).rows
    by_floats = bits.search(raw.matrix[rows], most + 1, metric="asymmetric", where=unseen).rows
    result: Entry = {}
    for way, nearest in ("recall", by_code), ("asymmetric_recall", by_floats):
        others = without_self(nearest, rows, most)
        for k in at:
            name = f"{way if unseen is None else f'unseen_{way}'}_at_{k}"
            shares = recalls(truth[:, :k], others[:, :k])
            result[name] = float(shares.mean())
            samples.add_mean(f"neighbors.{name}", shares, "neighbors")
    return result | {"queries": len(rows)}


def best_rows(scores: Callable[[slice], Floats], n: int, k: int) -> Rows:
    """The k of n rows with the highest `scores` (queries, rows) of blocks, ties in row order."""
    best = rows = None
    for block in blocks(n, max(_ROWS, k)):  # the first block has at least k rows
        new = scores(block)
        numbers = np.broadcast_to(np.arange(block.start, block.stop), new.shape)
        if best is not None and rows is not None:
            new, numbers = _above(new, best[:, -1:], block.start)
            new, numbers = np.hstack([best, new]), np.hstack([rows, numbers])
        elif new.shape[1] > 2 * k:
            few = np.sort(np.argpartition(-new, k, axis=1)[:, :k], axis=1)  # in row order, for ties
            new, numbers = np.take_along_axis(new, few, 1), few + block.start
        order = np.argsort(-new, axis=1, kind="stable")[:, :k]
        best, rows = np.take_along_axis(new, order, 1), np.take_along_axis(numbers, order, 1)
    return np.empty((0, 0), np.int64) if rows is None else rows.astype(np.int64, copy=False)


def _above(scores: Floats, least: Floats, start: int) -> tuple[Floats, Rows]:
    """The scores above `least`, packed to the left and padded with -inf, and their rows."""
    line, column = np.nonzero(scores > least)
    counts = np.bincount(line, minlength=len(scores))
    place = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
    few = np.full((len(scores), counts.max(initial=0)), -np.inf, dtype=np.float32)
    numbers = np.zeros(few.shape, dtype=np.int64)
    few[line, place] = scores[line, column]
    numbers[line, place] = column + start
    return few, numbers


def without_self(nearest: Rows, rows: Rows, k: int) -> Rows:
    """`nearest` (q, k + 1) without the query itself, or without the last if it is not found."""
    own = nearest == rows[:, np.newaxis]
    own[~own.any(axis=1), -1] = True
    others: Rows = nearest[~own].reshape(len(rows), -1)[:, :k]
    return others


def recalls(truth: Rows, results: Rows) -> NDArray[np.float64]:
    """The share of each row of `truth` that is in the same row of `results`."""
    hits = (truth[:, :, np.newaxis] == results[:, np.newaxis, :]).any(axis=2)
    shares: NDArray[np.float64] = hits.mean(axis=1)
    return shares


class Neighbors(Task):
    """Recall@1, @10 and @100, by Hamming distance and with float queries."""

    name = "neighbors"
    title = "Neighbors"
    caption = (
        "Recall of the nearest neighbors by raw cosine, × 100: codes against codes (Hamming), and "
        "float queries against codes. {rows} Unseen rows alone: rows of the fit are not searched. "
        "Bold: the best of each width."
    )
    needs_raw = True

    def run(self, subject: Subject) -> Entry | None:
        bits, raw = subject.bits, subject.raw
        if bits is None or raw is None:
            return None
        measured = np.arange(len(raw)) if subject.split is None else subject.split.unseen
        rows = measured[query_rows(len(measured))]
        k, key = min(MAX_NEIGHBORS, len(raw) - 1), rows.tobytes()
        truth = subject.context.once((self.name, key), lambda: float_neighbors(raw, rows, k), raw)
        scores = evaluate_neighbors(bits, raw, rows=rows, truth=truth, samples=subject.samples)
        if subject.split is not None:
            unseen = np.isin(np.arange(len(raw)), measured)
            near = partial(float_neighbors, raw, rows, 10, unseen)
            truth = subject.context.once(("unseen", key), near, raw)
            scores |= evaluate_neighbors(bits, raw, (10,), rows, truth, subject.samples, unseen)
        return scores | subject.about_rows

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        names = names_at(entries, self.name)
        scores = []
        for k, (way, label) in product((1, 10, 100), WAYS.items()):
            if (name := f"{way}_at_{k}") in names:
                heading = HEADINGS.get(name, "")
                scores.append(Score(f"Recall@{k}, {label}", (self.name, name), heading=heading))
        return scores


def evaluate_reconstruction(
    raw: FloatSpace, rebuilt: FloatSpace, rows: Rows | None = None, samples: Samples = NO_SAMPLES
) -> Entry:
    """The mean cosine of raw and rebuilt rows, and the mean squared error: `{"cosine", "mse"}`.

    `rows` are those to measure, or None for all; `samples` receives the values of each.
    """
    shape = rebuilt.matrix.shape
    if raw.matrix.shape != shape:
        raise InputError(f"raw vectors of shape {raw.matrix.shape}, rebuilt of {shape}")
    rows = np.arange(len(raw)) if rows is None else rows
    values = {"cosine": np.zeros(len(rows)), "mse": np.zeros(len(rows))}
    for block in blocks(len(rows)):
        x, y = (space.matrix[rows[block]].astype(np.float64) for space in (raw, rebuilt))
        values["cosine"][block] = row_cosines(x, y)
        values["mse"][block] = ((x - y) ** 2).mean(axis=1)
    for name, each in values.items():
        samples.add_mean(f"reconstruction.{name}", each, "reconstruction")
    return {name: float(each.mean()) if len(rows) else 0.0 for name, each in values.items()}


class Reconstruction(Task):
    """Cosine and error of the rebuilt floats, and their scores on other tasks."""

    name = "reconstruction"
    title = "Reconstruction"
    caption = "Floats rebuilt from the codes. Cosine × 100. {rows}"
    needs_raw = True

    def run(self, subject: Subject) -> Entry | None:
        space, bits, split = subject.space, subject.bits, subject.split
        if not isinstance(space, BitSpace):
            return None
        scores: Entry = {}
        if subject.raw is not None and bits is not None:
            measured = space if bits is space.bits else BitSpace(bits, space.lookup)
            rows = None if split is None else split.unseen
            scores = evaluate_reconstruction(subject.raw, measured.rebuilt(), rows, subject.samples)
            scores |= subject.about_rows
        samples = subject.samples.under(self.name)
        floats = replace(subject, space=space.rebuilt(), samples=samples, raw=None)
        scores |= {task.name: task.run(floats) for task in subject.context.tasks if task.of_rebuilt}
        return scores or None

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        cosine = Score("Cosine to raw, rebuilt", (self.name, "cosine"), heading="rebuilt")
        error = Score("Mean squared error", (self.name, "mse"), as_text=lambda x: number(x, 4))
        return [cosine, error] if "cosine" in names_at(entries, self.name) else []
