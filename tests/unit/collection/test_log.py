"""Rows that are added a few at a time go to a log; the answers are those of pieces."""

import datetime
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.collection import changes
from tests.support.vectors import clustered

ROWS = clustered(400).astype(np.float16).astype(np.float32)
CODER = embits.RandomHyperplanes(n_bits=60).fit(ROWS)
UTC = datetime.UTC if hasattr(datetime, "UTC") else datetime.timezone.utc  # noqa: UP017
SOME = {
    "text": st.text(max_size=9),
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "flag": st.booleans(),
    "date": st.dates(),
    "time": st.datetimes(),
    "utc": st.datetimes(timezones=st.just(UTC)),
    "dates": st.lists(st.dates(), max_size=2),
    "texts": st.lists(st.text(max_size=3), max_size=2),
}
VALUES = st.fixed_dictionaries({name: st.none() | value for name, value in SOME.items()})
FIRST = {"text": "a", "int": 1, "float": 0.5, "flag": True, "date": datetime.date(2020, 1, 1),
         "time": datetime.datetime(2020, 1, 1), "utc": datetime.datetime(2020, 1, 1, tzinfo=UTC),
         "dates": [datetime.date(2020, 1, 1)], "texts": ["a"]}  # fmt: skip


def log_of(collection):
    return collection.path / collection.manifest.log


def same(a, b):
    assert list(a.words) == list(b.words)
    assert np.array_equal(np.asarray(a.codes), np.asarray(b.codes))
    assert a.manifest.rows == b.manifest.rows == len(a)
    assert a.manifest.generation == b.manifest.generation
    assert a.manifest.next_number == b.manifest.next_number
    for query in ROWS[:3]:
        for options in ({}, {"rescore": 300}, {"metric": "dot"}):
            ours, theirs = (each.search(query, 5, **options) for each in (a, b))
            assert all(map(np.array_equal, ours, theirs))


@settings(max_examples=12, deadline=None)
@given(
    values=st.lists(VALUES, min_size=1, max_size=12),
    keep=st.sampled_from(["float16", "int8"]),
    numbered=st.booleans(),
)
def test_rows_of_a_log_are_those_of_pieces(values, keep, numbered):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        made = []
        for name, most in (("log", 16), ("pieces", 0)):
            patch.setattr(changes, "MAX_ADDED", most)
            collection = embits.open_collection(Path(folder, name), CODER, keep=keep)
            for row, each in enumerate([FIRST, *values]):
                columns = {key: [value] for key, value in each.items()}
                ids = None if numbered else [f"id {row}"]
                collection.add(ROWS[row : row + 1], ids, columns=columns, lengths=row == 0)
            made.append(collection)
        log, pieces = made
        assert log.manifest.log
        reopened = embits.load(log.path, verify=True)
        for each in (log, reopened):
            same(each, pieces)
            for name in FIRST:
                assert each.columns[name].to_pylist() == pieces.columns[name].to_pylist()
        log.remove(list(log.words)[-1:])  # folds it
        assert log.manifest.log is None
        assert len(log) == len(values)
        for name in FIRST:
            assert log.columns[name].to_pylist() == pieces.columns[name].to_pylist()[:-1]


@pytest.fixture
def collection(tmp_path):
    made = embits.open_collection(tmp_path / "c", CODER, keep="int8")
    made.add(ROWS[:3], ["a", "b", "c"], columns={"n": [1, 2, 3]})
    for row, name in enumerate("def", 3):
        made.add(ROWS[row : row + 1], [name], columns={"n": [row]})
    return made


def test_every_flipped_bit_of_a_log_is_found(collection):
    path, n = log_of(collection), 0
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        for bit in (0, place % 7 + 1):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(embits.FormatError, match=path.name) as error:
                embits.load(collection.path)
            assert "\n" not in str(error.value)
            n += 1
    path.write_bytes(whole[:-1] + b"\x0b")
    with pytest.raises(embits.FormatError, match=path.name):
        embits.load(collection.path)
    path.unlink()
    with pytest.raises(embits.FormatError, match="is missing"):
        embits.load(collection.path)
    assert n > 300


def test_an_incomplete_line_is_no_part_of_the_log_and_is_written_over(collection):
    path = log_of(collection)
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    line = whole[start:]
    for torn in (line[:1], line[:-1], line[:90], line[:90] + bytes(len(line) - 90), bytes(5)):
        path.write_bytes(whole[:start] + torn)
        for verify in (False, True):
            assert list(embits.load(collection.path, verify=verify).words) == list("abcde")
        writer = embits.open_collection(collection.path)
        writer.add(ROWS[7:8], ["g"])
        assert list(embits.load(collection.path, verify=True).words) == list("abcdeg")


def test_lines_that_are_moved_or_of_another_log_are_found(collection):
    path = log_of(collection)
    lines = path.read_bytes().splitlines(keepends=True)
    for changed in (lines[1:], [lines[1], lines[0], lines[2]], [*lines, lines[2]]):
        path.write_bytes(b"".join(changed))
        with pytest.raises(embits.FormatError, match="does not match its checksum"):
            embits.load(collection.path)


def test_a_log_is_folded_by_other_changes_and_when_it_is_full(collection, monkeypatch):
    assert [len(piece.file.split("-")[1]) for piece in collection.manifest.pieces] == [20, 14]
    collection.refit()
    assert collection.manifest.log is None
    assert list(collection.words) == list("abcdef")
    monkeypatch.setattr(changes, "MAX_ROWS", 5)
    for row in range(40):
        collection.add(ROWS[row : row + 1], [f"w{row}"])
        assert len(collection.manifest.pieces[-1:]) == 1
    assert list(embits.load(collection.path, verify=True).words) == [
        *"abcdef",
        *(f"w{row}" for row in range(40)),
    ]
    with pytest.raises(embits.InputError, match="'w39' already exists"):
        collection.add(ROWS[:1], ["w39"])


def test_earlier_versions_refuse_a_collection_with_a_log(collection):
    assert json.loads((collection.path / "_embits.json").read_bytes())["version"] == 3
    collection.compact()
    assert json.loads((collection.path / "_embits.json").read_bytes())["version"] == 2
    assert {each.name for each in collection.path.iterdir()} == {
        "_lock",
        *collection.manifest.files(),
    }


def test_readers_and_other_writers_see_each_line(collection):
    reader, other = embits.load(collection.path), embits.open_collection(collection.path)
    other.add(ROWS[10:11], ["g"])
    assert list(reader.words) == list("abcdef")
    assert reader.refresh()
    assert not reader.refresh()
    assert list(reader.words) == list("abcdefg")
    collection.add(ROWS[11:12], ["h"])
    with pytest.raises(embits.InputError, match="'g' already exists"):
        collection.add(ROWS[10:11], ["g"])
    assert list(embits.load(collection.path).words) == list("abcdefgh")
