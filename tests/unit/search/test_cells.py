"""Cells: searches that read some of the rows, and find what they promise."""

from dataclasses import replace

import numpy as np
import pytest

import embits
from embits import _core
from embits.errors import FormatError, InputError
from embits.file import store
from embits.file.contents import to_contents
from embits.search.cells import Cells, group_by_cell, train, wanted_cells
from embits.search.stored import StoredCodes
from tests.support import search_oracle as oracle
from tests.support.program import run

METRICS = ("hamming", "asymmetric", "decoded", "dot")


def clustered(n, dims=24, clusters=60, seed=0):
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(clusters, dims))
    X = middles[rng.integers(clusters, size=n)] + 0.5 * rng.normal(size=(n, dims))
    return X * rng.uniform(0.5, 2, (n, 1))


ALL = clustered(6080)


@pytest.fixture(scope="module", name="X")
def rows():
    return ALL[:6000]


@pytest.fixture(scope="module")
def queries():
    return ALL[6000:] * 1.5


@pytest.fixture(scope="module")
def plain(X):
    return embits.binarize(X, n_bits=64, method="itq", lengths=True)


@pytest.fixture(scope="module")
def bits(plain):
    return plain.with_cells(70)


def found_share(exact, found):
    pairs = zip(exact.rows, found.rows, strict=True)
    return np.mean([len(set(a) & set(b)) / len(a) for a, b in pairs])


@pytest.mark.parametrize("metric", METRICS)
def test_a_search_of_all_rows_finds_the_same_rows_with_cells_as_without(
    plain, bits, queries, metric
):
    rng = np.random.default_rng(2)
    masks = rng.random((len(queries), len(plain))) < rng.choice([0.005, 0.5], (len(queries), 1))
    for asked in (
        {},
        {"where": rng.random(len(plain)) < 0.5},
        {"where": plain.select(rows=np.arange(40))},
        {"where": masks},
        {"where": [masks[0], None] * 40},
        {"k": 500},
    ):
        for given in (queries, queries[0]):
            if np.ndim(given) == 1 and isinstance(asked.get("where"), list):
                continue
            if np.ndim(given) == 1 and np.ndim(asked.get("where")) == 2:
                continue
            expected = plain.search(given, metric=metric, **asked)
            found = bits.search(given, metric=metric, **asked)
            assert (found.rows == expected.rows).all()
            assert (found[0] == expected[0]).all()
            assert found.rows_read == expected.rows_read


def test_rows_of_equal_distance_stay_in_row_order():
    codes = oracle.random_codes(np.random.default_rng(0), 3000, 2)
    centers, _ = train(codes, 20, 16)
    stored, cells = group_by_cell(codes, centers)
    pieces, asked = StoredCodes([stored], cells=[cells]), codes[::100]
    for k in (1, 7, 400, 3000):
        expected = oracle.hamming_top_k(codes, asked, k)
        for threads in (1, 3):
            found = embits.search.top_k(pieces, asked, k, threads)
            assert (found.rows == expected[1]).all()
        assert (
            embits.search.top_k(pieces, asked, k, recall=embits.Probes(20)).rows == expected[1]
        ).all()
        for query, rows in zip(asked[:3], expected[1], strict=False):
            assert (embits.search.top_k(pieces, query, k).rows == rows).all()
    near, plain = embits.search.within(pieces, asked, 3), embits.search.within(codes, asked, 3)
    assert (near.rows == plain.rows).all()
    assert (near.offsets == plain.offsets).all()
    assert (pieces.in_row_order() == codes).all()
    assert (pieces.take([5, -1, 17]) == codes[[5, -1, 17]]).all()
    assert (pieces.take(slice(3, 900)) == codes[3:900]).all()


@pytest.mark.parametrize("metric", METRICS[:3])
def test_recall_is_held_on_queries_that_were_not_measured(bits, plain, queries, metric):
    expected = plain.search(queries, metric=metric)
    for recall in (0.8, 0.95):
        found = bits.search(queries, metric=metric, recall=recall)
        assert found_share(expected, found) > recall - 0.07
        assert found.rows_read < 0.6 * expected.rows_read


