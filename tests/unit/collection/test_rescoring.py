"""Rescoring by the original floats: by id, in any order; vectors of other rows are refused."""

import numpy as np
import pytest

import embits
from embits.ids.vocabulary import Vocabulary
from tests.support.vectors import clustered

ROWS = clustered(300)
IDS = [f"doc-{i}" for i in range(300)]


@pytest.fixture(params=["lsh", "near-lossless"])
def collection(request, tmp_path):
    coder = embits.coders.coder_class(request.param)(n_bits=64).fit(ROWS)
    made = embits.open_collection(tmp_path / "c", coder)
    made.add(ROWS, IDS)
    made.update(ROWS[:1], IDS[:1])  # the row moves to the end
    made.remove(["doc-7"])
    return made


def nearest(query, ids):
    """The ids of all rows, the largest cosine first."""
    left = np.array([int(each.removeprefix("doc-")) for each in ids])
    cosines = ROWS[left] @ query / np.linalg.norm(ROWS[left], axis=1)
    return [f"doc-{row}" for row in left[np.argsort(-cosines, kind="stable")]]


@pytest.mark.parametrize("order", [1, -1])
def test_floats_with_ids_are_looked_up(collection, order):
    floats = embits.WordVectors(IDS[::order], ROWS[::order])
    cosines, rows = collection.search(ROWS[50:53], 5, rescore=300, floats=floats)
    for query, found in zip(ROWS[50:53], collection.ids(rows), strict=True):
        assert found.tolist() == nearest(query, set(IDS) - {"doc-7"})[:5]
    np.testing.assert_allclose(cosines[:, 0], 1, atol=1e-6)


def test_each_query_has_its_own_filter(collection):
    floats = embits.WordVectors(IDS, ROWS)
    where = [["doc-3", "doc-9"], None, ["doc-4"]]
    cosines, rows = collection.search(ROWS[50:53], 3, floats=floats, where=where)
    assert set(collection.ids(rows[0])) == {"doc-3", "doc-9", ""}
    assert list(collection.ids(rows[2])) == ["doc-4", "", ""]
    assert cosines[2, 1] == -np.inf


def test_a_matrix_in_another_order_is_refused(collection, tmp_path):
    left = np.delete(ROWS, 7, axis=0)
    np.save(tmp_path / "x.npy", left)
    for floats in (left, tmp_path / "x.npy", embits.WordVectors(None, left)):
        with pytest.raises(embits.InputError, match="floats are not the vectors of the codes: "):
            collection.search(ROWS[50:53], 5, floats=floats)


def test_another_matrix_is_refused_after_many_searches_with_the_right_one(collection):
    rows = [int(each.removeprefix("doc-")) for each in collection.words]
    right = ROWS[rows]
    for _ in range(20):
        collection.search(ROWS[:8], 5, floats=right, rescore=300)
    with pytest.raises(embits.InputError, match="floats are not the vectors of the codes: "):
        collection.search(ROWS[50:53], 5, floats=right[::-1])
    collection.remove(["doc-9"])
    with pytest.raises(embits.InputError, match="floats of shape"):
        collection.search(ROWS[50:53], 5, floats=right)
    with pytest.raises(embits.InputError, match="floats are not the vectors of the codes: "):
        collection.search(ROWS[50:53], 5, floats=right[:-1])


@pytest.mark.parametrize("change", ["rounded", "normalized", "float64"])
def test_a_matrix_in_the_order_of_the_rows_is_used(collection, change):
    rows = [int(each.removeprefix("doc-")) for each in collection.words]
    floats = ROWS[rows]
    if change == "rounded":
        floats = floats.astype(np.float16)
    elif change == "normalized":
        floats = floats / np.linalg.norm(floats, axis=1, keepdims=True)
    else:
        floats = floats.astype(np.float64)
    found = collection.ids(collection.search(ROWS[50], 1, floats=floats).rows)
    assert found.tolist() == ["doc-50"]


def test_an_id_without_floats_is_named(collection):
    floats = embits.WordVectors(IDS[:10], ROWS[:10])
    with pytest.raises(embits.InputError, match="floats has no vector for the id 'doc-"):
        collection.search(ROWS[50], 5, floats=floats)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_in_floats_are_named(collection, value):
    rows = [int(each.removeprefix("doc-")) for each in collection.words]
    place = rows.index(50)
    floats = ROWS[rows]
    floats[place, 0] = value
    with pytest.raises(embits.InputError, match=f"row {place} of floats contains NaN or infinity"):
        collection.search(ROWS[50], 1, floats=floats)
    named = embits.WordVectors(list(collection.words), floats)
    with pytest.raises(embits.InputError, match="vector of the id 'doc-50' in floats contains NaN"):
        collection.search(ROWS[50], 1, floats=named)


def test_the_words_of_the_floats_are_indexed_once(monkeypatch):
    X = np.random.default_rng(3).normal(size=(50, 16)).astype("f4")
    ids = [f"d{i}" for i in range(50)]
    bits = embits.binarize(X, n_bits=64, method="lsh", ids=ids)
    floats = embits.WordVectors(ids[::-1], X[::-1])
    made = []
    from_words = Vocabulary.from_words
    monkeypatch.setattr(Vocabulary, "from_words", lambda w: made.append(1) or from_words(w))
    for row in (3, 8, 11):
        assert bits.search(X[row], k=1, floats=floats).ids.tolist() == [f"d{row}"]
    assert len(made) == 1
