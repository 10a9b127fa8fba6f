"""The sample of word vectors that comes with the package."""

import numpy as np

import embits


def test_the_sample_is_word_vectors_of_real_words():
    vectors = embits.sample_vectors()
    assert vectors.matrix.shape == (2000, 50)
    assert vectors.matrix.dtype == np.float32
    assert len(set(vectors.words)) == 2000
    assert {"queen", "music", "river", "monday"} <= set(vectors.words)


def test_codes_of_the_sample_find_related_words():
    bits = embits.binarize(embits.sample_vectors(), n_bits=128, method="itq")
    assert {word for word, _ in bits.most_similar("monday", topn=3)} <= {
        "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    }  # fmt: skip
    assert bits.similarity("football", "basketball") > bits.similarity("football", "monday") + 0.15
