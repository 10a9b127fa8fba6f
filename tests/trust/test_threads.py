"""Any number of threads and processes: the answers of one."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.search import MultiIndex
from tests.support.vectors import clustered

THREADS, QUERIES = 16, 1000


def all_at_once(work, n=THREADS):
    """Runs work(0) ... work(n - 1) in threads that start together."""
    together = threading.Barrier(n)

    def run(i):
        together.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


def test_16_threads_of_1000_queries_on_one_object_give_the_answers_of_one(saved, vectors):
    bits = embits.load(saved)  # fresh: the first use of everything is in the threads too
    alone = embits.load(saved)
    expected = [alone.most_similar(word, topn=5) for word in alone.words]
    rows = alone.search(vectors.matrix, 5)[1]
    scores = alone.search(vectors.matrix, 5, metric="asymmetric")[0]

    def ask(thread):
        wrong = 0
        for i in range(QUERIES):
            row = (i * 31 + thread * 17) % len(expected)
            match i % 4:
                case 0:
                    others = bits.select(exclude=bits.select(rows=[row]))
                    found = bits.most_similar(bits.codes[row], topn=5, where=others)
                    wrong += found != expected[row]
                case 1:
                    wrong += bits.most_similar(bits.words[row], topn=5) != expected[row]
                case 2:
                    x = vectors.matrix[row]
                    wrong += not np.array_equal(bits.search(x, 5)[1], rows[row])
                case _:
                    x = vectors.matrix[row]
                    found = bits.search(x, 5, metric="asymmetric")[0]
                    wrong += not np.allclose(found, scores[row], rtol=1e-5, atol=1e-5)
        return wrong

    assert all_at_once(ask) == [0] * THREADS


def test_threads_share_an_index():
    codes = np.random.default_rng(0).integers(0, 256, (20_000, 8), dtype=np.uint8)
    index = MultiIndex(codes, n_chunks=5)
    distances, rows = index.top_k(codes[:200], 10)

    def ask(_):
        found = index.top_k(codes[:200], 10)
        return np.array_equal(found[0], distances) and np.array_equal(found[1], rows)

    assert all(all_at_once(ask))


@pytest.mark.parametrize("method", METHODS)
def test_fits_and_saves_in_parallel_do_not_interfere(method, tmp_path):
    X = clustered(200, dims=16)

    def made(seed):
        params = (
            {"random_state": seed % 4} if "random_state" in METHODS[method].param_names() else {}
        )
        bits = embits.binarize(X, 16 if method != "sign" else None, method, **params)
        bits.save(tmp_path / f"own-{seed}")
        bits.save(tmp_path / "shared")
        return (tmp_path / f"own-{seed}").read_bytes()

    together = all_at_once(made, 8)
    assert together == [made(seed) for seed in range(8)]
    assert (tmp_path / "shared").read_bytes() in together
    embits.load(tmp_path / "shared", verify=True)
    assert len(list(tmp_path.iterdir())) == 9


def test_reads_in_parallel_do_not_interfere(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("".join(f"w{i} {i} {i / 7:.6f} 1e-3\n" for i in range(5000)))
    alone = embits.read_vectors(path).matrix
    assert all(all_at_once(lambda _: np.array_equal(embits.read_vectors(path).matrix, alone), 8))


def search_in_child(path):
    """What a worker process does: one search that starts threads, one that starts none."""
    bits = embits.load(path)
    codes = np.random.default_rng(0).integers(0, 256, (300_000, 64), dtype=np.uint8)
    return bits.most_similar(bits.words[7], topn=5), embits.search.top_k(codes, codes[:3], 5)[
        1
    ].tolist()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_answer_as_their_parent_does_also_after_it_used_threads(method, saved):
    expected = search_in_child(saved)  # 19 MB: on several threads where there are cores
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(search_in_child, [saved] * 2, timeout=100)) == [expected] * 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_other_threads_search_does_not_hang(saved):
    bits = embits.load(saved)
    expected = bits.most_similar(word := bits.words[3])
    done = threading.Event()

    def search():
        while not done.is_set():
            bits.search(bits.codes, 5)

    others = [threading.Thread(target=search) for _ in range(4)]
    for other in others:
        other.start()
    try:
        for _ in range(50):
            child = os.fork()
            if child == 0:
                os._exit(0 if bits.most_similar(word) == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for other in others:
            other.join()


_WITHOUT_THREADS = """
import resource, sys
from pathlib import Path
import numpy as np
import embits
codes = np.random.default_rng(0).integers(0, 256, (300_000, 64), dtype=np.uint8)
expected = embits.search.top_k(codes, codes[:3], 5, threads=1)[1]
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, 64 << 20))  # of each thread
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), used + (32 << 20)))
assert (embits.search.top_k(codes, codes[:3], 5, threads=16)[1] == expected).all()
from embits import _core
rows = _core.Rows(2, 1 << 40, False, 1)
rows.parse_text(b"a 1 2\\n" * 10_000, 16)
assert len(rows) == 10_000
print("done by one")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by Linux's RLIMIT_AS")
def test_where_no_more_threads_are_to_be_had_one_does_it_all():
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_THREADS],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "done by one\n", done.stderr
