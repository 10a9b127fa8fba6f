"""JavaScript finds the tokens that the package `tokenizers` finds."""

import base64
import csv
import gzip
import json
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from embits.text.tokenizer import pack_tokenizer
from tests.page import unicode_tables
from tests.support.javascript import needs_node, node
from tests.support.tokenizers import settings, texts, trained

tokenizers = pytest.importorskip("tokenizers")

pytestmark = needs_node


def by_javascript(folder, packed, asked):
    for name, content in packed.items():
        (folder / f"{name}.bin").write_bytes(content)
    (folder / "texts.json").write_text(json.dumps(asked), encoding="utf-8")
    return json.loads(node("tokens.mjs", folder))


def by_python(text, asked):
    tokenizer = tokenizers.Tokenizer.from_str(text)
    return [tokenizer.encode(each, add_special_tokens=False).ids for each in asked]


def assert_same(folder, kinds, asked):
    found = by_javascript(folder, {name: pack_tokenizer(kinds[name]) for name in kinds}, asked)
    for name, text in kinds.items():
        for given, one, other in zip(asked, found[name], by_python(text, asked), strict=True):
            assert one == other, f"{name}: {given!r}"


def wordllama():
    """The tokenizer of WordLlama, by name, if its package is installed."""
    spec = find_spec("wordllama")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("tokenizers/*.json")]
    return {path.stem: path.read_text(encoding="utf-8") for path in found}


def real_texts(folder, most):
    """Titles and texts of the classification sets and of SciFact."""
    files = sorted((folder / "classification").glob("*/test.csv"))
    found = []
    for file in files:
        with file.open(encoding="utf-8", newline="") as opened:
            found += [" ".join(row[1:]) for row in csv.reader(opened)][: most // (len(files) + 1)]
    with gzip.open(folder / "retrieval/scifact/corpus.jsonl.gz", "rt", encoding="utf-8") as opened:
        found += [each["title"] + " " + each["text"] for each in map(json.loads, opened)]
    return [text[:500] for text in found[:most]]


def test_javascript_finds_the_tokens_of_python(tmp_path):
    assert_same(tmp_path, trained(), texts(400))


@pytest.mark.slow
def test_ten_thousand_real_texts_and_garbage_have_the_tokens_of_python(tmp_path, data):
    kinds = trained()
    some = {name: kinds[name] for name in ("wordpiece", "bpe-bytes", "bpe-byte-level", "unigram")}
    assert_same(tmp_path, some | wordllama(), [*real_texts(data, 10_000), *texts(1000, 1)])


@pytest.mark.slow
def test_every_code_point_has_the_tokens_of_python(tmp_path):
    kinds = trained()
    some = {name: kinds[name] for name in ("wordpiece", "bpe-affixes", "bpe-byte-level", "unigram")}
    blocks = [(0, 0x3400), (0x9F00, 0xAC80), (0xF800, 0x17000), (0x18C00, 0x20080)]
    points = [c for start, stop in blocks for c in range(start, stop)]  # few of CJK and Hangul
    lines = [points[i : i + 16] for i in range(0, len(points), 16)]
    asked = ["".join(f"a{chr(c)}1{chr(c)} " for c in line) for line in lines]
    assert_same(tmp_path, some, asked)


@pytest.mark.slow
def test_the_unicode_tables_are_up_to_date():
    assert unicode_tables.TABLES.read_text() == unicode_tables.written()


def test_lone_surrogates_are_left_out(tmp_path):
    packed = {"bpe": pack_tokenizer(trained()["bpe-bytes"])}
    one, other = by_javascript(tmp_path, packed, ["a\ud800b\udc00", "ab"])["bpe"]
    assert one == other


def changed(text, **parts):
    return json.dumps(json.loads(text) | parts)


def test_a_tokenizer_that_was_kept_as_it_is_is_read(tmp_path):
    kinds = trained()
    asked = texts(200, seed=2)
    packed = {}
    for name, text in kinds.items():
        packed[name] = zlib.compress(json.dumps({"tokenizer": json.loads(text)}).encode())
    found = by_javascript(tmp_path, packed, asked)
    for name, text in kinds.items():
        assert found[name] == by_python(text, asked)


REGEX = {"type": "Split", "pattern": {"Regex": "a(?<b>c)"}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}, "'Precompiled'"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "'UnicodeScripts'"),
        ({"pre_tokenizer": {"type": "__proto__"}}, "'__proto__'"),
        ({"pre_tokenizer": REGEX}, "'a(?<b>c)'"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}, "'WordLevel'"),
    ],
)
def test_parts_that_javascript_does_not_know_are_refused_in_one_line(tmp_path, parts, said):
    packed = pack_tokenizer(changed(trained()["wordpiece"], **parts))
    found = by_javascript(tmp_path, {"other": packed}, ["a"])["other"]
    assert "JavaScript does not know" in found
    assert said in found
    assert "\n" not in found


