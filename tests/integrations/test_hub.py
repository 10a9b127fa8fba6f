"""Folders as Hugging Face has them, and its Hub through its real client."""

import importlib.util
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
from embits.integrations.hugging_face import card as model_card
from tests.support import hub_server
from tests.support.vectors import clustered

X = clustered(60, 12)


@pytest.fixture(scope="module")
def bits():
    words = [f"word{i}" for i in range(len(X))]
    return embits.binarize(embits.WordVectors(words, X), 40, "lsh")


# -- folders ---------------------------------------------------------------------------------------


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
    with pytest.raises(embits.NotFittedError):
        embits.ITQ(n_bits=8).save_pretrained(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("n_bits", 41), ("dims", None), ("method", "itq"), ("rows", "60"), ("params", {}),
     ("format_version", 1), ("library_name", "transformers")],
)  # fmt: skip
def test_a_config_that_does_not_agree_with_the_file_is_refused(key, value, bits, tmp_path):
    bits.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value, "more": 1}))
    with pytest.raises(embits.FormatError, match=f"says that {key} is .*model.safetensors that"):
        embits.BinaryVectors.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "config",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 60_000, b" " * 70_000, b"9" * 5000, b"{}"],
    ids=["empty", "cut", "list", "null", "not UTF-8", "deep", "long", "digits", "nothing said"],
)
def test_a_hostile_config_is_a_format_error(config, bits, tmp_path):
    bits.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_bytes(config)
    with pytest.raises(embits.FormatError) as found:
        embits.BinaryVectors.from_pretrained(tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("becomes", ["missing", "a folder", "a pipe", "nowhere", "the other file"])
def test_a_folder_with_other_things_in_it_is_a_format_error(name, becomes, bits, tmp_path):
    bits.save_pretrained(tmp_path)
    path = tmp_path / name
    other = ({"model.safetensors", "config.json"} - {name}).pop()
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
        path.write_bytes((tmp_path / other).read_bytes())
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
    text = model_card.write(bits, "me/model", {}, front)
    matter = yaml.safe_load(text.split("---\n")[1])
    assert matter["library_name"] == "embits"
    assert (matter["bits"], matter["dims"], matter["method"]) == (12, 12, "sign")
    assert {key: matter[key] for key in front} == front


@pytest.mark.parametrize("front", [{"a b": 1}, {"x": object()}, {"x": float("nan")}, {3: 1}])
def test_front_matter_that_cannot_be_is_refused_before_a_file_is_written(front, bits, tmp_path):
    with pytest.raises(embits.InputError, match="the card has the"):
        bits.save_pretrained(tmp_path / "folder", card=front)
    assert not (tmp_path / "folder").exists()


def test_what_is_neither_a_folder_nor_a_name_is_refused(bits, tmp_path):
    bits.save(tmp_path / "file")
    with pytest.raises(embits.InputError, match=r"is a file, .* embits.load opens a file"):
        embits.BinaryVectors.from_pretrained(tmp_path / "file")
    for name in (tmp_path / "none", "none", "../a/b", "a/b/c", "", "a/..", "-a/b", "https://a/b"):
        if str(name):  # Path("") is the current folder
            with pytest.raises(embits.InputError, match="there is no folder"):
                embits.BinaryVectors.from_pretrained(name)


# -- the Hub ---------------------------------------------------------------------------------------

needs_client = pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub on this machine, what to tell `push_to_hub`, and what to tell `from_pretrained`."""
    with hub_server.running() as (hub, endpoint):
        # As HF_ENDPOINT would set them: clients before 2 look there even when they are told.
        constants = importlib.import_module("huggingface_hub.constants")
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        there = {"endpoint": endpoint, "cache_dir": tmp_path / "cache"}
        yield hub, {"endpoint": endpoint, "token": "hf_any"}, there


@needs_client
def test_what_is_pushed_to_the_hub_comes_back_from_it(bits, hub):
    server, to, there = hub
    address = bits.push_to_hub("me/model", figures={"recall@10": 0.5}, message="First", **to)
    assert address.startswith(to["endpoint"] + "/me/model/commit/")
    assert server.files("me/model").keys() >= {"model.safetensors", "config.json", "README.md"}
    assert b'from_pretrained("me/model")' in server.files("me/model")["README.md"]
    again = embits.BinaryVectors.from_pretrained("me/model", verify=True, **there)
    np.testing.assert_array_equal(again.codes, bits.codes)
    assert embits.Coder.from_pretrained("me/model", **there).get_params() == {
        "n_bits": 40,
        "random_state": 0,
    }


@needs_client
def test_a_revision_is_its_own_model(bits, hub):
    _, to, there = hub
    bits.push_to_hub("me/model", **to)
    embits.RandomHyperplanes(n_bits=8).fit(X).push_to_hub("me/model", revision="small", **to)
    assert embits.Coder.from_pretrained("me/model", **there).n_bits_ == 40
    assert embits.Coder.from_pretrained("me/model", revision="small", **there).n_bits_ == 8


@needs_client
def test_a_card_of_ones_own_stays_on_the_hub(bits, hub):
    server, to, _ = hub
    bits.push_to_hub("me/model", **to)
    bits.push_to_hub("me/model", figures={"recall": 1}, **to)
    assert b"| recall | 1 |" in server.files("me/model")["README.md"]
    server.commit("me/model", "main", {"README.md": b"# Mine\n"})
    bits.coder.push_to_hub("me/model", **to)
    assert server.files("me/model")["README.md"] == b"# Mine\n"
    assert json.loads(server.files("me/model")["config.json"])["rows"] == 0


@needs_client
def test_the_cache_answers_when_the_hub_does_not(bits, hub):
    _, to, there = hub
    bits.push_to_hub("me/model", **to)
    embits.BinaryVectors.from_pretrained("me/model", **there)
    gone = there | {"endpoint": "http://127.0.0.1:9"}
    again = embits.BinaryVectors.from_pretrained("me/model", **gone)
    np.testing.assert_array_equal(again.codes, bits.codes)
    embits.BinaryVectors.from_pretrained("me/model", local_files_only=True, **there)


@needs_client
def test_a_folder_of_the_same_name_goes_first(bits, tmp_path, monkeypatch, hub):
    server, _, there = hub
    monkeypatch.chdir(tmp_path)
    bits.save_pretrained("me/model")
    assert len(embits.BinaryVectors.from_pretrained("me/model", **there)) == 60
    assert server.asked == []


@needs_client
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("me/none", {}, "there is no such model, or it is private"),
        ("me/model", {"revision": "none"}, "it has no such revision"),
        ("me/none", {"endpoint": "http://127.0.0.1:9"}, "it cannot be reached"),
        ("me/none", {"local_files_only": True}, "not in the cache"),
        ("me/a--b", {}, "repo"),
    ],
)
def test_what_the_hub_cannot_give_is_told_in_one_line(name, options, message, bits, hub):
    _, to, there = hub
    bits.push_to_hub("me/model", **to)
    with pytest.raises(embits.HubError, match=message) as found:
        embits.BinaryVectors.from_pretrained(name, **(there | options))
    assert str(found.value).startswith(f"{name} on the Hugging Face Hub: ")
    assert "\n" not in str(found.value)


@needs_client
def test_a_push_that_fails_is_told_in_one_line(bits):
    with pytest.raises(embits.HubError, match="me/model on the Hugging Face Hub: it cannot be"):
        bits.push_to_hub("me/model", endpoint="http://127.0.0.1:9", token="hf_any")


@needs_client
def test_damage_on_the_hub_is_a_format_error(bits, hub):
    server, to, there = hub
    bits.push_to_hub("me/model", **to)
    server.commit("me/model", "main", {"model.safetensors": b"\x80\x04pickle"})
    with pytest.raises(embits.FormatError):
        embits.BinaryVectors.from_pretrained("me/model", **there)
    server.commit("me/other", "main", {"pytorch_model.bin": b"no"})
    with pytest.raises(embits.FormatError, match=r"it has no model.safetensors"):
        embits.BinaryVectors.from_pretrained("me/other", **there)


def test_without_the_client_the_extra_is_named(bits):
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\n"
        "import embits\n"
        "try: embits.Coder.from_pretrained('me/model')\n"
        "except embits.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'embits[hub]'" in done.stdout