def test_recall_of_inner_products_is_held(bits, plain, queries):
    expected = plain.search(queries, metric="dot")
    found = bits.search(queries, metric="dot", recall=0.9)
    assert found_share(expected, found) > 0.8
    assert found.rows_read < expected.rows_read


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("filtered", [False, True])
def test_more_probes_and_more_recall_never_find_less(bits, plain, queries, metric, filtered):
    where = np.random.default_rng(3).random(len(bits)) < 0.2 if filtered else None
    expected = plain.search(queries, metric=metric, where=where)
    asked = [{"recall": embits.Probes(n)} for n in (1, 2, 3, 5, 10, 40, 70, 1000)]
    for steps in (asked, [{"recall": r} for r in (0, 0.4, 0.7, 0.9, 0.97, 0.999, 1)]):
        last, last_read = -np.ones(len(queries)), 0
        for step in steps:
            found = bits.search(queries, metric=metric, where=where, **step)
            shares = np.array(
                [len(set(a) & set(b)) for a, b in zip(expected.rows, found.rows, strict=True)]
            )
            assert (shares >= last).all()
            # Instead of cells that hold more rows, all rows that pass a filter are read.
            assert found.rows_read >= last_read or found.rows_read == expected.rows_read
            last, last_read = shares, found.rows_read
        assert (last == 10).all()


def test_a_query_reads_the_cells_that_are_closest_to_it(bits):
    pieces = bits.current.codes
    (cells,) = pieces.cells
    packed = cells.centers.packed
    numbers = np.stack([packed >> 4, packed & 15], axis=2).reshape(len(packed), -1) - 8.0
    asked = bits.codes[np.arange(0, 6000, 500)]
    signs = 2.0 * np.unpackbits(asked, axis=1) - 1
    closeness = signs @ numbers.T / 7 - (numbers**2).sum(axis=1) / 49 / 4
    sizes = np.diff(cells.starts.astype(int))
    for query, row in zip(asked, closeness, strict=True):
        nearest = np.argsort(-row, kind="stable")[:6]
        found = bits.search(query, k=3, recall=embits.Probes(6))
        assert found.rows_read == sizes[nearest].sum()
        read = np.concatenate([cells.order[cells.starts[c] : cells.starts[c + 1]] for c in nearest])
        assert (found.rows == bits.search(query, k=3, where=bits.select(rows=read)).rows).all()


@pytest.mark.parametrize("recall", [0.6, 0.99])
def test_a_query_stops_by_the_rule_of_the_file_format(recall):
    codes = oracle.random_codes(np.random.default_rng(10), 9000, 9)
    codes[4000:] = codes[:5000] & codes[1000:6000]  # nearer to zeros, and to each other
    bits = embits.BinaryVectors(None, codes, embits.RandomHyperplanes(n_bits=72).fit(np.eye(72)))
    bits = bits.with_cells(1200)
    pieces = bits.current.codes
    centers, sizes = pieces.centers, pieces.cell_sizes()
    levels, costs = (
        centers.levels(recall, (10, 10), False, is_far=False),
        centers.native.place_costs(),
    )
    span = levels.near - levels.far
    reads = []
    for query in codes[::150]:
        signs = 2.0 * np.unpackbits(query) - 1
        products = np.empty((1, 1200), np.float32)
        centers.native.products(signs[None].astype(np.float32), products)
        closeness = products[0] - centers.native.squares() / 4
        order = np.argsort(-closeness, kind="stable")
        share = np.clip((closeness.max() - levels.far) / span, 0, 1) if span else 1.0
        margin = levels.far_margin + share * (levels.margin - levels.far_margin)
        read, end = 4, 8
        while read < 1200:
            score = 72 - 2 * bits.search(query, 10, recall=embits.Probes(read)).distances[-1]
            if sizes[order[:read]].sum() < 10:
                score = -np.inf
            reached = closeness[order[:end]] - score - costs[:end] >= margin
            stop = max(read, np.flatnonzero(reached)[-1] + 1) if reached.any() else read
            is_end, read, end = stop < end, stop, 2 * end
            if is_end:
                break
        reads.append(read)
        assert bits.search(query, 10, recall=recall).rows_read == sizes[order[:read]].sum()
    assert recall < 0.99 or max(reads) > 130 > min(reads)  # more than are ordered at first


def test_a_query_finds_the_same_alone_and_in_a_batch_with_any_threads_and_kernel(bits, queries):
    asked = {"recall": 0.9, "metric": "asymmetric"}
    batch = bits.search(queries, **asked)
    try:
        for simd in _core.available_simd():
            _core.use_simd(simd)
            for threads in (1, 2, 7):
                assert (bits.on(threads=threads).search(queries, **asked).rows == batch.rows).all()
            alone = [bits.search(query, **asked) for query in queries]
            assert (np.stack([each.rows for each in alone]) == batch.rows).all()
            assert sum(each.rows_read for each in alone) == batch.rows_read
    finally:
        _core.use_simd(_core.available_simd()[-1])


