"""The tokenizer of a text encoder as the bytes of its file.

Most of a `tokenizer.json` can be derived: ids count up, and the parts of a merge are parts of a
token. What is left is compressed (docs/file-format.md).
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from contextlib import suppress
from itertools import groupby
from reprlib import repr as shortened
from typing import Any

import numpy as np

from embits.bounded_json import Limits, parse_json
from embits.errors import FormatError, InputError

MAX_TOKENIZER = 1 << 26
"""Bytes of a tokenizer before it is compressed: more is damage or an attack."""

_MOST_TOKENS = 1 << 20
_MAX_ADDED = 1 << 16  # characters of all added tokens
_MAX_GROWTH = 1 << 12  # characters that normalization makes of one
_MAX_SPLIT = 256  # characters of a token that may be split at every place
_MAX_WORK = 1 << 26  # steps that take merges apart
_MERGE_WORK = 32  # steps that every merge takes
_SEPARATORS = " \x01\x02\x03\x04\x05\x06\x07"
_DAMAGE = (zlib.error, ValueError, LookupError, TypeError, AttributeError)


def tokenizer_limits(n: int) -> Limits:
    """The most JSON that a tokenizer of n tokens has."""
    return Limits(min(MAX_TOKENIZER, (1 << 20) + 512 * n), 100_000 + 16 * n, 10_000 + n)


def pack_tokenizer(json_text: str) -> bytes:
    """The bytes in a file of the text of a `tokenizer.json`; InputError if it is not one."""
    try:
        settings = parse_json(
            json_text, tokenizer_limits(_MOST_TOKENS)._replace(n_bytes=sys.maxsize)
        )
        model = settings["model"]
        if not isinstance(model["type"], str) or not isinstance(model["vocab"], dict | list):
            raise TypeError
        if model.get("merges"):  # older texts have "left right" in place of pairs
            pairs = [each.split(" ") if isinstance(each, str) else each for each in model["merges"]]
            model["merges"] = pairs
        _check_work(settings)
        as_it_is = _compressed({"tokenizer": settings})
    except FormatError:
        raise
    except _DAMAGE:
        given = shortened(json_text)
        raise InputError(f"the tokenizer is {given}, expected a tokenizer.json") from None
    with suppress(*_DAMAGE, FormatError):
        packed = _compressed(_compact(settings))
        if json.loads(unpack_tokenizer(packed)) == settings:
            return packed
    with suppress(FormatError):  # an unusual tokenizer
        if json.loads(unpack_tokenizer(as_it_is)) == settings:
            return as_it_is
    limit = f"{MAX_TOKENIZER:,} bytes"
    raise InputError(f"the tokenizer is longer than the {limit} that a file may have")


def unpack_tokenizer(packed: bytes, n: int = _MOST_TOKENS, *, without: tuple[str, ...] = ()) -> str:
    """The text of a `tokenizer.json` of at most n tokens that gives the same ones.

    Those `without` are left out. FormatError: It is damaged, or would take much time or memory.
    """
    limits = tokenizer_limits(n)
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(packed, limits.n_bytes)
        if not inflate.eof or inflate.unused_data:
            raise ValueError
        about = parse_json(content, limits)
        settings = about["tokenizer"]
        if "tokens" in about:
            if about["tokens"].count(about["separator"]) > min(limits.values, _MOST_TOKENS):
                raise ValueError
            model, tokens = settings["model"], about["tokens"].split(about["separator"])
            model["vocab"] = {token: number for number, token in enumerate(tokens)}
            if "merges" in about:
                model["merges"] = _to_merges(model, tokens, about["merges"])
            if "scores" in about:
                scores = _to_scores(about["scores"])
                model["vocab"] = list(zip(tokens, scores, strict=True))
        _check_work(settings)
        settings |= dict.fromkeys(without)
        return json.dumps(settings, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except FormatError:
        raise
    except _DAMAGE:
        raise FormatError("damaged: the tokenizer is not one that embits wrote") from None


def _check_work(settings: dict[str, Any]) -> None:
    """Refuse what the package `tokenizers` would expand."""
    vocab, growth = settings["model"]["vocab"], 1
    n_added = sum(len(each["content"]) for each in settings.get("added_tokens") or ())
    # Unigram takes 340 bytes of memory for each character.
    n_letters = sum(len(token) for token, _ in vocab) if isinstance(vocab, list) else 0
    parts = [settings.get("normalizer") or {}]
    while parts:
        part = parts.pop()
        parts += part.get("normalizers") or ()
        before, after = (part.get("pattern") or {}).get("String") or "", part.get("content") or ""
        growth *= max(1, -(-len(after) // len(before)) if before else len(after) + 1)
        growth = min(growth * max(1, len(part.get("prepend") or "")), _MAX_GROWTH + 1)
    if growth > _MAX_GROWTH or n_added > _MAX_ADDED or n_letters > (1 << 17) + 16 * len(vocab):
        raise FormatError("damaged: the tokenizer would take much time or memory")


def _compressed(about: dict[str, Any]) -> bytes:
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 9)


def _compact(settings: dict[str, Any]) -> dict[str, Any]:
    """What is written: tokens in the order of their ids, scores as bytes, merges as places."""
    model = dict(settings["model"])
    vocab = model.pop("vocab")
    about: dict[str, Any] = {"tokenizer": {**settings, "model": model}}
    if isinstance(vocab, dict):
        tokens = sorted(vocab, key=vocab.__getitem__)
    else:
        tokens = [token for token, _ in vocab]
        about["scores"] = _to_text(np.array([score for _, score in vocab], "<f8"))
    used = set().union(*tokens)
    about["separator"] = next((each for each in _SEPARATORS if each not in used), " ")
    about["tokens"] = about["separator"].join(tokens)
    if model.get("merges"):
        about["merges"] = _to_places(model, tokens, model.pop("merges"))
    return about


def _to_text(scores: np.ndarray) -> str:
    """Scores in base64: all first bytes, then all second ones, as this compresses best."""
    with np.errstate(over="ignore"):
        single = scores.astype("<f4")
    scores = single if np.array_equal(single, scores) else scores
    planes = scores.view("u1").reshape(len(scores), -1).T
    return f"{scores.itemsize}{base64.b64encode(planes.tobytes()).decode()}"


def _to_scores(text: str) -> list[float]:
    size = {"4": 4, "8": 8}[text[0]]
    planes = np.frombuffer(base64.b64decode(text[1:], validate=True), "u1").reshape(size, -1)
    scores: list[float] = planes.T.copy().view(f"<f{size}")[:, 0].tolist()
    return scores


def _splits(token: str, prefix: str, ids: dict[str, int]) -> list[int]:
    """The places where a token is made of two others, by the ids of the two."""
    places = range(1, len(token)) if len(token) <= _MAX_SPLIT else ()
    halves = ((token[:place], prefix + token[place:], place) for place in places)
    found = sorted((ids[a], ids[b], at) for a, b, at in halves if a in ids and b in ids)
    return [at for _, _, at in found]


def _to_places(model: dict[str, Any], tokens: list[str], merges: list[list[str]]) -> list[int]:
    """Merges as numbers, for those in a row that make the same token: the step from the id made
    before, less one; 0 for all splits of the token, or how many places follow; the places."""
    prefix = model.get("continuing_subword_prefix") or ""
    ids = {token: number for number, token in enumerate(tokens)}
    made = ((ids[left + right[len(prefix) :]], len(left)) for left, right in merges)
    numbers, before = [], -1
    for number, group in groupby(made, key=lambda each: each[0]):
        places = [place for _, place in group]
        listed = [] if places == _splits(tokens[number], prefix, ids) else places
        numbers += [number - before - 1, len(listed), *listed]
        before = number
    return numbers


def _to_merges(model: dict[str, Any], tokens: list[str], numbers: list[int]) -> list[list[str]]:
    prefix = model.get("continuing_subword_prefix") or ""
    ids = {token: number for number, token in enumerate(tokens)}
    merges: list[list[str]] = []
    at, number, room = 0, -1, _MAX_WORK
    while at < len(numbers):
        number, count = number + numbers[at] + 1, numbers[at + 1]
        if number < 0 or count < 0:
            raise ValueError
        token, listed = tokens[number], numbers[at + 2 : at + 2 + count]
        room -= _MERGE_WORK + len(token) * max(len(token), count)
        if len(listed) < count or room < 0:
            raise ValueError
        places = listed or _splits(token, prefix, ids)
        merges += [[token[:place], prefix + token[place:]] for place in places]
        at += 2 + count
    return merges
