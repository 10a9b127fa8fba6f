"""JSON of others, whose size, number of values and depth are checked before it is parsed.

Parsed, a byte of JSON may take fifty bytes of memory: `[],` is a list.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from embits.arrays import blocks

MAX_DEPTH = 64  # of lists and objects in each other: formats need four
_QUOTE, _OBJECT = b'"{'
_STEPS = np.zeros(256, np.int64)  # how far a byte leads into lists and objects
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_IS_MARK = _STEPS != 0
_IS_MARK[list(b'",')] = True


class Limits(NamedTuple):
    """The most that is parsed."""

    n_bytes: int
    values: int  # of all kinds
    objects: int


_PART_BYTES = 1 << 13  # of JSON that are looked through at a time: eight times as many in memory
SETTINGS = Limits(1 << 20, 100_000, 10_000)


def parse_json(content: bytes | str, limits: Limits = SETTINGS, *, strict: bool = False) -> Any:
    """The value of a JSON text in UTF-8; ValueError if it is none, or is beyond the limits.

    With `strict`, NaN and a name that repeats in an object are refused, which Python alone accepts.

    >>> parse_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    raw = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    _check(raw, limits)
    if not strict:
        return json.loads(content if isinstance(content, str) else raw.decode("utf-8-sig"))
    # `int` refuses the names of NaN and infinity.
    return json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=int)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name appears twice")
    return entries


def _check(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.n_bytes:
        raise ValueError(f"{len(raw):,} bytes, expected at most {limits.n_bytes:,}")
    n_open = raw.count(b"[") + raw.count(b"{")
    if n_open <= min(MAX_DEPTH, limits.objects) and n_open + raw.count(b",") <= limits.values:
        return
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")  # a quote left starts or ends a string
    n_quotes = depth = n_values = n_objects = 0
    for part in blocks(len(plain), _PART_BYTES):
        marks = np.frombuffer(plain[part], np.uint8)
        marks = marks[_IS_MARK[marks]]
        quotes = n_quotes + np.cumsum(marks == _QUOTE)
        marks = marks[(marks != _QUOTE) & (quotes % 2 == 0)]  # those outside strings
        depths = depth + np.cumsum(_STEPS[marks])
        n_values += int(np.count_nonzero(_STEPS[marks] >= 0))  # each follows a comma or an opening
        n_objects += int(np.count_nonzero(marks == _OBJECT))
        if depths.max(initial=0) > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        if n_values > limits.values or n_objects > limits.objects:
            raise ValueError(f"more than {limits.values:,} values or {limits.objects:,} objects")
        n_quotes = int(quotes[-1]) if len(quotes) else n_quotes
        depth = int(depths[-1]) if len(depths) else depth
