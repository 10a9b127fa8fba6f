"""Scores of float queries depend on the direction of the query alone, and are 0 for zeros."""

import numpy as np
import pytest

import embits


@pytest.fixture(scope="module")
def vectors():
    X = np.random.default_rng(0).normal(size=(300, 24)).astype("f4")
    X[:3] = 0
    return X


def coders():
    return {
        "whitened": embits.NearLossless(32, target="similarity", steps=2),
        "searched": embits.NearLossless(32, steps=2),
        "lsh": embits.RandomHyperplanes(32),
        "sign": embits.SignBits(strict=True),
        "itq": embits.ITQ(32),
    }


def binarized(name, X):
    coder = coders()[name].fit(X)
    return embits.BinaryVectors(None, coder.encode(X), coder)


@pytest.mark.parametrize("scale", [1e-10, 1e-22, 1e-25, 1e-30, 1e-36, 1e10, 1e17])
@pytest.mark.parametrize("name", ["whitened", "searched", "lsh", "sign"])
def test_scores_and_codes_do_not_depend_on_the_scale_of_a_query(vectors, name, scale):
    bits = binarized(name, vectors)
    queries = vectors[5:15]
    scaled = (queries.astype("f8") * scale).astype("f4")
    assert np.array_equal(bits.encode(scaled), bits.encode(queries))
    for metric in ("asymmetric", "decoded"):
        found = bits.search(scaled, k=5, metric=metric)
        expected = bits.search(queries, k=5, metric=metric)
        assert np.allclose(found.scores, expected.scores, atol=1e-4)


@pytest.mark.parametrize("name", list(coders()))
@pytest.mark.parametrize("metric", ["asymmetric", "decoded"])
@pytest.mark.parametrize("rescore", [None, 6])
def test_a_query_of_zeros_scores_zero(vectors, name, metric, rescore):
    bits = binarized(name, vectors)
    zeros = np.zeros((2, 24), "f4")
    found = bits.search(zeros, k=3, metric=metric, rescore=rescore)
    assert not found.scores.any()
    assert not bits.search(zeros[0], k=3, metric=metric).scores.any()
    assert bits.search(vectors[5], k=3, metric=metric).scores[0] > 0.3


def test_a_fit_on_very_small_vectors_gives_the_same_codes(vectors):
    small = np.ldexp(vectors, -80)
    expected = embits.NearLossless(32, steps=2).fit(vectors).encode(vectors)
    assert np.array_equal(embits.NearLossless(32, steps=2).fit(small).encode(small), expected)


@pytest.mark.parametrize("rescore", [None, 300])
def test_a_decoded_query_of_searched_codes_scores_one_against_itself(vectors, rescore):
    bits = binarized("searched", vectors)
    assert not bits.coder.is_threshold
    scores, rows = bits.search(bits.codes[:20], len(bits), metric="decoded", rescore=rescore)
    own = scores[rows == np.arange(20)[:, None]]
    assert np.allclose(own, 1, atol=1e-5)
    one = bits.search(bits.codes[4], k=3, metric="decoded")
    assert np.allclose(one.scores, scores[4, :3], atol=1e-6)
