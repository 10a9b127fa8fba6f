"""Damage is not copied: a copy has checksums of its own, which would hide it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import embits
from embits.integrations import export
from tests.support.vectors import clustered

ROWS = clustered(60)
IDS = [f"w{i}" for i in range(60)]


def flip(path, name):
    """Flip one bit in the middle of a tensor."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    first, last = json.loads(content[8:start])[name]["data_offsets"]
    content[start + (first + last) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "whole.safetensors"
    embits.binarize(embits.WordVectors(IDS, ROWS), 64, "itq").save(path)
    return path


COPIES = {
    "save": lambda bits, out: bits.save(out),
    "slim": lambda bits, out: bits.slim().save(out),
    "subset": lambda bits, out: bits.subset(IDS[:3]).save(out),
    "concat": lambda bits, out: embits.concat([bits]).save(out),
    "export": lambda bits, out: export(bits, "npy", out.with_suffix(".npy")),
}


@pytest.mark.parametrize("name", ["codes", "coder.W"])
@pytest.mark.parametrize("copy", COPIES)
def test_a_damaged_file_is_not_copied(file, tmp_path, copy, name):
    COPIES[copy](embits.load(file), tmp_path / "fine")
    bits = embits.load(file)
    flip(file, name)  # after it was opened: the coder is checked there
    before = set(tmp_path.iterdir())
    bits.search(ROWS[0], 3)  # reading answers
    with pytest.raises(embits.FormatError, match="damaged"):
        COPIES[copy](bits, tmp_path / "copy")
    assert set(tmp_path.iterdir()) == before


def test_a_damaged_coder_encodes_no_file(file, tmp_path):
    np.save(tmp_path / "more.npy", ROWS[:5])
    flip(file, "coder.W")
    with pytest.raises(embits.FormatError, match="damaged"):
        embits.encode_to_file(file, tmp_path / "more.npy", tmp_path / "out")
    with pytest.raises(embits.FormatError, match="damaged"):
        embits.open_collection(tmp_path / "new", file)
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "out").exists()
    done = subprocess.run(
        [sys.executable, "-m", "embits", "slim", file, "-o", tmp_path / "slim"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "damaged" in done.stderr


CHANGES = {
    "add": lambda collection: collection.add(ROWS[:2], ["x", "y"]),
    "update": lambda collection: collection.update(ROWS[:1], ["w3"]),
    "remove": lambda collection: collection.remove(["w3"]),
    "compact": lambda collection: collection.compact(),
    "save": lambda collection: collection.save(collection.path.parent / "one"),
    "subset": lambda collection: collection.subset(["w1"]),
    "concat": lambda collection: embits.concat([collection]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_collection_with_a_damaged_coder_is_not_changed_or_copied(file, tmp_path, change):
    collection = embits.open_collection(tmp_path / "c", file)
    collection.add(ROWS, IDS)
    flip(tmp_path / "c" / "_coder.safetensors", "coder.W")
    before = {path: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    with pytest.raises(embits.FormatError, match=r"_coder\.safetensors"):
        CHANGES[change](embits.load(tmp_path / "c"))
    assert {path: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before


def test_a_file_that_was_replaced_or_deleted_is_copied_as_it_is_mapped(file, tmp_path):
    whole = embits.load(file)
    bits = embits.load(file)
    gone = embits.load(file)
    embits.binarize(embits.WordVectors(IDS, ROWS[::-1]), 64, "lsh").save(file)
    bits.save(tmp_path / "copy")
    file.unlink()
    gone.save(tmp_path / "other")
    for path in (tmp_path / "copy", tmp_path / "other"):
        assert np.array_equal(embits.load(path).codes, whole.codes)
