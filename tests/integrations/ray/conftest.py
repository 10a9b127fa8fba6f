"""One Ray cluster of two processors for all tests of this folder."""

import pytest

import embits
from tests.support.vectors import clustered


@pytest.fixture(scope="package", autouse=True)
def cluster():
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    from embits.integrations.ray import encoding, searching

    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        object_store_memory=100 << 20,
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "MIN_BYTES", 1)  # several pieces of what fits into one
        patch.setattr(searching, "MIN_ROWS", 1)
        yield
    ray.shutdown()


@pytest.fixture(scope="package")
def matrix():
    from tests.support.ray_jobs import DIMS

    return clustered(6000, DIMS)


@pytest.fixture(scope="package")
def coder(matrix):
    return embits.RandomHyperplanes(n_bits=100).fit(matrix[:500])


@pytest.fixture(scope="package")
def folder(matrix, tmp_path_factory):
    from tests.support.ray_jobs import write_folder

    return write_folder(tmp_path_factory.mktemp("vectors") / "in", matrix)


@pytest.fixture
def bucket():
    """The address of an empty bucket on an S3 server of this machine, for a path to go in."""
    server_module = pytest.importorskip("moto.server")
    from pyarrow import fs

    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"?scheme=http&region=us-east-1&endpoint_override={host}:{port}"
    files, _ = fs.FileSystem.from_uri(
        f"s3://name:secret@bucket{options}&allow_bucket_creation=true"
    )
    files.create_dir("bucket")
    yield files, lambda path: f"s3://name:secret@bucket/{path}{options}"
    server.stop()


@pytest.fixture(scope="package")
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


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks of queries, several windows of blocks, and pieces in several spans."""
    from embits.integrations.ray import searching

    monkeypatch.setattr(searching, "QUERIES_AT_ONCE", 40)
    monkeypatch.setattr(searching, "MAX_BLOCKS", 2)
    monkeypatch.setattr(searching, "MAX_ROWS", 700)
