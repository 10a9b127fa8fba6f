"""Classification of documents, questions and sentiment: one softmax layer over a bag of words.

The paper's protocol: a text is the mean of its words' vectors, the vectors stay as they are, and
one layer is learned. Everything but the vectors is the same for floats, bits and rebuilt floats:
the tokens, the split, the scale of the features (each to mean 0 and deviation 1), the optimiser
and its seeds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.evaluation.data.files import Labelled, Split
from embits.evaluation.data.lookup import Lookup
from embits.evaluation.tasks.spaces import Space

SEEDS = (0, 1, 2)
EPOCHS = 20
LEAST_STEPS = 500  # a small data set is gone through more often
BATCH = 128
STEP = 0.003
DECAY = 1e-4  # of the weights, a step
_PIECES = re.compile(r"\w+|[^\w\s]")
_WORDS = 2048  # words averaged at a time


@dataclass(frozen=True)
class Bags:
    """Texts as rows of the vocabulary, one after the other.

    Attributes:
        rows: The rows of all words of all texts, int64.
        ends: Where each text ends in `rows`.
        classes: Classes of the texts, int64 from 0.
    """

    rows: NDArray[np.int64]
    ends: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A data set as one vocabulary sees it."""

    train: Bags
    test: Bags
    n_classes: int


def prepare(split: Split, lookup: Lookup) -> Task:
    """Tokenize both halves of a data set with one vocabulary."""
    n_classes = 1 + int(max(split.train.classes.max(), split.test.classes.max()))
    return Task(_bags(split.train, lookup), _bags(split.test, lookup), n_classes)


def tokens(text: str, lookup: Lookup) -> list[int]:
    """Rows of the known words of a text.

    What stands between spaces is a word if the vocabulary has it, or else is cut into runs of
    letters and single marks.
    """
    rows = []
    for chunk in text.split():
        row = lookup.find(chunk)
        pieces = [row] if row is not None else map(lookup.find, _PIECES.findall(chunk))
        rows += [piece for piece in pieces if piece is not None]
    return rows


def _bags(labelled: Labelled, lookup: Lookup) -> Bags:
    lists = [tokens(text, lookup) for text in labelled.texts]
    rows = np.array([row for line in lists for row in line], dtype=np.int64)
    return Bags(rows, np.cumsum([len(line) for line in lists]), labelled.classes)


def mean_vectors(bags: Bags, space: Space) -> NDArray[np.float32]:
    """The mean of each text's vectors, shape (texts, width); zeros for a text of no known word."""
    used, place = np.unique(bags.rows, return_inverse=True)
    table = space.features(used).astype(np.float32, copy=False)
    means = np.zeros((len(bags.ends), table.shape[1]), dtype=np.float32)
    starts = np.concatenate([[0], bags.ends[:-1]]) if len(bags.ends) else bags.ends
    filled = np.flatnonzero(bags.ends > starts)
    first = 0
    while first < len(filled):  # texts of about _WORDS words together, to stay in cache
        limit = starts[filled[first]] + _WORDS
        last = max(first + 1, int(np.searchsorted(bags.ends[filled], limit, side="right")))
        texts = filled[first:last]
        start, end = starts[texts[0]], bags.ends[texts[-1]]
        means[texts] = np.add.reduceat(table[place[start:end]], starts[texts] - start, axis=0)
        first = last
    means /= np.maximum(1, bags.ends - starts)[:, np.newaxis].astype(np.float32)
    return means


def evaluate_classification(
    space: Space, task: Task, seeds: Sequence[int] = SEEDS
) -> dict[str, Any]:
    """Accuracy on the test texts, the mean over seeds, as `evaluate --json` has it.

    Returns:
        `{"accuracy", "interval", "train", "test"}`: `interval` is the half-width of a 95 %
        confidence interval, from the seeds and from the size of the test set.
    """
    train, test = mean_vectors(task.train, space), mean_vectors(task.test, space)
    center, scale = train.mean(axis=0), train.std(axis=0)
    for features in (train, test):
        features -= center
        features /= np.where(scale > 1e-7, scale, 1)
    accuracies = []
    for seed in seeds:
        weights = train_softmax(train, task.train.classes, task.n_classes, seed)
        guesses = (test @ weights[:-1] + weights[-1]).argmax(axis=1)
        accuracies.append(float((guesses == task.test.classes).mean()))
    mean = sum(accuracies) / len(accuracies)
    return {
        "accuracy": mean,
        "interval": _interval(accuracies, len(test)),
        "train": len(train),
        "test": len(test),
    }


def _interval(accuracies: Sequence[float], n_test: int) -> float:
    mean = sum(accuracies) / len(accuracies)
    variance = mean * (1 - mean) / n_test
    if len(accuracies) > 1:
        variance += float(np.var(accuracies, ddof=1)) / len(accuracies)
    return 1.96 * math.sqrt(variance)


def train_softmax(
    X: NDArray[np.float32], classes: NDArray[np.int64], n_classes: int, seed: int
) -> NDArray[np.float32]:
    """One softmax layer by Adam: the weights, shape (width + 1, n_classes), biases last.

    The step falls to zero along a line over the epochs, and the weights decay apart from it.
    """
    rng = np.random.default_rng(seed)
    X = np.hstack([X, np.ones((len(X), 1), dtype=np.float32)])
    targets = np.eye(n_classes, dtype=np.float32)[classes]
    W = np.zeros((X.shape[1], n_classes), dtype=np.float32)
    mean, square = np.zeros_like(W), np.zeros_like(W)
    steps = -(-len(X) // BATCH)
    epochs = max(EPOCHS, -(-LEAST_STEPS // steps))
    total = epochs * steps
    for step, batch in enumerate(_batches(len(X), epochs, rng), 1):
        x = X[batch]
        logits = x @ W
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        logits -= targets[batch]
        gradient = x.T @ logits
        gradient /= np.float32(len(x))
        mean += np.float32(0.1) * (gradient - mean)
        square += np.float32(0.001) * (gradient * gradient - square)
        rate = STEP * (1 - step / total)
        bias = math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        W *= np.float32(1 - rate * DECAY)
        W -= np.float32(rate * bias) * mean / (np.sqrt(square) + np.float32(1e-8))
    return W


def _batches(n: int, epochs: int, rng: np.random.Generator) -> Iterable[NDArray[np.int64]]:
    for _ in range(epochs):
        order = rng.permutation(n)
        yield from (order[start : start + BATCH] for start in range(0, n, BATCH))
