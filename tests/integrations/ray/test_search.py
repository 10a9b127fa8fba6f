"""Searches of several Ray workers give the answers of one machine, whatever happens on the way."""

import numpy as np
import pytest

import embits

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.ray import searching  # noqa: E402
from embits.search import METRICS  # noqa: E402
from tests.support.ray_jobs import leftovers, same, write_folder  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_blocks")]
N_QUERIES = 150


def test_spans_hold_every_row_once_and_in_order(collection):
    job = searching._Job(collection.path, None, False, None, None)
    for n_cpus in (1, 3, 1000):
        divided = job.divided(n_cpus)
        assert [span.first for span in divided[1:]] == [span.stop for span in divided[:-1]]
        assert divided[-1].stop == len(collection)
        assert max(span.stop - span.first for span in divided) <= 700
        opened = [searching.open_span(span) for span in divided]
        assert np.array_equal(np.concatenate([o.codes for o in opened]),
                              np.asarray(collection.codes))  # fmt: skip
        names = [o.names(o.first + np.arange(len(o.codes))) for o in opened]
        assert np.concatenate(names).tolist() == list(collection.words)
    searching.open_span.cache_clear()


@pytest.fixture
def one_block(small_blocks, monkeypatch):
    """All queries in one block: products of other numbers of rows are rounded differently."""
    monkeypatch.setattr(searching, "QUERIES_AT_ONCE", 1000)


def on_one_machine(collection, asked, k, where=None, exclude=None, rows=None, **options):
    where = collection.selections(asked, where, exclude, rows)
    return collection.search(asked, k, where=where, **options)


@pytest.mark.parametrize("metric", ["hamming", "asymmetric", "decoded"])
def test_a_search_gives_the_answers_of_one_machine(metric, collection, matrix, request):
    if not METRICS[metric].is_distance:
        request.getfixturevalue("one_block")
    rng = np.random.default_rng(0)
    asked = matrix[rng.permutation(len(matrix))[:N_QUERIES]]
    mask = rng.random(len(collection)) < 0.4
    for options in (
        {},
        {"where": mask, "exclude": collection.select(rows=[5, 6, 7])},
        {"where": list(collection.words[10:14]), "exclude": [collection.words[11]]},
        {"where": []},
        {"where": [collection.select(rows=[1, 2, 900])] * 70 + [None] * 70 + [mask] * 10},
        {"rows": range(0, 900, 3)},
    ):
        expected = on_one_machine(collection, asked, 12, metric=metric, **options)
        found = on_ray.search(collection.path, asked, 12, metric=metric, **options)
        same(found, expected)
        assert found.ids.tolist() == expected.ids.tolist()


@pytest.mark.filterwarnings("ignore:.* times shorter than the longest")  # on purpose
@pytest.mark.usefixtures("one_block")
def test_inner_products_are_those_of_one_machine(matrix, coder, tmp_path):
    rng = np.random.default_rng(0)
    vectors = matrix[:2000] * rng.lognormal(sigma=2, size=(2000, 1)).astype(np.float32)
    vectors[[5, 1500]], vectors[7] = vectors[[5, 1500]] * 1e-6, 0
    source = write_folder(tmp_path / "in", vectors, files=3)
    on_ray.encode(source, coder, tmp_path / "out", keep=[], lengths=True)
    made = embits.open_collection(tmp_path / "out")
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, vectors), coder, lengths=True)
    assert np.array_equal(made.lengths, bits.lengths)
    made.remove([3, 600])
    for options in ({}, {"rows": np.arange(100, 1900)}, {"exclude": [0, 1, 2]}):
        expected = on_one_machine(made, matrix[:100], 2000, metric="dot", **options)
        same(on_ray.search(made.path, matrix[:100], 2000, metric="dot", **options), expected)
    bound = {"similarity": float(expected.scores[:, 20].mean()), "metric": "dot"}
    same(on_ray.within(made.path, matrix[:100], **bound), made.within(matrix[:100], **bound))
    on_ray.encode(source, coder, tmp_path / "without", keep=[])
    with pytest.raises(embits.InputError, match="lengths"):
        on_ray.search(tmp_path / "without", matrix[:3], metric="dot")


