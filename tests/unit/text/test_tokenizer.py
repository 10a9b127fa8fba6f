"""A packed tokenizer is small, gives the same tokens, and its damage is found."""

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embits import FormatError, InputError
from embits.text import tokenizer
from embits.text.tokenizer import pack_tokenizer, unpack_tokenizer
from tests.support.tokenizers import settings, trained

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def kinds():
    return trained()


def with_pairs(text):
    found = json.loads(text)
    merges = found["model"].get("merges", [])
    if merges:
        found["model"]["merges"] = [m.split(" ") if isinstance(m, str) else m for m in merges]
    return found


def test_a_tokenizer_of_every_kind_comes_back_whole_and_smaller(kinds):
    for text in kinds.values():
        packed = pack_tokenizer(text)
        assert json.loads(unpack_tokenizer(packed)) == with_pairs(text)
        assert len(packed) < len(zlib.compress(json.dumps(json.loads(text)).encode(), 9))


def test_merges_are_derived_from_their_tokens(kinds):
    found = json.loads(zlib.decompress(pack_tokenizer(kinds["bpe-byte-level"])))
    assert "merges" not in found["tokenizer"]["model"]
    assert isinstance(found["merges"][0], int)


TOKEN = st.text(st.sampled_from("ab é#🙂\x01\n\u0301"), max_size=5)


@given(
    st.lists(TOKEN, min_size=1, max_size=12, unique=True),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=8),
    st.sampled_from(["", "#", None]),
)
def test_any_tokens_and_merges_come_back(tokens, pairs, prefix):
    ids = {token: number for number, token in enumerate(tokens)}
    merges = []
    for a, b in pairs:
        left, right = tokens[a % len(tokens)], tokens[b % len(tokens)]
        ids.setdefault(left + right.removeprefix(prefix or ""), len(ids))
        merges.append([left, right])
    model = {"type": "BPE", "vocab": ids, "merges": merges, "continuing_subword_prefix": prefix}
    text = json.dumps({"model": model})
    assert json.loads(unpack_tokenizer(pack_tokenizer(text))) == json.loads(text)


@given(st.lists(st.tuples(TOKEN, st.floats(allow_nan=False, allow_infinity=False)), max_size=9))
def test_any_scores_come_back_to_the_last_digit(vocab):
    text = json.dumps({"model": {"type": "Unigram", "vocab": vocab, "unk_id": 0}})
    assert json.loads(unpack_tokenizer(pack_tokenizer(text))) == json.loads(text)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordPiece", "vocab": {"a": 0, "b": 7}},  # ids with holes
        {"type": "WordPiece", "vocab": {"a": 1, "b": 1}},
        {"type": "WordPiece", "vocab": {}},
        {"type": "WordLevel", "vocab": {"a b": 0, "c\x01": 1}, "more": [1, None]},
        {"type": "Unigram", "vocab": [["a", -1.5], ["a", -2]]},
        {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    ],
)
def test_unusual_models_are_kept_as_they_are(model):
    text = json.dumps({"model": model, "added_tokens": []})
    assert json.loads(unpack_tokenizer(pack_tokenizer(text))) == json.loads(text)


def test_merges_of_older_files_become_pairs(kinds):
    pairs = json.loads(kinds["bpe-byte-level"])["model"]["merges"]
    text = settings(
        tokenizers.Tokenizer.from_str(kinds["bpe-byte-level"]), merges=[" ".join(p) for p in pairs]
    )
    assert json.loads(unpack_tokenizer(pack_tokenizer(text)))["model"]["merges"] == pairs


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "{}", '{"model": 3}', '{"model": {"type": 3}}', '{"model": {"type": "BPE"}}'],
)
def test_what_is_no_tokenizer_is_refused_in_one_line(text):
    with pytest.raises(InputError, match=r"expected a tokenizer\.json") as found:
        pack_tokenizer(text)
    assert "\n" not in str(found.value)


def test_a_tokenizer_with_lone_surrogates_or_nan_is_refused():
    for vocab in ('{"\\ud800": 0}', '{"a": NaN}'):
        with pytest.raises(InputError):
            pack_tokenizer(f'{{"model": {{"type": "WordPiece", "vocab": {vocab}}}}}')


# -- damage ---------------------------------------------------------------------------------------


def test_changed_bytes_are_damage_or_json(kinds):
    packed = pack_tokenizer(kinds["wordpiece"])
    rng = random.Random(1)
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        with pytest.raises(FormatError, match="damaged"):
            unpack_tokenizer(bytes(damaged))
    for cut in (0, 1, 2, 100, len(packed) - 1):
        with pytest.raises(FormatError, match="damaged"):
            unpack_tokenizer(packed[:cut])
    with pytest.raises(FormatError, match="damaged"):
        unpack_tokenizer(packed + b"\0")


@pytest.mark.parametrize(
    "change",
    [
        {"tokenizer": None},
        {"tokenizer": {}},
        {"tokens": None},
        {"tokens": ["a"]},
        {"separator": ""},
        {"separator": 3},
        {"merges": [0]},
        {"merges": [0, 3, 1]},
        {"merges": [-9, 0]},
        {"merges": [10**30, 0]},
        {"merges": [0, -1]},
        {"merges": [0, 1, "a"]},
        {"merges": {"a": 1}},
        {"merges": [0.5, 0]},
        {"scores": ""},
        {"scores": "4"},
        {"scores": "9AAAA"},
        {"scores": "4AAA"},
        {"scores": "8" + "A" * 400},
    ],
)
def test_tables_that_lie_are_damage(kinds, change):
    found = json.loads(zlib.decompress(pack_tokenizer(kinds["bpe-byte-level"])))
    packed = zlib.compress(json.dumps(found | change).encode())
    with pytest.raises(FormatError, match="damaged"):
        unpack_tokenizer(packed)


def test_a_bomb_is_damage(monkeypatch):
    monkeypatch.setattr(tokenizer, "MAX_TOKENIZER", 1 << 20)
    bomb = zlib.compress(b'{"tokenizer": "' + b" " * (1 << 20) + b'"}')
    deep = zlib.compress(b'{"tokenizer": ' + b"[" * 400_000 + b"]" * 400_000 + b"}")
    for packed in (bomb, deep):
        with pytest.raises(FormatError, match="damaged"):
            unpack_tokenizer(packed)


def test_merges_that_would_fill_the_memory_are_damage(monkeypatch):
    monkeypatch.setattr(tokenizer, "_MAX_WORK", 1 << 20)
    about = {
        "tokenizer": {"model": {"type": "BPE"}},
        "separator": " ",
        "tokens": " ".join("a" * size for size in range(1, 201)),
        "merges": [199, 0] + [-1, 0] * 10**6,
    }
    with pytest.raises(FormatError, match="damaged"):
        unpack_tokenizer(zlib.compress(json.dumps(about).encode()))


def test_a_tokenizer_larger_than_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(tokenizer, "MAX_TOKENIZER", 1 << 12)
    model = {"type": "WordPiece", "vocab": {"a" * (1 << 12): 0}}
    with pytest.raises(InputError, match="longer than the 4,096 bytes"):
        pack_tokenizer(json.dumps({"model": model}))
