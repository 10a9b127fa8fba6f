"""Changes of a collection are whole or not at all, whatever interrupts them."""

import contextlib
import errno
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.collection import changes
from tests.support import damaged_collections
from tests.support.failing_disk import FailAt, failing_disk
from tests.support.vectors import clustered

ROOT = Path(__file__).parents[2]
ROWS = clustered(60)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)


def state(path):
    """What the collection holds; damage raises."""
    bits = embits.load(path, verify=True)
    return list(bits.words), np.asarray(bits.codes).tolist()


@pytest.fixture
def path(tmp_path):
    collection = embits.open_collection(tmp_path / "c", CODER)
    collection.add(ROWS[:20], [f"w{i}" for i in range(20)])
    collection.add(ROWS[20:24], [f"w{i}" for i in range(20, 24)])
    collection.remove(["w3"])
    return tmp_path / "c"


CHANGES = {
    "add": lambda c: c.add(ROWS[20:60], [f"w{i}" for i in range(30, 70)]),
    "a log": lambda c: c.add(ROWS[:2], ["l0", "l1"]),
    "add to a log": lambda c: c.add(ROWS[:2], ["l2", "l3"]),
    "update": lambda c: c.update(ROWS[40:43], ["w0", "w5", "w21"]),
    "remove": lambda c: c.remove(["w1", "w2", "w22"]),
    "compact": lambda c: c.compact(),
    "cells": lambda c: c.compact(cells=4),
}


@pytest.mark.slow
def test_writers_that_are_killed_lose_no_change_and_make_none_by_half(memory_path):
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "stress/collection_kills.py",
            "--kills=25",
            "--folder",
            memory_path,
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "none was lost" in done.stdout


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_every_failing_write_leaves_the_collection_whole(path, change, number, monkeypatch):
    if change == "add to a log":
        CHANGES["a log"](embits.open_collection(path))
    before = state(path)
    outcomes = []
    for n in range(1, 100):
        fail, failed = FailAt(n, number), None
        collection = embits.open_collection(path)
        with failing_disk(monkeypatch, fail):
            try:
                CHANGES[change](collection)
            except OSError as error:
                failed = error
        if isinstance(failed, embits.errors.UnconfirmedError):  # of the flush
            assert "do not repeat it" in str(failed)
            assert failed.errno == number
            assert list(collection.words) == state(path)[0]
            failed = None
        outcomes.append(failed.errno if failed else "made")
        if not failed:
            break
        listed = embits.load(path).manifest.files()
        assert {each.name for each in path.iterdir()} == listed | {"_lock"}
        assert state(path) == before
    assert outcomes[-1] == "made"
    assert set(outcomes[:-1]) == {number}
    assert len(outcomes) > (2 if change == "add to a log" else 5)
    after = embits.open_collection(path)
    CHANGES["compact"](after)
    assert {each.name for each in path.iterdir()} == after.manifest.files() | {"_lock"}
    assert (state(path) == before) == (change in ("compact", "cells"))


def test_a_disk_that_is_full_keeps_the_collection(tmp_path, tmp_path_factory):
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], capture_output=True
    )
    if done.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        collection = embits.open_collection(tmp_path / "c", CODER)
        collection.add(ROWS[:20])
        with pytest.raises(OSError, match="No space left on device"):
            collection.add(clustered(60_000))
        assert len(collection) == len(embits.load(tmp_path / "c", verify=True)) == 20
        (tmp_path / "c/_lock").unlink()
        with contextlib.suppress(OSError), (tmp_path / "fill").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        vectors = tmp_path_factory.mktemp("vectors") / "x.npy"
        np.save(vectors, clustered(60))
        with pytest.raises(OSError, match=r"No space left on device: '/.*'"):
            embits.encode_to_collection(collection, vectors)
        (tmp_path / "fill").unlink()
        collection.add(ROWS[:5])
        assert len(collection) == 25
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


# -- hostile manifests -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("change", [damaged_collections.damaged, damaged_collections.hostile])
def test_a_damaged_or_hostile_collection_raises_one_error_or_answers(change, memory_path):
    """Whether it opens or not, no search or change raises anything else or loses a file."""
    good = damaged_collections.good(memory_path / "good")
    rng = random.Random(0)
    opened = Counter()
    for i in range(1500):
        damaged_collections.write(change(rng.choice(good), rng), memory_path / "c")
        opened[damaged_collections.use(memory_path / "c", verify=i % 2 == 0)] += 1
    assert min(opened.values()) > 50


WRITER = """
import sys, numpy as np, embits
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
collection = embits.open_collection(path, timeout=60)
rows = np.random.default_rng(0).normal(size=(3, 24)).astype("f4")
for i in range(count):
    collection.add(rows, [f"{name}-{i}-{j}" for j in range(3)])
    if i % 5 == 4:
        collection.remove([f"{name}-{i}-0"])
    if i % 10 == 9:
        collection.compact()
"""


