"""TextEncoder: texts to vectors by a table of token codes."""

import json
import random
import re

import numpy as np
import pytest

import embits
from embits.arrays import unit_rows
from embits.errors import (
    EmbitsError,
    FormatError,
    InputError,
    MissingExtraError,
    NotFittedError,
    TrainingWarning,
)
from embits.ids.subwords import Subwords
from embits.segment import Lengths
from embits.text.sources import read_static
from embits.text.tokens import WordTokens
from tests.support import damage
from tests.support.static_models import write_model, write_tensors

TEXTS = ["The music of a song", "boats", "xylophone", "", "river water, WATER!", "trains trainer"]
KINDS = {
    "plain": {},
    "raw": {"normalize": False},
    "shared": {"shared": True, "weights": True},
    "weights": {"weights": True, "normalize": False},
}


pytestmark = pytest.mark.filterwarnings("ignore:lengths of vectors vary widely")  # of tokens


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    write_model(tmp_path / "model", **KINDS[request.param])
    return tmp_path / "model"


def from_static(folder, n_bits=64, **options):
    return embits.TextEncoder.from_static(
        folder, n_bits=n_bits, method="itq", cache=False, **options
    )


def slow(encoder, texts, weights=None):
    """Each text's vector by a loop over its tokens."""
    table = encoder.table_
    vectors = []
    for text in texts:
        tokens = encoder.model_.tokens.of([text]).tokens
        total, share = np.zeros(table.dims), 0.0
        for token in tokens:
            row = token if encoder.model_.rows is None else encoder.model_.rows[token]
            bits = np.unpackbits(np.asarray(table.codes[row]), count=table.n_bits)
            vector = table.offset + table.decoder[bits == 1].sum(axis=0, dtype=float) * table.units
            own = 1 if encoder.model_.weights is None else encoder.model_.weights.floats[token]
            weight = 1 if weights is None else weights[token]
            total += weight * own * table.scales.floats[row] * vector
            share += weight
        vectors.append(total / max(share, 1e-30))
    vectors = np.array(vectors)
    return unit_rows(vectors) if encoder.model_.normalize else vectors


def test_vectors_are_weighted_means_of_decoded_tokens(folder):
    encoder = from_static(folder)
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slow(encoder, TEXTS), atol=1e-5)
    assert not found[2:4].any()  # no known token


def test_the_vector_of_a_text_does_not_depend_on_its_batch(folder):
    encoder = from_static(folder)
    alone = np.stack([encoder.encode(text) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS * 500)[-len(TEXTS) :], alone, atol=1e-6)


def test_a_model_is_read_as_model2vec_reads_it(folder):
    static_model = pytest.importorskip("model2vec").StaticModel
    theirs = static_model.from_pretrained(str(folder), force_download=False)
    model, encoder = read_static(folder), from_static(folder)
    for text, tokens in zip(TEXTS, theirs.tokenize(TEXTS), strict=True):
        assert encoder.model_.tokens.of([text]).tokens.tolist() == tokens
    rows = np.arange(model.n_tokens) if model.rows is None else model.rows
    weights = np.ones(model.n_tokens) if model.weights is None else model.weights
    means = [
        (model.vectors[rows[ids]] * weights[ids, None]).mean(axis=0) if ids else np.zeros(16)
        for ids in theirs.tokenize(TEXTS)
    ]
    means = unit_rows(np.array(means)) if model.normalize else np.array(means)
    np.testing.assert_allclose(theirs.encode(TEXTS), means, atol=1e-5)


def test_many_bits_come_close_to_the_floats(folder):
    model, encoder = read_static(folder), from_static(folder, n_bits=512)
    rows = np.arange(model.n_tokens) if model.rows is None else model.rows
    vectors = encoder.table_.rows(rows)
    assert np.min((unit_rows(vectors) * unit_rows(model.vectors[rows])).sum(axis=1)) > 0.98
    lengths = np.linalg.norm(model.vectors[rows], axis=1)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), lengths, rtol=0.025)


