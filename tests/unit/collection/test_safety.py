"""What a long-lived writer meets: damaged pieces, replaced folders, another working folder."""

import os

import numpy as np
import pytest

import embits
from embits.collection import changes
from embits.collection.lock import writer_lock
from tests.support.vectors import clustered

ROWS = clustered(60)
CODER = embits.RandomHyperplanes(n_bits=60).fit(ROWS)
OTHER = embits.RandomHyperplanes(n_bits=60, random_state=1).fit(ROWS)


def names(n, start=0):
    return [f"w{i}" for i in range(start, start + n)]


@pytest.fixture
def collection(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(changes, "MAX_MERGED_ROWS", 0)
        made = embits.open_collection(tmp_path / "c", CODER)
        made.add(ROWS[:20], names(20))
        made.add(ROWS[20:30], names(10, 20))
    return made


def content(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "_lock"}


CHANGES = {
    "compact": lambda c: c.compact(),
    "a merge in add": lambda c: c.add(ROWS[30:60], names(30, 30)),
    "a merge in update": lambda c: c.update(ROWS[30:60][:15], names(15)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("piece", [0, 1])
def test_a_damaged_piece_is_not_copied(collection, change, piece):
    path = collection.path / collection.manifest.pieces[piece].file
    code = collection.coder.encode(ROWS[:20] if piece == 0 else ROWS[20:30]).tobytes()
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(code) + 3] ^= 4
    path.write_bytes(damaged)
    before = content(collection.path)
    for writer in (collection, embits.open_collection(collection.path)):
        with pytest.raises(embits.FormatError, match=path.name) as error:
            CHANGES[change](writer)
        assert "\n" not in str(error.value)
        assert content(collection.path) == before
    with pytest.raises(embits.FormatError, match=path.name):
        embits.load(collection.path, verify=True)


def test_a_writer_refuses_a_folder_that_was_made_anew_with_another_coder(collection, tmp_path):
    embits.open_collection(tmp_path / "new", OTHER).add(ROWS[:30], names(30))
    collection.path.rename(tmp_path / "old")
    (tmp_path / "new").rename(collection.path)
    before = content(collection.path)
    for change in (
        lambda: collection.add(ROWS[30:31], ["x"]),
        lambda: collection.update(ROWS[30:31], ["w1"]),
        lambda: collection.remove(["w1"]),
        collection.compact,
        collection.refresh,
    ):
        with pytest.raises(embits.InputError, match=r"the coders differ.*open it again"):
            change()
    assert content(collection.path) == before
    assert len(collection) == 30
    assert np.array_equal(collection["w1"], CODER.encode(ROWS[1:2])[0])


def test_a_folder_that_was_made_anew_with_the_same_coder_is_shown(collection, tmp_path):
    embits.open_collection(tmp_path / "new", CODER).add(ROWS[:5], names(5))
    collection.path.rename(tmp_path / "old")
    (tmp_path / "new").rename(collection.path)
    assert collection.refresh()
    assert len(collection) == 5


def test_a_relative_path_stays_when_the_working_folder_changes(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    made = embits.open_collection("c", CODER)
    made.add(ROWS[:3], names(3))
    embits.open_collection("elsewhere/c", CODER).add(ROWS[:5], names(5))
    monkeypatch.chdir(tmp_path / "elsewhere")
    made.add(ROWS[5:6], ["x"])
    assert len(embits.load(tmp_path / "c")) == len(made) == 4
    assert len(embits.load("c")) == 5


def test_a_lock_conflict_has_an_error_of_its_own(collection):
    with writer_lock(collection.path):
        for change in (
            lambda: collection.remove(["w1"]),
            collection.compact,
            lambda: embits.open_collection(collection.path, timeout=0.05).compact(),
        ):
            with pytest.raises(embits.LockedError, match=f"process {os.getpid()}"):
                change()
    collection.remove(["w1"])
    assert issubclass(embits.LockedError, embits.InputError)


def test_a_coder_that_is_not_fitted_is_refused(collection, tmp_path):
    for path in (collection.path, tmp_path / "new"):
        with pytest.raises(embits.NotFittedError):
            embits.open_collection(path, embits.RandomHyperplanes(n_bits=60))
        with pytest.raises(embits.InputError, match="coder is 3, expected"):
            embits.open_collection(path, 3)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("timeout", ["3", -1, float("nan"), None, True])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(collection, timeout):
    with pytest.raises(embits.InputError, match=r"timeout is .*, expected seconds"):
        embits.open_collection(collection.path, timeout=timeout)
