"""MultiIndex gives what a scan gives, ties included."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import InputError
from embits.search import MultiIndex, top_k


def clustered_codes(rng, n, width):
    """Codes in clumps around a few centers, as real ones are, some of them equal."""
    centers = rng.integers(0, 256, (max(n // 50, 1), width), dtype=np.uint8)
    codes = centers[rng.integers(0, len(centers), n)]
    for _ in range(int(rng.integers(0, 6))):
        rows = rng.integers(0, n, n)
        codes[rows, rng.integers(0, width, n)] ^= (1 << rng.integers(0, 8, n)).astype(np.uint8)
    return codes


def assert_same_as_scan(index, codes, queries, k):
    for found, expected in zip(index.top_k(queries, k), top_k(codes, queries, k), strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 20_000),
    width=st.integers(1, 20),
    bits=st.integers(5, 16),
    k=st.sampled_from([1, 2, 10, 100, 3000]),
)
def test_it_is_exact_for_any_cut_of_the_code(seed, n, width, bits, k):
    rng = np.random.default_rng(seed)
    codes = clustered_codes(rng, n, width)
    queries = np.concatenate(
        [codes[rng.integers(0, n, 3)], rng.integers(0, 256, (2, width), dtype=np.uint8)]
    )
    index = MultiIndex(codes, n_chunks=-(-8 * width // bits))
    assert_same_as_scan(index, codes, queries, k)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 20_000),
    width=st.integers(1, 12),
    k=st.sampled_from([1, 10, 100]),
    share=st.sampled_from([0, 0.005, 0.2, 0.9]),
)
def test_filters_give_what_a_scan_gives(seed, n, width, k, share):
    rng = np.random.default_rng(seed)
    codes = clustered_codes(rng, n, width)
    queries = codes[rng.integers(0, n, 5)]
    index = MultiIndex(codes, n_chunks=max(1, 8 * width // 10))
    mask = rng.random(n) < share
    mask[np.bitwise_count(codes ^ queries[0]).sum(axis=1) < 6] = False  # the nearest do not pass
    own = [rng.random(n) < share for _ in queries]
    for filters in ({"where": mask}, {"exclude": mask}, {"where": own, "exclude": mask}):
        expected = top_k(codes, queries, k, **filters)
        for found, scanned in zip(index.top_k(queries, k, **filters), expected, strict=True):
            np.testing.assert_array_equal(found, scanned)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    codes = clustered_codes(rng, 2_500_000, 8)
    return codes, MultiIndex(codes)


@pytest.mark.parametrize("k", [1, 10, 100, 20_000])
def test_large_sets_get_tables_and_stay_exact(simd, large, k):
    codes, index = large
    assert index.n_chunks > 0
    assert index.nbytes > codes.nbytes
    assert_same_as_scan(index, codes, codes[:200:20], k)
    assert_same_as_scan(index, codes, np.full(8, 0x5A, np.uint8), k)


def test_it_may_be_searched_by_many_threads(large):
    codes, index = large
    queries = codes[:64]
    expected = index.top_k(queries, 10, threads=1)[1]
    np.testing.assert_array_equal(index.top_k(queries, 10, threads=3)[1], expected)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: index.top_k(queries, 10)[1], range(4)):
            np.testing.assert_array_equal(found, expected)


def test_few_or_wide_codes_are_scanned():
    rng = np.random.default_rng(0)
    for shape in ((1000, 8), (600_000, 32), (0, 8)):
        codes = rng.integers(0, 256, shape, dtype=np.uint8)
        index = MultiIndex(codes)
        assert (len(index), index.n_chunks, index.nbytes) == (shape[0], 0, 0)
        assert_same_as_scan(index, codes, codes[:2], 5)


def test_the_index_keeps_its_codes_alive():
    index = MultiIndex(np.arange(200, dtype=np.uint8).repeat(2).reshape(200, 2), n_chunks=2)
    assert index.top_k(np.array([7, 7], np.uint8), 1)[1].tolist() == [7]


@pytest.mark.parametrize("n_chunks", [0, 2, 65, 4.0])
def test_bad_cuts_are_refused(n_chunks):
    with pytest.raises(InputError, match=r"n_chunks is .* from 3 to 64"):
        MultiIndex(np.zeros((3, 8), np.uint8), n_chunks)


def test_bad_queries_are_refused():
    with pytest.raises(InputError, match="9 bytes wide"):
        MultiIndex(np.zeros((3, 8), np.uint8)).top_k(np.zeros(9, np.uint8), 1)


def test_there_may_be_as_many_chunks_as_bits():
    codes = np.arange(200, dtype=np.uint8).repeat(2).reshape(200, 2)
    assert MultiIndex(codes, n_chunks=16).n_chunks == 16
    with pytest.raises(InputError, match="n_chunks is 17"):
        MultiIndex(codes, n_chunks=17)
