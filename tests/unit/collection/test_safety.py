"""What a long-lived writer meets: damaged pieces, replaced folders, another working folder."""

import os
import signal
import threading

import numpy as np
import pytest

import embits
from embits.collection import changes
from embits.collection.changes import working_folder, writer_lock
from embits.jobs import stream
from tests.support.streaming import in_blocks
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
        patch.setattr(changes, "MAX_ADDED", 0)
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


def test_a_damaged_piece_is_not_saved_as_a_file(collection, tmp_path):
    reader = embits.load(collection.path)
    collection.compact()
    reader.save(tmp_path / "before.safetensors")  # of pieces that are deleted
    path = collection.path / collection.manifest.pieces[0].file
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(CODER.encode(ROWS[:30]).tobytes())] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(embits.FormatError, match=path.name):
        collection.save(tmp_path / "all.safetensors")
    assert not (tmp_path / "all.safetensors").exists()
    assert len(embits.load(tmp_path / "before.safetensors", verify=True)) == 30


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
            with pytest.raises(embits.errors.LockedError, match=f"process {os.getpid()}"):
                change()
    collection.remove(["w1"])
    assert issubclass(embits.errors.LockedError, embits.InputError)


def test_a_coder_that_is_not_fitted_is_refused(collection, tmp_path):
    for path in (collection.path, tmp_path / "new"):
        with pytest.raises(embits.errors.NotFittedError):
            embits.open_collection(path, embits.RandomHyperplanes(n_bits=60))
        with pytest.raises(embits.InputError, match="coder is 3, expected"):
            embits.open_collection(path, 3)
    assert not (tmp_path / "new").exists()


def test_a_timeout_that_is_no_number_of_seconds_is_refused(collection):
    for timeout in ("3", -1, float("nan"), None, True):
        with pytest.raises(embits.InputError, match=r"timeout is .*, expected"):
            embits.open_collection(collection.path, timeout=timeout)
    embits.open_collection(collection.path, timeout=float("inf")).remove(["w1"])


