"""A loss of power at any moment leaves the state before a change, or the one after it."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.collection import changes
from tests.support.power_loss import Recorder, on_disk, states, written
from tests.support.vectors import clustered

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

ROWS = clustered(60)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)


def shown(path):
    """What a file or collection holds; damage raises."""
    if not path.exists():
        return None
    bits = embits.load(path, verify=True)
    return list(bits.words), np.asarray(bits.codes).tolist()


def made(folder, change):
    collection = embits.open_collection(folder / "c", CODER)
    collection.add(ROWS[:20], [f"w{i}" for i in range(20)])
    collection.add(ROWS[20:24], [f"w{i}" for i in range(20, 24)])
    collection.remove(["w3"])
    if change == "add to a log":
        collection.add(ROWS[24:25], ["w24"])
    if change.startswith("cells"):
        collection.compact(cells=3)
    return collection


CHANGES = {
    "add": lambda c: c.add(ROWS[25:60], [f"w{i}" for i in range(25, 60)]),
    "a log": lambda c: c.add(ROWS[30:32], ["w30", "w31"]),
    "add to a log": lambda c: c.add(ROWS[30:32], ["w30", "w31"]),
    "update": lambda c: c.update(ROWS[40:43], ["w0", "w5", "w21"]),
    "remove": lambda c: c.remove(["w1", "w2", "w22"]),
    "compact": lambda c: c.compact(),
    "cells are made": lambda c: c.compact(cells=4),
    "cells are measured": lambda c: c.calibrate(ROWS[:9]),
    "cells get rows": lambda c: c.add(ROWS[30:60], [f"w{i}" for i in range(30, 60)]),
}


def losses(memory_path, monkeypatch, root, change):
    """(whether the change had returned, the state of the disk) for every loss of power."""
    before, recorder = on_disk(root), Recorder(root)
    with recorder.recording(monkeypatch):
        change()
    target = memory_path / "after"
    for n, state in states(before, recorder.calls):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        written(state, root, target)
        yield n == len(recorder.calls), target


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("merged", [0, 1 << 16])
def test_a_change_of_a_collection(change, merged, memory_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", merged)
    root = memory_path / "root"
    root.mkdir()
    collection = made(root, change)
    before, n, kept = shown(root / "c"), 0, shown(root / "c")
    for n, (has_returned, disk) in enumerate(
        losses(memory_path, monkeypatch, root, lambda: CHANGES[change](collection))
    ):
        kept = shown(disk / "c")
        assert kept is not None
        assert kept == shown(root / "c") or (kept == before and not has_returned), n
    assert n > 10
    assert kept == shown(root / "c")


def new_collection(root):
    embits.open_collection(root / "inner" / "c", CODER).add(ROWS[:5], list("abcde"))


def test_a_new_collection(memory_path, monkeypatch):
    root = memory_path / "root"
    root.mkdir()
    for has_returned, disk in losses(memory_path, monkeypatch, root, lambda: new_collection(root)):
        folder = disk / "inner" / "c"
        if has_returned or (folder / "_embits.json").exists():
            assert shown(folder)[0] in ([], list("abcde"))
        assert not has_returned or shown(folder) == shown(root / "inner" / "c")
        embits.open_collection(folder, CODER)  # what is there does not stand in the way


def save(root, n):
    embits.BinaryVectors(None, CODER.encode(ROWS[:n]), CODER).save(root / "f")


def test_a_file_that_is_saved(memory_path, monkeypatch):
    root = memory_path / "root"
    root.mkdir()
    save(root, 5)
    before = shown(root / "f")
    for has_returned, disk in losses(memory_path, monkeypatch, root, lambda: save(root, 9)):
        assert shown(disk / "f") == shown(root / "f") or (
            shown(disk / "f") == before and not has_returned
        )


def test_the_page_on_trust_has_the_number_of_states_that_are_replayed(memory_path, monkeypatch):
    n = 0

    def replay(name, prepare, change):
        nonlocal n
        root = memory_path / name
        root.mkdir()
        prepared = prepare(root)
        n += sum(1 for _ in losses(memory_path, monkeypatch, root, lambda: change(prepared, root)))

    for merged in (0, 1 << 16):
        monkeypatch.setattr(changes, "MAX_MERGED_ROWS", merged)
        for name, change in CHANGES.items():
            replay(
                f"{name}-{merged}",
                lambda root, name=name: made(root, name),
                lambda each, _, change=change: change(each),
            )
    replay("new", lambda _: None, lambda _, root: new_collection(root))
    replay("save", lambda root: save(root, 5), lambda _, root: save(root, 9))
    page = Path(__file__).parents[2] / "docs/trust.md"
    assert f" {n} states of the disk" in page.read_text()
