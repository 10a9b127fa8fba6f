"""gensim's vectors in, rebuilt floats out, and its models by name."""

import gzip
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import embits
from embits.readers.gensim_models import from_keyed_vectors
from tests.support.program import messages
from tests.support.vectors import clustered

pytest.importorskip("gensim")
from gensim.models import FastText, KeyedVectors

from embits.integrations.gensim import to_keyed_vectors

SENTENCES = [["the", "queen", "naïve", "日本語", "a"], ["king", "the", "of", "queen"]] * 10


@pytest.fixture(scope="module")
def keyed():
    matrix = clustered(300)
    keyed = KeyedVectors(matrix.shape[1])
    keyed.add_vectors([f"word{i}" for i in range(len(matrix))], matrix)
    return keyed


@pytest.fixture(scope="module")
def fasttext():
    return FastText(
        SENTENCES, vector_size=8, min_count=1, min_n=1, max_n=4, bucket=500, epochs=2, workers=1
    )


def test_keyed_vectors_binarize_as_their_words_and_matrix_do(keyed):
    bits = embits.binarize(keyed, 64, "lsh")
    same = embits.binarize(embits.WordVectors(keyed.index_to_key, keyed.vectors), 64, "lsh")
    assert np.array_equal(bits.codes, same.codes)
    assert list(bits.words) == keyed.index_to_key


def test_a_model_stands_for_the_vectors_in_it_and_brings_its_subwords(fasttext):
    vectors = from_keyed_vectors(fasttext.wv)
    for word in ("unseen", "Zürich", "日本", "x", "queens"):
        assert vectors.subwords.vector(word) == pytest.approx(fasttext.wv[word], abs=1e-7)
    bits = embits.binarize(fasttext, 64, "lsh")
    assert np.array_equal(bits["queens"], bits.encode(fasttext.wv["queens"]))
    assert "queens" not in bits


def test_fasttext_without_ngrams_has_words_only():
    model = FastText(SENTENCES, vector_size=8, min_count=1, max_n=0, bucket=0, epochs=1, workers=1)
    assert from_keyed_vectors(model.wv).subwords is None


def test_numbered_keys_are_rows_and_other_keys_become_words():
    numbered = KeyedVectors(2)
    numbered.add_vectors([0, 1, 2], np.eye(3, 2))
    assert from_keyed_vectors(numbered).words is None
    other = KeyedVectors(2)
    other.add_vectors([7, 5], np.eye(2))
    assert from_keyed_vectors(other).words == ["7", "5"]


def test_rows_that_were_never_filled_are_left_out():
    keyed = KeyedVectors(2, count=4)
    keyed.add_vector("a", np.array([1.0, 2.0]))
    vectors = from_keyed_vectors(keyed)
    assert vectors.words == ["a"]
    assert vectors.matrix.tolist() == [[1.0, 2.0]]


def test_rebuilt_floats_answer_in_gensim_as_their_cosines_do(keyed):
    bits = embits.binarize(keyed, 128, "paper")
    rebuilt = to_keyed_vectors(bits)
    assert np.array_equal(rebuilt.vectors, bits.decode())
    assert rebuilt["word5"] == pytest.approx(bits.decode("word5"), abs=1e-5)
    unit = rebuilt.vectors / np.linalg.norm(rebuilt.vectors, axis=1, keepdims=True)
    cosines = unit @ unit[5]
    cosines[5] = -1
    found = rebuilt.most_similar("word5", topn=10)
    assert [similarity for _, similarity in found] == pytest.approx(
        np.sort(cosines)[::-1][:10].tolist(), abs=1e-5
    )
    rebuilt.add_vectors(["another"], np.ones((1, bits.dims)))  # it is a KeyedVectors like any other
    assert (len(rebuilt), rebuilt["another"].tolist()) == (301, [1.0] * bits.dims)


def test_binarize_of_a_matrix_does_not_import_gensim():
    program = (
        "import sys, numpy as np, embits; embits.binarize(np.eye(4), 8, 'lsh'); "
        "assert 'gensim' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# -- models by name: the real downloader, over a folder as it leaves one after a download ----------


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gensim-data")
    model = folder / "tiny-vectors-2"
    model.mkdir()
    packed = gzip.compress(b"3 2\nup 1 0.5\ndown -1 0.5\nleft 0 1\n")
    (model / "tiny-vectors-2.gz").write_bytes(packed)
    (model / "__init__.py").write_text("raise SystemExit('the program of a model was run')\n")
    entry = {"file_name": "tiny-vectors-2.gz", "parts": 1,
             "checksum": hashlib.md5(packed).hexdigest()}  # fmt: skip
    models = {"tiny-vectors-2": entry, "not-fetched-yet-50": entry | {"file_name": "n.gz"}}
    known = {"models": models, "corpora": {"tiny-text": entry}}
    (folder / "information.json").write_text(json.dumps(known))
    return folder


def run(folder, *args):
    # Whatever the network: a proxy that is not there stands for none at all.
    env = {**os.environ, "GENSIM_DATA_DIR": str(folder), "https_proxy": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, "-m", "embits", *map(str, args)],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_model_is_read_by_its_name_and_its_program_is_not_run(downloads, tmp_path):
    out = tmp_path / "bits"
    done = run(
        downloads, "binarize", "gensim:tiny-vectors-2", "-o", out, "--method", "lsh", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["words"] == 3
    assert list(embits.load(out).words) == ["up", "down", "left"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tiny-vector-2", "gensim has no model of that name; did you mean 'tiny-vectors-2'?"),
        ("tiny-text", "gensim has no model of that name"),
        ("not-fetched-yet-50", "gensim could not download it: "),
    ],
)
def test_a_name_without_vectors_is_refused_in_one_line(downloads, tmp_path, name, says):
    done = run(downloads, "binarize", f"gensim:{name}", "-o", tmp_path / "x")
    assert done.returncode == 1
    (error,) = messages(done.stderr).splitlines()
    assert error.startswith(f"embits: error: gensim:{name}: {says}")
    assert list(tmp_path.iterdir()) == []


def test_without_network_and_list_the_error_is_one_line(tmp_path):
    done = run(tmp_path / "empty", "binarize", "gensim:glove-twitter-25", "-o", tmp_path / "x")
    assert done.returncode == 1
    (error,) = messages(done.stderr).splitlines()
    assert "gensim could not download it" in error


def test_a_file_that_is_called_so_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gensim:v.txt").write_text("a 1 2\nb 3 4\n")
    assert embits.read_vectors("gensim:v.txt").words == ["a", "b"]
