"""Making a collection, and undoing that if its first change fails."""

import pytest

import embits
from embits.collection.opening import opened_or_undone
from tests.support.vectors import clustered

ROWS = clustered(20)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)


@pytest.fixture
def coder(tmp_path):
    path = tmp_path / "coder"
    embits.open_collection(path, CODER)
    return path


def fail(path, coder, before=lambda: None):
    """A first change that fails, after something else happened."""

    def change():
        before()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), opened_or_undone(path, coder):
        change()


def test_a_collection_may_be_made_in_an_empty_folder_or_one_that_does_not_exist(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "inner"):
        assert len(embits.open_collection(path, CODER)) == 0


@pytest.mark.parametrize(
    "step", ["opening.sync_folder", "opening.write_coder", "manifest.write_manifest"]
)
def test_an_interrupt_while_a_collection_is_made_leaves_nothing(tmp_path, monkeypatch, step):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"embits.collection.{step}", interrupted)
    (tmp_path / "empty").mkdir()
    paths = [tmp_path / "new" / "inner", tmp_path / "empty"]
    for path in paths if step != "opening.sync_folder" else paths[:1]:
        with pytest.raises(KeyboardInterrupt):
            embits.open_collection(path, CODER)
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_files_that_appear_while_a_collection_is_made_stay(tmp_path, monkeypatch):
    def interrupted(*_):
        (tmp_path / "c" / "notes.txt").write_text("mine")
        raise KeyboardInterrupt

    monkeypatch.setattr("embits.collection.opening.write_coder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embits.open_collection(tmp_path / "c", CODER)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["notes.txt"]


def test_a_first_change_that_fails_leaves_nothing(tmp_path, coder):
    fail(tmp_path / "c", coder)
    assert not (tmp_path / "c").exists()
    (tmp_path / "empty").mkdir()
    fail(tmp_path / "empty", coder)
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_collection_that_was_there_stays(tmp_path, coder):
    embits.open_collection(tmp_path / "c", CODER)
    fail(tmp_path / "c", coder)
    assert len(embits.load(tmp_path / "c")) == 0


def test_rows_that_another_writer_added_stay(tmp_path, coder):
    path = tmp_path / "c"
    fail(path, coder, lambda: embits.open_collection(path).add(ROWS[:3]))
    assert len(embits.load(path, verify=True)) == 3


def test_files_of_others_stay(tmp_path, coder):
    fail(tmp_path / "c", coder, lambda: (tmp_path / "c" / "notes.txt").write_text("mine"))
    assert (tmp_path / "c" / "notes.txt").read_text() == "mine"


def test_pieces_without_their_manifest_are_refused_and_stay(tmp_path):
    embits.open_collection(tmp_path / "c", CODER).add(ROWS)
    (tmp_path / "c" / "_embits.json").unlink()
    before = sorted((tmp_path / "c").iterdir())
    with pytest.raises(embits.InputError, match=r"pieces .* no _embits.json: restore it"):
        embits.open_collection(tmp_path / "c", CODER)
    assert sorted((tmp_path / "c").iterdir()) == before


def test_what_a_killed_creation_left_is_used_again(tmp_path):
    embits.open_collection(tmp_path / "c", CODER)
    (tmp_path / "c" / "_embits.json").rename(tmp_path / "c" / "._embits.json.7-0123abcd.tmp")
    embits.open_collection(tmp_path / "c", CODER).add(ROWS)
    assert len(embits.load(tmp_path / "c")) == len(ROWS)
