"""where and exclude: a search with a filter is the search of the rows that pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits import _core
from embits.errors import InputError
from embits.search import asymmetric_top_k, scan, select, top_k
from embits.search.filters import Selection
from tests.support.search_oracle import (
    filtered_hamming_top_k,
    filtered_score_top_k,
    random_codes,
)

FORMS = {
    "mask": lambda mask, rng: mask,
    "rows": lambda mask, rng: rng.permutation(np.repeat(np.flatnonzero(mask), 2)),
    "list": lambda mask, rng: np.flatnonzero(mask).tolist(),
    "selection": lambda mask, rng: select(len(mask), mask),
    "packed": lambda mask, rng: Selection.from_packed(np.packbits(mask), len(mask)),
}


@pytest.fixture(params=["rows", "mask"])
def path(request, monkeypatch):
    """Searches copies of the rows that pass, or checks a mask, whatever is faster."""
    few = request.param == "rows"
    monkeypatch.setattr(scan, "are_few", lambda selection, n_queries, width: few)


def some_mask(rng, n, share):
    """Rows that pass, at random or side by side."""
    if rng.random() < 0.3:
        start = int(rng.integers(0, n + 1))
        return (np.arange(n) >= start) & (np.arange(n) < start + share * n)
    return rng.random(n) < share


cases = given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 700),
    width=st.sampled_from([1, 4, 8, 13, 16, 32, 64, 65, 100]),
    q=st.integers(0, 30),
    k=st.integers(0, 40),
    share=st.sampled_from([0, 0.01, 0.3, 0.9, 1]),
    forms=st.tuples(st.sampled_from(list(FORMS)), st.sampled_from(list(FORMS))),
    threads=st.sampled_from([1, 3]),
)


@settings(max_examples=200)
@cases
def test_a_filter_is_a_search_of_the_rows_that_pass(seed, n, width, q, k, share, forms, threads):
    rng = np.random.default_rng(seed)
    codes, queries = random_codes(rng, n, width), random_codes(rng, q, width)
    mask, refused = some_mask(rng, n, share), rng.random(n) < 0.2
    where, exclude = (FORMS[form](m, rng) for form, m in zip(forms, (mask, refused), strict=True))
    found = top_k(codes, queries, k, threads, where=where, exclude=exclude)
    assert_same(found, filtered_hamming_top_k(codes, queries, k, mask & ~refused))


@settings(max_examples=200)
@cases
def test_each_query_may_have_its_own_filter(seed, n, width, q, k, share, forms, threads):
    rng = np.random.default_rng(seed)
    codes, queries = random_codes(rng, n, width), random_codes(rng, q, width)
    masks = np.array([some_mask(rng, n, share * rng.random()) for _ in range(q)]).reshape(q, n)
    where = masks
    if forms[0] != "mask" and q:
        where = [FORMS[forms[0]](mask, rng) for mask in masks]
    found = top_k(codes, queries, k, threads, where=where)
    assert_same(found, filtered_hamming_top_k(codes, queries, k, masks))
    if q and n:
        refused = np.flatnonzero(rng.random(n) < 0.1)
        found = top_k(codes, queries, k, threads, where=where, exclude=refused)
        masks[:, refused] = False
        assert_same(found, filtered_hamming_top_k(codes, queries, k, masks))


@settings(max_examples=100)
@cases
def test_float_queries_are_filtered_as_well(seed, n, width, q, k, share, forms, threads):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, width)
    queries = rng.integers(-3, 4, (q, 8 * width)).astype(np.float32)  # whole: exact sums, ties
    mask = some_mask(rng, n, share)
    found = asymmetric_top_k(codes, queries, k, threads, where=FORMS[forms[0]](mask, rng))
    assert_same(found, filtered_score_top_k(codes, queries, k, mask))
    masks = np.array([some_mask(rng, n, share) for _ in range(q)]).reshape(q, n)
    found = asymmetric_top_k(codes, queries, k, threads, where=masks)
    assert_same(found, filtered_score_top_k(codes, queries, k, masks))


def assert_same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.fixture(scope="module")
def many():
    """Codes for several threads and for planes, with ties; rows that pass lie in the middle."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (300_000, 32), dtype=np.uint8)
    mask = rng.random(len(codes)) < 0.4
    mask[:100_000] = mask[250_000:] = False
    return codes, mask