@pytest.mark.parametrize("fitted", [False, True])
def test_a_saved_encoder_gives_the_same_vectors_and_codes(folder, tmp_path, fitted):
    encoder = from_static(folder, n_bits=16, weights="idf" if fitted else None)
    if fitted:
        rng = random.Random(0)
        words = ["music", "song", "album", "river", "water", "boat", "the", "a", "of", "lake"]
        encoder.fit([" ".join(rng.choices(words, k=5)) for _ in range(400)])
    known = ["The music of a song", "boats", "river water"]
    vectors, codes = encoder.encode(TEXTS), encoder.encode_codes(known)
    encoder.save(tmp_path / "e.safetensors")
    loaded = embits.TextEncoder.load(tmp_path / "e.safetensors", verify=True)
    assert np.array_equal(loaded.encode(TEXTS), vectors)
    assert np.array_equal(loaded.encode_codes(known), codes)
    assert codes.shape == (3, 2)
    loaded.save(tmp_path / "again.safetensors")
    again = (tmp_path / "again.safetensors").read_bytes()
    assert again == (tmp_path / "e.safetensors").read_bytes()


def test_fit_counts_tokens_and_whitens(tmp_path):
    write_model(tmp_path)
    texts = [f"the {word}" for word in ("music", "river", "train", "boat")] * 50
    encoder = from_static(tmp_path, weights="sif")
    with pytest.raises(NotFittedError, match="fit"):
        encoder.encode(texts)
    encoder.whiten = 0
    encoder.fit(texts)
    p = np.zeros(len(encoder.model_))
    tokens = encoder.model_.tokens.of(["the music river train boat"]).tokens
    p[tokens] = np.array([4, 1, 1, 1, 1]) / 8
    np.testing.assert_allclose(
        encoder.encode(texts[:4]), slow(encoder, texts[:4], 1e-3 / (1e-3 + p)), atol=2e-2
    )
    encoder.whiten = 0.5
    vectors = encoder.fit(texts).encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.abs(vectors.mean(axis=0)).max() < 0.05
    assert not encoder.encode("").any()


def test_codes_need_a_known_token(tmp_path):
    write_model(tmp_path)
    encoder = from_static(tmp_path, n_bits=16)
    with pytest.raises(InputError, match="text 1 has no known token"):
        encoder.encode_codes(["music", "xylophone"])


@pytest.mark.parametrize(
    "texts", [["music", None], [b"music"], b"music", 3, ["a\ud800"], [["music"]], [np.nan]]
)
def test_what_is_no_text_is_refused(tmp_path, texts):
    write_model(tmp_path)
    with pytest.raises(InputError, match="text"):
        from_static(tmp_path).encode(texts)


def test_a_tokenizer_that_does_not_fit_its_table_is_refused(tmp_path):
    tensors = write_model(tmp_path)
    write_tensors(tmp_path / "model.safetensors", {"embeddings": tensors["embeddings"][:-1]})
    with pytest.raises(InputError, match="does not fit its table"):
        from_static(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe" * 50])
def test_a_damaged_folder_is_refused(tmp_path, name, content):
    write_model(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EmbitsError) as caught:
        from_static(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [
    lambda settings: settings.update(added_tokens=1),
    lambda settings: settings.update(added_tokens=[{"id": 0}]),
    lambda settings: settings["model"].update(unk_token=[]),
    lambda settings: settings["model"].update(unk_token="absent"),
    lambda settings: settings["model"].update(vocab=None),
])  # fmt: skip
def test_a_tokenizer_that_lies_is_refused_when_it_is_opened_or_used(tmp_path, change):
    write_model(tmp_path)
    settings = json.loads((tmp_path / "tokenizer.json").read_text())
    change(settings)
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(EmbitsError) as caught:
        from_static(tmp_path).encode(TEXTS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [
    lambda header: header["embeddings"].update(data_offsets=[float("inf"), 0]),
    lambda header: header["embeddings"].update(shape=[10**30, 0]),
    lambda header: header.update(
        mapping={"dtype": "I64", "shape": [], "data_offsets": [0, 8]}
    ),
])  # fmt: skip
def test_the_header_of_a_table_that_lies_is_refused(tmp_path, change):
    write_model(tmp_path)
    path = tmp_path / "model.safetensors"
    header, data = damage.parts(path.read_bytes())
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    with pytest.raises(EmbitsError):
        from_static(tmp_path)


def test_mapping_and_weights_that_do_not_fit_are_refused(tmp_path):
    tensors = write_model(tmp_path, shared=True, weights=True)
    for name, bad in (("mapping", tensors["mapping"] + 99), ("weights", -tensors["weights"])):
        write_tensors(tmp_path / "model.safetensors", {**tensors, name: bad})
        with pytest.raises(EmbitsError, match=name):
            from_static(tmp_path)


def test_a_source_that_is_nothing_is_named(tmp_path):
    with pytest.raises(InputError, match="no such folder or package"):
        embits.TextEncoder.from_static(tmp_path / "none")
    with pytest.raises(InputError, match=re.escape("model.safetensors")):
        embits.TextEncoder.from_static(tmp_path)


def test_the_cache_is_used_and_a_damaged_one_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_model(tmp_path / "model")
    make = embits.TextEncoder.from_static
    first = make(tmp_path / "model", n_bits=16, method="itq").encode(TEXTS)
    (file,) = (tmp_path / "cache" / "embits").iterdir()
    before = file.stat().st_mtime_ns
    assert np.array_equal(make(tmp_path / "model", n_bits=16, method="itq").encode(TEXTS), first)
    assert file.stat().st_mtime_ns == before
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert np.array_equal(make(tmp_path / "model", n_bits=16, method="itq").encode(TEXTS), first)
    make(tmp_path / "model", n_bits=24, method="itq")
    assert len(list(file.parent.iterdir())) == 2


# -- words -----------------------------------------------------------------------------------------


def words_encoder(words, subwords=None, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(words), 12)).astype("f4")
    vectors = embits.WordVectors(words, X, subwords)
    coder = embits.ITQ(n_bits=256).fit(X)
    bits = embits.BinaryVectors.encoded(vectors, coder, lengths=True)
    return embits.TextEncoder.from_words(bits, **options), X