@pytest.mark.parametrize("method", ["near-lossless", "neural", "itq", "sign"])
@pytest.mark.usefixtures("one_block")
def test_scores_are_those_of_one_machine_for_every_coder(method, matrix, tmp_path):
    options = {"near-lossless": {"n_bits": 40, "steps": 5}, "sign": {}}.get(method, {"n_bits": 20})
    coder = embits.coders.METHODS[method](**options).fit(matrix[:500])
    made = embits.open_collection(tmp_path / "news", coder)
    made.add(matrix[:1500])
    for metric in ("asymmetric", "decoded"):
        expected = made.search(matrix[:200], 20, metric=metric)
        same(on_ray.search(made.path, matrix[:200], 20, metric=metric), expected)
        bound = float(expected.scores[:, 10].mean())
        options = {"similarity": bound, "metric": metric}
        same(
            on_ray.within(made.path, matrix[:200], **options), made.within(matrix[:200], **options)
        )


def test_blocks_of_queries_are_of_nearly_equal_size(folder, matrix, collection, monkeypatch):
    monkeypatch.setattr(searching, "QUERIES_AT_ONCE", 1000)
    job = searching._Job(collection.path, "near.parquet", False, None, None)
    for source, ids in ((matrix[:4001], None), (folder, "word")):
        asked = searching._Queries(job, "hamming", source, None, ids)
        blocks, names = zip(*asked.blocks(), strict=True)
        assert {len(block) for block in blocks} <= {800, 801, 1000}
        assert np.array_equal(np.concatenate(blocks), matrix[: asked.n])
        expected = [f"word{i}" if ids else i for i in range(asked.n)]
        assert np.concatenate(names).tolist() == expected


def test_a_search_takes_codes_and_any_k(collection, coder, matrix):
    codes = coder.transform(matrix[:90])
    for k in (0, 1, 10**6):
        same(on_ray.search(collection.path, codes, k), collection.search(codes, k))
    same(on_ray.search(collection.path, codes[:0], 3), collection.search(codes[:0], 3))


@pytest.mark.parametrize(
    "bound",
    [
        {"distance": 25},
        {"distance": 0},
        {"similarity": 0.8},
        {"similarity": 0.7, "metric": "asymmetric"},
        {"similarity": 0.8, "metric": "decoded"},
    ],
)
def test_within_gives_the_answers_of_one_machine(bound, collection, matrix, request):
    if "metric" in bound:
        request.getfixturevalue("one_block")
    asked = matrix[-N_QUERIES:]
    same(on_ray.within(collection.path, asked, **bound), collection.within(asked, **bound))
    options = bound | {"rows": np.arange(100, 3000), "exclude": [f"copy{i}" for i in range(9)]}
    same(on_ray.within(collection.path, asked, **options), collection.within(asked, **options))


@pytest.mark.parametrize("distance", [0, 3, 40])
@pytest.mark.parametrize("by", ["tables", "a scan"])
def test_near_pairs_are_those_of_one_machine(distance, by, collection, coder, monkeypatch):
    blocks = searching.near.best_blocks
    if by == "tables":
        monkeypatch.setattr(searching, "MAX_PART_ROWS", 1000)
        monkeypatch.setattr("embits.search.pairs._MIN_ROWS", 0)
        monkeypatch.setattr("embits.search.pairs._SCAN_NS", 1e6)
    else:
        monkeypatch.setattr(searching.near, "best_blocks", lambda *args: blocks(*args)[:0])
    expected = collection.pairs_within(distance)
    assert len(expected.first) >= 85
    same(on_ray.pairs_within(collection.path, distance), expected)


