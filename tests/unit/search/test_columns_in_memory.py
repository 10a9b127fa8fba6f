"""Columns of rows in memory: what searches remember of them, and when they forget it."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import embits
from embits import columns as module
from embits.errors import FormatError, InputError

pytest.importorskip("pyarrow")


def made(n=200, **columns):
    X = np.random.default_rng(0).normal(size=(n, 16))
    bits = embits.binarize(X, n_bits=64, method="lsh", lengths=True)
    bits.columns = {**bits.columns, **columns}
    return bits, X


def test_columns_are_converted_once_and_again_when_they_change(monkeypatch):
    bits, X = made(year=np.arange(200))
    calls = []
    given = module.given_columns
    monkeypatch.setattr(module, "given_columns", lambda *a: calls.append(1) or given(*a))
    for _ in range(5):
        assert bits.search(X[7], 1, where={"year": (7, 9)}).rows.tolist() == [7]
    assert len(calls) == 1
    bits.columns = {"year": np.arange(200)[::-1].copy()}
    assert bits.search(X[7], 1, where={"year": 192}).rows.tolist() == [7]
    with pytest.raises(TypeError):
        bits.columns["year"] = np.arange(200)
    with pytest.raises(InputError, match="3 year for 200 codes"):
        bits.columns = {"year": [1, 2, 3]}


def test_new_lengths_replace_those_that_a_search_has_seen():
    bits, X = made()
    bits = bits.with_cells(5)
    before = bits.search(X[:5], metric="dot")
    bits.columns = {
        "lengths": embits.binarize(3 * X, n_bits=64, method="lsh", lengths=True).columns["lengths"]
    }
    after = bits.search(X[:5], metric="dot")
    assert np.allclose(after.scores, 3 * before.scores, rtol=0.05)
    bits.columns = {}
    with pytest.raises(InputError, match="needs the lengths"):
        bits.search(X[:5], metric="dot")


def test_attributes_of_a_collection_are_not_shadowed(tmp_path):
    collection = embits.open_collection(tmp_path / "c", n_bits=64)
    for name in ("columns", "codes", "coder"):
        with pytest.raises(InputError, match=f"the {name} of a collection cannot be assigned"):
            setattr(collection, name, {})


def test_filters_are_remembered_up_to_bytes_and_at_least_one(monkeypatch):
    bits, _ = made(year=np.arange(200))
    stored = bits.current.columns
    first = stored.selection({"year": (0, 0)})
    for year in range(1, 60):
        stored.selection({"year": (0, year)})
    assert stored.selection({"year": (0, 0)}) is first
    monkeypatch.setattr(module, "_MAX_KNOWN_BYTES", 0)
    for year in range(100, 110):
        one = stored.selection({"year": (0, year)})
        assert stored.selection({"year": (0, year)}) is one
        assert len(stored._known) == 1


def test_an_unknown_kind_of_column_is_of_a_newer_version(tmp_path):
    from embits.collection.manifest import manifest_json, parse_manifest

    coder = embits.RandomHyperplanes(n_bits=64).fit(np.eye(4))
    manifest = embits.open_collection(tmp_path / "c", coder).manifest
    content = manifest_json(replace(manifest, columns={"where": "point"}))
    with pytest.raises(
        FormatError, match="'point', which this embits does not know: install a new"
    ):
        parse_manifest(tmp_path, content)


def test_ids_may_end_in_nul(tmp_path):
    ids = ["a", "a\0", "b\0\0", "c"]
    bits = embits.binarize(np.eye(4), n_bits=64, method="lsh", ids=ids)
    assert bits.search(["a\0", "b\0\0"], 1).ids.tolist() == [["a\0"], ["b\0\0"]]
    assert bits.search("c", 4, where=["a\0", "b\0\0"]).ids.tolist() in (
        ["a\0", "b\0\0"], ["b\0\0", "a\0"],
    )  # fmt: skip
    assert list(bits.subset(["a\0"]).words) == ["a\0"]
    assert bits.decode(["a\0"]).shape == (1, 4)
    collection = embits.open_collection(tmp_path / "c", n_bits=64)
    collection.add(np.eye(4), ids=ids)
    collection.remove(["a\0"])
    assert list(collection.words) == ["a", "b\0\0", "c"]


@pytest.mark.parametrize("metric", ["hamming", "asymmetric", "decoded", "dot"])
def test_a_collection_without_rows_checks_k_and_answers_in_the_kind_of_the_metric(tmp_path, metric):
    empty = embits.open_collection(tmp_path / "c", n_bits=64)
    found = empty.search(np.zeros((3, 8)), 5, metric=metric)
    assert found.rows.shape == (3, 0)
    assert hasattr(found, "distances" if metric == "hamming" else "scores")
    assert hasattr(
        empty.search(np.zeros(8), rescore=embits.Rescore(by=np.zeros((0, 8)))), "cosines"
    )
    near = empty.within(np.zeros(8), similarity=0.5, metric=metric)
    assert hasattr(near, "distances" if metric == "hamming" else "scores")
    with pytest.raises(InputError, match="k is"):
        empty.search(np.zeros(8), "many", metric=metric)


def test_a_gpu_says_which_searches_it_does_not_do():
    bits, X = made()
    with pytest.raises(InputError, match="a GPU does not search by metric='dot'"):
        bits.on(device="cuda").search(X[0], metric="dot")


def test_a_device_index_answers_threads_in_turn():
    from embits.search import DeviceIndex
    from embits.search.filters import select

    index = DeviceIndex.__new__(DeviceIndex)  # without a GPU: what threads share
    index._n, index._width = 100, 8
    index._searching, inside, seen = threading.Lock(), [], []

    def top_k(queries, k, filters):
        inside.append(1)
        seen.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()

    index._top_k = top_k
    where, queries = select(100, where=[1, 2]), np.zeros((2, 8), np.uint8)
    threads = [
        threading.Thread(target=index.top_k, args=(queries, 3), kwargs={"where": where})
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 6
