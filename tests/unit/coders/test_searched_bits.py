"""Codes chosen by search: the native encoder against a slow one, and what a fit makes of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits import _core
from embits.coders import NearLossless
from embits.coders.backend import product
from embits.coders.near_lossless.bit_search import least_squares, signs
from embits.coders.near_lossless.encoder import SWEEPS, UNIT_BITS, Encoder


def unit(n, dims, seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, 6)) @ rng.normal(size=(6, dims)) + rng.normal(size=(n, dims))).astype(
        "f4"
    )
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def an_encoder(n_bits, dims, seed=0, pull=2.0):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(n_bits, dims)) / (n_bits * dims) ** 0.5
    o = rng.normal(size=dims) * 0.1 / dims**0.5
    W, t = 1.3 * D, D @ o
    length = float((D * D).sum())
    return Encoder.of(W, t, 2 * D, o - D.sum(axis=0), length, pull)


def length_of(x):
    """In eight sums, added up in one order."""
    squares = np.concatenate([x * x, np.zeros(-len(x) % 8)]).reshape(-1, 8)
    s = np.add.accumulate(squares, axis=0)[-1]
    return np.sqrt(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])))


def slow_code(encoder, x):
    """One bit at a time, in Python's integers."""
    x, n_bits = x.astype(np.float64), len(encoder.thresholds)
    norm = length_of(x)
    row = np.rint(x * (2.0**UNIT_BITS / norm)).astype(int) if norm > 1e-30 else 0 * x.astype(int)
    half = 1 << (encoder.shift - 1) if encoder.shift else 0
    scores = encoder.weights[:, : len(x)].astype(int) @ row + half
    scores = (scores >> encoder.shift) - encoder.thresholds
    gram, centre = encoder.gram[:, :n_bits].astype(int), encoder.centre.astype(int)
    b = np.where(scores >= 0, 1, -1)
    for _ in range(SWEEPS):
        before = b.copy()
        for i in range(n_bits):
            v = gram @ b + centre
            excess = int(b @ (v + centre)) + encoder.offset - encoder.length
            grown = 4 * (gram[i, i] - b[i] * v[i])
            bend = np.float32(grown) * np.float32(2 * excess + grown)
            along = b[i] * (scores[i] + centre[i] - v[i]) + gram[i, i]
            if np.float32(along) + encoder.pull * bend < 0:
                b[i] = -b[i]
        if np.array_equal(b, before):
            break
    return np.packbits(b > 0)


@pytest.mark.parametrize("simd", _core.available_simd())
@pytest.mark.parametrize(("n_bits", "dims"), [(1, 1), (3, 5), (31, 40), (64, 16), (100, 33)])
def test_the_native_encoder_gives_the_slow_ones_codes(simd, n_bits, dims):
    encoder, x = an_encoder(n_bits, dims), unit(37, dims)
    x[5] = 0
    used = _core.simd()
    _core.use_simd(simd)
    try:
        codes = encoder.encode(x)
    finally:
        _core.use_simd(used)
    assert np.array_equal(codes, [slow_code(encoder, row) for row in x])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 24), st.integers(0, 99), st.floats(0, 50))
def test_the_native_encoder_agrees_for_any_width(n_bits, dims, seed, pull):
    encoder, x = an_encoder(n_bits, dims, seed, pull), unit(5, dims, seed)
    assert np.array_equal(encoder.encode(x), [slow_code(encoder, row) for row in x])


def test_a_code_does_not_depend_on_its_block_its_length_or_the_threads():
    encoder, x = an_encoder(96, 48), unit(300, 48)
    codes = encoder.encode(x)
    for threads in (1, 2, 5):
        assert np.array_equal(encoder.encode(x, threads), codes)
    assert np.array_equal(
        np.concatenate([encoder.encode(x[i : i + 7]) for i in range(0, 300, 7)]), codes
    )
    assert np.array_equal(encoder.encode(np.ldexp(x, 5)), codes)
    assert np.array_equal(encoder.encode(x[::3]), codes[::3])


def test_a_fit_on_more_rows_than_a_round_takes(monkeypatch):
    monkeypatch.setattr("embits.coders.near_lossless.bit_search.MAX_ROWS", 700)
    coder = NearLossless(n_bits=64, steps=5).fit(unit(2000, 16))
    assert coder.encode(unit(3, 16)).shape == (3, 8)


