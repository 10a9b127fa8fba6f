"""Searches of several Ray workers give the answers of one machine, whatever happens on the way."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.ray import job, near_pairs, queries, spans  # noqa: E402
from tests.support.ray_jobs import DIMS, busy_workers, fixed, leftovers, write_folder  # noqa: E402

pytestmark = pytest.mark.slow
N_QUERIES = 150


@pytest.fixture(scope="module")
def collection(matrix, coder, tmp_path_factory):
    """Pieces of several sizes, of which some rows are removed and some have the same code."""
    made = embits.open_collection(tmp_path_factory.mktemp("collections") / "news", coder)
    start = 0
    for stop in (3000, 4400, 5100, 5400, 5500):
        made.add(matrix[start:stop], ids=[f"word{i}" for i in range(start, stop)])
        start = stop
    made.add(matrix[:100], ids=[f"copy{i}" for i in range(100)])
    made.remove([f"word{i}" for i in (*range(0, 3000, 7), *range(4000, 4400), 5499)])
    return made


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks of queries, several windows of blocks, and pieces in several spans."""
    monkeypatch.setattr(queries, "QUERIES_AT_ONCE", 40)
    monkeypatch.setattr(job, "MAX_BLOCKS", 2)
    monkeypatch.setattr(spans, "MAX_ROWS", 700)


