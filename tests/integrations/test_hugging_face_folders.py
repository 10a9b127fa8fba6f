"""Hugging Face folders: save and load coders and codes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embits
from embits.coders import METHODS
from embits.integrations import hugging_face
from tests.support.vectors import clustered

X = clustered(60, 12)


@pytest.fixture(scope="module")
def bits():
    words = [f"word{i}" for i in range(len(X))]
    return embits.binarize(embits.WordVectors(words, X), 40, "lsh")


@pytest.mark.parametrize("method", METHODS)
def test_a_coder_comes_back_from_its_folder(method, tmp_path):
    maker = METHODS[method]
    coder = (maker() if method == "sign" else maker(n_bits=24)).fit(X)
    coder.save_pretrained(tmp_path / "folder")
    for again in (
        embits.Coder.from_pretrained(tmp_path / "folder", verify=True),
        maker.from_pretrained(str(tmp_path / "folder")),
    ):
        assert type(again) is maker
        np.testing.assert_array_equal(again.transform(X), coder.transform(X))
        assert again.get_params() == coder.get_params()


def test_binary_vectors_come_back_from_their_folder(bits, tmp_path):
    bits.save_pretrained(tmp_path)
    again = embits.BinaryVectors.from_pretrained(tmp_path)
    assert list(again.words) == list(bits.words)
    np.testing.assert_array_equal(again.codes, bits.codes)
    assert isinstance(embits.Coder.from_pretrained(tmp_path), embits.RandomHyperplanes)
    assert json.loads((tmp_path / "config.json").read_text()) == {
        "library_name": "embits",
        "model_type": "embits",
        "format_version": 2,
        "method": "lsh",
        "n_bits": 40,
        "dims": 12,
        "rows": 60,
        "params": {"n_bits": 40, "random_state": 0},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]


def test_the_file_of_a_coder_alone_encodes_on_the_command_line(bits, tmp_path):
    bits.coder.save_pretrained(tmp_path)
    np.save(tmp_path / "x.npy", X)
    run = [sys.executable, "-m", "embits", "encode", tmp_path / "model.safetensors"]
    subprocess.run([*run, tmp_path / "x.npy", "-o", tmp_path / "x.bits"], check=True)
    np.testing.assert_array_equal(embits.load(tmp_path / "x.bits").codes, bits.codes)


def test_a_folder_of_another_coder_is_refused(bits, tmp_path):
    bits.save_pretrained(tmp_path)
    with pytest.raises(embits.FormatError, match="its coder is RandomHyperplanes, not ITQ"):
        embits.ITQ.from_pretrained(tmp_path)


def test_what_has_learned_nothing_is_not_saved(tmp_path):
    with pytest.raises(embits.errors.NotFittedError):
        embits.ITQ(n_bits=8).save_pretrained(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("becomes", ["missing", "a folder", "a pipe", "nowhere", "the other file"])
def test_a_folder_with_other_things_in_it_is_a_format_error(becomes, bits, tmp_path):
    bits.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.unlink()
    if becomes == "a folder":
        path.mkdir()
    elif becomes == "a pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no pipes here")
        os.mkfifo(path)
    elif becomes == "nowhere":
        path.symlink_to(tmp_path / "gone")
    elif becomes == "the other file":
        path.write_bytes((tmp_path / "config.json").read_bytes())
    with pytest.raises(embits.FormatError):
        embits.BinaryVectors.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_the_folder_of_another_model_is_refused_and_left_alone(name, bits, tmp_path):
    (tmp_path / name).write_text('{"model_type": "bert"}')
    for kept in (bits, bits.coder):
        with pytest.raises(embits.InputError, match="embits did not write it"):
            kept.save_pretrained(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == '{"model_type": "bert"}'


def test_a_card_of_ones_own_stays_and_ours_is_written_anew(bits, tmp_path):
    bits.save_pretrained(tmp_path)
    bits.save_pretrained(tmp_path, figures={"recall@10": 0.61234})
    assert "| recall@10 | 0.6123 |" in (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").write_text("# Mine\n")
    bits.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# Mine\n"


@given(
    st.dictionaries(
        st.sampled_from(["license", "language", "base_model", "x-y"]),
        st.none() | st.booleans() | st.integers(-9, 9) | st.lists(st.text("aé: #'\"-|\n[]{}&*!%")),
    )
)
def test_the_front_matter_is_yaml_that_says_what_was_given(front):
    yaml = pytest.importorskip("yaml")
    coder = embits.SignBits().fit(X)
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, X), coder)
    text = hugging_face._card(bits, "me/model", {}, front)
    matter = yaml.safe_load(text.split("---\n")[1])
    assert matter["library_name"] == "embits"
    assert (matter["bits"], matter["dims"], matter["method"]) == (12, 12, "sign")
    assert {key: matter[key] for key in front} == front


def test_front_matter_that_is_not_json_is_refused_before_a_file_is_written(bits, tmp_path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        bits.save_pretrained(tmp_path / "folder", card={"x": object()})
    assert not (tmp_path / "folder").exists()


def test_what_is_neither_a_folder_nor_a_name_is_refused(bits, tmp_path):
    bits.save(tmp_path / "file")
    with pytest.raises(embits.InputError, match="opens a file"):
        embits.BinaryVectors.from_pretrained(tmp_path / "file")
    for name in (tmp_path / "none", "none", "../a/b", "a/b/c", "", "a/..", "-a/b", "https://a/b"):
        if str(name):  # Path("") is the current folder
            with pytest.raises(embits.InputError, match="there is no folder"):
                embits.BinaryVectors.from_pretrained(name)
