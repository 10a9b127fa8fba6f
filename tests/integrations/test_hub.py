"""The Hugging Face Hub, through its real client."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import embits
from tests.support import hub_server
from tests.support.vectors import clustered

X = clustered(60, 12)


@pytest.fixture(scope="module")
def bits():
    words = [f"word{i}" for i in range(len(X))]
    return embits.binarize(embits.WordVectors(words, X), 40, "lsh")


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
    ("name", "options"),
    [
        ("me/none", {}),
        ("me/model", {"revision": "none"}),
        ("me/none", {"endpoint": "http://127.0.0.1:9"}),
        ("me/none", {"local_files_only": True}),
        ("me/a--b", {}),
    ],
)
def test_what_the_hub_cannot_give_is_told_in_one_line(name, options, bits, hub):
    _, to, there = hub
    bits.push_to_hub("me/model", **to)
    with pytest.raises(embits.errors.HubError) as found:
        embits.BinaryVectors.from_pretrained(name, **(there | options))
    assert str(found.value).startswith(f"{name} on the Hugging Face Hub: ")
    assert "\n" not in str(found.value)


@needs_client
def test_a_push_that_fails_is_told_in_one_line(bits):
    with pytest.raises(embits.errors.HubError, match=r"^me/model on the Hugging Face Hub: .") as e:
        bits.push_to_hub("me/model", endpoint="http://127.0.0.1:9", token="hf_any")
    assert "\n" not in str(e.value)
    assert "hf_any" not in str(e.value)


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
        "except embits.errors.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install huggingface_hub: pip install 'huggingface_hub<3" in done.stdout