VOCABULARY = ["the", "new", "york", "new_york", "Paris", "well", "known", "'s", "dog", "don't", "."]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog", ["the", "dog"]),
        ("in New York", ["new_york"]),
        ("new well-known york", ["new", "well", "known", "york"]),
        ("Paris paris", ["Paris"]),
        ("the dog's don't.", ["the", "dog", "'s", "don't", "."]),
        ("", []),
        ("日本 🙂", []),
    ],
)
def test_words_are_found_as_written_in_lower_case_in_parts_and_as_phrases(text, words):
    encoder, _ = words_encoder(VOCABULARY)
    rows = encoder.model_.tokens.of([text]).tokens
    assert [VOCABULARY[row] for row in rows] == words


def test_words_without_rows_have_the_vectors_of_their_subwords(tmp_path):
    rng = np.random.default_rng(1)
    grams = Subwords(rng.normal(size=(50, 12)).astype("f4"), 3, 4)
    encoder, X = words_encoder(VOCABULARY, grams, weights="uniform")
    expected = unit_rows(grams.vector("unseen")[None].astype(np.float32))[0]
    np.testing.assert_allclose(encoder.encode("Unseen"), expected, atol=1e-3)
    encoder.save(tmp_path / "e")
    loaded = embits.TextEncoder.load(tmp_path / "e", verify=True)
    both = loaded.encode("the unseen")
    np.testing.assert_allclose(both, encoder.encode("the unseen"), atol=1e-3)  # float16 in files
    close = unit_rows(encoder.encode(["the"]) * np.linalg.norm(X[0]) + expected)[0]
    np.testing.assert_allclose(both, close, atol=0.15)


def test_frequent_words_weigh_less_and_sorted_words_weigh_the_same():
    encoder, _ = words_encoder(VOCABULARY)
    assert (np.diff(encoder.model_.token_weights(None)) >= 0).all()
    assert encoder.model_.token_weights(None)[0] < encoder.model_.token_weights(None)[-1]
    encoder, _ = words_encoder(sorted(VOCABULARY))
    assert (encoder.model_.token_weights(None) == 1).all()


def test_rows_without_words_are_no_source():
    coder = embits.ITQ(n_bits=8).fit(np.eye(4))
    bits = embits.BinaryVectors(None, coder.encode(np.eye(4)), coder)
    with pytest.raises(InputError, match="no words"):
        embits.TextEncoder.from_words(bits)


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["tokens", "words", "net"])
def whole(request, tmp_path_factory):
    """The bytes of a small encoder, and its vectors."""
    folder = tmp_path_factory.mktemp("encoder")
    if request.param == "tokens":
        write_model(folder, shared=True, weights=True)
        encoder = from_static(folder, n_bits=13, weights="sif")
        encoder.fit(["the music", "a river", "boats of lake"] * 20)
    elif request.param == "net":
        write_model(folder)
        with pytest.warns(TrainingWarning):
            encoder = embits.TextEncoder.from_static(folder, 64, method="neural", cache=False)
    else:
        encoder, _ = words_encoder(VOCABULARY)
    encoder.save(folder / "e")
    return (folder / "e").read_bytes(), encoder.encode(TEXTS)


