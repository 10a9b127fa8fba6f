"""The JavaScript reader's encode, decode and float queries give Python's answers."""

import json

import numpy as np
import pytest

import embits
from embits.search import asymmetric_top_k
from tests.support.javascript import assert_same, clustered, needs_node, node

ROWS, QUERIES, K = 1500, 150, 12

CODERS = {
    "searched.safetensors": embits.NearLossless(96, steps=30),
    "searched-wide.safetensors": embits.NearLossless(200, steps=20),
    "whitened.safetensors": embits.NearLossless(50, target="similarity", steps=20),
    "neural.safetensors": embits.Neural(48),
    "thresholds.safetensors": embits.NearLossless(50, steps=20),
    "thresholds-whitened.safetensors": embits.NearLossless(50, target="similarity", steps=20),
    "paper.safetensors": embits.PaperAutoencoder(64, epochs=2),
    "paper-scaled.safetensors": embits.PaperAutoencoder(40, epochs=1, clip=False),
    "lsh.safetensors": embits.RandomHyperplanes(100),
    "itq.safetensors": embits.ITQ(33),
    "sign.safetensors": embits.SignBits(),
    "sign-strict.safetensors": embits.SignBits(strict=True),
}
WITH_LENGTHS = {"searched.safetensors", "itq.safetensors", "paper-scaled.safetensors"}


def queries(scale):
    x = scale * clustered(QUERIES, 2)
    x[0] = 0
    x[1] *= np.float32(1e-15)  # squares underflow in float32
    x[2, :5] = 0
    return x


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file for each coder, its queries, and what Node answers."""
    folder = tmp_path_factory.mktemp("queries")
    questions, opened = {}, {}
    for name, coder in CODERS.items():
        scale = np.float32(0.01 if "scaled" in name else 1)
        coder.fit(scale * clustered(ROWS, 1))
        if name.startswith("thresholds"):
            coder.search_ = np.empty(0)
        bits = embits.BinaryVectors.encoded(
            embits.WordVectors(None, scale * clustered(ROWS, 1)),
            coder,
            lengths=name in WITH_LENGTHS,
        )
        bits.save(folder / name)
        opened[name] = bits
        x = queries(scale)
        weights, _ = bits.coder.query_weights(x)
        questions[name] = {"vectors": x.tolist(), "weights": weights.tolist(), "k": K}
    (folder / "questions.json").write_text(json.dumps(questions))
    return opened, questions, json.loads(node("queries.mjs", folder))


@needs_node
def test_the_files_have_searched_codes_and_thresholds(files):
    coders = {name.removesuffix(".safetensors"): bits.coder for name, bits in files[0].items()}
    searched = {name for name, coder in coders.items() if "search" in coder.state()}
    assert searched == {"searched", "searched-wide", "whitened", "neural"}
    whitened = {name for name, coder in coders.items() if "whitening" in coder.state()}
    assert whitened == {"whitened", "thresholds-whitened"}
    assert coders["paper-scaled"].scale_[0] > 1


@needs_node
@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize("kernel", ["plain", "simd"])
def test_javascript_gives_pythons_answers(files, name, kernel):
    opened, questions, answered = files
    bits, x = opened[name], np.array(questions[name]["vectors"], dtype="f4")
    codes = bits.encode(x)
    decoded = bits.decode(codes)
    expected = {
        "hamming": bits.search(codes, K, metric="hamming"),
        "asymmetric": bits.search(x, K, metric="asymmetric"),
        "decodedVector": bits.search(x, K, metric="decoded"),
        "decodedCode": bits.search(codes, K, metric="decoded"),
    }
    if name in WITH_LENGTHS:
        expected["dot"] = bits.search(x, K, metric="dot")
    for i, found in enumerate(answered[name][kernel]["each"]):
        assert found["code"] == codes[i].tolist()
        assert (found["decoded"] is None) == ("whitened" in name)
        if found["decoded"]:
            assert np.allclose(found["decoded"], decoded[i], rtol=1e-5, atol=1e-6)
            assert np.allclose(found["decodedRow"], bits.decode(3), rtol=1e-5, atol=1e-6)
        assert found["similarity"] == pytest.approx(
            bits.similarity(3, 8, metric="decoded"), abs=1e-5
        )
        assert found["hamming"]["rows"] == expected["hamming"].rows[i].tolist()
        assert found["hamming"]["values"] == expected["hamming"].distances[i].tolist()
        assert found["codes"] == found["hamming"]  # without a metric
        assert found["floats"] == found["asymmetric"]
        for metric in expected.keys() - {"hamming"}:
            assert_same(found[metric], [part[i] for part in expected[metric]])


@needs_node
@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize("kernel", ["plain", "simd"])
def test_the_same_weights_give_the_same_scores_to_the_last_bit(files, name, kernel):
    opened, questions, answered = files
    weights = np.array(questions[name]["weights"], dtype="f4")
    scores, rows = asymmetric_top_k(opened[name].codes, weights, K)
    for i, found in enumerate(answered[name][kernel]["weighted"]):
        assert found["rows"] == rows[i].tolist()
        assert np.array_equal(np.array(found["values"], dtype="f4"), scores[i])
