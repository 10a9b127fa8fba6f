"""The reader of JSON with limits: what it counts, it counts as the parser would."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embits.bounded_json import MAX_DEPTH, SETTINGS, Limits, parse_json

TEXT = st.text(st.sampled_from('[]{},:"\\ae\n日🚀'), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(TEXT, inner, max_size=40),
    max_leaves=200,
)


def counts(value):
    """How deep a value is, how many values are in it, and how many objects."""
    if not isinstance(value, list | dict):
        return 0, 0, 0
    inner = [counts(each) for each in (value.values() if isinstance(value, dict) else value)]
    depth, values, objects = zip(*inner, strict=True) if inner else ((0,), (0,), (0,))
    own = isinstance(value, dict)
    return 1 + max(depth), max(len(inner), 1) + sum(values), own + sum(objects)


@given(VALUES, st.booleans())
def test_values_within_the_limits_are_parsed_and_others_refused(value, as_ascii):
    value = [*([[]] * (MAX_DEPTH + 1)), value]  # so that all of it is counted
    text = json.dumps(value, ensure_ascii=as_ascii)
    _, values, objects = counts(value)
    for content in (text, text.encode()):
        limits = Limits(len(text.encode()), values, objects)
        assert parse_json(content, limits, strict=True) == value
        for name in ("n_bytes", "values", *(["objects"] if objects else [])):
            less = limits._replace(**{name: getattr(limits, name) - 1})
            with pytest.raises(ValueError):
                parse_json(content, less)


@pytest.mark.parametrize("fill", ["", '"[[[[", ' * 300_000])
def test_depth_is_limited(fill):
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        text = "[" + fill + "[" * (depth - 1) + "]" * depth
        if depth == MAX_DEPTH:
            assert parse_json(text, SETTINGS._replace(n_bytes=1 << 24, values=10**6))
        else:
            with pytest.raises(ValueError, match="deeper"):
                parse_json(text, SETTINGS._replace(n_bytes=1 << 24, values=10**6))