def test_cells_do_not_depend_on_threads_or_kernels():
    codes = oracle.random_codes(np.random.default_rng(4), 9000, 5)
    found = []
    try:
        for simd in _core.available_simd():
            _core.use_simd(simd)
            for threads in (1, 3):
                centers, held = train(codes, 600, 37, threads)
                found.append(
                    (centers.packed, held, group_by_cell(codes, centers, threads)[1].order)
                )
    finally:
        _core.use_simd(_core.available_simd()[-1])
    for packed, held, order in found[1:]:
        assert (packed == found[0][0]).all()
        assert (held == found[0][1]).all()
        assert (order == found[0][2]).all()


def test_filters_widen_the_search(bits, plain, queries):
    rng = np.random.default_rng(5)
    for share in (0.3, 0.1, 0.04):
        where = rng.random(len(bits)) < share
        expected = plain.search(queries, where=where)
        assert found_share(expected, bits.search(queries, where=where, recall=0.9)) > 0.83
        unfiltered = found_share(
            plain.search(queries), bits.search(queries, recall=embits.Probes(8))
        )
        found = bits.search(queries, where=where, recall=embits.Probes(8))
        assert found_share(expected, found) > unfiltered - 0.03
        batch = np.tile(queries, (5, 1))  # is no reason to read all rows that pass
        if share == 0.3:
            assert bits.search(batch, where=where, recall=0.8).rows_read < 0.6 * len(batch) * 1800
    few = np.arange(0, 6000, 100)  # scanned alone
    assert bits.search(queries, recall=0.9, where=bits.select(rows=few)).rows_read == len(
        few
    ) * len(queries)
    own = [few.astype(str).tolist(), None] * 40
    found = bits.search(queries, where=own, recall=embits.Probes(3))
    assert (found.rows[::2] == plain.search(queries[::2], where=plain.select(rows=few)).rows).all()


def test_rescoring_starts_from_the_cells_that_are_read(bits, X, queries):
    found = bits.search(queries, rescore=embits.Rescore(80, X), recall=0.95)
    exact = X @ queries.T / np.linalg.norm(X, axis=1)[:, None]
    true = np.argsort(-exact, axis=0)[:10].T
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true, found.rows, strict=True)]) > 0.8
    assert found.rows_read < len(queries) * len(X)
    coarse = bits.search(queries, metric="asymmetric", rescore=80, recall=0.95)
    assert coarse.rows_read == found.rows_read or coarse.rows_read < len(queries) * len(X)


def test_without_cells_recall_reads_all_rows_and_probes_are_refused(plain, bits, queries):
    found = plain.search(queries, recall=0.5)
    assert (found.rows == plain.search(queries).rows).all()
    assert found.rows_read == len(queries) * len(plain)
    with pytest.raises(InputError, match="embits cells"):
        plain.search(queries, recall=embits.Probes(4))
    with pytest.raises(InputError, match="cells"):
        plain.calibrate(queries)
    for recall in (1.5, "most"):
        with pytest.raises(InputError):
            bits.search(queries, recall=recall)
    with pytest.raises(InputError):
        embits.Probes(0)
    with pytest.raises(InputError):
        plain.with_cells("many")


@pytest.mark.parametrize("metric", METRICS)
def test_probes_go_on_until_there_are_k_rows(plain, queries, metric):
    bits, where = plain.with_cells(1500), np.random.default_rng(9).random(len(plain)) < 0.1
    for asked in ({}, {"where": where}, {"where": [where, None] * 40}):
        expected = plain.search(queries, 60, metric=metric, **asked)
        last = -np.ones(len(queries))
        for probes in (1, 4, 9, 30, 1500):
            found = bits.search(queries, 60, metric=metric, recall=embits.Probes(probes), **asked)
            assert found.rows.shape == expected.rows.shape
            assert all(len(set(rows)) == 60 for rows in found.rows.tolist())
            pairs = zip(expected.rows, found.rows, strict=True)
            shares = np.array([len(set(a) & set(b)) for a, b in pairs])
            assert (shares >= last).all()
            last = shares
        assert (found.rows == expected.rows).all()
    rescored = bits.search(
        queries, 5, metric=metric, recall=embits.Probes(1), rescore=embits.Rescore(60, ALL[:6000])
    )
    assert (rescored.rows >= 0).all()


