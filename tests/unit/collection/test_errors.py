"""One clear line for each error, and the collection stays as it was."""

import json
import os
import re
import shutil

import numpy as np
import pytest

import embits
from embits.collection import changes
from embits.collection.manifest import MAX_ROWS, _digest
from tests.support.vectors import clustered

ROWS = clustered(60)
CODER = embits.RandomHyperplanes(n_bits=60).fit(ROWS)
OTHER = embits.RandomHyperplanes(n_bits=60, random_state=1).fit(ROWS)


@pytest.fixture
def collection(tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    monkeypatch.setattr(changes, "MAX_ADDED", 0)  # no log
    made = embits.open_collection(tmp_path / "c", CODER)
    made.add(ROWS[:20], [f"w{i}" for i in range(20)])
    made.add(ROWS[20:30], [f"w{i}" for i in range(20, 30)])
    made.remove(["w3"])
    return made


def content(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "_lock"}


WRONG = {
    "an id twice": (
        lambda c: c.add(ROWS[:2], ["a", "a"]),
        r"the id 'a' appears twice: in rows 0 and 1",
    ),
    "an id that is there": (
        lambda c: c.add(ROWS[:3], ["a", "w5", "w6"]),
        r"the id 'w5' already exists, and 1 more: `upsert` replaces it",
    ),
    "other dimensions": (lambda c: c.add(ROWS[:2, :5], ["a", "b"]), r"\b5\b.*\b24\b"),
    "other codes": (lambda c: c.add(np.zeros((1, 9), "u1"), ["a"]), r"expected packed bits"),
    "padding bits": (lambda c: c.add(np.full((1, 8), 255, "u1"), ["a"]), "past the coder's 60"),
    "too few ids": (lambda c: c.add(ROWS[:2], ["a"]), "1 ids for 2 rows"),
    "no ids": (lambda c: c.add(ROWS[:2]), "have ids: give one for each"),
    "one vector": (lambda c: c.add(ROWS[0], ["a"]), r"shape \(24,\), expected \(n, 24\)"),
    "a path": (lambda c: c.add("v.npy"), r"embits\.encode_to_collection: v\.npy"),
    "ids of another kind": (lambda c: c.add(ROWS[:1], [1.5]), "strings or whole numbers"),
    "another coder": (
        lambda c: c.add(embits.BinaryVectors(["a"], OTHER.encode(ROWS[:1]), OTHER)),
        "fitted differently",
    ),
    "NaN": (lambda c: c.add(ROWS[:1] * np.nan, ["a"]), "(?i)nan"),
    "unknown ids to remove": (
        lambda c: c.remove(["w1", "x", "y", "w3", "z"]),
        r"no word or id 'x'; 4 of 5 ids are unknown \('x', 'y', 'w3', …\), and nothing was changed",
    ),
    "unknown ids to update": (lambda c: c.update(ROWS[:1], ["x"]), "'x'; nothing was changed"),
    "an update without ids": (lambda c: c.update(ROWS[:1]), "update needs the ids"),
    "an update of one row twice": (lambda c: c.update(ROWS[:2], ["w1", "w1"]), "appears twice"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_change_is_refused_and_nothing_changes(collection, wrong):
    before = content(collection.path)
    change, message = WRONG[wrong]
    with pytest.raises(embits.EmbitsError, match=message) as error:
        change(collection)
    assert "\n" not in str(error.value)
    assert content(collection.path) == before
    assert len(collection) == len(embits.load(collection.path, verify=True)) == 29


def test_numbers_and_ids_are_not_mixed(tmp_path):
    collection = embits.open_collection(tmp_path / "c", CODER)
    collection.add(ROWS[:2])
    with pytest.raises(embits.InputError, match="numbered: add rows without ids"):
        collection.add(ROWS[:2], ["a", "b"])


def test_a_collection_that_is_not_there_needs_a_coder(tmp_path):
    with pytest.raises(embits.InputError, match=r"no collection at .*: give a coder to make one"):
        embits.open_collection(tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(embits.errors.NotFittedError):
        embits.open_collection(tmp_path / "c", embits.ITQ(n_bits=8))
    with pytest.raises(embits.InputError, match="expected a fitted coder"):
        embits.open_collection(tmp_path / "c", 64)
    assert not (tmp_path / "c").exists()


def test_nothing_is_written_into_the_folders_of_others(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(embits.InputError, match=r"1 other files, such as 'notes\.txt'"):
        embits.open_collection(tmp_path, CODER)
    with pytest.raises(embits.InputError, match="is a file, expected the folder"):
        embits.open_collection(tmp_path / "notes.txt", CODER)
    with pytest.raises(embits.FormatError, match=r"no _embits\.json: it is not a collection"):
        embits.load(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_another_coder_is_refused(collection):
    with pytest.raises(embits.InputError, match=r"both are lsh, 60 bits .* fitted differently"):
        embits.open_collection(collection.path, OTHER)


def test_a_file_of_ours_with_another_name_is_left_alone(collection):
    kept = ["notes.txt", "piece-1.safetensors", "piece-00000009.safetensors.bak", ".hidden"]
    for name in kept:
        (collection.path / name).write_text("mine")
    collection.compact()
    assert all((collection.path / name).read_text() == "mine" for name in kept)


def test_leftovers_are_deleted_by_the_next_writer(collection):
    stale = [
        "piece-00000099.safetensors",
        "piece-00000000.removed-00000099",
        ".piece-00000099.safetensors.123-0123abcd.tmp",
        "._embits.json.123-0123abcd.tmp",
    ]
    for name in stale:
        (collection.path / name).write_text("half")
    assert len(embits.load(collection.path)) == 29
    collection.remove(["w1"])
    assert not any((collection.path / name).exists() for name in stale)


# -- damage ----------------------------------------------------------------------------------------


def test_a_missing_file_is_named(collection):
    for name in collection.manifest.files() - {"_embits.json"}:
        path = collection.path / name
        before = path.read_bytes()
        path.unlink()
        with pytest.raises(embits.FormatError, match=f"{name} is missing.*restore it from a copy"):
            embits.load(collection.path)
        path.write_bytes(before)
    assert len(embits.load(collection.path)) == 29


def test_damage_anywhere_is_found_by_verify_and_named(collection):
    rng = np.random.default_rng(0)
    for name in sorted(collection.manifest.files()):
        path = collection.path / name
        before = path.read_bytes()
        for place in rng.choice(len(before), size=min(40, len(before)), replace=False).tolist():
            damaged = bytearray(before)
            damaged[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            with pytest.raises(embits.FormatError, match=name.replace(".", r"\.")) as error:
                embits.load(collection.path, verify=True)
            assert "\n" not in str(error.value)
        for length in {0, len(before) // 2, len(before) - 1}:
            path.write_bytes(before[:length])
            with pytest.raises(embits.FormatError, match=name.replace(".", r"\.")):
                embits.load(collection.path, verify=True)
        path.write_bytes(before)
    assert len(embits.load(collection.path, verify=True)) == 29


def test_a_piece_of_another_collection_is_refused(collection, tmp_path):
    other = embits.open_collection(tmp_path / "other", OTHER)
    other.add(ROWS[:20], [f"w{i}" for i in range(20)])
    name = "piece-00000000.safetensors"
    (collection.path / name).write_bytes((other.path / name).read_bytes())
    with pytest.raises(embits.FormatError, match=f"{name}: not the file that the manifest lists"):
        embits.load(collection.path)


def test_a_piece_alone_is_not_a_file(collection):
    with pytest.raises(embits.FormatError, match="it is a piece of a collection; open the folder"):
        embits.load(collection.path / "piece-00000000.safetensors")


def rewrite(folder, **changes):
    path = folder / "_embits.json"
    body = json.loads(path.read_text())
    body.pop("sha256")
    body |= changes
    path.write_text(json.dumps({**body, "sha256": _digest(body)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 4}, "of version 4; this embits reads 1 to 3: install a newer one"),
        ({"format": "other"}, "of the format 'other'"),
        ({"pieces": 5}, "damaged: it does not list the pieces"),
        ({"pieces": [{"file": "../x.safetensors", "rows": 1}]}, "damaged"),
        ({"pieces": [{"file": "/etc/passwd.parquet", "rows": 1}]}, "damaged"),
        ({"bits": -1}, "damaged"),
        ({"bits": True}, "damaged"),
        ({"rows": True}, "damaged"),
        ({"method": 5}, "damaged: it does not list"),
        ({"generation": 2**48 + 1}, "damaged"),
        ({"ids": "others"}, "damaged"),
        ({"bits": 61}, "not the coder of this collection"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused(collection, changes, message):
    rewrite(collection.path, **changes)
    with pytest.raises(embits.FormatError, match=message):
        embits.load(collection.path)


def test_counters_that_would_overwrite_a_file_are_refused(collection):
    """A change would write over a listed piece or bitmap."""
    body = json.loads((collection.path / "_embits.json").read_text())
    del body["sha256"]
    pieces = body["pieces"]
    for wrong in (
        {"next_piece": 0},
        {"generation": 2},
        {"pieces": [*pieces, pieces[0]]},
        {"pieces": [pieces[0], {**pieces[1], "removed": pieces[0]["removed"]}]},
        {"pieces": [{**pieces[0], "file": "_coder.safetensors"}, pieces[1]]},
        {"ids": "numbers", "next_number": 19},
    ):
        rewrite(collection.path, **{**body, **wrong})
        for use in (embits.load, embits.open_collection):
            with pytest.raises(embits.FormatError, match=r"_embits\.json is damaged: "):
                use(collection.path)
    rewrite(collection.path, **body)
    assert len(embits.load(collection.path, verify=True)) == 29


def test_verify_finds_an_id_in_two_pieces(collection, tmp_path):
    copy = "piece-00000001.safetensors"
    (collection.path / "copy.safetensors").write_bytes((collection.path / copy).read_bytes())
    body = json.loads((collection.path / "_embits.json").read_text())
    repeated = {**body["pieces"][1], "file": "copy.safetensors"}
    rewrite(collection.path, pieces=[*body["pieces"], repeated], rows=39)
    with pytest.raises(embits.FormatError, match="'w20' appears twice"):
        embits.load(collection.path, verify=True)
    numbered = embits.open_collection(tmp_path / "n", CODER)
    numbered.add(ROWS[:3])
    (numbered.path / "copy.safetensors").write_bytes(
        (numbered.path / "piece-00000000.safetensors").read_bytes()
    )
    piece = json.loads((numbered.path / "_embits.json").read_text())["pieces"][0]
    rewrite(numbered.path, pieces=[piece, {**piece, "file": "copy.safetensors"}])
    with pytest.raises(embits.FormatError, match="'0' appears twice"):
        embits.load(numbered.path, verify=True)


def test_a_manifest_or_bitmap_that_never_ends_is_refused_at_once(collection):
    bitmap = next(piece.removed.file for piece in collection.manifest.pieces if piece.removed)
    for name in ("_embits.json", bitmap):
        path = collection.path / name
        before = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(embits.FormatError, match=re.escape(name)):
            embits.load(collection.path)
        path.unlink()
        with path.open("wb") as file:
            file.truncate(3 << 30)  # sparse
        with pytest.raises(embits.FormatError, match=re.escape(name)):
            embits.load(collection.path)
        path.write_bytes(before)
    assert len(embits.load(collection.path, verify=True)) == 29


def test_numbers_start_at_0_in_a_piece_that_does_not_say_where(tmp_path):
    numbered = embits.open_collection(tmp_path / "n", CODER)
    numbered.add(ROWS[:3])
    body = json.loads((numbered.path / "_embits.json").read_text())
    del body["pieces"][0]["first"]
    rewrite(numbered.path, pieces=body["pieces"])
    assert embits.load(numbered.path).ids([0, 2], int).tolist() == [0, 2]


@pytest.mark.parametrize("name", ["generation", "next_piece"])
def test_a_manifest_that_could_not_be_read_again_is_not_written(collection, name):
    rewrite(collection.path, **{name: MAX_ROWS})
    before = content(collection.path)
    for change in (lambda c: c.add(ROWS[:1], ["new"]), lambda c: c.remove(["w5"])):
        opened = embits.open_collection(collection.path)
        with pytest.raises(embits.FormatError, match=r"_embits\.json"):
            change(opened)
        assert content(collection.path) == before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"5", b'"x"', b"\xff", b"{}", b"[" * 9999])
def test_a_manifest_that_is_not_one_is_refused(collection, text):
    (collection.path / "_embits.json").write_bytes(text)
    with pytest.raises(embits.FormatError, match=r"_embits\.json"):
        embits.load(collection.path)


def test_a_reader_tries_again_when_a_writer_replaces_pieces(collection, monkeypatch):
    """The manifest is read, and then a writer compacts before the pieces are opened."""
    from embits.collection import pieces

    real, calls = pieces.read_manifest, []

    def read_and_compact(folder):
        manifest = real(folder)
        calls.append(manifest)
        if len(calls) == 1:
            collection.compact()
        return manifest

    monkeypatch.setattr(pieces, "read_manifest", read_and_compact)
    assert len(embits.load(collection.path)) == 29
    assert len(calls) >= 2


def test_a_collection_whose_folder_was_deleted_says_so(tmp_path):
    collection = embits.open_collection(tmp_path / "c", embits.RandomHyperplanes(8).fit(np.eye(4)))
    np.save(tmp_path / "rows.npy", np.eye(4))
    shutil.rmtree(tmp_path / "c")
    for change in (
        lambda: collection.add(np.eye(4)),
        lambda: embits.encode_to_collection(collection, tmp_path / "rows.npy"),
    ):
        with pytest.raises(embits.FormatError, match=r"c has no _embits\.json"):
            change()


def test_new_ids_are_not_empty(tmp_path):
    coder = embits.RandomHyperplanes(8).fit(np.eye(4))
    collection = embits.open_collection(tmp_path / "c", coder)
    for change in (collection.add, collection.upsert):
        with pytest.raises(embits.InputError, match=r"ids\[1\] is empty"):
            change(np.eye(4)[:2], ids=["a", ""])
    assert len(collection) == 0
