"""Collections with cells: they are made by compact, and additions and removals live with them."""

import numpy as np
import pytest

import embits
from embits.errors import InputError
from embits.search.cells import wanted_cells
from embits.search.stored import RowMap
from embits.snapshot import Snapshot
from tests.support.program import run


def clustered(n, seed=0):
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(7).normal(size=(40, 24))
    return middles[rng.integers(40, size=n)] + 0.5 * rng.normal(size=(n, 24))


@pytest.fixture
def collection(tmp_path):
    X = clustered(6000)
    opened = embits.open_collection(tmp_path / "c", embits.ITQ(n_bits=64).fit(X))
    opened.add(X[:3000], ids=[f"a{i}" for i in range(3000)])
    opened.add(X[3000:], ids=[f"b{i}" for i in range(3000)])
    return opened


def same(a, b, queries, probes=None, **asked):
    recall = None if probes is None else embits.Probes(probes)
    x, y = a.search(queries, recall=recall, **asked), b.search(queries, **asked)
    return (x.ids == y.ids).all() and (x[0] == y[0]).all()


def test_additions_and_removals_live_with_cells(collection, tmp_path):
    queries = clustered(50, seed=1)
    expected = collection.search(queries).ids
    collection.compact(cells=60)
    assert collection.current.centers is not None
    assert (collection.search(queries).ids == expected).all()
    found = collection.search(queries, recall=0.9)
    assert found.rows_read < 0.6 * 50 * 6000

    collection.add(clustered(5000, seed=2), ids=[f"c{i}" for i in range(5000)])  # gets cells
    collection.add(clustered(40, seed=3), ids=[f"d{i}" for i in range(40)])  # is read whole
    collection.remove([f"a{i}" for i in range(0, 3000, 3)])
    plain = embits.open_collection(tmp_path / "plain", collection.coder)
    plain.add(collection.snapshot().merged())
    again = embits.load(tmp_path / "c", verify=True)
    assert [cells is not None for cells in again.current.codes.cells] == [True, True, False]
    for metric in ("hamming", "asymmetric"):
        assert same(again, plain, queries, metric=metric)
        assert same(again, plain, queries, metric=metric, probes=60)
        some = again.search(queries, metric=metric, recall=0.9)
        exact = plain.search(queries, metric=metric)
        pairs = zip(some.ids, exact.ids, strict=True)
        assert np.mean([len(set(a) & set(b)) / 10 for a, b in pairs]) > 0.83
        assert some.rows_read < 0.6 * exact.rows_read
    assert not np.isin(again.search(queries, recall=0.9, k=50).ids, ["a0", "a3", "a6"]).any()
    where = np.random.default_rng(4).random(len(again)) < 0.4
    assert same(again, plain, queries, where=where)
    assert (np.asarray(again.codes) == np.asarray(plain.codes)).all()

    again.compact()  # has as many cells, made anew
    assert len(again.current.centers) == 60
    assert len(again.manifest.pieces) == 1
    assert same(again, plain, queries)
    again.compact(cells="auto")
    assert same(again, plain, queries)


def test_a_file_with_cells_is_added_and_a_collection_is_saved_with_them(collection, tmp_path):
    collection.compact(cells=30)
    collection.save(tmp_path / "one.safetensors")
    one = embits.load(tmp_path / "one.safetensors", verify=True)
    assert len(one.current.centers) == 30
    other = embits.open_collection(tmp_path / "other", collection.coder)
    other.add(one)
    assert same(other, one, clustered(20, seed=5))


def test_a_refit_makes_other_cells(tmp_path):
    X = clustered(4000).astype(np.float16).astype(np.float32)  # which are kept as they are
    opened = embits.open_collection(tmp_path / "c", embits.ITQ(n_bits=64).fit(X), keep="float16")
    opened.add(X[:2500])
    opened.compact(cells=25)
    opened.add(X[2500:])
    opened.refit()
    assert len(opened.current.centers) == 25
    assert all(map(opened.current.codes._is_ours, opened.current.codes.cells))
    queries = clustered(20, seed=6)
    plain = embits.BinaryVectors(None, opened.coder.encode(X), opened.coder)
    assert same(opened, plain, queries)
    assert same(opened, plain, queries, probes=25, where=X[:, 0] > 0)
    exact, found = opened.search(queries), opened.search(queries, recall=0.95)
    pairs = zip(exact.rows, found.rows, strict=True)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in pairs]) > 0.85