def test_processes_that_write_in_turns_and_readers_see_whole_changes(memory_path):
    path = memory_path / "c"
    reader = embits.open_collection(path, CODER)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, name, "20"]) for name in ("a", "b")
    ]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        reader.refresh()
        fresh = embits.load(path)
        assert len(fresh) >= len(reader) - 8  # removals
        rows = reader.search(ROWS[0], 5).rows
        assert all(word in reader for word in reader.ids(rows).tolist())
        names = list(reader.words)
        assert len(names) == len(set(names)) == len(reader)
        seen = max(seen, len(names))
    assert [writer.wait() for writer in writers] == [0, 0]
    reader.refresh()
    assert len(reader) == 2 * (20 * 3 - 4) >= seen - 8


def test_a_writer_that_is_busy_is_named(path):
    code = (
        "import sys, time, pathlib; from embits.collection.changes import writer_lock\n"
        "with writer_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        collection = embits.open_collection(path)
        before = state(path)
        for change in CHANGES.values():
            with pytest.raises(embits.InputError, match=f"locked by process {other.pid}, which"):
                change(collection)
        assert collection.search(ROWS[0], 3).rows.shape == (3,)
        assert state(path) == before
        other.kill()
    CHANGES["a log"](collection)
    assert len(collection) == 25


def test_threads_that_search_while_others_change_and_refresh_get_the_ids_of_what_they_found(path):
    """Every id has a code of its own, so that a wrong id shows; results are of one state."""
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(0, 256, (400, 8), dtype=np.uint8), axis=0)
    ids = [code.tobytes().hex() for code in codes]
    collection = embits.open_collection(path.parent / "shared", CODER)
    collection.add(codes[:200], ids[:200])
    writer = embits.open_collection(collection.path, timeout=60)
    stop, problems, asked = threading.Event(), [], []

    def search():
        while not stop.is_set():
            wanted = rng.integers(0, 400, 20)
            found = collection.search(codes[wanted], k=5)
            for ids_of_query, distances, code in zip(
                found.ids, found.distances, codes[wanted], strict=True
            ):
                theirs = [bytes.fromhex(each) for each in ids_of_query]
                rows = np.frombuffer(b"".join(theirs), np.uint8).reshape(-1, 8)
                expected = np.unpackbits(rows ^ code, axis=1).sum(axis=1)
                asked.append(len(theirs))
                if distances.tolist() != expected.tolist():
                    problems.append((ids_of_query, distances, expected))

    def change(first):
        for turn in range(40):
            place = 200 + first + 2 * turn
            writer.add(codes[place : place + 1], ids[place : place + 1])
            writer.remove([ids[turn * 2 + first]])
            collection.refresh()

    searchers = [threading.Thread(target=search) for _ in range(3)]
    changers = [threading.Thread(target=change, args=(first,)) for first in range(2)]
    for thread in searchers + changers:
        thread.start()
    for thread in changers:
        thread.join()
    stop.set()
    for thread in searchers:
        thread.join()
    assert not problems
    assert sum(asked) > 1000
    assert len(collection) == 200


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
import numpy as np, embits
rows = np.random.default_rng(0).normal(size=(5, 24)).astype("f4")
before = embits.load(sys.argv[1], verify=True).search(rows, k=9).ids.tolist()
collection = embits.open_collection(sys.argv[1])
assert collection.search(rows, k=9).ids.tolist() == before
code = collection["w299"]
collection.remove(["w299"])
collection.add(code[np.newaxis], ["w299"])
assert collection.search(rows, k=9).ids.tolist() == before
collection.compact()
assert collection.search(rows, k=9).ids.tolist() == before
assert len(collection.manifest.pieces) == 1
"""


def test_a_collection_of_more_pieces_than_a_process_may_open_is_changed(memory_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    monkeypatch.setattr(changes, "MAX_ADDED", 0)
    monkeypatch.setattr(changes, "MAX_PIECES", 10**9)  # as earlier versions wrote them
    collection = embits.open_collection(memory_path / "c", CODER)
    for row in range(300):
        collection.add(clustered(300)[row : row + 1], [f"w{row}"])
    assert len(collection.manifest.pieces) == 300
    done = subprocess.run(
        [sys.executable, "-c", FEW_FILES, collection.path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_pieces_stay_few_however_many_rows_each_change_adds(memory_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 4)
    monkeypatch.setattr(changes, "MAX_ADDED", 0)
    collection = embits.open_collection(memory_path / "c", CODER)
    rng, n = np.random.default_rng(0), 0
    for _ in range(250):
        rows = int(rng.integers(1, 9))
        codes = rng.integers(0, 256, (rows, 8), dtype=np.uint8)
        collection.add(codes, [f"w{n + i}" for i in range(rows)])
        n += rows
        assert len(collection.manifest.pieces) <= changes.MAX_PIECES + 5
    assert list(collection.words) == [f"w{i}" for i in range(n)]
