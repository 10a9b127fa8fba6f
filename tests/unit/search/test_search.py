"""top_k: what it returns, what it refuses, and that threads change nothing."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import InputError
from embits.search import top_k
from tests.support.search_oracle import hamming_top_k, random_codes


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 300),
    width=st.integers(1, 80),
    q=st.integers(0, 5),
    k=st.integers(0, 320),
    threads=st.sampled_from([None, 1, 2, 8]),
)
def test_it_is_a_stable_sort_by_distance(seed, n, width, q, k, threads):
    rng = np.random.default_rng(seed)
    codes, queries = random_codes(rng, n, width), random_codes(rng, q, width)
    distances, rows = top_k(codes, queries, k, threads)
    expected_distances, expected_rows = hamming_top_k(codes, queries, k)
    assert (distances.dtype, rows.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(distances, expected_distances)
    np.testing.assert_array_equal(rows, expected_rows)


def test_equal_codes_come_in_row_order(simd):
    codes = np.zeros((5000, 8), dtype=np.uint8)
    distances, rows = top_k(codes, codes[0], 4000)
    assert not distances.any()
    np.testing.assert_array_equal(rows, np.arange(4000))


def test_rows_that_get_ever_nearer_are_all_taken(simd):
    distance = np.arange(512, -1, -1)
    codes = np.packbits(np.arange(512) < distance[:, np.newaxis], axis=1)
    codes = np.repeat(codes, 9, axis=0)
    distances, rows = top_k(codes, np.zeros(64, np.uint8), 20)
    assert distances.tolist() == 9 * [0] + 9 * [1] + 2 * [2]
    assert rows.tolist() == [*range(4608, 4617), *range(4599, 4608), 4590, 4591]


def test_one_query_has_one_dimension():
    codes = random_codes(np.random.default_rng(0), 50, 16)
    distances, rows = top_k(codes, codes[7], 3)
    assert distances.shape == rows.shape == (3,)
    assert top_k(codes, codes[7:8], 3)[0].shape == (1, 3)


def test_k_beyond_n_returns_n_and_nothing_is_found_in_nothing():
    codes = random_codes(np.random.default_rng(0), 5, 4)
    assert top_k(codes, codes, 100)[1].shape == (5, 5)
    assert top_k(codes, codes, 0)[1].shape == (5, 0)
    assert top_k(codes, codes[:0], 3)[1].shape == (0, 3)
    assert top_k(codes[:0], codes, 3)[1].shape == (5, 0)


def test_strided_arrays_and_read_only_arrays_are_searched():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 256, (400, 32), dtype=np.uint8)
    codes, queries = wide[::3, 4:20], wide[:6:2, 4:20]
    codes.setflags(write=False)
    np.testing.assert_array_equal(top_k(codes, queries, 9)[1], hamming_top_k(codes, queries, 9)[1])
    fortran = np.asfortranarray(codes)
    np.testing.assert_array_equal(top_k(fortran, queries, 9)[1], top_k(codes, queries, 9)[1])


@pytest.mark.parametrize(
    ("codes", "queries", "k", "threads", "message"),
    [
        (np.zeros((3, 8), np.int8), np.zeros(8, np.uint8), 1, None, "codes are int8, expected"),
        (np.zeros((3, 8), np.uint8), np.zeros(8), 1, None, "queries are float64, expected"),
        (np.zeros((3, 8), np.uint8), np.zeros(7, np.uint8), 1, None, "7 bytes wide, the codes 8"),
        (np.zeros(8, np.uint8), np.zeros(8, np.uint8), 1, None, "codes have 1 dimension"),
        (np.zeros((3, 8), np.uint8), np.uint8(0), 1, None, "queries have 0 dimensions"),
        (np.zeros((3, 8), np.uint8), np.zeros((1, 1, 8), np.uint8), 1, None, "have 3 dimensions"),
        (np.zeros((3, 8), np.uint8), np.zeros(8, np.uint8), -1, None, "k is -1, expected"),
        (np.zeros((3, 8), np.uint8), np.zeros(8, np.uint8), 1.5, None, "k is 1.5, expected"),
        (np.zeros((3, 8), np.uint8), np.zeros(8, np.uint8), 1, 0, "threads is 0"),
        (np.zeros((3, 8), np.uint8), np.zeros(8, np.uint8), 1, "2", "threads is '2'"),
        (None, np.zeros(8, np.uint8), 1, None, "codes are object, expected packed bits"),
    ],
)
def test_bad_input_is_refused(codes, queries, k, threads, message):
    with pytest.raises(InputError, match=message):
        top_k(codes, queries, k, threads)


@pytest.fixture(scope="module")
def many_codes():
    """32 MB of codes with few distances: enough for four threads, and ties everywhere."""
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (1 << 20, 1), dtype=np.uint8).repeat(32, axis=1)


@pytest.mark.parametrize("q", [1, 3, 40])
@pytest.mark.parametrize("k", [1, 10, 5000])
def test_any_number_of_threads_gives_the_same_answer(many_codes, q, k):
    queries = many_codes[:q]
    distances, rows = top_k(many_codes, queries, k, threads=1)
    for threads in (2, 3, 4, 5, 6, 7, 8, 100_000, None):
        again_distances, again_rows = top_k(many_codes, queries, k, threads)
        np.testing.assert_array_equal(again_distances, distances)
        np.testing.assert_array_equal(again_rows, rows)


def test_python_threads_may_search_at_once(many_codes):
    expected = [top_k(many_codes, many_codes[q], 10)[1] for q in range(6)]

    def search(q: int) -> bool:
        found = [top_k(many_codes, many_codes[q], 10, threads)[1] for threads in (1, 2, 3)]
        return all(np.array_equal(rows, expected[q]) for rows in found)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(search, range(6)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_searches_with_threads_as_well(many_codes):
    expected = top_k(many_codes, many_codes[5], 10, threads=2)[1]
    child = os.fork()
    if child == 0:
        same = np.array_equal(top_k(many_codes, many_codes[5], 10, threads=2)[1], expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("k", [100_000, 1 << 20])
def test_k_up_to_n_is_a_whole_sort(many_codes, k):
    distances, rows = top_k(many_codes, many_codes[9], k)
    apart = np.unpackbits(many_codes[:, :1] ^ many_codes[9, :1], axis=1).sum(axis=1) * 32
    np.testing.assert_array_equal(rows, np.argsort(apart, kind="stable")[:k])
    np.testing.assert_array_equal(distances, apart[rows])