@pytest.mark.parametrize("n_queries", [1, 5, 70])
@pytest.mark.parametrize("own", [False, True])
def test_every_kernel_and_number_of_threads_gives_the_same_rows(simd, path, many, n_queries, own):
    codes, mask = many
    queries = codes[:: len(codes) // n_queries][:n_queries]
    where = [np.roll(mask, q) for q in range(n_queries)] if own else mask
    expected = filtered_hamming_top_k(
        codes[90_000:], queries[:3], 20, np.stack(where)[:3, 90_000:] if own else mask[90_000:]
    )
    for threads in (1, 2, 7):
        distances, rows = top_k(codes, queries, 20, threads, where=where)
        np.testing.assert_array_equal(distances[:3], expected[0])
        np.testing.assert_array_equal(rows[:3], expected[1] + 90_000)
        if threads == 1:
            first = rows
        np.testing.assert_array_equal(rows, first)


@pytest.mark.parametrize("n_queries", [1, 30])
def test_planes_and_rows_agree_with_filters(simd, path, many, n_queries):
    codes, mask = many
    z = np.random.default_rng(1).standard_normal((n_queries, 256)).astype(np.float32)
    own = [np.roll(mask, 1000 * q) for q in range(n_queries)]
    results = []
    try:
        for forced in ("rows", "planes"):
            _core.use_path(forced)
            for where in (mask, own):
                results += [top_k(codes, codes[:n_queries], 500, 2, where=where)]
                results += [asymmetric_top_k(codes, z, 500, 2, where=where)]
    finally:
        _core.use_path("")
    for by_rows, by_planes in zip(results[:4], results[4:], strict=True):
        assert_same(by_planes, by_rows)


def test_rows_at_the_largest_distance_are_found_by_planes(simd, path):
    codes = np.zeros((5000, 8), np.uint8)
    mask = np.zeros(5000, bool)
    mask[[4000, 4900, 4999]] = True
    queries = np.full((100, 8), 255, np.uint8)
    try:
        _core.use_path("planes")
        distances, rows = top_k(codes, queries, 3, where=mask)
    finally:
        _core.use_path("")
    assert (distances == 64).all()
    assert (rows == [4000, 4900, 4999]).all()


def test_fewer_rows_than_k_give_fewer_columns():
    codes = random_codes(np.random.default_rng(0), 50, 8)
    assert top_k(codes, codes[0], 10, where=[7, 3]).rows.shape == (2,)
    assert top_k(codes, codes[:4], 10, where=[7, 3]).rows.shape == (4, 2)
    assert top_k(codes, codes[:4], 10, where=[]).rows.shape == (4, 0)
    assert top_k(codes, codes[:4], 10, exclude=np.ones(50, bool)).rows.shape == (4, 0)


def test_a_query_with_fewer_rows_than_others_ends_with_row_minus_one():
    codes = np.array([[0], [1], [3]], np.uint8)
    distances, rows = top_k(codes, codes[:3], 10, where=[[1, 0], [], None])
    assert rows.tolist() == [[0, 1, -1], [-1, -1, -1], [2, 1, 0]]
    assert distances.tolist() == [[0, 1, 2**31 - 1], 3 * [2**31 - 1], [0, 1, 2]]
    scores, rows = asymmetric_top_k(codes, np.ones((2, 8)), 10, where=[[1, 0], [2]])
    assert rows.tolist() == [[1, 0], [2, -1]]
    assert scores.tolist() == [[-6, -8], [-4, -np.inf]]


def test_a_selection_does_not_follow_changes_of_the_array_it_was_made_from():
    rows = np.array([1, 2, 3])
    selection = select(10, rows)
    rows[:] = 10**12
    assert selection.rows.tolist() == [1, 2, 3]


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_selections_are_sets_of_rows(seed, n, shares):
    rng = np.random.default_rng(seed)
    where, exclude = (np.flatnonzero(rng.random(n) < share) for share in shares)
    expected = sorted(set(where.tolist()) - set(exclude.tolist()))
    for a in (where, select(n, where), np.isin(np.arange(n), where)):
        for b in (exclude, select(n, exclude), np.isin(np.arange(n), exclude)):
            selection = select(n, a, b)
            assert selection.rows.tolist() == expected
            assert len(selection) == len(expected)
            again = Selection(n, mask=selection.mask)
            assert again.rows.tolist() == expected


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (np.ones(49, bool), "where is a mask of 49 rows, but there are 50"),
        ([1, 50], "where has row 50, but there are 50 rows"),
        ([-1, 2], "where has row -1, but there are 50 rows"),
        (
            np.ones(50),
            "where is float64, expected a boolean mask of 50 rows, or a list of row numbers",
        ),
        (np.ones(50, np.uint8), r"where is a mask of uint8, expected a boolean one"),
        ("queen", "where is the single string 'queen', expected a list of ids"),
        (["queen"], "where has 'queen', expected row numbers: codes alone have no ids"),
        (7, r"where is of type int, expected a boolean mask"),
        ([[1], [2]], "where has 2 filters for 3 queries"),
        (np.ones((2, 50), bool), "where has 2 filters for 3 queries"),
        (np.ones((2, 2, 50), bool), r"where has 3 dimensions"),
        (select(49, [1]), "where selects among 49 rows, but there are 50"),
        ([[1], [2], [99]], "where has row 99"),
        ([{}, None, None], "where"),
    ],
)
def test_filters_that_do_not_fit_are_refused(where, message):
    codes = np.zeros((50, 4), np.uint8)
    with pytest.raises(InputError, match=message):
        top_k(codes, codes[:3], 5, where=where)


def test_a_single_query_has_a_single_filter():
    codes = np.zeros((50, 4), np.uint8)
    with pytest.raises(InputError, match="exclude has 1 filters for a single query"):
        top_k(codes, codes[0], 5, exclude=[[1]])


def test_a_packed_mask_of_another_length_is_refused():
    with pytest.raises(InputError, match=r"expected uint8 of shape \(2,\) for 9 rows"):
        Selection.from_packed(np.zeros(9, np.uint8), 9)


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 700),
    share=st.sampled_from([0, 0.02, 0.5, 1]),
    ends=st.tuples(st.integers(0, 700), st.integers(0, 700)),
)
def test_a_part_of_a_selection_has_its_rows(seed, n, share, ends):
    mask = some_mask(np.random.default_rng(seed), n, share)
    start, stop = sorted(min(end, n) for end in ends)
    for selection in (select(n, mask), select(n, np.flatnonzero(mask))):
        part = selection.between(start, stop)
        assert (part.n, len(part)) == (stop - start, mask[start:stop].sum())
        assert part.rows.tolist() == np.flatnonzero(mask[start:stop]).tolist()
