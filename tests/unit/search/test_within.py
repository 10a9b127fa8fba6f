"""within: all rows up to a bound, next to a slow search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits import _core
from embits.checks import distance_of
from embits.errors import InputError, UnknownWordError
from embits.search import kernel, select, within
from embits.search.stored import StoredCodes
from tests.support.search_oracle import hamming_within, ragged, random_codes


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 300),
    n_bits=st.integers(1, 300),
    q=st.integers(0, 40),
    share=st.floats(0, 1),
    threads=st.sampled_from([None, 1, 2, 8]),
)
def test_it_finds_the_rows_of_a_slow_search(seed, n, n_bits, q, share, threads):
    rng = np.random.default_rng(seed)
    width = -(-n_bits // 8)
    codes, queries = random_codes(rng, n, width), random_codes(rng, q, width)
    if n and q > 2:
        queries[0], queries[1] = codes[0], ~codes[-1]  # a row and a complement
    distance = round(share * 8 * width)
    found = within(codes, queries, distance, threads)
    assert [array.dtype for array in found] == [np.int64, np.int64, np.int32]
    assert ragged(*found) == hamming_within(codes, queries, distance)


@pytest.mark.parametrize("path", ["rows", "planes"])
@pytest.mark.parametrize("distance", [0, 3, 60, 63, 64])
def test_every_path_gives_the_same_rows(simd, path, distance):
    rng = np.random.default_rng(distance)
    codes = random_codes(rng, 5000, 8)
    queries = np.vstack([codes[:30], ~codes[:3], codes[4990:]])
    _core.use_path(path)
    try:
        found = within(codes, queries, distance, threads=3)
    finally:
        _core.use_path("")
    assert ragged(*found) == hamming_within(codes, queries, distance)


def test_a_large_batch_of_small_results_is_searched_by_planes():
    codes = np.random.default_rng(0).integers(0, 256, (20_000, 16), dtype=np.uint8)
    found = within(codes, codes[:200], 20)
    assert kernel().path == "planes"
    assert ragged(*found) == hamming_within(codes, codes[:200], 20)


def test_a_single_query_is_query_0():
    codes = random_codes(np.random.default_rng(0), 50, 16)
    found = within(codes, codes[7], 10)
    assert found.offsets.shape == (2,)
    assert ragged(*found) == hamming_within(codes, codes[7:8], 10)


def test_a_result_beyond_the_limit_is_refused():
    codes = np.zeros((1000, 8), np.uint8)
    assert len(within(codes, codes[:3], 0, max_results=3000).rows) == 3000
    with pytest.raises(InputError, match=r"more than 2,999 rows are within distance 0: choose"):
        within(codes, codes[:3], 0, max_results=2999)


@pytest.mark.parametrize(
    ("distance", "options", "message"),
    [
        (-1, {}, "distance is -1"),
        (65, {}, "distance is 65"),
        (1.0, {}, "distance is 1.0"),
        (True, {}, "distance is True, expected"),
        (1, {"threads": 0}, "threads is 0"),
        (1, {"max_results": -1}, "max_results is -1"),
        (1, {"max_results": 1.5}, "max_results is 1.5, expected a whole number"),
    ],
)
def test_wrong_arguments_are_refused(distance, options, message):
    codes = np.zeros((3, 8), np.uint8)
    with pytest.raises(InputError, match=message):
        within(codes, codes, distance, **options)


@given(n_bits=st.integers(1, 300), similarity=st.floats(0, 1))
def test_a_similarity_is_the_largest_distance_that_has_it(n_bits, similarity):
    shares = [max(1 - d / n_bits, (n_bits - d) / n_bits) for d in range(n_bits + 1)]
    matching = [d for d, share in enumerate(shares) if share >= similarity]
    assert distance_of(similarity, n_bits) == max(matching)


@pytest.mark.parametrize("n_bits", [*range(1, 130), 256, 300, 384, 512, 1000, 1024, 2047, 2048])
def test_a_share_of_equal_bits_is_reached_by_exactly_so_many(n_bits):
    for equal in range(n_bits + 1):
        assert distance_of(equal / n_bits, n_bits) == n_bits - equal
        assert distance_of(1 - (n_bits - equal) / n_bits, n_bits) == n_bits - equal


# -- Filters ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0, 0.01, 0.5, 0.99, 1]),
    kind=st.sampled_from(["mask", "rows", "exclude", "selection", "each"]),
    in_pieces=st.booleans(),
)
def test_a_filter_leaves_rows_out(seed, share, kind, in_pieces):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, 3000, 9)
    queries = codes[:40]
    masks = rng.random((40, 3000)) < share
    if kind != "each":
        masks[:] = masks[0]
    given_filter = {
        "mask": {"where": masks[0]},
        "rows": {"where": rng.permutation(np.flatnonzero(masks[0]))},
        "exclude": {"exclude": ~masks[0]},
        "selection": {"where": select(3000, masks[0])},
        "each": {"where": list(masks)},
    }[kind]
    searched = StoredCodes([codes[:1000], codes[1000:]]) if in_pieces else codes
    found = within(searched, queries, 20, **given_filter)
    expected = [
        [(distance, row) for distance, row in of_query if mask[row]]
        for of_query, mask in zip(hamming_within(codes, queries, 20), masks, strict=True)
    ]
    assert ragged(*found) == expected


def test_a_filter_of_a_single_query_and_a_wrong_one():
    codes = random_codes(np.random.default_rng(0), 50, 16)
    found = within(codes, codes[7], 128, where=[9, 7, 3])
    assert sorted(found.rows.tolist()) == [3, 7, 9]
    assert len(within(codes, codes[7], 128, where=[9, 7], max_results=2).rows) == 2
    with pytest.raises(InputError, match="where is a mask of 3 rows, but there are 50"):
        within(codes, codes[7], 128, where=np.ones(3, bool))


# -- BinaryVectors ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def bits(vectors):
    ids = [f"word-{row}" for row in range(len(vectors))]
    return embits.binarize(vectors, n_bits=61, method="itq", ids=ids)


def test_queries_are_floats_codes_or_ids(bits, vectors):
    by_floats = bits.within(vectors[:3], 10)
    assert ragged(*by_floats) == hamming_within(bits.codes, bits.codes[:3], 10)
    for queries in (bits.codes[:3], ["word-0", "word-1", "word-2"]):
        assert ragged(*bits.within(queries, distance=10)) == ragged(*by_floats)
    assert ragged(*bits.within("word-1", 10)) == ragged(*by_floats)[1:2]


def test_a_similarity_is_that_of_most_similar(bits):
    neighbors = bits.most_similar("word-5", topn=399)
    found = bits.within("word-5", similarity=neighbors[20][1])
    words = bits.ids(found.rows).tolist()
    expected = [word for word, similarity in neighbors if similarity >= neighbors[20][1]]
    assert words[0] == "word-5"
    assert words[1:] == expected


@pytest.mark.parametrize("metric", ["asymmetric", "decoded"])
@pytest.mark.parametrize("similarity", [-1, 0, 0.2, 0.5, 1])
@pytest.mark.parametrize("queries", [slice(5), 2])
def test_scores_are_those_of_a_search(bits, vectors, metric, similarity, queries):
    found = bits.within(vectors[queries], similarity=similarity, metric=metric)
    scores, rows = map(np.atleast_2d, bits.search(vectors[queries], k=400, metric=metric))
    expected = [
        [(score, row) for score, row in zip(*of_query, strict=True) if score >= similarity]
        for of_query in zip(scores.tolist(), rows.tolist(), strict=True)
    ]
    assert found.scores.dtype == np.float32
    assert ragged(*found) == expected


@pytest.mark.parametrize("metric", ["hamming", "asymmetric", "decoded"])
def test_filters_are_ids_rows_or_masks(bits, vectors, metric):
    everything = ragged(*bits.within(vectors[:4], similarity=0.3, metric=metric))
    rows = list(range(0, 400, 3))
    few = [[(value, row) for value, row in of_query if row in rows] for of_query in everything]
    words = [f"word-{row}" for row in rows]
    for which in ({"rows": rows}, {"where": words}, {"where": np.arange(400) % 3 == 0}):
        assert ragged(*bits.within(vectors[:4], similarity=0.3, metric=metric, **which)) == few
    each = [None, words, [], ["word-3"]]
    found = ragged(*bits.within(vectors[:4], similarity=0.3, metric=metric, where=each))
    one = [(value, row) for value, row in everything[3] if row == 3]
    assert found == [everything[0], few[1], [], one]


def test_scores_beyond_the_limit_are_refused(bits, vectors):
    with pytest.raises(InputError, match=r"more than 10 rows are within similarity -1\.0"):
        bits.within(vectors[:2], similarity=-1, metric="asymmetric", max_results=10)


def test_no_queries_and_no_rows_give_nothing(bits, vectors):
    for bound in ({"distance": 61}, {"similarity": -1, "metric": "asymmetric"}):
        found = bits.within(vectors[:0], **bound)
        assert found.offsets.tolist() == [0]
        empty = embits.BinaryVectors(None, bits.codes[:0], bits.coder)
        assert empty.within(vectors[:2], **bound).offsets.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "within needs a distance or a similarity, one of them"),
        ({"distance": 3, "similarity": 0.5}, "within needs a distance or a similarity"),
        ({"distance": 62}, "distance is 62, .* 0 to 61"),
        ({"distance": -1}, "distance is -1"),
        ({"similarity": float("nan")}, "similarity is nan"),
        ({"similarity": -0.1}, "similarity is -0.1, expected 0 to 1"),
        ({"similarity": "high"}, "similarity is 'high', expected a number"),
        ({"similarity": 2, "metric": "decoded"}, "similarity is 2, expected -1 to 1"),
        ({"distance": 3, "metric": "decoded"}, "metric='decoded' has no distance: pass similarity"),
        ({"distance": 3, "metric": "cosine"}, "metric is 'cosine'"),
    ],
)
def test_wrong_bounds_are_refused(bits, vectors, options, message):
    with pytest.raises(InputError, match=message):
        bits.within(vectors[:2], **options)


def test_asymmetric_needs_floats_and_ids_must_exist(bits):
    with pytest.raises(InputError, match="needs the float vectors"):
        bits.within("word-1", similarity=0.5, metric="asymmetric")
    with pytest.raises(UnknownWordError):
        bits.within("word-1000", distance=3)