def test_a_search_lowers_the_error_of_rebuilt_vectors():
    x = unit(2000, 32)
    coder = NearLossless(n_bits=96, steps=30).fit(x)
    assert not coder.is_threshold
    searched = coder.encode(x)
    thresholds = np.packbits(coder.project(x) >= 0, axis=1)
    assert 0.01 < np.unpackbits(searched ^ thresholds, axis=1).mean() < 0.3

    def cosine(codes):
        rebuilt = coder.inverse_transform(codes)
        return np.mean((x * rebuilt).sum(axis=1) / np.linalg.norm(rebuilt, axis=1))

    assert cosine(searched) > cosine(thresholds) + 0.005


def test_few_bits_of_many_dimensions_are_left_as_the_thresholds_give_them():
    X = unit(600, 70)
    assert NearLossless(n_bits=16, steps=2).fit(X).is_threshold
    assert not NearLossless(n_bits=64, steps=2).fit(X).is_threshold


def test_the_score_of_a_vector_against_its_own_code_is_about_its_rebuilt_cosine():
    x = unit(2000, 32)
    coder = NearLossless(n_bits=96, steps=30).fit(x)
    weights, offsets = coder.query_weights(x)
    own = (weights * signs(coder.encode(x), 96)).sum(axis=1) + offsets
    rebuilt = coder.inverse_transform(coder.encode(x))
    cosines = (x * rebuilt).sum(axis=1) / np.linalg.norm(rebuilt, axis=1)
    assert own.mean() == pytest.approx(cosines.mean(), abs=0.02)
    assert np.allclose(coder.query_weights(7 * x)[0], weights, atol=1e-5)


def test_a_damaged_search_is_refused():
    coder = NearLossless(n_bits=64, steps=5).fit(unit(600, 16))
    assert not coder.is_threshold
    for search in (np.zeros(3), np.array([-1.0, 2, 1, 0, 1, 0]), np.array([1, 1e9, 1, 0, 1, 0])):
        state = {**coder.state(), "search": search}
        with pytest.raises(ValueError, match="search"):
            NearLossless.from_state(coder.get_params(), state, 16, 64).encode(unit(3, 16))


def test_least_squares_is_that_of_numpy():
    x = unit(3000, 20)
    codes = np.packbits(x @ np.random.default_rng(0).normal(size=(20, 24)) >= 0, axis=1)
    D, o, length = least_squares(codes, x, 24)
    b = signs(codes, 24).astype(np.float64)
    ones = np.c_[b, np.ones(len(b))]
    wanted = np.linalg.lstsq(ones, x.astype(np.float64), rcond=None)[0]
    assert np.allclose(D, wanted[:-1], atol=1e-3)
    assert np.allclose(o, wanted[-1], atol=1e-3)
    assert length == pytest.approx(np.mean(np.sum((b @ D + o) ** 2, axis=1)), abs=2e-3)


@pytest.mark.parametrize("simd", _core.available_simd())
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 33, 19), (50, 600, 40), (64, 16, 48)])
def test_products_are_the_same_on_every_instruction_set(simd, shape):
    n, k, m = shape
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, k)).astype("f4"), rng.normal(size=(m, k)).astype("f4").T
    wanted = np.zeros((n, m), np.float32)
    for i in range(k):  # in this order, each product rounded
        wanted += a[:, i, None] * b[i]
    used = _core.simd()
    _core.use_simd(simd)
    try:
        assert np.array_equal(product(a, b), wanted)
        assert np.array_equal(product(a.T.copy().T, b.copy()), wanted)
    finally:
        _core.use_simd(used)


def degenerate_rows():
    rng = np.random.default_rng(0)
    pair = np.array([[1, 2, 3, 4], [-1, 0, 2, 3]], "f4")
    one, few = np.zeros((300, 4), "f4"), np.zeros((300, 4), "f4")
    one[0], few[:5] = 1, rng.normal(size=(5, 4))
    return {
        "all zero": np.zeros((300, 4), "f4"),
        "all equal": np.ones((300, 4), "f4"),
        "two values": pair[rng.integers(0, 2, 300)],
        "one is not zero": one,
        "few are not zero": few,
    }


@pytest.mark.filterwarnings("ignore:.* all of 300 rows are")
@pytest.mark.parametrize("kind", degenerate_rows())
def test_rows_that_are_zero_or_equal_fit_and_load(kind, tmp_path):
    rows = degenerate_rows()[kind]
    bits = embits.binarize(rows, n_bits=8)
    bits.save(tmp_path / "codes.safetensors")
    loaded = embits.load(tmp_path / "codes.safetensors")
    assert np.array_equal(loaded.encode(rows), bits.codes)
    assert np.isfinite(loaded.decode()).all()
    equal = np.all(rows == rows[0], axis=1)
    assert (bits.codes[equal] == bits.codes[0]).all()