SEARCHES = {
    "search": lambda c, rows: c.search(ROWS[0], 3, where=rows),
    "exclude": lambda c, rows: c.search(ROWS[0], 3, where=c.select(exclude=rows)),
    "a filter for each query": lambda c, rows: c.search(ROWS[:2], 3, where=[None, rows]),
    "within": lambda c, rows: c.within(ROWS[0], distance=60, where=rows),
    "most_similar": lambda c, rows: c.most_similar("w9", where=rows),
    "select": lambda c, rows: c.select(exclude=rows),
    "snapshot": lambda c, rows: c.snapshot().search(ROWS[0], 3, where=rows),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_selection_is_refused_once_the_collection_has_changed(collection, search):
    selected = collection.select(["w1", "w2"])
    SEARCHES[search](collection, selected)
    SEARCHES[search](embits.load(collection.path), selected)
    collection.update(ROWS[40:41], ["w0"])  # the rows move, and their number stays
    with pytest.raises(embits.InputError, match=r"(where|exclude) was selected before .* again"):
        SEARCHES[search](collection, selected)
    SEARCHES[search](collection, collection.select(["w1", "w2"]))
    SEARCHES[search](collection, embits.search.select(30, where=[1, 2]))


def test_selecting_from_a_selection_does_not_change_it(collection):
    plain = embits.search.select(30, where=[1, 2])
    assert collection.select(plain).state is not None
    assert plain.state is None


def test_upsert_adds_new_rows_and_replaces_others_in_one_change(collection):
    before = collection.manifest.generation
    collection.upsert(ROWS[40:43], ["w1", "new", "w25"])
    assert collection.manifest.generation == before + 1
    assert len(collection) == len(embits.load(collection.path, verify=True)) == 31
    for name, row in {"w1": 40, "new": 41, "w25": 42, "w2": 2}.items():
        assert np.array_equal(collection[name], CODER.encode(ROWS[row : row + 1])[0])
    with pytest.raises(embits.InputError, match="appears twice"):
        collection.upsert(ROWS[:2], ["a", "a"])
    with pytest.raises(embits.InputError, match="needs the ids"):
        collection.upsert(ROWS[:2])
    collection.upsert(ROWS[:0], [])
    assert collection.manifest.generation == before + 1
    collection.upsert(ROWS[44:45], ["w0"])  # row 0
    assert len(collection) == 31
    assert np.array_equal(collection["w0"], CODER.encode(ROWS[44:45])[0])


def test_upsert_fills_an_empty_collection_and_keeps_numbers(tmp_path):
    made = embits.open_collection(tmp_path / "empty", CODER)
    made.upsert(ROWS[:2], ["a", "b"])
    assert list(made.words) == ["a", "b"]
    numbered = embits.open_collection(tmp_path / "numbered", CODER)
    numbered.add(ROWS[:3])
    numbered.upsert(ROWS[5:6], [1])
    assert np.array_equal(numbered["1"], CODER.encode(ROWS[5:6])[0])
    with pytest.raises(embits.InputError, match="are numbered"):
        numbered.upsert(ROWS[5:6], [7])


def test_the_next_writer_deletes_working_folders_of_killed_writers_only(collection):
    killed = collection.path / ".embits-add-abc_123"
    killed.mkdir()
    (killed / "_lock").write_text("1")
    (killed / "codes").write_text("half")
    with working_folder(collection.path) as folder:
        assert folder.parent == collection.path
        (folder / "codes").write_text("more")
        collection.remove(["w1"])
        assert not killed.exists()
        assert (folder / "codes").read_text() == "more"
    assert not folder.exists()
    assert set(content(collection.path)) == collection.manifest.files()


def test_a_file_is_added_without_writing_next_to_the_collection(collection, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", ROWS[30:40])
    in_blocks(monkeypatch)
    folders = []
    encode_rows = stream.Passes.encode

    def watched(passes, *args, **options):
        folders.append(passes._folder)
        return encode_rows(passes, *args, **options)

    monkeypatch.setattr(stream.Passes, "encode", watched)
    path = tmp_path / "rows.npy"
    assert embits.encode_to_collection(collection, path, words=names(10, 30)) == 10
    assert folders[0].parent == collection.path
    assert set(content(collection.path)) == collection.manifest.files()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_addition_that_is_stopped_keeps_nothing_and_says_so(
    collection, tmp_path, monkeypatch, error
):
    in_blocks(monkeypatch)

    def stop(*_, **__):
        raise error

    monkeypatch.setattr(stream.Passes, "encode", stop)
    before = content(collection.path)
    np.save(tmp_path / "rows.npy", ROWS[:10])
    expected = "nothing was added" if error is KeyboardInterrupt else "No space left"
    with pytest.raises((KeyboardInterrupt, OSError), match=expected):
        embits.encode_to_collection(collection, tmp_path / "rows.npy", words=names(10, 30))
    assert content(collection.path) == before


# -- links -----------------------------------------------------------------------------------------


def test_nothing_is_written_through_links_in_a_collection(collection, tmp_path):
    """Files that another user prepared, or that a hostile manifest names."""
    other = tmp_path / "precious"
    other.write_text("precious")
    number = collection.manifest.generation + 1
    for name in (
        "piece-00000002.safetensors",
        f"piece-00000000.removed-{number:08d}",
        f"piece-00000001.removed-{number:08d}",
    ):
        (collection.path / name).symlink_to(other)
    (collection.path / ".embits-add-linked").symlink_to(tmp_path, target_is_directory=True)
    collection.update(ROWS[40:42], ["w0", "w25"])
    manifest = collection.path / "_embits.json"
    manifest.rename(tmp_path / "manifest")
    manifest.symlink_to(tmp_path / "manifest")
    before = (tmp_path / "manifest").read_bytes()
    collection.remove(["w1"])
    assert other.read_text() == "precious"
    assert (tmp_path / "manifest").read_bytes() == before
    assert not (tmp_path / "_lock").exists()
    assert not manifest.is_symlink()
    assert len(embits.load(collection.path, verify=True)) == 29


def test_new_files_of_a_collection_are_as_private_as_its_manifest(collection):
    (collection.path / "_embits.json").chmod(0o600)
    before = set(collection.path.iterdir())
    collection.add(ROWS[30:40], names(10, 30))
    collection.remove(["w1"])
    new = set(collection.path.iterdir()) - before
    assert {path.stat().st_mode & 0o777 for path in new} == {0o600}
    assert {path.suffix[:8] for path in new} == {".safeten", ".removed"}


def test_a_lock_that_is_a_link_or_a_pipe_is_refused(collection, tmp_path):
    other = tmp_path / "precious"
    other.write_text("precious")
    lock = collection.path / "_lock"
    links = lambda: lock.symlink_to(other), lambda: lock.hardlink_to(other)
    for make in (*links, lambda: os.mkfifo(lock)):
        lock.unlink()
        make()
        with pytest.raises(embits.InputError, match="_lock is "):
            collection.remove(["w1"])
        assert other.read_text() == "precious"
    lock.unlink()
    collection.remove(["w1"])


@pytest.mark.parametrize("name", ["_coder.safetensors", "piece-00000001.safetensors"])
def test_a_file_of_a_collection_that_is_a_pipe_is_refused_at_once(collection, name):
    (collection.path / name).unlink()
    os.mkfifo(collection.path / name)
    with pytest.raises(embits.FormatError, match=f"{name}: found a pipe, expected a file: restore"):
        embits.load(collection.path)


def test_a_collection_is_not_made_over_links(tmp_path):
    other = tmp_path / "precious"
    other.write_text("precious")
    for name in ("_lock", "_coder.safetensors"):
        folder = tmp_path / f"made{name}"
        folder.mkdir()
        (folder / name).symlink_to(other)
        with pytest.raises(embits.InputError, match="other files"):
            embits.open_collection(folder, CODER)
        assert other.read_text() == "precious"


# -- forks -----------------------------------------------------------------------------------------


def in_a_child(work):
    """Whether a forked child did its work; one that hangs is killed."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork while threads run
def test_a_child_that_is_forked_during_a_change_holds_no_lock(collection):
    begun, go_on = threading.Event(), threading.Event()

    def change():
        with collection._change():
            begun.set()
            go_on.wait()

    thread = threading.Thread(target=change)
    thread.start()
    begun.wait()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.read(ours, 1)  # lives on while the parent goes on
        os._exit(0)
    assert in_a_child(lambda: collection.refresh())
    with pytest.raises(embits.errors.LockedError):
        embits.open_collection(collection.path).remove(["w2"])
    go_on.set()
    thread.join()
    embits.open_collection(collection.path).remove(["w2"])  # the child does not hold the lock
    collection.remove(["w1"])
    assert in_a_child(lambda: collection.add(ROWS[40:41], ["child"]))
    os.write(theirs, b".")
    os.waitpid(child, 0)
    collection.refresh()
    assert "child" in collection
