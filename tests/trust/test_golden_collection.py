"""The golden collection opens for ever, and docs/file-format.md is enough to read it."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import embits

GOLDEN = Path(__file__).parents[1] / "golden/collection-v1"
WORDS = ["the", "Zürich", "日本", "a b", "naïve", "<img src=x onerror=alert(1)>", "queen"]
CODES = "07112079de4014c4a05751204846109f33c09f33c0"


def test_it_says_what_it_always_said():
    bits = embits.load(GOLDEN, verify=True)
    assert list(bits.words) == WORDS
    assert np.asarray(bits.codes).tobytes().hex() == CODES


def test_it_can_be_changed(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "c")
    collection = embits.open_collection(tmp_path / "c")
    collection.remove(["the"])
    collection.add(np.ones((1, 12)), ["new"])
    collection.compact()
    assert list(embits.load(tmp_path / "c", verify=True).words) == [*WORDS[1:], "new"]


def test_it_is_read_by_what_the_documentation_says():
    """Another reader, which knows nothing of embits."""
    load_file = pytest.importorskip("safetensors.numpy").load_file
    manifest = json.loads((GOLDEN / "_embits.json").read_text())
    checksum = manifest.pop("sha256")
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == checksum
    words, codes = [], []
    for piece in manifest["pieces"]:
        content = (GOLDEN / piece["file"]).read_bytes()
        header = content[8 : 8 + int.from_bytes(content[:8], "little")]
        assert hashlib.sha256(header).hexdigest() == piece["header"]
        tensors = load_file(GOLDEN / piece["file"])
        ends = [0, *tensors["word_ends"].tolist()]
        text = tensors["words"].tobytes()
        removed = np.zeros(piece["rows"], bool)
        if "removed" in piece:
            bitmap = (GOLDEN / piece["removed"]["file"]).read_bytes()
            assert hashlib.sha256(bitmap).hexdigest() == piece["removed"]["sha256"]
            removed = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=piece["rows"]) == 1
            assert removed.sum() == piece["removed"]["rows"]
        for row in np.flatnonzero(~removed):
            words.append(text[ends[row] : ends[row + 1]].decode())
            codes.append(tensors["codes"][row].tobytes())
    assert words == WORDS
    assert len(words) == manifest["rows"]
    assert b"".join(codes).hex() == CODES


def test_the_coder_has_the_checksum_that_the_documentation_gives():
    load_file = pytest.importorskip("safetensors.numpy").load_file
    manifest = json.loads((GOLDEN / "_embits.json").read_text())
    digest = hashlib.blake2b(digest_size=16)
    facts = manifest["method"], manifest["dims"], manifest["bits"]
    digest.update(" ".join(map(str, facts)).encode())
    tensors = load_file(GOLDEN / "_coder.safetensors")
    for name in sorted(each for each in tensors if each.startswith("coder.")):
        array = tensors[name]
        digest.update(f" {name.removeprefix('coder.')} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    assert digest.hexdigest() == manifest["coder"]


@pytest.mark.filterwarnings("ignore:lengths of vectors vary widely")
@pytest.mark.parametrize("change", ["add", "compact", "refit"])
@pytest.mark.parametrize("name", ["collection-v2", "collection-v3"])  # of 0.3; with a log
def test_an_earlier_collection_can_be_changed_and_keeps_its_columns(name, change, tmp_path):
    pytest.importorskip("pyarrow")
    shutil.copytree(GOLDEN.parent / name, tmp_path / "c")
    collection = embits.open_collection(tmp_path / "c")
    before, years = collection.ids().tolist(), collection.get(collection.ids())["year"]
    match change:
        case "add":
            collection.add(np.ones((1, 12)), ["last"], columns={"year": [1]})
            collection.remove(["last"])
        case "compact":
            collection.compact()
        case _:
            collection.refit(coder=embits.ITQ(n_bits=24))
    opened = embits.load(tmp_path / "c", verify=True)
    assert opened.ids().tolist() == before
    assert opened.get(opened.ids())["year"] == years
    assert opened.search(opened.codes[3], k=1).distances.tolist() == [0]


def test_texts_of_0_3_can_be_added_to(tmp_path):
    pytest.importorskip("tokenizers")
    shutil.copytree(GOLDEN.parent / "notes-v2", tmp_path / "notes")
    notes = embits.open_collection(tmp_path / "notes")
    notes.add(notes.text_encoder.encode(["the boat"]), ["new"], columns={"text": ["the boat"]})
    found = embits.load(tmp_path / "notes", verify=True).search_texts("boats", 1)
    assert found.column("text").tolist() == ["the boat"]


def test_folders_of_version_0_1_open_and_can_be_changed(tmp_path):
    """As a job on Ray wrote them: Parquet files, listed without checksums."""
    pytest.importorskip("pyarrow")
    for name, ids in (("folder-0.1", WORDS), ("folder-0.1-rows", [str(row) for row in range(7)])):
        shutil.copytree(GOLDEN.parent / name, tmp_path / name)
        bits = embits.load(tmp_path / name, verify=True)
        assert list(bits.words) == ids
        assert np.asarray(bits.codes).tobytes().hex() == CODES
        bits.remove(ids[:1])
        bits.add(np.ones((1, 12)), ["new"] if name == "folder-0.1" else None)
        bits.compact()
        new = "new" if name == "folder-0.1" else "7"
        assert list(embits.load(tmp_path / name, verify=True).words) == [*ids[1:], new]
        address = (GOLDEN.parent / name).as_uri()
        assert list(embits.load(address).words) == ids


def test_a_damaged_manifest_of_version_0_1_is_refused(tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(GOLDEN.parent / "folder-0.1", folder)
    body = json.loads((folder / "_embits.json").read_text())
    part = body["parts"][0]
    for wrong in (
        {"parts": 5},
        {"parts": [part, part]},
        {"parts": [{"file": "../x.parquet", "rows": 4}]},
        {"parts": [{**part, "rows": -1}]},
        {"ids": 5},
        {"bits": "20"},
    ):
        (folder / "_embits.json").write_text(json.dumps({**body, **wrong}))
        with pytest.raises(embits.FormatError, match=r"_embits\.json"):
            embits.load(folder)