SPLIT = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" {2,}",
    r"\s+",
    r"\s",
    r"\p{N}",
    r"\p{N}{1,3}",
    r"\d",
]


@pytest.mark.parametrize("behavior", ["Isolated", "MergedWithNext", "Contiguous", "Removed"])
def test_known_patterns_split_as_in_python(tmp_path, behavior):
    text = trained()["bpe-byte-level"]
    byte_level = json.loads(text)["pre_tokenizer"] | {"use_regex": False}
    kinds = {}
    for number, pattern in enumerate(SPLIT):
        for invert in (False, True):
            split = {"type": "Split", "pattern": {"Regex": pattern}, "invert": invert}
            both = [split | {"behavior": behavior}, byte_level]
            sequence = {"type": "Sequence", "pretokenizers": both}
            kinds[f"{number}-{invert}"] = changed(text, pre_tokenizer=sequence)
    assert_same(tmp_path, kinds, texts(150, seed=3))


# -- damage ---------------------------------------------------------------------------------------


def test_damaged_tokenizers_are_refused(tmp_path):
    kinds = trained()
    bpe = json.loads(zlib.decompress(pack_tokenizer(kinds["bpe-byte-level"])))
    one = json.loads(zlib.decompress(pack_tokenizer(kinds["unigram"])))
    whole = pack_tokenizer(kinds["wordpiece"])
    lies = {
        "no-tokenizer": bpe | {"tokenizer": None},
        "no-tokens": bpe | {"tokens": ["a"]},
        "cut-merges": bpe | {"merges": [0]},
        "few-places": bpe | {"merges": [0, 3, 1]},
        "before": bpe | {"merges": [-9, 0]},
        "far": bpe | {"merges": [10**12, 0]},
        "negative": bpe | {"merges": [0, -1]},
        "no-part": bpe | {"merges": [400, 1, 0]},
        "twice": bpe | {"tokens": "a a"},
        "few-scores": one | {"scores": "4AAAA"},
        "no-base64": one | {"scores": "4*"},
        "size": one | {"scores": "5" + base64.b64encode(bytes(4000)).decode()},
        "added": bpe | {"tokenizer": bpe["tokenizer"] | {"added_tokens": [{"content": "a b c"}]}},
        "plain-ids": {"tokenizer": {"model": {"type": "WordPiece", "vocab": {"a": -1}}}},
        "plain-merge": {
            "tokenizer": {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}
        },
        "many": {
            "tokenizer": {"model": {"type": "BPE"}},
            "separator": " ",
            "tokens": " ".join("a" * size for size in range(1, 201)),
            "merges": [199, 0] + [-1, 0] * 10_000,
        },
    }
    packed = {name: zlib.compress(json.dumps(lie).encode()) for name, lie in lies.items()}
    packed["cut"] = whole[:-9]
    packed["bit"] = whole[:900] + bytes([whole[900] ^ 4]) + whole[901:]
    packed["bomb"] = zlib.compress(b" " * (2**26 + 1))
    packed["empty"] = b""
    found = by_javascript(tmp_path, packed, ["a"])
    assert [name for name in packed if not str(found[name]).startswith("damaged")] == []


def test_settings_of_a_model_are_kept(tmp_path):
    text = settings(tokenizers.Tokenizer.from_str(trained()["bpe-affixes"]), ignore_merges=True)
    assert_same(tmp_path, {"ignored": text}, texts(150, seed=4))
