"""The checksum that tells one fitted coder from another."""

import numpy as np
import pytest

import embits
from embits.coders import coder_checksum
from tests.support.vectors import clustered

CODERS = [
    embits.NearLossless(n_bits=32, steps=5),
    embits.PaperAutoencoder(n_bits=32),
    embits.RandomHyperplanes(n_bits=32),
    embits.SignBits(),
    embits.ITQ(n_bits=16),
    embits.SparseBits(n_bits=32),
]


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: coder.method)
def test_a_saved_coder_keeps_its_checksum(coder, tmp_path):
    X = clustered(200, 24)
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, X), coder.fit(X))
    bits.save(tmp_path / "bits.safetensors")
    loaded = embits.load(tmp_path / "bits.safetensors").coder
    assert coder_checksum(loaded) == coder_checksum(coder)


def test_coders_of_other_methods_seeds_and_widths_differ():
    X = clustered(200, 24)
    coders = [
        embits.RandomHyperplanes(n_bits=24).fit(X),
        embits.RandomHyperplanes(n_bits=24, random_state=1).fit(X),
        embits.RandomHyperplanes(n_bits=23).fit(X),
        embits.ITQ(n_bits=24).fit(X),
        embits.SignBits().fit(X),
        embits.SignBits().fit(X[:, :23]),
    ]
    assert len({coder_checksum(coder) for coder in coders}) == len(coders)


def test_parameters_of_the_fit_do_not_count():
    X = np.eye(3, dtype=np.float32)
    coder = embits.RandomHyperplanes(n_bits=8, random_state=0).fit(X)
    before = coder_checksum(coder)
    coder.set_params(random_state=7)
    assert coder_checksum(coder) == before
