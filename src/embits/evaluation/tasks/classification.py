"""Text classification with one softmax layer on the mean of the word vectors, as in the paper.

Tokens, split, feature scaling (mean 0, standard deviation 1), optimizer and seeds are the same for
floats, codes and rebuilt floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from embits.arrays import blocks
from embits.evaluation.data import Labelled, Split
from embits.evaluation.results import Entry, Score, names_at
from embits.evaluation.spaces import MISSING, Floats, Lookup, Rows, Space
from embits.evaluation.statistics import NO_SAMPLES, Samples
from embits.evaluation.tasks.base import Subject, Task

SEEDS = (0, 1, 2)
EPOCHS = 20
MIN_STEPS = 500  # more epochs on small data sets
BATCH = 128
STEP = 0.003
DECAY = 1e-4  # weight decay per step
LABELS = {"ag_news": "AG-News", "dbpedia": "DBpedia", "trec": "TREC", "sst2": "SST-2"}
_PIECES = re.compile(r"\w+|[^\w\s]")
_WORDS = 2048  # words per block


class Bags(NamedTuple):
    """Tokenized texts: the rows of their words, concatenated, and where each text ends in them."""

    rows: Rows
    ends: Rows
    classes: Rows


class Prepared(NamedTuple):
    """A data set tokenized with one vocabulary."""

    train: Bags
    test: Bags
    n_classes: int


def prepare(split: Split, lookup: Lookup) -> Prepared:
    """Tokenize the training and test texts of a data set with one vocabulary."""
    n_classes = 1 + int(max(split.train.classes.max(), split.test.classes.max()))
    return Prepared(_bags(split.train, lookup), _bags(split.test, lookup), n_classes)


def tokens(texts: Sequence[str], lookup: Lookup) -> list[list[int]]:
    """Rows of the known words of texts; unknown ones are split into letters and punctuation."""
    words = {word for text in texts for word in text.split()}
    whole = _known_rows(words, lookup)
    parts = {word: _PIECES.findall(word) for word in words - whole.keys()}
    pieces = _known_rows({piece for of_word in parts.values() for piece in of_word}, lookup)
    rows = {word: [row] for word, row in whole.items()}
    rows |= {word: [pieces[p] for p in of_word if p in pieces] for word, of_word in parts.items()}
    return [[row for word in text.split() for row in rows[word]] for text in texts]


def _known_rows(words: Iterable[str], lookup: Lookup) -> dict[str, int]:
    words = list(words)
    pairs = zip(words, lookup.rows(words).tolist(), strict=True)
    return {word: row for word, row in pairs if row != MISSING}


def _bags(labelled: Labelled, lookup: Lookup) -> Bags:
    lists = tokens(labelled.texts, lookup)
    rows = np.array([row for line in lists for row in line], dtype=np.int64)
    return Bags(rows, np.cumsum([len(line) for line in lists]), labelled.classes)


def mean_vectors(bags: Bags, space: Space) -> Floats:
    """The mean vector of each text, shape (texts, width); zeros if no word is known."""
    used, place = np.unique(bags.rows, return_inverse=True)
    table = space.features(used).astype(np.float32, copy=False)
    means = np.zeros((len(bags.ends), table.shape[1]), dtype=np.float32)
    starts = np.concatenate([[0], bags.ends[:-1]]) if len(bags.ends) else bags.ends
    filled = np.flatnonzero(bags.ends > starts)
    first = 0
    while first < len(filled):  # texts of about _WORDS words, to stay in the cache
        limit = starts[filled[first]] + _WORDS
        last = max(first + 1, int(np.searchsorted(bags.ends[filled], limit, side="right")))
        texts = filled[first:last]
        start, end = starts[texts[0]], bags.ends[texts[-1]]
        means[texts] = np.add.reduceat(table[place[start:end]], starts[texts] - start, axis=0)
        first = last
    means /= np.maximum(1, bags.ends - starts)[:, np.newaxis].astype(np.float32)
    return means


def evaluate_classification(
    space: Space,
    task: Prepared,
    seeds: Sequence[int] = SEEDS,
    samples: Samples = NO_SAMPLES,
    name: str = "",
) -> Entry:
    """Mean accuracy on the test texts over trainings with `seeds`, as in `evaluate --json`.

    It is `{"accuracy", "interval", "train", "test"}`: `interval` is the half-width of a 95 %
    confidence interval that includes the variance of the seeds and of the test sample. `samples`
    receives the share of correct guesses of each text, under `name`.
    """
    train, test = mean_vectors(task.train, space), mean_vectors(task.test, space)
    center, scale = train.mean(axis=0), train.std(axis=0)
    for features in (train, test):
        features -= center
        features /= np.where(scale > 1e-7, scale, 1)
    accuracies, correct = [], np.zeros(len(test))
    for seed in seeds:
        weights = train_softmax(train, task.train.classes, task.n_classes, seed)
        is_right = (test @ weights[:-1] + weights[-1]).argmax(axis=1) == task.test.classes
        accuracies.append(float(is_right.mean()))
        correct += is_right / len(seeds)
    samples.add_mean(f"classification.{name}.accuracy", correct, f"classification.{name}")
    mean = sum(accuracies) / len(accuracies)
    variance = mean * (1 - mean) / len(test)
    if len(accuracies) > 1:
        variance += float(np.var(accuracies, ddof=1)) / len(accuracies)
    interval = 1.96 * math.sqrt(variance)
    return {"accuracy": mean, "interval": interval, "train": len(train), "test": len(test)}


def train_softmax(X: Floats, classes: Rows, n_classes: int, seed: int) -> Floats:
    """Train one softmax layer with AdamW. Returns weights (width + 1, n_classes), biases last."""
    rng = np.random.default_rng(seed)
    X = np.hstack([X, np.ones((len(X), 1), dtype=np.float32)])
    targets = np.eye(n_classes, dtype=np.float32)[classes]
    W = np.zeros((X.shape[1], n_classes), dtype=np.float32)
    mean, square = np.zeros_like(W), np.zeros_like(W)
    steps = -(-len(X) // BATCH)
    epochs = max(EPOCHS, -(-MIN_STEPS // steps))
    orders = (rng.permutation(len(X)) for _ in range(epochs))
    batches = (order[part] for order in orders for part in blocks(len(X), BATCH))
    for step, batch in enumerate(batches, 1):
        x = X[batch]
        logits = x @ W
        guesses = np.exp(logits - logits.max(axis=1, keepdims=True))
        guesses /= guesses.sum(axis=1, keepdims=True)
        gradient = x.T @ (guesses - targets[batch]) / np.float32(len(x))
        mean += np.float32(0.1) * (gradient - mean)
        square += np.float32(0.001) * (gradient * gradient - square)
        rate = STEP * (1 - step / (epochs * steps))  # decreases linearly to zero
        bias = math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        W *= np.float32(1 - rate * DECAY)
        W -= np.float32(rate * bias) * mean / (np.sqrt(square) + np.float32(1e-8))
    return W


class Classification(Task):
    """Accuracy on every data set."""

    name = "classification"
    title = "Classification"
    caption = "Accuracy of a softmax layer on the mean vector of a text, × 100."
    reads_data = of_rebuilt = True

    def run(self, subject: Subject) -> Entry:
        space, samples = subject.space, subject.samples

        def read() -> dict[str, Prepared]:
            subject.context.say("reading texts")
            splits = subject.context.data.classification() if subject.context.data else ()
            return {name: prepare(split, space.lookup) for name, split in splits}

        scores = {}
        for name, texts in subject.context.once(self.name, read, space.lookup).items():
            subject.context.say(f"{self.name}: {name}")
            scores[name] = evaluate_classification(space, texts, samples=samples, name=name)
        return scores

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        labels = {name: label(name) for name in names_at(entries, self.name)}
        return [self.score(each, name, "accuracy", heading=each) for name, each in labels.items()]


def label(name: str) -> str:
    """The name of a data set in tables, such as "Yelp Full" for "yelp_full"."""
    is_of_paper = name.startswith(("yahoo_", "amazon_", "yelp_"))
    return LABELS.get(name, name.replace("_", " ").title() if is_of_paper else name)
