"""Parquet: words in a column of strings, vectors in lists or in columns."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embits.errors import MissingExtraError, ReadError, ReadWarning
from embits.readers import read_vectors
from tests.support.reading import MATRIX, WORDS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def lists(kind: Any, matrix: Any = MATRIX) -> Any:
    return pa.array([None if row is None else list(row) for row in matrix], kind)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.parquet"


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.float16()),
    ],
)
def test_lists_of_any_kind_are_vectors(path: Path, kind: Any) -> None:
    matrix = MATRIX.astype(np.float16) if kind == pa.list_(pa.float16()) else MATRIX
    pq.write_table(pa.table({"word": WORDS, "vector": lists(kind, matrix)}), path)
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


def test_many_columns_of_floats_are_vectors(path: Path) -> None:
    pq.write_table(pa.table({"word": WORDS, "0": MATRIX[:, 0], "1": MATRIX[:, 1]}), path)
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


def test_without_strings_rows_have_no_names(path: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8, 9], "vector": lists(pa.list_(pa.float32()))}), path)
    assert read_vectors(path).words is None
    assert read_vectors(path, words=WORDS).words == WORDS


def test_many_batches_fill_one_matrix(path: Path) -> None:
    matrix = np.random.default_rng(0).standard_normal((40_000, 3)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(matrix.ravel(), 3)
    pq.write_table(
        pa.table({"word": [f"w{i}" for i in range(40_000)], "v": values}),
        path,
        row_group_size=7_000,
    )
    seen: list[tuple[int, int]] = []
    vectors = read_vectors(path, progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_array_equal(vectors.matrix, matrix)
    assert (40_000, 40_000) in seen
    np.testing.assert_array_equal(read_vectors(path, limit=20_001).matrix, matrix[:20_001])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"w": WORDS, "v": [[1.0, 2.0], None, [3.0, 4.0]]}, "row 1: found a null"),
        ({"w": WORDS, "v": [[1.0, 2.0], [1.0], [3.0, 4.0]]}, "row 1: found 1 numbers, expected 2"),
        ({"w": WORDS, "v": [[1.0, 2.0], [1.0, None], [3.0, 4.0]]}, "found a null in a vector"),
        (
            {"w": ["a", None, "c"], "v": [[1.0], [2.0], [3.0]]},
            "row 1: found a null, expected a word",
        ),
        ({"w": WORDS, "v": [[1.0], [float("nan")], [3.0]]}, "row 1: found nan or inf"),
        ({"w": WORDS, "n": [1, 2, 3]}, "found columns w, n"),
        ({"w": WORDS, "v": [[1.0]] * 3, "u": [[1.0]] * 3}, "found columns w, v, u"),
        (
            {"w": pa.array([], pa.string()), "v": pa.array([], pa.list_(pa.float32()))},
            "found 0 rows",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(path: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ReadError, match=message):
        read_vectors(path)


def test_repeated_words_are_left_out(path: Path) -> None:
    pq.write_table(pa.table({"w": ["a", "b", "a"], "v": lists(pa.list_(pa.float32()))}), path)
    with pytest.warns(ReadWarning, match="1 repeated word left out, the first at row 2"):
        assert read_vectors(path).words == ["a", "b"]


def test_a_damaged_file_is_refused(path: Path) -> None:
    pq.write_table(pa.table({"w": WORDS, "v": lists(pa.list_(pa.float32()))}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ReadError, match="a damaged file"):
        read_vectors(path)


def test_without_pyarrow_the_error_names_the_extra(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"w": WORDS, "v": lists(pa.list_(pa.float32()))}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'embits\[parquet\]'"):
        read_vectors(path)


@pytest.mark.parametrize("claimed", [-5, 0])
def test_a_schema_that_claims_vectors_of_no_numbers_is_refused(path: Path, claimed: int) -> None:
    n = 12_345
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(n, "f4")), n)})
    pq.write_table(table, path)
    stored = pq.read_metadata(path).metadata[b"ARROW:schema"]
    schema = base64.b64decode(stored)
    lies = schema.replace(n.to_bytes(4, "little"), claimed.to_bytes(4, "little", signed=True))
    assert lies != schema
    path.write_bytes(path.read_bytes().replace(stored, base64.b64encode(lies)))
    with pytest.raises(ReadError, match=f"vectors of {claimed} numbers"):
        read_vectors(path)
