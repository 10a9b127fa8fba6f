"""Filters of BinaryVectors: masks, rows and ids, for every metric, rescoring and words."""

import numpy as np
import pytest

import embits
from embits.errors import InputError, UnknownWordError

X = np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)
OPTIONS = [
    {},
    {"metric": "asymmetric"},
    {"metric": "decoded"},
    {"metric": "asymmetric", "rescore": 21},
    {"metric": "decoded", "rescore": 21},
    {"floats": X},
    {"floats": X, "metric": "asymmetric", "rescore": 14},
]


@pytest.fixture(scope="module")
def named():
    return embits.binarize(X, n_bits=48, method="lsh", ids=[f"id{row}" for row in range(300)])


@pytest.fixture(scope="module")
def mask():
    return np.random.default_rng(1).random(300) < 0.4


def subset_of(named, mask):
    return embits.BinaryVectors(None, named.codes[mask], named.coder)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("q", [1, 40])
def test_a_filter_is_a_search_of_a_subset(named, mask, options, q):
    numbers = np.flatnonzero(mask)
    of_subset = {**options, "floats": X[mask]} if "floats" in options else options
    values, rows = subset_of(named, mask).search(X[:q], 7, **of_subset)
    filters = [
        {"where": mask},
        {"rows": numbers[::-1]},
        {"where": named.select(rows=numbers)},
        {"where": named.ids(numbers)},
        {"where": set(named.ids(numbers).tolist())},
        {"where": named.select(mask)},
        {"exclude": ~mask},
        {"exclude": named.ids(np.flatnonzero(~mask)).tolist()},
        {"where": np.tile(mask, (q, 1))},
        {"where": [named.ids(numbers).tolist()] * q, "exclude": [None] * q},
    ]
    for filtered in filters:
        found, found_rows = named.search(X[:q], 7, **options, **filtered)
        np.testing.assert_array_equal(found_rows, numbers[rows])
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("options", OPTIONS)
def test_each_query_is_searched_in_its_own_rows(named, options):
    where = [["id5", "id9"], named.select(rows=range(100)), [], None]
    values, rows = named.search(X[:4], 5, **options, where=where)
    assert values.shape == rows.shape == (4, 5)
    for q, own in enumerate(where):
        alone, alone_rows = named.search(X[q], 5, **options, where=own)
        np.testing.assert_array_equal(rows[q, : len(alone)], alone_rows)
        np.testing.assert_allclose(values[q, : len(alone)], alone, rtol=1e-6)
        assert (rows[q, len(alone) :] == -1).all()


def test_whole_numbers_are_the_ids_that_they_are_written_as():
    bits = embits.binarize(X, n_bits=48, method="lsh", ids=range(300, 0, -1))
    for where in ([7], ["7"], np.array([7]), {7}):
        assert bits.search(X[0], 5, where=where).rows.tolist() == [293]
    assert bits.search(X[0], 5, rows=[7]).rows.tolist() == [7]


def test_rows_without_ids_are_found_by_their_numbers():
    bits = embits.binarize(X, n_bits=48, method="lsh")
    for where in ([7], ["7"], np.array([7]), {7}):
        assert bits.search(X[0], 5, where=where).rows.tolist() == [7]
    with pytest.raises(InputError, match="where has row 300, but there are 300 rows"):
        bits.search(X[0], where=[300])


@pytest.mark.parametrize("metric", ["hamming", "decoded"])
def test_most_similar_words_are_filtered(named, metric):
    everything = named.most_similar("id3", topn=299, metric=metric)
    some = {f"id{row}" for row in range(50)}
    assert named.most_similar("id3", topn=299, metric=metric, where=some) == [
        pair for pair in everything if pair[0] in some
    ]
    assert (
        named.most_similar("id3", topn=5, metric=metric, exclude=some)
        == [pair for pair in everything if pair[0] not in some][:5]
    )
    assert named.most_similar("id3", metric=metric, where=["id3"]) == []


def test_unknown_ids_are_counted_and_named(named):
    with pytest.raises(
        UnknownWordError, match="4 of the 5 ids of where are unknown: 'a', 'b', 'c', …"
    ):
        named.search(X[0], where=["a", "id1", "b", "c", "d"])
    with pytest.raises(
        UnknownWordError, match=r"no word or id 'a'; 1 of the 1 ids of where is unknown$"
    ):
        named.most_similar("id1", where=["a"])


@pytest.mark.parametrize(("where", "kind"), [(3.5, "float"), (len, "builtin_function_or_method")])
def test_a_filter_of_another_type_names_those_that_are_accepted(named, where, kind):
    accepted = r"expected a boolean mask of .* rows, or a list of ids"
    with pytest.raises(InputError, match=rf"where is of type {kind}, {accepted}"):
        named.search(X[0], where=where)


def test_a_text_that_is_no_id_must_be_embedded_first(named):
    with pytest.raises(UnknownWordError, match=r"'a singer of old songs'; .* embed it first"):
        named.most_similar("a singer of old songs")


def test_excluded_ids_that_are_not_there_are_ignored(named):
    found = named.search(X[0], 5, exclude=["a", "id0"]).rows
    np.testing.assert_array_equal(found, named.search(X[0], 5, exclude=["id0"]).rows)
    assert len(named.select(exclude=["a"])) == 300


@pytest.mark.parametrize("many", [[3, "id9"], ["id9", 3], {3, "id9"}, np.array([3], object)])
def test_an_excluded_number_that_is_no_id_is_refused_among_others_too(named, many):
    with pytest.raises(UnknownWordError, match=r"id '3'; 1 of .* whole numbers are ids"):
        named.search(X[0], exclude=many)


def test_bools_among_ids_and_ids_among_rows_are_refused(named):
    with pytest.raises(InputError, match="strings or whole numbers: that of row 1 is True"):
        named.search(X[0], where=[7, True])
    with pytest.raises(InputError, match="rows has 'id7', expected row numbers: ids go in where="):
        named.search(X[0], rows=["id7"])


def test_ids_may_be_given_by_an_iterator(named):
    rows = named.search(X[0], where=(f"id{row}" for row in (3, 5))).rows
    assert sorted(rows.tolist()) == [3, 5]


def test_a_missing_row_has_no_id(named):
    rows = named.search(X[:2], 3, where=[["id5"], ["id1", "id2"]]).rows
    assert named.ids(rows)[0].tolist() == ["id5", ""]
    numbers = embits.binarize(X, n_bits=48, method="lsh", ids=range(300, 600))
    assert numbers.ids([4, -1], int).tolist() == [304, -1]


def test_a_single_string_is_refused(named):
    with pytest.raises(InputError, match="where is the single string 'id1', expected a list"):
        named.search(X[0], where="id1")


def test_a_filter_of_another_file_is_refused(named):
    with pytest.raises(InputError, match="where selects among 299 rows, but there are 300"):
        named.search(X[0], where=embits.search.select(299, [1]))