def same(found, expected):
    assert type(found) is type(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def test_spans_hold_every_row_once_and_in_order(collection):
    spread = spans.SpreadCollection(collection.path)
    for n_cpus in (1, 3, 1000):
        divided = spread.spans(n_cpus)
        assert [span.first for span in divided[1:]] == [span.stop for span in divided[:-1]]
        assert divided[-1].stop == len(collection)
        assert max(span.rows for span in divided) <= 700
        opened = [spans._opened(span, collection.coder) for span in divided]
        assert np.array_equal(np.concatenate([np.asarray(o.codes) for o in opened]),
                              np.asarray(collection.codes))  # fmt: skip
        names = [o.names(np.arange(len(o.codes))) for o in opened]
        assert np.concatenate(names).tolist() == list(collection.words)


@pytest.mark.parametrize("metric", ["hamming", "asymmetric", "decoded"])
@pytest.mark.parametrize("filters", ["none", "rows", "ids", "each", "empty"])
def test_a_search_gives_the_answers_of_one_machine(metric, filters, collection, matrix):
    rng = np.random.default_rng(0)
    asked = matrix[rng.permutation(len(matrix))[:N_QUERIES]]
    mask = rng.random(len(collection)) < 0.4
    options = {
        "none": {},
        "rows": {"where": mask, "exclude": [5, 6, 7]},
        "ids": {"where": list(collection.words[10:14]), "exclude": [collection.words[11]]},
        "empty": {"where": []},
        "each": {"where": [[1, 2, 900]] * 70 + [None] * 70 + [mask] * 10},
    }[filters]
    expected = collection.search(asked, 12, metric=metric, **options)
    same(on_ray.search(collection.path, asked, 12, metric=metric, **options), expected)


@pytest.mark.parametrize("method", ["near-lossless", "itq", "sign"])
def test_scores_are_those_of_one_machine_for_every_coder(method, matrix, tmp_path):
    options = {"near-lossless": {"n_bits": 40, "steps": 5}, "itq": {"n_bits": 20}}.get(method, {})
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


def test_blocks_of_queries_are_of_nearly_equal_size(folder, matrix, coder, monkeypatch):
    monkeypatch.setattr(queries, "QUERIES_AT_ONCE", 1000)
    for source, ids in ((matrix[:4001], None), (folder, "word")):
        asked = queries.Queries(source, coder, "hamming", None, ids)
        blocks = list(asked.blocks())
        assert {len(block.vectors) for block in blocks} <= {800, 801, 1000}
        assert [block.first for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
        joined = np.concatenate([block.vectors for block in blocks])
        assert np.array_equal(joined, matrix[: len(joined)])
        assert len(joined) == asked.n
        names = [name for block in blocks for name in block.names.to_pylist()]
        assert names == [f"word{i}" if ids else i for i in range(asked.n)]


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
def test_within_gives_the_answers_of_one_machine(bound, collection, matrix):
    asked = matrix[-N_QUERIES:]
    same(on_ray.within(collection.path, asked, **bound), collection.within(asked, **bound))
    options = bound | {"where": np.arange(100, 3000), "exclude": [f"copy{i}" for i in range(9)]}
    same(on_ray.within(collection.path, asked, **options), collection.within(asked, **options))


@pytest.mark.parametrize("distance", [0, 3, 40])
@pytest.mark.parametrize("by", ["tables", "a scan"])
def test_near_pairs_are_those_of_one_machine(distance, by, collection, coder, monkeypatch):
    blocks = near_pairs.best_blocks
    if by == "tables":
        monkeypatch.setattr(near_pairs, "MAX_PART_ROWS", 1000)
        monkeypatch.setattr("embits.search.pair_tables._MIN_ROWS", 0)
        monkeypatch.setattr("embits.search.pair_tables._SCAN_NS", 1e6)
    else:
        monkeypatch.setattr(near_pairs, "best_blocks", lambda *args: blocks(*args)[:0])
    expected = collection.pairs_within(distance)
    assert len(expected.first) >= 85
    same(on_ray.pairs_within(collection.path, distance), expected)


def test_queries_from_parquet_and_results_to_parquet(collection, matrix, tmp_path):
    source = write_folder(tmp_path / "in", matrix[:300], files=3)
    seen = []
    facts = on_ray.search(
        collection.path, source, 5, column="vector", ids="word", target=tmp_path / "near.parquet",
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    expected = collection.search(matrix[:300], 5)
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


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_a_worker_that_is_killed_loses_nothing(collection, matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "MAX_BLOCKS", 100)
    asked = np.tile(matrix, (2, 1))
    killed, started = [], threading.Event()

    def kill_when_started():
        while not killed and not done.is_set():
            if started.is_set():
                for process in busy_workers("answer")[:1]:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)
            time.sleep(0.001)

    done = threading.Event()
    killer = threading.Thread(target=kill_when_started)
    killer.start()
    try:
        found = on_ray.search(collection.path, asked, 7, progress=lambda *_: started.set())
    finally:
        done.set()
        killer.join()
    assert killed, "the job was over before a worker could be killed"
    same(found, collection.search(asked, 7))


def test_what_is_wrong_is_refused_in_one_line(collection, matrix, tmp_path):
    path, asked = collection.path, matrix[:3]
    (tmp_path / "there.parquet").write_text("mine")
    bad = pa.table({"vector": fixed(np.where(np.eye(DIMS) > 0, np.nan, 1.0))})
    pq.write_table(bad, tmp_path / "nan.parquet")
    wrong = [
        (lambda: on_ray.search(tmp_path / "no", asked), "not a collection"),
        (lambda: on_ray.search(path, matrix[:3, :5]), "5"),
        (lambda: on_ray.search(path, asked * np.nan), "NaN"),
        (lambda: on_ray.search(path, tmp_path / "nan.parquet"), "row 0: found nan"),
        (lambda: on_ray.search(path, asked, -1), "k is -1"),
        (lambda: on_ray.search(path, asked, metric="cosine"), "metric is 'cosine'"),
        (lambda: on_ray.search(path, asked, where=["nobody"]), "nobody"),
        (lambda: on_ray.search(path, asked, where=np.ones(3, bool)), "mask of 3 rows"),
        (lambda: on_ray.search(path, asked, ids="word"), "pass target"),
        (lambda: on_ray.search(path, asked, target=tmp_path / "there.parquet"), "exists"),
        (lambda: on_ray.search(path, asked, target=tmp_path / "a/b.parquet"), "no folder"),
        (lambda: on_ray.within(path, asked), "a distance or a similarity"),
        (lambda: on_ray.within(path, asked, 900), "distance is 900"),
        (lambda: on_ray.within(path, asked, 3, metric="decoded"), "pass similarity"),
        (lambda: on_ray.within(path, asked, 100, max_results=20), "more than 20 rows"),
        (lambda: on_ray.pairs_within(path, 100, max_results=20), "more than 20 pairs"),
        (lambda: on_ray.search(path, np.zeros((1, 13), np.uint8), metric="asymmetric"), "float"),
    ]
    for call, message in wrong:
        with pytest.raises(embits.EmbitsError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert (tmp_path / "there.parquet").read_text() == "mine"
    assert leftovers(tmp_path) == ["nan.parquet", "there.parquet"]


def test_a_selection_of_rows_that_have_moved_is_refused(matrix, coder, tmp_path):
    made = embits.open_collection(tmp_path / "news", coder)
    made.add(matrix[:300])
    chosen = made.select(where=[1, 2, 3])
    found = on_ray.search(made.path, matrix[:5], 2, where=chosen)
    same(found, made.search(matrix[:5], 2, where=chosen))
    made.remove([0])
    with pytest.raises(embits.InputError, match="where was selected before the collection changed"):
        on_ray.search(made.path, matrix[:5], 2, where=chosen)
    with pytest.raises(embits.InputError, match="exclude was selected before"):
        on_ray.within(made.path, matrix[:5], 20, exclude=[chosen] * 5)


def test_a_collection_that_changes_under_a_job_is_an_error(matrix, coder, tmp_path):
    made = embits.open_collection(tmp_path / "news", coder)
    for part in np.split(clustered(3000, DIMS), 3):
        made.add(part)
    with pytest.raises(embits.InputError, match="was changed while the job ran: run it again"):
        on_ray.search(made.path, matrix, 5, progress=lambda *_: len(made.manifest.pieces) > 1
                      and (made.remove([0]), made.compact()))  # fmt: skip
    found = on_ray.search(made.path, matrix[:5], 5)
    same(found, made.search(matrix[:5], 5))
    (made.path / made.manifest.pieces[0].file).unlink()
    with pytest.raises(embits.FormatError, match="is missing, and the manifest lists it"):
        on_ray.search(made.path, matrix[:5], 4, where=[1, 2])
