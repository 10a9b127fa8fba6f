"""What a new file may replace."""

import numpy as np
import pytest

import embits
from embits.file.overwrite import check_target, is_embits_file


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "bits.safetensors"
    embits.binarize(np.eye(8), n_bits=16, method="lsh").save(path)
    return path


def test_codes_may_replace_a_file_of_codes_or_an_empty_one(saved, tmp_path):
    (tmp_path / "empty").touch()
    assert is_embits_file(saved)
    for target in (saved, tmp_path / "empty", tmp_path / "new"):
        check_target(target, codes=True)


def test_another_output_does_not_replace_a_file_of_codes(saved):
    with pytest.raises(embits.InputError, match="exists: choose another output, or overwrite it"):
        check_target(saved)
    check_target(saved, overwrite=True)


@pytest.mark.parametrize(
    "content",
    [b"notes", b"\x00" * 100, b"\x02\x00\x00\x00\x00\x00\x00\x00{}", b"\xff" * 9],
)
def test_a_foreign_file_needs_overwrite(content, tmp_path):
    path = tmp_path / "notes.md"
    path.write_bytes(content)
    with pytest.raises(embits.InputError, match="exists: choose another output") as refused:
        check_target(path)
    assert "\n" not in str(refused.value)
    check_target(path, overwrite=True)


def test_an_input_is_never_replaced(saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    for target in (saved, link):
        with pytest.raises(embits.InputError, match="is an input"):
            check_target(target, inputs=["gensim:x", saved], overwrite=True)


def test_save_refuses_a_foreign_file_and_leaves_it_alone(saved, tmp_path):
    floats = tmp_path / "news.npy"
    np.save(floats, np.eye(3))
    before = floats.read_bytes()
    bits = embits.load(saved)
    with pytest.raises(embits.InputError, match=r"news\.npy exists"):
        bits.save(floats)
    assert floats.read_bytes() == before
    bits.save(floats, overwrite=True)
    assert len(embits.load(floats)) == 8
    bits.save(saved)  # its own file, which it maps
    assert len(embits.load(saved)) == 8


def test_written_vectors_replace_a_file_only_when_asked(tmp_path):
    vectors = embits.WordVectors(["a", "b"], np.eye(2))
    embits.write_vectors(tmp_path / "v.npy", vectors)
    (tmp_path / "w.words").write_text("my own\n")
    for name in ("v.npy", "w.npy"):
        with pytest.raises(embits.InputError, match="exists"):
            embits.write_vectors(tmp_path / name, vectors)
    assert not (tmp_path / "w.npy").exists()
    assert (tmp_path / "w.words").read_text() == "my own\n"
    embits.write_vectors(tmp_path / "w.npy", vectors, overwrite=True)
    assert (tmp_path / "w.words").read_text() == "a\nb\n"
