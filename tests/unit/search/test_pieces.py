"""Codes in pieces give the answers of one array, whatever is removed and filtered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits import _core
from embits.search import asymmetric_top_k, pairs_within, top_k, within
from embits.search.rescoring import rescore_bits
from embits.search.stored import RowMap, StoredCodes


def some_pieces(rng, n, width, cuts, removed_share):
    """An array, and the same codes cut into pieces with removed rows among them."""
    stored = rng.integers(0, 256, (n, width), dtype=np.uint8)
    stored[: n // 2] &= 15  # some are near each other
    places = np.sort(rng.integers(0, n + 1, cuts))
    removed = np.flatnonzero(rng.random(n) < removed_share)
    arrays = [part.copy() for part in np.split(stored, places)]
    rows = RowMap([len(array) for array in arrays], removed)
    return np.delete(stored, removed, axis=0), StoredCodes(arrays, rows)


CASES = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 5, 300, 5000, 20_000]),
    st.sampled_from([1, 3, 8, 32]),
    st.integers(0, 30),
    st.sampled_from([0.0, 0.01, 0.5, 0.99]),
)


@settings(max_examples=60, deadline=None)
@given(CASES, st.sampled_from([1, 3, 200]), st.sampled_from([1, 10, 400]), st.booleans())
def test_pieces_answer_as_one_array(case, n_queries, k, filtered):
    rng = np.random.default_rng(case[0])
    one, pieces = some_pieces(rng, *case[1:])
    queries = rng.integers(0, 256, (n_queries, one.shape[1]), dtype=np.uint8)
    queries[::2] &= 15
    filters = {}
    if filtered:
        filters["where"] = rng.random(len(one)) < rng.choice([0.02, 0.5, 0.98])
        filters["exclude"] = np.flatnonzero(rng.random(len(one)) < 0.05)
    assert all(
        map(np.array_equal, top_k(pieces, queries, k, **filters), top_k(one, queries, k, **filters))
    )
    for distance in (0, 2 * one.shape[1]):
        found = within(pieces, queries, distance)
        assert all(map(np.array_equal, found, within(one, queries, distance)))
    floats = rng.normal(size=(min(n_queries, 20), 8 * one.shape[1])).astype("f4")
    expected = asymmetric_top_k(one, floats, k, **filters)
    assert all(map(np.array_equal, asymmetric_top_k(pieces, floats, k, **filters), expected))
    rescored = rescore_bits(one, floats, expected.rows, 3)
    assert all(map(np.array_equal, rescore_bits(pieces, floats, expected.rows, 3), rescored))


@pytest.mark.parametrize("path", ["rows", "planes"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_path_and_number_of_threads_answers_alike(path, threads):
    rng = np.random.default_rng(0)
    one, pieces = some_pieces(rng, 300_000, 32, 40, 0.1)
    queries = one[rng.integers(0, len(one), 40)]
    expected = top_k(one, queries, 9)
    _core.use_path(path)
    try:
        for simd in _core.available_simd():
            _core.use_simd(simd)
            assert all(map(np.array_equal, top_k(pieces, queries, 9, threads), expected))
            single = top_k(pieces, queries[0], 9, threads)
            assert np.array_equal(single.rows, expected.rows[0])
    finally:
        _core.use_path("")
        _core.use_simd(_core.available_simd()[-1])


def test_pairs_are_found_across_pieces():
    one, pieces = some_pieces(np.random.default_rng(2), 3000, 2, 9, 0.3)
    found = pairs_within(pieces.in_row_order(), 1)
    assert all(map(np.array_equal, found, pairs_within(one, 1)))


def test_filters_of_each_query_are_of_the_rows_that_are_left():
    rng = np.random.default_rng(1)
    one, pieces = some_pieces(rng, 5000, 16, 7, 0.2)
    where = [None, [5, 7, 900], rng.random(len(one)) < 0.5, np.zeros(len(one), bool)]
    found = top_k(pieces, one[:4], 20, where=where)
    assert all(map(np.array_equal, found, top_k(one, one[:4], 20, where=where)))


@given(CASES)
@settings(max_examples=50, deadline=None)
def test_pieces_are_read_as_one_array(case):
    rng = np.random.default_rng(case[0])
    one, pieces = some_pieces(rng, *case[1:])
    assert (len(pieces), pieces.width) == one.shape
    assert np.array_equal(pieces.in_row_order(), one)
    for key in (slice(None), slice(3, 40), slice(None, None, -3), slice(9, 2), slice(-7, None)):
        assert np.array_equal(pieces.take(key), one[key])
    if len(one):
        rows = rng.integers(-len(one), len(one), (3, 4))
        assert np.array_equal(pieces.take(rows), one[rows])
        assert np.array_equal(pieces.take(rows[0].tolist()), one[rows[0]])
        assert np.array_equal(pieces.take(-1), one[-1])
        mask = rng.random(len(one)) < 0.3
        assert np.array_equal(pieces.take(mask), one[mask])
    with pytest.raises(IndexError):
        pieces.take(len(one))
