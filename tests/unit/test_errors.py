"""Errors: one line of text, and what they are about as fields."""

import copy

import pytest

from embits import errors


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "too long"),
        ({"path": "a.csv"}, "a.csv: too long"),
        ({"row": 0}, "row 0: too long"),
        ({"path": "a.csv", "row": 3, "hint": "cut it"}, "a.csv, row 3: too long; cut it"),
    ],
)
@pytest.mark.parametrize("kind", [errors.InputError, errors.ReadError, errors.HubError])
def test_fields_are_a_part_of_the_text_and_survive_pickling(kind, fields, text):
    error = copy.copy(kind("too long", **fields))  # as pickle does
    assert str(error) == text
    assert (error.path, error.row) == (fields.get("path"), fields.get("row"))
    assert error.hint == fields.get("hint", "")
