"""JSON objects of vectors: plain, and as wink-embeddings packages hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import ReadError, ReadWarning
from embits.readers import read_vectors

WINK = {
    "precision": 8,
    "l2NormIndex": 2,
    "wordIndex": 3,
    "size": 3,
    "dimensions": 2,
    "words": ["the", '"', "vectors"],
    "vectors": {"the": [1, 2, 9.5, 0], '"': [3, 4, 9.5, 1], "vectors": [5, 6, 9.5, 2]},
    "unkVector": [0, 0, 0, -1],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.json"


@pytest.mark.parametrize("indent", [None, 2])
def test_wink_vectors_are_cut_to_their_dimensions(path: Path, indent: int | None) -> None:
    path.write_text(json.dumps(WINK, indent=indent))
    vectors = read_vectors(path)
    assert vectors.words == ["the", '"', "vectors"]
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4], [5, 6]])


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.just(0), min_size=1),
    st.integers(1, 4),
    st.booleans(),
)
def test_plain_objects_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, words: dict[str, int], dims: int, ascii_only: bool
) -> None:
    matrix = np.random.default_rng(dims).standard_normal((len(words), dims)).astype(np.float32)
    path = tmp_path_factory.mktemp("round") / "trip.json"
    data = {word: row.tolist() for word, row in zip(words, matrix, strict=True)}
    path.write_bytes(json.dumps(data, ensure_ascii=ascii_only).encode())
    vectors = read_vectors(path)
    assert vectors.words == list(words)
    np.testing.assert_array_equal(vectors.matrix, matrix)


def test_entries_across_blocks_are_read_whole(path: Path) -> None:
    data = {f"w{i}": [i, i / 2, 0.123456789] for i in range(60_000)}
    path.write_text(json.dumps({"words": list(data), "vectors": data}))
    vectors = read_vectors(path)
    assert vectors.words == list(data)
    np.testing.assert_array_equal(vectors.matrix, np.array(list(data.values()), np.float32))
    assert read_vectors(path, limit=7).words == list(data)[:7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [1, 2], "b": [3]}', "entry 2: found 1 number, expected 2 numbers"),
        ('{"a": [1, 2], "b": [3, NaN]}', "entry 2: found NaN, expected a finite float32"),
        ('{"a": [1, 2], "b": [3, null]}', "entry 2: found 'null'"),
        ('{"a": [1, 2], "b": [3, 4', "byte 12: found"),
        ('{"a": [1, 2]', "byte 12: found the end"),
        ('{"a": [1, 2], "b": 3}', "byte 12: found"),
        ('{"a": [1, 2], "\\\\x": [3, 4]}'.replace("\\\\", "\\"), "not JSON"),
        ('{"name": "package", "version": "1"}', "found no vectors"),
        ('{"vectors": {}}', "found no vectors"),
        ("{}", "found no vectors"),
        ('{"a": []}', "entry 1: found 0 numbers"),
        ("[[1, 2], [3, 4]]", r"found a JSON list, expected an object .* matrix as \.npy"),
        ("[\n  [-1.5,\n 2e3],\n [3, 4]]", "found a JSON list"),
        ('[{"id": "a", "vector": [1, 2]}]', "found a JSON list"),
        ('{"a": [1, 2]}\n{"b": [3, 4]}\n', r"byte 14: found .* no list or JSON Lines"),
        ('{"id": "a", "vector": [1, 2]}\n', "found no vectors, expected .* JSON Lines"),
        ('{"a": [1, 2]}' + " " * (1 << 20) + "x", "byte 1048589: found 'x', expected the end"),
        ('{"a": [1, 2] "b": [3, 4]}', "byte 12: found .* with commas"),
        ('{, "a": [1, 2]}', "found"),
    ],
)
def test_broken_objects_are_refused(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(ReadError, match=message):
        read_vectors(path)


@pytest.mark.parametrize("text", ['{"a": [1, 2], "b": [3, 4]}', "a 1 2\nb 3 4\n"])
def test_rows_are_numbered_if_no_ids_are_wanted(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_vectors(path, ids=False).words is None


def test_bad_entries_may_be_skipped(path: Path) -> None:
    path.write_text('{"a": [1, 2], "b": [3], "c": [5, 6]}')
    with pytest.warns(ReadWarning, match="1 row left out, the first at entry 2: found 1 number"):
        assert read_vectors(path, on_bad="skip").words == ["a", "c"]


def test_a_row_of_the_word_brace_is_text(path: Path) -> None:
    path.write_text('{ 1 2\n{" 3 4\n')
    assert read_vectors(path).words == ["{", '{"']


def test_rows_of_words_with_brackets_are_text(path: Path) -> None:
    path.write_text("[ 1 2\n[[ 3 4\n")
    assert read_vectors(path).words == ["[", "[["]
    path.write_text("[[1]] 1 2\n[1, 3 4\n")
    assert read_vectors(path).words == ["[[1]]", "[1,"]


def test_repeated_keys_are_left_out(path: Path) -> None:
    path.write_text('{"a": [1, 2], "a": [3, 4]}')
    with pytest.warns(ReadWarning, match="1 repeated word left out, the first at entry 2"):
        np.testing.assert_array_equal(read_vectors(path).matrix, [[1, 2]])
