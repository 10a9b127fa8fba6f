"""Values near the limit of float32 are encoded right or refused in one line, without warnings."""

import warnings

import numpy as np
import pytest

from embits import BinaryVectors
from embits.coders import METHODS, coder_class
from embits.coders.registry import BUILT_IN  # the examples of the docs register others
from embits.errors import InputError
from tests.unit.coders.test_same_codes import exact_bits

LINEAR = ("lsh", "itq")
SCALES = (1e20, 1e37, 3e38)
TOO_LARGE = r"^vectors have values beyond 1e18: scale them down$"
X = np.random.default_rng(0).uniform(-1, 1, (120, 12)).astype("f4")


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def fitted(method, rows=X):
    maker = coder_class(method)
    return (maker() if method == "sign" else maker(n_bits=20)).fit(rows)


def test_a_fit_on_values_that_cannot_be_squared_is_refused():
    for method in [coder.method for coder in BUILT_IN]:
        for scale in () if method == "paper" else SCALES:
            with pytest.raises(InputError, match=TOO_LARGE):
                fitted(method, X * np.float32(scale))


def test_codes_of_large_values_are_those_of_exact_sums():
    for method in LINEAR:
        coder = fitted(method)
        for scale in SCALES:
            large = X[:5] * np.float32(scale)
            bits = np.unpackbits(coder.encode(large), axis=1, count=coder.n_bits_)
            assert np.array_equal(bits, exact_bits(*coder.factors(large)))


@pytest.mark.parametrize("method", METHODS)
def test_queries_of_large_values_are_answered_or_refused(method):
    coder = fitted(method)
    bits = BinaryVectors(None, coder.encode(X), coder)
    large = X[:3] * np.float32(3e38)
    for metric in ("hamming", "asymmetric", "decoded"):
        if method in ("near-lossless", "neural", "sparse") or (
            method in LINEAR and metric == "asymmetric"
        ):
            with pytest.raises(InputError, match=TOO_LARGE):
                bits.search(large, 5, metric=metric)
        else:
            assert np.isfinite(bits.search(large, 5, metric=metric)[0]).all()
