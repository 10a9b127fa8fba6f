"""Smaller files: what is left out is not there, and asking for it is one clear error."""

import copy
import json
import pickle

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.ids.subwords import Subwords
from tests.support.program import run

WORDS = [f"w{i * 7 % 100}" for i in range(100)]


@pytest.fixture(scope="module")
def bits():
    rng = np.random.default_rng(0)
    subwords = Subwords(rng.normal(size=(20, 12)).astype("f4"), 3, 4)
    vectors = embits.WordVectors(WORDS, rng.normal(size=(100, 12)).astype("f4"), subwords)
    return embits.binarize(vectors, 64, "lsh")


def saved(bits, path):
    bits.save(path)
    return embits.load(path, verify=True)


def test_words_are_searched_as_before_without_coder_and_subwords(bits, tmp_path):
    slim = saved(bits.slim(), tmp_path / "slim")
    assert slim.most_similar("w5") == bits.most_similar("w5")
    assert (slim.search("w5", 3).rows == bits.search("w5", 3).rows).all()
    assert (slim.byte_counts().coder, slim.byte_counts().subwords) == (0, 0)
    assert (slim.n_bits, slim.dims, slim.coder.method) == (64, 12, "lsh")
    assert "RandomHyperplanes" in repr(slim)


@pytest.mark.parametrize(
    "ask",
    [
        lambda bits: bits.encode(np.ones(12)),
        lambda bits: bits.decode("w5"),
        lambda bits: bits.search(np.ones(12, "f4"), 3),
        lambda bits: bits.search(np.ones(12, "f4"), 3, metric="asymmetric"),
        lambda bits: bits.most_similar("w5", metric="decoded"),
        lambda bits: bits.slim((), half_decoder=True),
    ],
)
def test_what_needs_the_coder_says_that_it_was_left_out(bits, tmp_path, ask):
    with pytest.raises(embits.InputError, match="left out"):
        ask(saved(bits.slim("coder"), tmp_path / "slim"))


def test_analogies_without_a_coder_say_which_metric_needs_none(file, bits, tmp_path):
    assert run("slim", file, "-o", tmp_path / "small").returncode == 0
    asked = ("analogy", tmp_path / "small", "w1", "w2", "w3")
    done = run(*asked)
    assert done.returncode == 1
    assert "--metric hamming" in done.stderr
    assert run(*asked, "--metric", "hamming").returncode == 0
    assert "embits analogy" in run("slim", file, "-o", tmp_path / "again").stdout


@pytest.mark.parametrize("method", METHODS)
def test_every_coder_can_be_left_out(method, tmp_path):
    X = np.random.default_rng(1).normal(size=(60, 12)).astype("f4")
    bits = embits.binarize(X, None if method == "sign" else 24, method)
    slim = saved(bits.slim(), tmp_path / "slim")
    assert slim.byte_counts().coder == 0
    assert slim.coder.get_params() == bits.coder.get_params()
    with pytest.raises(embits.InputError, match="left out"):
        slim.decode()
    if method != "sign":  # it encodes without having learned anything
        with pytest.raises(embits.InputError, match="left out"):
            slim.encode(X)
    slim.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "slim").read_bytes()


def test_an_unknown_word_says_that_subwords_were_left_out(bits, tmp_path):
    assert bits["wholly-unknown"].shape == (8,)
    for each in (bits.slim("subwords"), saved(bits.slim("subwords"), tmp_path / "slim")):
        with pytest.raises(embits.UnknownWordError, match=r"subwords.*left out"):
            each["wholly-unknown"]
        assert each.decode("w5").shape == (12,)


def test_without_the_order_rows_are_sorted_by_their_words(bits, tmp_path):
    slim = saved(bits.slim(["order", "subwords"]), tmp_path / "slim")
    assert list(slim.words) == sorted(WORDS)
    assert slim.byte_counts().order == 0 < bits.byte_counts().order
    for word in WORDS:
        assert (slim[word] == bits[word]).all()


def test_the_decoder_may_have_16_bits(bits, tmp_path):
    slim = saved(bits.slim("subwords", half_decoder=True), tmp_path / "slim")
    assert slim.byte_counts().coder == bits.byte_counts().coder - 2 * 64 * 12
    assert slim.coder.decoder_.dtype == np.float32
    np.testing.assert_allclose(slim.decode(), bits.decode(), rtol=2e-2, atol=2e-2)
    assert (slim.encode(np.eye(12)) == bits.encode(np.eye(12))).all()
    slim.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "slim").read_bytes()


def test_a_decoder_that_16_bits_cannot_hold_is_refused():
    X = np.random.default_rng(1).normal(size=(60, 12)).astype("f4")
    with pytest.raises(embits.InputError, match="16 bits cannot hold"):
        embits.binarize(X * 1e9, 24, "lsh").slim(half_decoder=True, without=())
    with pytest.raises(embits.InputError, match="has none of its own"):
        embits.binarize(X, 24, "paper", epochs=1).slim(half_decoder=True, without=())
    with pytest.raises(embits.InputError, match="'codes' cannot be left out"):
        embits.binarize(X, 24, "lsh").slim("codes")


def test_loaded_words_can_be_copied_and_pickled(bits, tmp_path):
    slim = saved(bits.slim(), tmp_path / "slim")
    pickled = pickle.loads(pickle.dumps(slim))  # noqa: S301
    for other in (pickled, copy.deepcopy(slim), copy.copy(slim)):
        assert list(other.words) == WORDS
        assert other.words.lacks_subwords
        assert other.most_similar("w5") == bits.most_similar("w5")


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def file(bits, tmp_path):
    bits.save(tmp_path / "all")
    return tmp_path / "all"


def test_slim_says_what_each_part_saved_and_what_no_longer_works(file, tmp_path, bits):
    done = run("slim", file, "-o", tmp_path / "small", "--json")
    facts = json.loads(done.stdout)
    assert facts["bytes_before"] == file.stat().st_size
    assert facts["bytes"] == (tmp_path / "small").stat().st_size
    assert facts["saved"] == {
        "coder": bits.byte_counts().coder,
        "subwords": bits.byte_counts().subwords,
    }
    assert list(facts["no_longer"]) == ["coder", "subwords"]
    shown = run("slim", file, "-o", tmp_path / "small", "--without", "order").stdout
    assert "without order, this no longer works: " in shown
    assert "completion with frequent words first" in shown
    assert "row numbers" in shown
    assert run("verify", tmp_path / "small").returncode == 0
    assert run("info", tmp_path / "small").returncode == 0


def test_slim_refuses_its_input_other_files_and_contradictions(file, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    whole = file.read_bytes()
    assert run("slim", file, "-o", file).returncode == 1
    assert run("slim", file, "-o", file, "--force").returncode == 1
    assert run("slim", file, "-o", other).returncode == 1
    assert run("slim", file, "-o", tmp_path / "no" / "folder").returncode == 1
    assert run("slim", file, "-o", tmp_path / "x", "--without", "codes").returncode == 2
    both = ("--half-decoder", "--without", "coder")
    assert run("slim", file, "-o", tmp_path / "x", *both).returncode == 2
    assert (other.read_text(), file.read_bytes()) == ("mine", whole)
    assert run("slim", file, "-o", other, "--force").returncode == 0


def test_verbs_say_in_one_line_that_the_coder_was_left_out(file, tmp_path):
    assert run("slim", file, "-o", tmp_path / "small").returncode == 0
    done = run("decode", tmp_path / "small", "-o", tmp_path / "floats.npz")
    assert done.returncode == 1
    assert "left out of this file" in done.stderr
    assert len(done.stderr.splitlines()) == 1
