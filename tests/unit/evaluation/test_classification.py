"""Texts by the mean of their words' vectors, and a softmax layer."""

import numpy as np
import pytest

import embits
from embits.evaluation import evaluate_classification, prepare
from embits.evaluation.data import Labelled, Split, read_split
from embits.evaluation.spaces import Lookup, as_space
from embits.evaluation.tasks.classification import mean_vectors, tokens, train_softmax


def test_texts_are_cut_where_the_vocabulary_says():
    lookup = Lookup(["don't", "stop", ".", "the", "n't", "do"])
    assert tokens(["Don't STOP the-music.", "do n't"], lookup) == [[0, 1, 3, 2], [5, 4]]


def test_mean_vectors_are_the_means(vectors):
    space = as_space(vectors)
    texts = ["word1 word2 word2", "nothing known", "word599"]
    split = Split(Labelled(texts, np.array([0, 1, 0])), Labelled(texts, np.array([0, 1, 0])))
    means = mean_vectors(prepare(split, space.lookup).train, space)
    m = vectors.matrix
    np.testing.assert_allclose(means, [(m[1] + 2 * m[2]) / 3, 0 * m[0], m[599]], rtol=1e-5)


def test_the_softmax_layer_learns_what_can_be_learned_and_repeats_itself():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype("f4")
    classes = np.argmax(X[:, :3] + [0, 0, 0.5], axis=1)
    W = train_softmax(X, classes, 3, seed=1)
    guesses = (X @ W[:-1] + W[-1]).argmax(axis=1)
    assert (guesses == classes).mean() > 0.9
    assert np.array_equal(W, train_softmax(X, classes, 3, seed=1))


def test_classification_is_close_to_scikit_learns(data):
    linear_model = pytest.importorskip("sklearn.linear_model")
    split = read_split(data / "classification/trec", most_rows=1500)
    words = sorted({word.lower() for text in split.train.texts for word in text.split()})
    rng = np.random.default_rng(0)
    space = as_space(embits.WordVectors(words, rng.normal(size=(len(words), 32))))
    task = prepare(split, space.lookup)
    ours = evaluate_classification(space, task, seeds=(0, 1))
    train, test = mean_vectors(task.train, space), mean_vectors(task.test, space)
    center, scale = train.mean(axis=0), train.std(axis=0)
    theirs = linear_model.LogisticRegression(C=0.1, max_iter=300)
    theirs.fit((train - center) / scale, task.train.classes)
    wanted = theirs.score((test - center) / scale, task.test.classes)
    assert ours["accuracy"] == pytest.approx(wanted, abs=0.04)
    assert 0 < ours["interval"] < 0.06
