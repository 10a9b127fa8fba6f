"""The code of a vector depends on the vector and the coder, not on how rows are cut into blocks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embits.coders import METHODS, backend, coder_class
from embits.coders.linear import pack_signs
from embits.coders.registry import BUILT_IN


def exact_bits(rows, weights):
    """The oracle: rational numbers, which do not round."""
    fractions = [[[Fraction(float(v)) for v in row] for row in m] for m in (rows, weights)]
    bits = [
        [sum(x * w for x, w in zip(row, weight, strict=True)) >= 0 for weight in fractions[1]]
        for row in fractions[0]
    ]
    return np.array(bits, dtype=np.uint8)


def nearly_orthogonal(rng, n, n_bits, k):
    """Rows and weights whose products are zero but for the last digits."""
    weights = rng.normal(size=(n_bits, k))
    rows = rng.normal(size=(n, k))
    directions = np.linalg.qr(weights[: k - 1].T)[0]
    rows -= rows @ directions @ directions.T
    return rows.astype("f4"), weights.astype("f4")


@given(
    st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 19), st.integers(2, 40),
    st.sampled_from([1.0, 1e-30, 1e-18, 1e17]), st.booleans(),
)  # fmt: skip
def test_signs_of_products_are_those_of_exact_sums(seed, n, n_bits, k, scale, with_zeros):
    rows, weights = nearly_orthogonal(np.random.default_rng(seed), n, n_bits, k)
    rows *= np.float32(scale)
    if with_zeros:
        rows[0] = 0
        weights[0] = 0
    codes = pack_signs(rows, weights)
    assert np.array_equal(np.unpackbits(codes, axis=1, count=n_bits), exact_bits(rows, weights))
    assert not np.unpackbits(codes, axis=1)[:, n_bits:].any()


def test_sums_that_cancel_exactly_count_as_zero():
    x = np.float32([[1e10, 1e-10, -1e10, -1e-10], [1e10, 1e-10, -1e10, -1.1e-10]])
    assert pack_signs(x, np.ones((1, 4), np.float32)).tolist() == [[128], [0]]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_rows_have_the_same_code_in_every_block(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 33)).astype("f4")
    X[7] = 0
    maker = coder_class(method)
    coder = maker() if method == "sign" else maker(n_bits=50)
    coder.fit(X[:500])
    state = coder.state()
    if len(state.get("W", state.get("planes", []))):  # put rows right on the hyperplanes
        planes = state.get("W", state.get("planes"))[:20].astype("f8")
        directions = np.linalg.qr(planes.T)[0]
        X[100:2100] -= (X[100:2100] @ directions @ directions.T).astype("f4")
    whole = coder.transform(X)
    for size in (1, 2, 7, 31, 100, 2047):
        parts = [coder.transform(X[at : at + size]) for at in range(0, len(X), size)]
        assert np.array_equal(np.concatenate(parts), whole), size
    order = rng.permutation(len(X))
    assert np.array_equal(coder.transform(X[order]), whole[order])


def test_another_array_library_gives_the_codes_of_numpy(monkeypatch):
    """What a GPU runs, on a strict library of the array API that needs none."""
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setattr(backend, "backend", lambda *_: backend.Backend(strict))
    X = np.random.default_rng(0).normal(size=(1500, 33)).astype("f4")
    for maker in BUILT_IN:  # the examples of the docs register others
        params = {"sign": {}, "near-lossless": {"steps": 2}}.get(maker.method, {"n_bits": 50})
        coder = maker(**params).fit(X[:150])  # too few rows for a search of bits
        assert coder.is_threshold
        assert np.array_equal(coder.encode(X, device="cuda"), coder.encode(X)), maker.method
