"""The lock of a collection, deleted while processes write: no change that was made is lost."""

import os
import random
import subprocess
import sys
import time

import pytest

import embits
from embits.collection import changes
from embits.collection.changes import writer_lock
from embits.errors import LockedError
from tests.support.vectors import clustered

ROWS = clustered(60)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)

WRITER = """
import sys, numpy as np, embits
from embits.errors import LockedError
path, name, n_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows = np.random.default_rng(0).normal(size=(n_rows, 24)).astype("f4")
collection = embits.open_collection(path, timeout=60)
for i in range(60):
    ids = [f"{name}-{i}-{j}" for j in range(n_rows)]
    try:
        collection.add(rows, ids)
        print(*ids, flush=True)
    except (LockedError, FileNotFoundError):  # another process has deleted its files
        pass
"""


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted")
@pytest.mark.parametrize("n_rows", [1, 20])
def test_no_row_is_lost_when_the_lock_is_deleted_again_and_again(memory_path, n_rows):
    path = memory_path / "c"
    embits.open_collection(path, CODER).add(ROWS[:1], ["first"])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, name, str(n_rows)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    rng = random.Random(0)
    while any(writer.poll() is None for writer in writers):
        (path / "_lock").unlink(missing_ok=True)
        time.sleep(rng.choice((0.001, 0.02, 0.3)))  # a busy machine takes long for a change
    made = {word for writer in writers for word in writer.communicate()[0].split()}
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    found = set(embits.load(path, verify=True).words)
    assert made | {"first"} <= found, "rows that were confirmed are lost"
    assert made


@pytest.fixture
def collection(tmp_path):
    made = embits.open_collection(tmp_path / "c", CODER)
    made.add(ROWS[:3], ["a", "b", "c"])
    made.add(ROWS[3:4], ["d"])
    return made


def content(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "_lock"}


LOSSES = {
    "deleted": lambda lock: lock.unlink(),
    "made again": lambda lock: (lock.unlink(), lock.touch()),
}
CHANGES = {
    "a piece": lambda c: c.add(ROWS[:40], [f"w{i}" for i in range(40)]),
    "the log": lambda c: c.add(ROWS[:1], ["w0"]),
    "remove": lambda c: c.remove(["a"]),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_whose_lock_is_gone_is_refused_and_nothing_changes(
    collection, loss, change, monkeypatch
):
    before, check = content(collection.path), changes.check_locked
    listed = {name for name in before if name not in ("_lock",)}

    def lose(folder):
        LOSSES[loss](folder / "_lock")
        check(folder)

    with monkeypatch.context() as patch:
        patch.setattr(changes, "check_locked", lose)
        with pytest.raises(LockedError, match=r"_lock was deleted .* nothing was changed"):
            CHANGES[change](collection)
    assert {name: content(collection.path)[name] for name in listed} == before
    assert list(embits.load(collection.path, verify=True).words) == ["a", "b", "c", "d"]
    CHANGES[change](collection)  # deletes what the writer left, which may have been another's
    left = {each.name for each in collection.path.iterdir()}
    assert left == collection.manifest.files() | {"_lock"}


def test_another_writer_waits_although_the_lock_was_deleted(collection):
    with writer_lock(collection.path):
        (collection.path / "_lock").unlink()
        with pytest.raises(LockedError, match="is locked by process"):
            collection.remove(["a"])
    assert collection.remove(["a"]) == 1


def test_a_folder_in_place_of_the_lock_is_one_line(collection):
    lock = collection.path / "_lock"
    lock.unlink()
    lock.mkdir()
    with pytest.raises(embits.InputError, match="_lock is a folder, expected a file: delete it"):
        collection.remove(["a"])
    assert len(collection) == 4