def test_calibrating_with_harder_queries_keeps_what_is_promised(plain):
    bits = plain.with_cells(70)
    hard = np.random.default_rng(6).normal(size=(400, 24))
    train_half, test_half = hard[:200], hard[200:]
    expected = plain.search(test_half)
    before = bits.search(test_half, recall=0.99)
    assert bits.calibrate(train_half).shape == (17, 2)
    after = bits.search(test_half, recall=0.99)
    assert found_share(expected, before) > 0.97
    assert found_share(expected, after) > 0.97
    assert after.rows_read != before.rows_read


def test_cells_are_saved_and_loaded_with_their_curve(bits, queries, tmp_path):
    path = tmp_path / "cells.safetensors"
    bits.save(path)
    loaded = embits.load(path, verify=True)
    again = loaded.search(queries, recall=0.9)
    found = bits.search(queries, recall=0.9)
    assert (again.rows == found.rows).all()
    assert again.rows_read == found.rows_read
    assert loaded.byte_counts() == bits.byte_counts()
    assert loaded.byte_counts().total == loaded.nbytes <= path.stat().st_size
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    some = loaded.subset(rows=[5, 3])
    assert (some.codes == bits.codes[[5, 3]]).all()
    assert (loaded.merged().codes == np.asarray(bits.codes)).all()


@pytest.mark.parametrize("n", [0, 1, 3, 40])
def test_small_files_have_cells_too(n, tmp_path):
    X = np.random.default_rng(7).normal(size=(n, 8))
    coder = embits.RandomHyperplanes(n_bits=13).fit(np.eye(8))
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, X), coder).with_cells(5)
    bits.save(tmp_path / "small.safetensors")
    loaded = embits.load(tmp_path / "small.safetensors", verify=True)
    found = loaded.search(np.eye(8), recall=0.95)
    assert found.rows.shape == (8, min(n, 10))
    assert (found.rows == loaded.search(np.eye(8)).rows).all() or n == 40
    few = loaded.search(np.eye(8), 2, where=np.zeros((8, n), bool), recall=embits.Probes(1))
    assert few.rows.shape == (8, 0)
    assert loaded.search(np.eye(8), n + 1, recall=embits.Probes(1)).rows.shape == (8, n)