@pytest.mark.filterwarnings("ignore:fitted on 18 rows")
def test_a_net_decodes_its_tokens_once(tmp_path):
    write_model(tmp_path)
    encoder = embits.TextEncoder.from_static(tmp_path, 64, method="neural", cache=False)
    table = encoder.table_
    rows = unit_rows(table.net.decode(np.asarray(table.codes))) * table.scales.floats[:, None]
    tokens = encoder.model_.tokens.of(TEXTS[:1]).tokens
    np.testing.assert_allclose(
        encoder.encode(TEXTS)[0], unit_rows(rows[tokens].sum(0)[None])[0], atol=1e-5
    )
    assert not encoder.encode(TEXTS)[2:4].any()
    encoder.save(tmp_path / "e")
    loaded = embits.TextEncoder.load(tmp_path / "e", verify=True)
    assert np.array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))


def outcome(path, **options):
    try:
        return embits.TextEncoder.load(path, **options).encode(TEXTS)
    except (FormatError, NotFittedError, InputError):
        return None


def test_every_flipped_bit_is_found(whole, tmp_path):
    content, good = whole
    rng, path, refused = random.Random(0), tmp_path / "e", 0
    for _ in range(300):
        raw = bytearray(content)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        found = outcome(path, verify=True)
        refused += found is None
        assert found is None or np.array_equal(found, good)
    assert refused > 250


def test_hostile_files_give_an_error_or_vectors(whole, tmp_path):
    content, _ = whole
    header, data = damage.parts(content)
    path, rng = tmp_path / "e", random.Random(1)
    settings = json.loads(header["__metadata__"]["text"])
    for name in [*settings, "missing"]:
        for odd in damage.ODD:
            changed = {**settings, name: odd}
            try:
                metadata = {**header["__metadata__"], "text": json.dumps(changed)}
                path.write_bytes(damage.signed({**header, "__metadata__": metadata}, data))
            except UnicodeEncodeError:
                continue
            found = outcome(path)
            assert found is None or found.shape[0] == len(TEXTS)
    for name in [each for each in header if each.startswith("text.")]:
        without = {key: value for key, value in header.items() if key != name}
        without[f"{name}.other"] = header[name]
        ordered = dict(sorted(without.items(), key=lambda i: i[1].get("data_offsets", [-1])[0]))
        path.write_bytes(damage.signed(ordered, data))
        outcome(path)
        start, stop = header[name]["data_offsets"]
        for _ in range(20 if stop > start else 0):  # bytes within, with checksums that fit
            raw = bytearray(data)
            for _ in range(rng.choice((1, 8))):
                raw[rng.randrange(start, stop)] = rng.randrange(256)
            path.write_bytes(damage.signed(json.loads(json.dumps(header)), bytes(raw)))
            outcome(path)


def test_other_files_are_named_for_what_they_are(whole, tmp_path):
    (tmp_path / "e").write_bytes(whole[0])
    with pytest.raises(FormatError, match=r"text encoder: open it with embits\.TextEncoder\.load"):
        embits.load(tmp_path / "e")
    damage.small("itq").save(tmp_path / "codes")
    with pytest.raises(FormatError, match="not a text encoder"):
        embits.TextEncoder.load(tmp_path / "codes")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        embits.TextEncoder.load(tmp_path / "e").save(tmp_path / "mine.txt")


# -- scikit-learn ----------------------------------------------------------------------------------


def test_it_is_an_estimator_of_pipelines(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_model(tmp_path / "model")
    encoder = embits.TextEncoder(str(tmp_path / "model"), n_bits=64, method="itq", whiten=0)
    texts, classes = ["music song", "a river", "guitar album", "water of lake"] * 9, [0, 1] * 18
    pipeline = make_pipeline(clone(encoder), LogisticRegression()).fit(texts, classes)
    assert pipeline.score(texts, classes) == 1
    with pytest.raises(NotFittedError):
        clone(encoder).encode(texts)
    names = pipeline[0].get_feature_names_out()
    assert len(names) == 16
    assert names[0] == "textencoder0"


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    write_model(tmp_path)
    encoder = from_static(tmp_path)
    encoder.save(tmp_path / "e")
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=re.escape("embits[text]")):
        embits.TextEncoder.load(tmp_path / "e").encode("music")


def test_words_are_read_once_from_packed_vocabularies(tmp_path):
    encoder, _ = words_encoder(VOCABULARY)
    encoder.save(tmp_path / "e")
    loaded = embits.TextEncoder.load(tmp_path / "e")
    assert isinstance(loaded.model_.tokens, WordTokens)
    assert isinstance(loaded.model_.frequencies, Lengths)
    assert np.array_equal(loaded.encode(["new york dog"]), encoder.encode(["new york dog"]))
