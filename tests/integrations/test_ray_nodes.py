"""A node of a Ray cluster that is killed in the middle of a job: the answers are the same."""

import sys
import threading

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.parquet import read_codes, read_column  # noqa: E402
from embits.integrations.ray import encoding, searching  # noqa: E402
from tests.support.ray_jobs import DIMS, leftovers, same, write_folder  # noqa: E402
from tests.support.ray_nodes import killed_at_work, three_nodes  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc"),
]


@pytest.fixture(scope="module")
def matrix():
    return clustered(6000, DIMS)


@pytest.fixture(scope="module")
def coder(matrix):
    return embits.RandomHyperplanes(n_bits=100).fit(matrix[:500])


@pytest.fixture(scope="module")
def shared_cluster():
    with three_nodes() as cluster:
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """Three nodes, in the place of one that the test before has killed, too."""
    while len(shared_cluster.worker_nodes) < 2:
        shared_cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    shared_cluster.wait_for_nodes()
    return shared_cluster


@pytest.mark.parametrize("source", ["files", "dataset"])
def test_codes_are_the_same_if_a_node_dies_while_it_encodes(
    source, cluster, matrix, coder, tmp_path, monkeypatch
):
    monkeypatch.setattr(encoding, "MIN_BYTES", 1)
    monkeypatch.setattr(encoding, "PIECES_PER_CPU", 30)
    rows = np.tile(matrix, (4, 1))
    vectors = write_folder(tmp_path / "in", rows)
    started = threading.Event()
    options = {"ids": "word", "keep": ["id"], "progress": lambda *_: started.set()}
    if source == "dataset":
        vectors = ray.data.read_parquet(str(vectors), override_num_blocks=16)
        started.set()
    with killed_at_work(cluster, "map_piece", started) as killed:
        facts = on_ray.encode(vectors, coder, tmp_path / "out", **options)
    assert killed, "the job was over before a node could be killed"
    assert (facts["rows"], facts["skipped"]) == (len(rows), 0)
    assert len(leftovers(tmp_path / "out")) == facts["parts"] + 2
    assert np.array_equal(read_codes(tmp_path / "out", ids="word").codes, coder.transform(rows))
    assert np.array_equal(read_column(tmp_path / "out", "id").to_numpy(), np.arange(len(rows)))


def test_answers_are_the_same_if_a_node_dies_while_it_searches(
    cluster, matrix, coder, tmp_path, monkeypatch
):
    monkeypatch.setattr(searching, "MIN_ROWS", 1)
    monkeypatch.setattr(searching, "QUERIES_AT_ONCE", 400)
    monkeypatch.setattr(searching, "MAX_BLOCKS", 100)
    news = embits.open_collection(tmp_path / "news", coder)
    for number, part in enumerate(np.array_split(matrix, 4)):
        news.add(part, ids=[f"{number}-{i}" for i in range(len(part))])
    news.remove([f"1-{i}" for i in range(0, 900, 7)])
    asked, started = np.tile(matrix, (2, 1)), threading.Event()
    expected = on_ray.search(news.path, asked, 7, metric="asymmetric")
    with killed_at_work(cluster, "in_span", started) as killed:
        found = on_ray.search(
            news.path, asked, 7, metric="asymmetric", progress=lambda *_: started.set()
        )
    assert killed, "the job was over before a node could be killed"
    same(found, expected)
    here = news.search(asked, 7, metric="asymmetric")
    assert np.array_equal(found.rows, here.rows)
    # A matrix library may round the weights of a part of the queries otherwise.
    assert np.allclose(found.scores, here.scores, atol=1e-6)
    assert found.ids[:50].tolist() == news.search(asked[:50], 7, metric="asymmetric").ids.tolist()