def test_auto_makes_cells_of_at_most_a_twentieth_of_the_codes():
    for n, n_bits in ((100, 64), (10_000, 256), (341_479, 256), (10_000_000, 512)):
        cells = wanted_cells("auto", n, n_bits)
        assert cells == 1 or cells * (n_bits // 2 + 20) <= 0.05 * n * n_bits / 8


def damaged(tensors, name, change):
    array = tensors[f"cells.{name}"].copy()
    change(array)
    return {**tensors, f"cells.{name}": array}


def test_damaged_cells_are_refused(bits, tmp_path):
    contents = to_contents(bits.current.one_segment(), bits.coder)
    good, path = dict(contents.tensors), tmp_path / "damaged.safetensors"

    def swap(array):
        array[[0, 1]] = array[[1, 0]]

    def put(value, at=0):
        return lambda array: array.__setitem__(at, value)

    at_once = [
        damaged(good, "starts", put(1)),
        damaged(good, "starts", put(5000, 3)),
        damaged(good, "starts", put(5999, -1)),
        damaged(good, "order", put(6000, 9)),
        damaged(good, "curve", put(np.inf, (0, 1))),
        damaged(good, "curve", put(2.0, (0, 0))),
        {**good, "cells.curve": good["cells.curve"][:-1]},
        {**good, "cells.curve": good["cells.curve"][36:]},
        {**good, "cells.curve": np.delete(good["cells.curve"], slice(36, 54), axis=0)},
        {**good, "cells.order": good["cells.order"][:-1]},
        {**good, "cells.starts": good["cells.starts"].astype(np.uint64)},
        {**good, "cells.centers": good["cells.centers"][:, :-1].copy()},
        {**good, "cells.more": good["cells.starts"]},
        {name: array for name, array in good.items() if name != "cells.curve"},
    ]
    when_verified = [
        damaged(good, "order", swap),
        damaged(good, "order", put(int(good["cells.order"][1]))),
        damaged(good, "centers", put(0, (0, 0))),
        damaged(good, "sha256", put(0, (slice(None), 0))),
    ]
    for tensors in [*at_once, *when_verified]:
        store.write(path, replace(contents, tensors=tensors))
        with pytest.raises(FormatError):
            embits.load(path, verify=True)
    for tensors in at_once:
        store.write(path, replace(contents, tensors=tensors))
        with pytest.raises(FormatError):
            embits.load(path)
    for tensors in when_verified:  # they answer, perhaps wrongly, but never crash
        store.write(path, replace(contents, tensors=tensors))
        embits.load(path).search(bits.codes[:5], recall=0.9)
    store.write(path, replace(contents, tensors=when_verified[1]))  # a row is there twice
    with pytest.raises(FormatError, match="the order of the rows"):
        embits.load(path).decode()


def test_the_command_line_makes_cells_and_searches_them(tmp_path, X, plain):
    np.save(tmp_path / "x.npy", X)
    plain.save(tmp_path / "plain.safetensors")
    made = run("cells", "plain.safetensors", "-o", "cells.safetensors", "--cells", 50, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "50 cells" in made.stdout
    asked = ["search", "cells.safetensors", "x.npy", "-k", 3, "--recall", 0.9, "--json"]
    assert run(*asked, cwd=tmp_path).returncode == 0
    refused = run("search", "plain.safetensors", "x.npy", "--probes", 3, cwd=tmp_path)
    assert refused.returncode == 1
    assert "embits cells" in refused.stderr
    again = run("cells", "plain.safetensors", "-o", "x.npy", cwd=tmp_path)
    assert again.returncode == 1
    binarized = run(
        "binarize", "x.npy", "-o", "b.safetensors", "--method", "itq", "--bits", 64, "--cells",
        "auto", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert binarized.returncode == 0
    assert '"cells"' in binarized.stdout


def test_a_streamed_file_gets_the_cells_of_one_in_memory(tmp_path, X, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    settings = {"n_bits": 64, "method": "lsh", "cells": 40}
    whole = embits.binarize_to_file(tmp_path / "x.npy", tmp_path / "whole.bits", **settings)
    assert whole.current.centers is not None
    monkeypatch.setattr("embits.jobs.stream.STREAM_FROM", 1)
    embits.binarize_to_file(tmp_path / "x.npy", tmp_path / "streamed.bits", **settings)
    assert (tmp_path / "whole.bits").read_bytes() == (tmp_path / "streamed.bits").read_bytes()
    assert isinstance(whole.current.codes.cells[0], Cells)


@pytest.mark.filterwarnings("ignore:lengths of vectors vary widely")
@pytest.mark.parametrize("metric", ["hamming", "asymmetric", "dot"])
def test_recall_is_found_of_clusters_with_filters_many_rows_and_inner_products(metric):
    """Of rows in tight clusters four cells hold the ten nearest: the curve says no more."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, 32))
    X = centers[rng.integers(60, size=6000)] + 0.5 * rng.normal(size=(6000, 32))
    X = X * rng.lognormal(size=(6000, 1)) if metric == "dot" else X
    bits = embits.binarize(X, n_bits=128, method="itq", cells="auto", lengths=metric == "dot")
    queries = centers + 0.5 * rng.normal(size=(60, 32))
    rare = rng.random(6000) < 0.05
    for k, where in ((10, None), (10, rare), (150, None)):
        exact = bits.search(queries, k, metric=metric, where=where)
        found = bits.search(queries, k, metric=metric, where=where, recall=0.95)
        both = zip(found.rows.tolist(), exact.rows.tolist(), strict=True)
        assert np.mean([len(set(a) & set(b)) / k for a, b in both]) >= 0.93
        assert found.rows_read < len(queries) * len(bits)


@pytest.mark.parametrize("metric", ["hamming", "asymmetric"])
@pytest.mark.parametrize("recall", [0.8, 0.95])
def test_rows_that_pass_a_filter_are_read_where_cells_would_be_more(bits, plain, metric, recall):
    where = np.arange(len(bits)) < len(bits) // 10  # not at random among the cells
    queries = plain.decode(rows=np.arange(0, 6000, 60))
    queries += np.random.default_rng(0).normal(size=queries.shape) * queries.std()
    expected = plain.search(queries, metric=metric, where=where)
    found = bits.search(queries, metric=metric, where=where, recall=recall)
    assert found_share(expected, found) >= recall
    assert found.rows_read <= expected.rows_read


def test_no_queries_are_refused(bits):
    with pytest.raises(embits.InputError, match="no queries to calibrate with"):
        bits.calibrate(np.zeros((0, bits.dims), np.float32))


def test_filters_that_go_along_with_clusters_find_what_they_promise():
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(800, 32))
    X = middles[rng.integers(800, size=40_000)] + 0.2 * rng.normal(size=(40_000, 32))
    bits = embits.binarize(X, n_bits=128, method="itq")
    queries, passing = X[rng.integers(len(X), size=200)], X[:, 0] > np.quantile(X[:, 0], 0.7)
    exact = bits.search(queries, 10, where=passing).rows
    found = bits.with_cells().search(queries, 10, where=passing, recall=0.9)
    assert (
        np.mean(
            [len({*a} & {*b}) for a, b in zip(exact.tolist(), found.rows.tolist(), strict=True)]
        )
        > 9
    )
    assert found.rows_read < 0.3 * len(queries) * len(X)


def gaussians(n, centers, spread, dims=32, seed=0):
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(centers, dims))
    return middles[rng.integers(centers, size=n)] + spread * rng.normal(size=(n, dims))


@pytest.fixture(scope="module", params=[(400, 0.2), (40, 1.0)], ids=["tight", "loose"])
def large(request):
    """Rows in clusters, and queries like them, between them and unlike them."""
    clusters, spread = request.param
    X = gaussians(20_000, clusters, spread)
    bits = embits.binarize(X, n_bits=64, method="itq", cells="auto")
    rng = np.random.default_rng(5)
    likes = gaussians(250, clusters, spread, seed=1)
    return bits, {
        "rows": likes,
        "between": likes[rng.permutation(250)] + likes,
        "noise": rng.normal(size=(250, 32)),
    }


@pytest.mark.parametrize("metric", ["hamming", "asymmetric"])
@pytest.mark.parametrize("k", [1, 30, 1000])
@pytest.mark.parametrize("kind", ["rows", "between", "noise"])
def test_recall_is_held_for_any_k_and_for_queries_unlike_the_rows(large, metric, k, kind):
    bits, queries = large
    expected = bits.search(queries[kind], k, metric=metric)
    for recall in (0.8, 0.95):
        found = bits.search(queries[kind], k, metric=metric, recall=recall)
        assert found_share(expected, found) > recall - 0.025
        assert found.rows_read < expected.rows_read


@pytest.mark.parametrize("kind", ["rows", "between", "noise"])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.4])
def test_filters_by_region_find_what_they_promise_and_read_no_more_than_passes(large, kind, share):
    bits, queries = large
    direction = bits.coder.encode(queries["rows"][:1])
    near = embits.search.top_k(bits.codes, direction[0], int(share * len(bits))).rows
    for rows in (near, np.arange(int(share * len(bits)))):
        expected = bits.search(queries[kind], where=bits.select(rows=rows))
        for recall in (0.8, 0.9, 0.95):
            found = bits.search(queries[kind], recall=recall, where=bits.select(rows=rows))
            assert found_share(expected, found) > recall - 0.02
            assert found.rows_read <= 1.1 * expected.rows_read


def test_a_query_that_reads_more_cells_than_rows_pass_scans_these(large):
    bits, queries = large
    centers = bits.current.codes.centers
    eager = centers.curve.copy()
    eager[:-2, 3] = 0  # as if cells always read little
    eager[5 * 18 : -2, 1] = -1e20
    eager[18 : 5 * 18, 1] = -1e20
    pieces = bits.current.codes.with_centers(replace(centers, curve=eager))
    rows = np.arange(0, 20_000, 10)
    for asked in (queries["noise"], queries["noise"][0]):
        codes = bits.encode(asked)
        for where in (rows, [rows] * len(codes)) if codes.ndim == 2 else (rows,):
            found = embits.search.top_k(pieces, codes, 10, where=where, recall=0.8)
            expected = embits.search.top_k(pieces.in_row_order(), codes, 10, where=where)
            assert (found.rows == expected.rows).all()
            assert (found.distances == expected.distances).all()


def test_a_curve_of_version_0_3_still_finds_what_it_promises(large):
    bits, queries = large
    pieces = bits.current.codes
    pieces = pieces.with_centers(replace(pieces.centers, curve=pieces.centers.curve[:17]))
    codes = bits.encode(queries["rows"])
    for k in (1, 10, 100, 1000):
        expected = embits.search.top_k(pieces, codes, k)
        for recall in (0.8, 0.95):
            found = embits.search.top_k(pieces, codes, k, recall=recall)
            assert found_share(expected, found) > recall - 0.03
        assert embits.search.top_k(pieces, codes, k, recall=1).rows_read == expected.rows_read
