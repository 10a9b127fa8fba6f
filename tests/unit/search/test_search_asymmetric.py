"""Float queries against bits, and the second look at a shortlist."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import InputError
from embits.search import asymmetric_top_k, top_k
from embits.search.rescoring import rescore_bits, rescore_floats
from tests.support.search_oracle import random_codes, scores


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    n_bits=st.integers(1, 600),
    k=st.integers(1, 20),
    spread=st.sampled_from(["normal", "one large", "whole numbers", "zeros"]),
)
def test_no_row_left_out_scores_more(seed, n, n_bits, k, spread):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, (n_bits + 7) // 8)
    z = rng.standard_normal(n_bits).astype(np.float32)
    if spread == "one large":
        z[0] = 1e6
    elif spread == "whole numbers":
        z = np.round(2 * z)
    elif spread == "zeros":
        z[:] = 0
    found, rows = asymmetric_top_k(codes, z, k)
    every = scores(codes, z[np.newaxis])[0]
    # Whole numbers add up without rounding, so even ties must be the oracle's.
    if spread in ("whole numbers", "zeros"):
        np.testing.assert_array_equal(rows, np.argsort(-every, kind="stable")[:k])
    best = -np.sort(-every)[:k]
    np.testing.assert_allclose(every[rows], best, rtol=0, atol=1e-12 * np.abs(z).sum())
    np.testing.assert_array_equal(found, every[rows].astype(np.float32))


@pytest.fixture(scope="module")
def many_codes():
    return np.random.default_rng(0).integers(0, 256, (600_000, 32), dtype=np.uint8)


@pytest.mark.parametrize("q", [1, 2, 20])
def test_threads_and_kernels_change_nothing(simd, many_codes, q):
    z = np.random.default_rng(1).standard_normal((q, 256))
    codes = many_codes if q < 20 else many_codes[:20_000]
    found, rows = asymmetric_top_k(codes, z, 10, threads=1)
    for threads in (2, 3, 8):
        again, again_rows = asymmetric_top_k(codes, z, 10, threads)
        np.testing.assert_array_equal(again_rows, rows)
        np.testing.assert_array_equal(again, found)
    every = scores(codes[rows[0]], z[:1].astype(np.float32))[0]
    np.testing.assert_array_equal(found[0], every.astype(np.float32))


def test_equal_codes_come_in_row_order():
    codes = np.tile(np.array([[1, 2], [7, 7]], np.uint8), (50, 1))
    rows = asymmetric_top_k(codes, np.linspace(-1, 1, 16), 60)[1]
    assert (np.diff(rows[:50]) == 2).all()
    assert (np.diff(rows[50:]) == 2).all()


@pytest.mark.parametrize(
    ("projections", "message"),
    [
        (np.ones(7), "projections have 7 bits, the codes hold 2 bytes"),
        (np.full(16, np.nan), "NaN"),
        (np.full(16, np.inf), "infinity"),
        (np.full(16, 1e300), "beyond float32"),
        (["a"] * 16, "expected numbers"),
        (np.ones((1, 1, 16)), "3 dimensions"),
    ],
)
def test_bad_projections_are_refused(projections, message):
    with pytest.raises(InputError, match=message):
        asymmetric_top_k(np.zeros((4, 2), np.uint8), projections, 1)


def test_nothing_is_found_in_nothing():
    codes = np.zeros((3, 2), np.uint8)
    assert asymmetric_top_k(codes[:0], np.ones((2, 16)), 5)[1].shape == (2, 0)
    assert asymmetric_top_k(codes, np.ones((0, 16)), 5)[1].shape == (0, 3)
    assert asymmetric_top_k(codes, np.ones(16), 0)[1].shape == (0,)


def test_a_shortlist_of_everything_rescored_is_the_asymmetric_search():
    rng = np.random.default_rng(0)
    codes, z = random_codes(rng, 300, 9), rng.standard_normal((4, 70))
    shortlist = top_k(codes, codes[:4], 300)[1]
    for found, expected in zip(
        rescore_bits(codes, z, shortlist, 12), asymmetric_top_k(codes, z, 12), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_floats_are_read_from_a_mapped_file_and_ordered_by_cosine(tmp_path):
    rng = np.random.default_rng(0)
    floats = rng.standard_normal((200, 20)).astype(np.float32)
    floats[3] = 0
    np.save(tmp_path / "floats.npy", floats)
    mapped = np.load(tmp_path / "floats.npy", mmap_mode="r")
    query = rng.standard_normal(20)
    shortlist = rng.permutation(200)[:50]
    cosines, rows = rescore_floats(mapped, query, shortlist, 5)
    expected = floats @ query / np.maximum(np.linalg.norm(floats, axis=1), 1e-30)
    expected /= np.linalg.norm(query)
    best = sorted(shortlist, key=lambda row: -expected[row])[:5]
    assert rows.tolist() == best
    np.testing.assert_allclose(cosines, expected[best], rtol=1e-5)


def test_a_vector_of_zeros_has_cosine_zero():
    cosines, rows = rescore_floats(np.zeros((3, 2)), np.ones((1, 2)), np.array([[2, 0, 1]]), 2)
    assert cosines.tolist() == [[0, 0]]
    assert rows.tolist() == [[0, 1]]


@pytest.mark.parametrize("shortlist", [[[0, 1]], [0.5], [3], [-1], 0])
def test_bad_shortlists_are_refused(shortlist):
    with pytest.raises(InputError, match="the shortlist"):
        rescore_bits(np.zeros((3, 2), np.uint8), np.ones(16), np.array(shortlist), 1)