def test_queries_from_parquet_and_results_to_parquet(collection, matrix, tmp_path):
    source = write_folder(tmp_path / "in", matrix[:300], files=3)
    seen = []
    facts = on_ray.search(
        collection.path, source, 5, metric="hamming", column="vector", ids="word",
        target=tmp_path / "near.parquet", progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    expected = collection.search(matrix[:300], 5, metric="hamming")
    table = pq.read_table(tmp_path / "near.parquet")
    assert table.column_names == ["query", "row", "distance", "id"]
    assert table["query"].to_pylist() == [f"word{i}" for i in range(300) for _ in range(5)]
    assert np.array_equal(table["row"].to_numpy(), expected.rows.ravel())
    assert np.array_equal(table["distance"].to_numpy(), expected.distances.ravel())
    assert table["id"].to_pylist() == collection.ids(expected.rows).ravel().tolist()
    size = (tmp_path / "near.parquet").stat().st_size
    assert facts == {
        "target": str(tmp_path / "near.parquet"), "rows": 1500, "bytes": size, "queries": 300
    }  # fmt: skip
    total = 300 * len(collection)
    assert seen == sorted(seen)
    assert len(seen) > 5
    assert seen[-1] == (total, total)

    on_ray.within(collection.path, source, 20, column="vector", target=tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    expected = collection.within(matrix[:300], 20)
    asked = np.repeat(np.arange(300), np.diff(expected.offsets))
    assert np.array_equal(table["query"].to_numpy(), asked)
    assert np.array_equal(table["row"].to_numpy(), expected.rows)
    assert np.array_equal(table["distance"].to_numpy(), expected.distances)

    facts = on_ray.pairs_within(collection.path, 2, target=tmp_path / "pairs.parquet")
    expected = collection.pairs_within(2)
    table = pq.read_table(tmp_path / "pairs.parquet")
    assert facts["rows"] == len(expected.first)
    assert np.array_equal(table["first"].to_numpy(), expected.first)
    assert table["second_id"].to_pylist() == collection.ids(expected.second).tolist()
    assert leftovers(tmp_path) == ["all.parquet", "in", "near.parquet", "pairs.parquet"]


@pytest.mark.parametrize("ids", ["word", None])
def test_what_a_job_encoded_is_opened_and_searched(ids, folder, matrix, coder, tmp_path):
    out = tmp_path / "out"
    on_ray.encode(folder, coder, out, ids=ids, keep=[])
    opened = embits.open_collection(out)
    assert opened.manifest == embits.load(out).manifest
    same(on_ray.search(out, matrix[:90], 4), opened.search(matrix[:90], 4))
    opened.add(matrix[:50], ids=None if ids is None else [f"new{i}" for i in range(50)])
    opened.remove(["word3"] if ids else [3])
    on_ray.search(out, matrix[:90], 4, target=tmp_path / "near.parquet")
    expected = opened.search(matrix[:90], 4)
    table = pq.read_table(tmp_path / "near.parquet")
    found = opened.ids(expected.rows.ravel(), None if ids else int)
    assert table["id"].to_pylist() == found.tolist()


def test_results_have_ids_after_the_cluster_was_stopped(collection, matrix, monkeypatch):
    found = on_ray.search(collection.path, matrix[:20], 5)
    monkeypatch.setattr(searching.tasks, "gathered", None)
    assert found.ids.tolist() == collection.search(matrix[:20], 5).ids.tolist()


def test_filters_on_columns_are_those_of_one_machine(matrix, coder, tmp_path):
    news = embits.open_collection(tmp_path / "news", coder)
    news.add(matrix[:900], columns={"n": range(900)})
    few = {"n": [5, 899]}
    for where, exclude in (
        ({"n": (100, 500)}, few),
        (None, {}),
        ([few, None, {"n": (7, None)}], None),
    ):
        asked = {"where": where, "exclude": exclude}
        found = on_ray.search(news.path, matrix[:3], 4, **asked)
        same(found, on_one_machine(news, matrix[:3], 4, **asked))


def test_an_empty_collection_is_searched(matrix, coder, tmp_path):
    empty = embits.open_collection(tmp_path / "empty", coder)
    same(on_ray.search(empty.path, matrix[:3], 4), empty.search(matrix[:3], 4))
    same(on_ray.within(empty.path, matrix[:3], 4), empty.within(matrix[:3], 4))
    same(on_ray.pairs_within(empty.path, 4), empty.pairs_within(4))
    facts = on_ray.search(empty.path, matrix[:3], 4, target=tmp_path / "near.parquet")
    assert facts["rows"] == pq.read_table(tmp_path / "near.parquet").num_rows == 0


def test_a_folder_that_is_encoded_again_is_read_again(matrix, coder, tmp_path):
    for number, rows in enumerate((matrix[:900], matrix[900:1800])):
        source = write_folder(tmp_path / f"in{number}", rows, files=2)
        on_ray.encode(source, coder, tmp_path / "out", ids=None, keep=[], overwrite=True)
        bits = embits.load(tmp_path / "out")
        same(on_ray.search(tmp_path / "out", matrix[:90], 4), bits.search(matrix[:90], 4))


def test_a_collection_in_an_object_store_is_searched(bucket, folder, matrix, coder):
    files, address = bucket
    on_ray.encode(folder, coder, address("codes"), ids="word", keep=[])
    facts = on_ray.search(address("codes"), matrix[:30], 3, target=address("near.parquet"))
    assert facts["rows"] == 90
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, matrix), coder)
    with files.open_input_file("bucket/near.parquet") as stream:
        table = pq.read_table(stream)
    assert np.array_equal(table["row"].to_numpy(), bits.search(matrix[:30], 3).rows.ravel())
    same(on_ray.pairs_within(address("codes"), 3), bits.pairs_within(3))