def test_cells_are_trained_again_when_rows_have_doubled(collection):
    collection.compact(cells="auto")
    before = collection.current.centers
    collection.add(clustered(2000, seed=8), ids=[f"x{i}" for i in range(2000)])
    assert collection.current.centers.digest == before.digest
    collection.add(clustered(8000, seed=9), ids=[f"y{i}" for i in range(8000)])  # one piece
    doubled = collection.current.centers
    assert len(doubled) == wanted_cells("auto", 16_000, 64) > len(before)
    collection.add(clustered(3000, seed=10), ids=[f"z{i}" for i in range(3000)])
    collection.compact()
    assert len(collection.current.centers) == wanted_cells("auto", 19_000, 64) > len(doubled)


def test_cells_outlive_most_of_their_rows(collection):
    collection.compact(cells=200)
    collection.remove([f"a{i}" for i in range(3000)] + [f"b{i}" for i in range(2990)])
    collection.add(clustered(90, seed=11), ids=map(str, range(90)))
    queries = clustered(5, seed=12)
    found = collection.search(queries, recall=embits.Probes(3))
    assert found.rows_read < collection.search(queries).rows_read
    collection.update(clustered(100, seed=13), ids=list(collection.words))
    assert collection.current.centers is not None


def test_what_is_measured_with_queries_is_kept(collection, tmp_path):
    collection.compact(cells=60)
    collection.add(clustered(2000, seed=14), ids=[f"c{i}" for i in range(2000)])
    collection.remove(["a5"])
    hard = np.random.default_rng(15).normal(size=(300, 24))
    exact, rows_curve = collection.search(hard), collection.current.centers.curve
    collection.calibrate(hard[:150])
    curve = collection.current.centers.curve
    assert (curve != rows_curve).any()
    collection.add(clustered(10, seed=16), ids=map(str, range(10)))
    again = embits.load(tmp_path / "c", verify=True)
    assert (again.current.centers.curve == curve).all()
    found = again.search(hard[150:], recall=0.9)
    pairs = zip(exact.ids[150:], found.ids, strict=True)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in pairs]) > 0.85
    assert (again.search(hard).ids == collection.search(hard).ids).all()
    assert sorted(each.name for each in (tmp_path / "c").iterdir()) == sorted(
        {*again.manifest.files(), "_lock"}
    )


def test_a_refit_puts_all_pieces_into_the_same_cells(tmp_path):
    X = clustered(6000)
    opened = embits.open_collection(tmp_path / "c", embits.ITQ(n_bits=64).fit(X), keep="float16")
    opened.add(X[:4000])
    opened.compact(cells=25)
    opened.add(X[4000:])
    opened.refit()
    first, second = opened.current.codes.cells
    assert first.centers.digest == second.centers.digest


def test_pieces_with_cells_of_other_centers_are_read_whole():
    X, queries = clustered(3000), clustered(9, seed=8)
    bits = embits.binarize(X, n_bits=64, method="lsh")
    parts = [bits.subset(rows=range(2000)), bits.subset(rows=range(2000, 3000))]
    segments = tuple(part.with_cells(20).current.segments[0] for part in parts)
    mixed = embits.BinaryVectors.of(Snapshot(bits.coder, segments, RowMap([2000, 1000])))
    for where in (None, [1, 2000, 2001], np.arange(3000) % 3 == 0):
        assert same(mixed, bits, queries, where=where)
        assert same(mixed, bits, queries, where=where, metric="asymmetric", probes=20)


def test_compact_refuses_a_wrong_number_of_cells(collection):
    with pytest.raises(InputError):
        collection.compact(cells=0)
    with pytest.raises(InputError):
        collection.compact(cells="all")


def test_the_command_line_compacts_with_cells(collection, tmp_path):
    done = run("compact", "c", "--cells", 20, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(embits.load(tmp_path / "c").current.centers) == 20
