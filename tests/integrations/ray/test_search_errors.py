"""Searches on Ray that are wrong or interrupted: one-line errors, and nothing is lost."""

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
from embits.integrations.ray import searching  # noqa: E402
from tests.support.ray_jobs import DIMS, busy_workers, fixed, leftovers, same  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_blocks")]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_a_worker_that_is_killed_loses_nothing(collection, matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "MAX_BLOCKS", 100)
    asked = np.tile(matrix, (2, 1))
    killed, started = [], threading.Event()

    def kill_when_started():
        while not killed and not done.is_set():
            if started.is_set():
                for process in busy_workers("in_span")[:1]:
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
        (lambda: on_ray.search(path, asked, metric="cosine"), "metric"),
        (lambda: on_ray.search(path, asked, where=["nobody"]), "nobody"),
        (lambda: on_ray.search(path, asked, where=np.ones(3, bool)), "where"),
        (lambda: on_ray.search(path, asked, ids="word"), "target"),
        (lambda: on_ray.search(path, asked, target=tmp_path / "there.parquet"), "exists"),
        (lambda: on_ray.within(path, asked), "distance"),
        (lambda: on_ray.within(path, asked, 900), "distance is 900"),
        (lambda: on_ray.within(path, asked, 3, metric="decoded"), "similarity"),
        (lambda: on_ray.within(path, asked, 100, max_results=20), "more than 20"),
        (lambda: on_ray.pairs_within(path, 100, max_results=20), "more than 20"),
        (lambda: on_ray.search(path, np.zeros((1, 13), np.uint8), metric="asymmetric"), "float"),
    ]
    for call, message in wrong:
        with pytest.raises(embits.EmbitsError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        on_ray.search(path, asked, target=tmp_path / "a/b.parquet")
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
