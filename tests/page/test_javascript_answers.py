"""Filters, radius, unknown words and collections in JavaScript: a thousand answers of each kind."""

import json
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import embits
from embits.ids.subwords import Subwords
from tests.support.javascript import DIMS, assert_same, clustered, needs_node, node

pytestmark = pytest.mark.slow
ROWS, QUESTIONS, K = 1500, 1000, 12
KERNELS = ("JavaScript", "WebAssembly SIMD")
FILES = {
    "searched.safetensors": embits.NearLossless(96, steps=30),
    "lsh.safetensors": embits.RandomHyperplanes(100),
    "neural.safetensors": embits.Neural(48),
}
METRICS = ("hamming", "asymmetric", "decoded")


def spellings():
    """Words with relatives: other letter cases, one letter more or less, other alphabets."""
    rng = random.Random(0)
    words = ["queen", "Queen", "QUEEN", "the", "tea", "Zürich", "zürich", "日本", "日本語", "👩‍🚀"]
    while len(set(words)) < ROWS:
        base = "".join(rng.choices("aeiostrnü", k=rng.randint(2, 7)))
        words += [base, base.capitalize()] if rng.random() < 0.1 else [base]
    return list(dict.fromkeys(words))[:ROWS]


def ask(folder, questions):
    """What Node answers to the questions, by file and kernel."""
    (folder / "questions.json").write_text(json.dumps(questions))
    return json.loads(node("ask.mjs", folder))


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A folder with files and collections, and what Python opens there."""
    folder = tmp_path_factory.mktemp("answers")
    words, x = spellings(), clustered(ROWS, 1)
    buckets = np.random.default_rng(3).normal(size=(500, DIMS)).astype("f4")
    vectors = embits.WordVectors(words, x, Subwords(buckets, 3, 6))
    for name, coder in FILES.items():
        with warnings.catch_warnings(action="ignore"):  # subwords are most of so small a file
            embits.BinaryVectors.encoded(vectors, coder.fit(x)).save(folder / name)
    for name, ids in {"given": words, "numbered": None}.items():
        collection = embits.open_collection(folder / name, FILES["lsh.safetensors"])
        for rows in (slice(0, 1000), slice(1000, 1300), slice(1300, 1400)):
            collection.add(x[rows], None if ids is None else ids[rows])
        collection.remove([words[7], words[8], words[1350]] if ids else [7, 8, 999, 1350])
        if ids:
            collection.update(x[:2] + 1, [words[7 + 2], words[1200]])
        for row in range(1400, 1405):  # to a log
            collection.add(x[row : row + 1], None if ids is None else ids[row : row + 1])
        assert collection.manifest.log
    fitted = embits.open_collection(folder / "fitted", FILES["lsh.safetensors"], keep="float16")
    fitted.add(x, words, columns={"größe": list(range(ROWS))})  # a manifest of version 2
    fitted.remove([words[7], words[1350]])
    fitted.refit(coder=embits.ITQ(n_bits=64))
    names = (*FILES, "given", "numbered", "fitted")
    return folder, {name: embits.load(folder / name) for name in names}


def some_rows(rng, bits, i):
    """A filter as Python and as JavaScript take it: a mask, rows or ids."""
    rows = rng.choice(len(bits), rng.integers(0, 400), replace=False)
    if i % 3 == 0:
        mask = np.isin(np.arange(len(bits)), rows)
        return mask, mask.tolist()
    if i % 3 == 1:
        return bits.select(rows=rows), rows.tolist()  # whole numbers are rows in JavaScript
    ids = [str(each) for each in bits.ids(rows)]
    return ids, ids


def filters(rng, bits, i):
    """`where`, `exclude`, both or neither."""
    chosen = [name for bit, name in enumerate(("where", "exclude")) if i >> bit & 1]
    given = {name: some_rows(rng, bits, i // 4 + j) for j, name in enumerate(chosen)}
    ours = bits.select(**{n: f[0] for n, f in given.items()})
    return {"where": ours} if given else {}, {n: f[1] for n, f in given.items()}


def without_default(metric):
    """The options of a search by a metric: vectors are compared by "asymmetric" without any."""
    return {} if metric == "asymmetric" else {"metric": metric}


def shares(bits, result):
    """The scores of a search by Hamming distance, the shares of equal bits; [] of other metrics."""
    distances = getattr(result, "distances", np.empty(0))
    return (1 - distances / bits.n_bits).astype("f4").tolist()


def assert_answers(found, expected):
    """The same rows and values; scores as in `assert_same`."""
    if np.asarray(expected[0]).dtype.kind == "i":
        assert found["rows"] == np.asarray(expected[1]).tolist()
        assert found["values"] == np.asarray(expected[0]).tolist()
    elif len(expected[1]):
        assert_same(found, expected)
    else:
        assert found["rows"] == []


@needs_node
@pytest.mark.parametrize("name", [*FILES, "given", "numbered", "fitted"])
def test_searches_with_filters_are_pythons(opened, name):
    folder, all_bits = opened
    bits, rng = all_bits[name], np.random.default_rng(4)
    x, asked, expected = clustered(QUESTIONS, 5), [], []
    for i in range(QUESTIONS):
        metric = METRICS[i % 3]
        here, there = filters(rng, bits, i)
        expected.append(bits.search(x[i], K, metric=metric, **here))
        options = {"k": K, **without_default(metric), **there}
        asked.append({"method": "search", "query": {"vector": x[i].tolist()}, "options": options})
    answered = ask(folder, {name: asked})[name]
    for kernel in KERNELS:
        for found, wanted in zip(answered[kernel], expected, strict=True):
            assert_answers(found, wanted)
            assert found["words"] == [str(each) for each in bits.ids(np.array(found["rows"], int))]
            assert found["scores"] == (shares(bits, wanted) or found["values"])


def scan(bits, x, metric):
    """The best rows by the scores of `within`, which takes no second look."""
    return bits.search(x, 64, metric=metric, rescore=0)


def between(scores):
    """A similarity between two scores that are well apart, so that rounding decides nothing."""
    gaps = -np.diff(scores[5:60])
    place = 5 + int(gaps.argmax())
    return min(1.0, float(scores[place] + scores[place + 1]) / 2)  # scores may be above 1


@needs_node
@pytest.mark.parametrize("name", [*FILES, "given"])
def test_codes_words_and_rows_are_compared_by_hamming_distance(opened, name):
    folder, all_bits = opened
    bits = all_bits[name]
    rows = np.random.default_rng(9).integers(0, len(bits), 50)
    expected = bits.search(bits.codes[rows], K, metric="hamming")
    queries = [
        *({"code": bits.codes[row].tolist()} for row in rows),
        *({"key": int(row)} for row in rows),
        *({"key": word} for word in bits.ids(rows)),
    ]
    asked = [{"method": "search", "query": each, "options": {"k": K}} for each in queries]
    answered = ask(folder, {name: asked})[name]
    for kernel in KERNELS:
        for i, found in enumerate(answered[kernel]):
            assert found["rows"] == expected.rows[i % 50].tolist()
            assert found["values"] == expected.distances[i % 50].tolist()
            assert found["scores"] == shares(bits, expected)[i % 50]


@needs_node
@pytest.mark.parametrize("name", [*FILES, "given"])
def test_rows_within_a_radius_are_pythons(opened, name):
    folder, all_bits = opened
    bits, rng = all_bits[name], np.random.default_rng(6)
    x, asked, expected = clustered(QUESTIONS, 7), [], []
    for i in range(QUESTIONS):
        metric = METRICS[i % 3]
        here, there = filters(rng, bits, i // 3)
        if metric != "hamming":
            bound = {"similarity": between(scan(bits, x[i], metric).scores)}
        elif i % 2:
            bound = {"similarity": float(rng.uniform(0.5, 1))}
        else:
            bound = {"distance": int(rng.integers(0, 45))}
        found = bits.within(x[i], **bound, metric=metric, **here)
        expected.append((found[2], found.rows, shares(bits, found)))
        options = {**bound, "metric": metric, **there}
        asked.append({"method": "within", "query": {"vector": x[i].tolist()}, "options": options})
    answered = ask(folder, {name: asked})[name]
    for kernel in KERNELS:
        for found, wanted in zip(answered[kernel], expected, strict=True):
            assert len(found["rows"]) == len(wanted[1])
            assert_answers(found, wanted[:2])
            assert found["scores"] == (wanted[2] or found["values"])


@needs_node
@pytest.mark.parametrize("name", [*FILES, "given"])
def test_similar_words_are_pythons(opened, name):
    folder, all_bits = opened
    bits, rng = all_bits[name], np.random.default_rng(8)
    words, asked, expected = list(bits.words), [], []
    for i in range(QUESTIONS):
        positive = [words[row] for row in rng.choice(len(words), 1 + i % 2, replace=False)]
        negative = [words[row] for row in rng.choice(len(words), i % 3, replace=False)]
        metric = ("hamming", "decoded")[i // 6 % 2]
        here, there = filters(rng, bits, i)
        found = bits.most_similar(positive, negative, topn=K, metric=metric, **here)
        values = np.array([value for _, value in found], "f8" if metric == "hamming" else "f4")
        expected.append((metric, values, np.array([bits.words.find(word) for word, _ in found])))
        options = {"negative": negative, "k": K, "metric": metric, **there}
        asked.append({"method": "mostSimilar", "query": {"key": positive}, "options": options})
    answered = ask(folder, {name: asked})[name]
    for kernel in KERNELS:
        for found, (metric, values, rows) in zip(answered[kernel], expected, strict=True):
            if metric == "hamming":
                assert (found["rows"], found["values"]) == (rows.tolist(), values.tolist())
            else:
                assert_answers(found, (values, rows))


@needs_node
def test_unknown_words_have_pythons_codes(opened):
    folder, all_bits = opened
    rng = random.Random(1)
    unknown = ["Straße", "日本人", "👩‍🚀👩‍🚀", "two words", "x" * 300]
    unknown += ["".join(rng.choices("abcdefghüß日", k=rng.randint(2, 9))) for _ in range(QUESTIONS)]
    asked = [{"method": "code", "query": {"key": word}} for word in unknown]
    answered = ask(folder, dict.fromkeys(FILES, asked))
    for name in FILES:
        codes = [all_bits[name][word].tolist() for word in unknown]
        assert answered[name]["JavaScript"] == codes


@needs_node
@pytest.mark.parametrize("name", ["lsh.safetensors", "given"])
def test_near_spellings_are_pythons(opened, name):
    folder, all_bits = opened
    rng, bits = random.Random(2), all_bits[name]
    words = ["QUEEN", "quene", "teh", "ZÜRICH", "日本誌", "", "x" * 80]
    for word in rng.choices(list(bits.words), k=QUESTIONS):
        at = rng.randrange(len(word) + 1)
        words.append(rng.choice([word.upper(), word[:at] + rng.choice("xae") + word[at:]]))
    unknown = [word for word in words if word not in bits]
    asked = [{"method": "suggest", "query": {"key": word}} for word in unknown]
    answered = ask(folder, {name: asked})[name]
    assert answered["JavaScript"] == [bits.words.suggest(word) for word in unknown]


@needs_node
@pytest.mark.parametrize("name", ["given", "numbered"])
def test_ids_of_a_collection_are_pythons(opened, name):
    folder, all_bits = opened
    bits = all_bits[name]
    ids = [str(each) for each in bits.ids(np.arange(len(bits)))]
    absent = [spellings()[8], "7", "nowhere", "1500"]
    prefixes = ["", "a", "t", "Z", "1", "13", "99", "0", "05"]
    asked = [{"method": "find", "query": {"key": each}} for each in (*ids, *absent)]
    asked += [{"method": "at", "query": {"key": row}} for row in range(len(ids))]
    asked += [{"method": "startingWith", "query": {"key": each}} for each in prefixes]
    expected = [bits.words.find(each) for each in (*ids, *absent)]
    expected += ids
    expected += [bits.words.starting_with(each, 5) for each in prefixes]
    answered = ask(folder, {name: asked})[name]
    assert len(list((folder / name).glob("piece-*.safetensors"))) > 1
    assert list((folder / name).glob("*.removed-*"))
    for kernel in KERNELS:
        assert answered[kernel] == expected


@needs_node
@pytest.mark.parametrize("method", ["lsh", "near-lossless"])
def test_a_file_without_its_coder_is_searched_by_codes_and_says_so(tmp_path, method):
    options = {"steps": 20} if method == "near-lossless" else {}
    whole = embits.binarize(clustered(300, 1), 64, method=method, **options)
    whole.save(tmp_path / "whole.safetensors")
    command = [
        sys.executable,
        "-m",
        "embits",
        "slim",
        "whole.safetensors",
        "-o",
        "slim.safetensors",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    asked = [{"method": "search", "query": {"key": row}, "options": {"k": K}} for row in range(50)]
    vector = {"method": "search", "query": {"vector": [1.0] * DIMS}, "options": {"k": K}}
    answered = ask(tmp_path, {"slim.safetensors": [*asked, vector]})["slim.safetensors"]
    for kernel in KERNELS:
        for row, found in enumerate(answered[kernel][:-1]):
            assert found["rows"] == whole.search(whole[row], K, metric="hamming").rows.tolist()
        assert "without its coder" in answered[kernel][-1]["error"]
