"""JavaScript gives texts the vectors that Python gives them."""

import json
import shutil
from unicodedata import category

import numpy as np
import pytest

import embits
from embits.ids.subwords import Subwords
from tests.support.damage import resigned
from tests.support.javascript import HERE, needs_chromium, needs_node, needs_packages, node
from tests.support.tokenizers import SENTENCES, texts, trained

pytest.importorskip("tokenizers")
safetensors = pytest.importorskip("safetensors.numpy")

if not hasattr(embits, "TextEncoder"):
    pytest.skip("needs TextEncoder", allow_module_level=True)

pytestmark = needs_node

DIMS = 24


def static_model(folder, name, method="itq", **tensors):
    """The folder of a static model with one of the trained tokenizers."""
    text = trained()[name]
    about = json.loads(text)
    vocab = about["model"]["vocab"]
    n = max([len(vocab), *(each["id"] + 1 for each in about["added_tokens"])])
    table = np.random.default_rng(0).normal(size=(n, DIMS)).astype("f4")
    more = {key: make(n) for key, make in tensors.items()}
    folder.mkdir()
    safetensors.save_file({"embeddings": table, **more}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"normalize": name != "unigram"}))
    return embits.TextEncoder.from_static(folder, n_bits=40, method=method, cache=False)


def shared_rows(folder):
    def mapping(n):
        return np.arange(n, dtype="i8")[::-1].copy()

    def weights(n):
        return np.linspace(0.1, 3, n, dtype="f4")

    return static_model(folder, "wordpiece", mapping=mapping, weights=weights)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """A folder with files of text encoders, and the encoders by name."""
    folder = tmp_path_factory.mktemp("encoders")
    sample = embits.sample_vectors()
    rng = np.random.default_rng(1)
    subwords = Subwords(rng.normal(size=(50, 50)).astype("f4"), 3, 5)
    words = [*sample.words[:1000], "new_york", "the_quick_brown"]
    more = embits.WordVectors(words, rng.normal(size=(len(words), 50)).astype("f4"), subwords)
    found = {
        "wordpiece": static_model(folder / "a", "wordpiece"),
        "bpe": static_model(folder / "b", "bpe-bytes"),
        "unigram": static_model(folder / "c", "unigram"),
        "added": static_model(folder / "d", "added"),
        "shared": shared_rows(folder / "e"),
        "net": static_model(folder / "f", "unigram", "neural"),
        "words": embits.TextEncoder.from_words(embits.binarize(sample, 64, "itq")),
        "subwords": embits.TextEncoder.from_words(embits.binarize(more, 64, "itq")),
    }
    fitted = {"fitted": "bpe", "fitted-words": "words"}
    for name, file in found.items():
        file.save(folder / f"{name}.safetensors")
    for name, source in fitted.items():
        encoder = embits.TextEncoder.load(folder / f"{source}.safetensors")
        found[name] = encoder.fit([*SENTENCES * 3, *texts(300)])
    for weights in ("sif", "idf"):
        encoder = embits.TextEncoder(str(folder / "bpe.safetensors"), weights=weights)
        found[weights] = encoder.fit(SENTENCES)
    for name in (*fitted, "sif", "idf"):
        found[name].save(folder / f"{name}.safetensors")
    files = {path.stem: path for path in folder.glob("*.safetensors")}
    return folder, {name: embits.TextEncoder.load(path) for name, path in files.items()}


def asked():
    more = ["New York and the quick brown New-York's", "don't e-mail", "well-known queen's"]
    # Which new code points are letters depends on the version of Python.
    known = ["".join(c for c in text if category(c) != "Cn") for text in texts(200, seed=6)]
    return [*known, *more]


def test_javascript_gives_texts_the_vectors_of_python(encoders):
    folder, files = encoders
    (folder / "texts.json").write_text(json.dumps(asked()), encoding="utf-8")
    answers = json.loads(node("encode_texts.mjs", folder))
    assert answers.pop("open") == "a text encoder: open it with openTextEncoder"
    assert sorted(answers) == sorted(files)
    for name, encoder in files.items():
        found = answers[name]
        expected = encoder.encode(asked())
        assert (found["dims"], found["nBits"]) == (encoder.n_features_out_, encoder.n_bits_)
        assert np.allclose(found["vectors"], expected, rtol=1e-5, atol=1e-5), name
        if encoder.coder_ is None:
            continue
        known = np.flatnonzero(expected.any(axis=1))
        codes = encoder.encode_codes([asked()[row] for row in known])
        same = [
            found["codes"][row] == code.tolist() for row, code in zip(known, codes, strict=True)
        ]
        assert np.mean(same) > 0.98  # a sum near 0 may have either sign
        assert "no known token" in found["codes"][asked().index("")]


def changed(name, value):
    def change(header):
        settings = json.loads(header["__metadata__"]["text"])
        settings[name] = value
        header["__metadata__"]["text"] = json.dumps(settings)

    return change


LIES = {
    "base": changed("scales_base", 99),
    "weights": changed("weights", "more"),
    "frequencies": changed("weights", "idf"),
    "no-object": lambda header: header["__metadata__"].update(text="3"),
    "units": lambda header: header["text.units"].update(dtype="U32"),
    "tokenizer": lambda header: header.update({"text.other": header.pop("text.tokenizer")}),
}


def test_damaged_text_encoders_are_refused(encoders, tmp_path):
    folder, _ = encoders
    for name, lie in LIES.items():
        shutil.copy(folder / "bpe.safetensors", tmp_path / f"{name}.safetensors")
        resigned(tmp_path / f"{name}.safetensors", lie)
    short = static_model(tmp_path / "short", "wordpiece")
    tokenizer = trained()["wordpiece"].replace('"[PAD]":0', '"[PAD]":100000')
    assert tokenizer != trained()["wordpiece"]
    short.model_.tokens.packed = embits.text.tokenizer.pack_tokenizer(tokenizer)
    short.save(tmp_path / "short.safetensors")
    embits.binarize(embits.sample_vectors(), 64, "itq").save(tmp_path / "codes.safetensors")
    (tmp_path / "texts.json").write_text('["a"]')
    found = json.loads(node("encode_texts.mjs", tmp_path))
    assert found.pop("codes").startswith("a file of codes, not a text encoder")
    assert "does not fit its table" in found.pop("short")
    found.pop("open")
    # Not damaged: Python can still fit it on texts, and raises NotFittedError until then.
    assert found.pop("frequencies").endswith("fit the encoder on texts")
    for name in LIES.keys() - {"frequencies"}:
        assert found[name].startswith("damaged"), name


@needs_packages
@needs_chromium
def test_chromium_gives_texts_the_vectors_of_python(encoders, tmp_path):
    folder, files = encoders
    shutil.copytree(HERE.parents[1] / "src/embits/page/site", tmp_path / "site")
    shutil.copy(folder / "fitted.safetensors", tmp_path / "encoder.safetensors")
    (tmp_path / "index.html").write_text("<!doctype html><title>embits</title>")
    (tmp_path / "texts.json").write_text(json.dumps(SENTENCES))
    vectors = json.loads(node("encode_in_chromium.mjs", tmp_path))
    assert np.allclose(vectors, files["fitted"].encode(SENTENCES), rtol=0, atol=1e-5)
