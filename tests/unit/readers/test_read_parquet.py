"""Parquet: words in a column of strings, vectors in lists or in columns."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embits.errors import InputError, MissingExtraError, ReadError, ReadWarning
from embits.readers import read_vectors
from embits.readers.parquet import parquet_files, vectors_of
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


def test_a_column_named_as_ids_has_the_ids_and_no_other(path: Path) -> None:
    vectors = lists(pa.list_(pa.float32()))
    columns = {"vector": vectors, "category": ["x", "x", "y"]}
    pq.write_table(pa.table(columns), path)
    assert read_vectors(path).words is None
    for name in ("id", "ids", "_id", "word", "key"):
        pq.write_table(pa.table({**columns, name: WORDS}), path)
        assert read_vectors(path).words == WORDS
        pq.write_table(pa.table({**columns, name: [7, 8, 9]}), path)
        assert read_vectors(path).words == ["7", "8", "9"]
        assert read_vectors(path, words=WORDS).words == WORDS
        assert read_vectors(path, ids=False).words is None


def test_columns_are_chosen_by_name_and_named_in_one_line(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = pa.list_(pa.float32())
    columns = {"id": [1, 2, 3], "title": WORDS, "a": lists(kind, MATRIX + 1), "b": lists(kind)}
    pq.write_table(pa.table(columns), path)
    with caplog.at_level("INFO", "embits"):
        vectors = read_vectors(path, ids="title", column="b")
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)
    assert len(caplog.messages) == 1
    assert "vectors from column 'b', ids from column 'title'" in caplog.messages[0]
    for wrong in ({"ids": "b", "column": "b"}, {"column": "title"}, {"column": "c"}, {"ids": "c"}):
        with pytest.raises(ReadError):
            read_vectors(path, **{"column": "b", **wrong})  # type: ignore[arg-type]
    np.save(path, MATRIX)
    with pytest.raises(InputError, match="no Parquet table"):
        read_vectors(path.with_suffix(".parquet.npy"), ids="title")


def test_a_number_beside_numbered_columns_is_no_dimension(path: Path) -> None:
    wide = {"price": [9.0, 8.0, 7.0], "x0": MATRIX[:, 0], "x1": MATRIX[:, 1], "v2": [1.0] * 3}
    pq.write_table(pa.table(wide), path)
    np.testing.assert_array_equal(read_vectors(path).matrix, MATRIX)
    pq.write_table(pa.table({"x": MATRIX[:, 0], "y": MATRIX[:, 1]}), path)
    np.testing.assert_array_equal(read_vectors(path).matrix, MATRIX)


def test_numbered_columns_are_taken_by_number_without_a_gap(path: Path) -> None:
    names = ["x10", *(f"x{i}" for i in range(10))]
    pq.write_table(pa.table({name: [float(name[1:])] for name in names}), path)
    assert read_vectors(path).matrix.tolist() == [list(range(11))]
    pq.write_table(pa.table({"x0": [0.5], "x1": [1], "x2": [2.5]}), path)
    with pytest.raises(ReadError, match="2 columns of floats among x0 to x2, expected each number"):
        read_vectors(path)


@pytest.mark.parametrize(
    "kind", [pa.binary(20), pa.float64(), pa.date32(), pa.bool_()], ids=lambda kind: str(kind)
)
def test_a_column_named_as_ids_that_holds_none_is_refused(path: Path, kind: Any) -> None:
    ids = pa.array([None] * len(WORDS), kind)
    pq.write_table(pa.table({"id": ids, "v": lists(pa.list_(pa.float32()))}), path)
    for reading in ({}, {"ids": "id"}):
        with pytest.raises(ReadError, match=r"column 'id': found .* expected strings or whole"):
            read_vectors(path, **reading)  # type: ignore[arg-type]
    assert read_vectors(path, ids=False).words is None


def test_files_of_a_folder_or_file_system_are_found(path: Path) -> None:
    (path.parent / "deep").mkdir()
    for name in ("x.parquet", "deep/y.pq", "_hidden.parquet", "notes.txt"):
        (path.parent / name).write_text("")
    inside = pa.fs.SubTreeFileSystem(str(path.parent), pa.fs.LocalFileSystem())
    for arguments in ((path.parent,), ("", inside)):
        names = [Path(name).name for name in parquet_files(*arguments)]
        assert names == ["y.pq", "x.parquet"]
    with pytest.raises(ReadError, match="nothing there"):
        parquet_files(path.parent / "nowhere")
    (path.parent / "empty").mkdir()
    with pytest.raises(ReadError, match=r"no \.parquet files"):
        parquet_files(path.parent / "empty")


def test_vectors_of_chunks_have_good_rows_and_bad_ones() -> None:
    kind = pa.list_(pa.float32())
    chunks = [lists(kind, [*MATRIX, [1.0]]), lists(kind, [None, [np.nan, 1]]), lists(kind, [])]
    found = vectors_of(pa.chunked_array(chunks))
    np.testing.assert_array_equal(found.matrix, MATRIX)
    assert (found.bad.tolist(), found.found) == ([3, 4, 5], "1 numbers")
    assert vectors_of(chunks[1], dims=2).found == "a null"
    assert len(vectors_of(pa.chunked_array([], kind)).matrix) == 0


def test_bad_rows_may_be_skipped(path: Path) -> None:
    matrix = [None, *MATRIX, [1.0], [np.nan, 1]]
    table = pa.table({"id": list("xabcyz"), "v": lists(pa.list_(pa.float32()), matrix)})
    pq.write_table(table, path)
    with pytest.warns(ReadWarning, match="3 rows left out, the first at row 0: found a null"):
        vectors = read_vectors(path, on_bad="skip")
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


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
        ({"w": WORDS, "v": [[1.0, 2.0], [1.0, None], [3.0, 4.0]]}, "row 1: found .* null"),
        (
            {"id": ["a", None, "c"], "v": [[1.0], [2.0], [3.0]]},
            "row 1: found a null, expected an id",
        ),
        ({"id": ["a", "b", ""], "v": [[1.0], [2.0], [3.0]]}, "row 2: found an empty id"),
        ({"w": WORDS, "v": [[1.0], [float("nan")], [3.0]]}, "row 1: found nan"),
        ({"w": WORDS, "n": [1, 2, 3]}, "found columns w, n"),
        ({"w": WORDS, "v": [[1.0]] * 3, "u": [[1.0]] * 3}, "found several columns of vectors"),
        (
            {"w": pa.array([], pa.string()), "v": pa.array([], pa.list_(pa.float32()))},
            "expected at least one row",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(path: Path, columns: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ReadError, match=message):
        read_vectors(path)


def test_repeated_ids_are_refused(path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b", "a"], "v": lists(pa.list_(pa.float32()))}), path)
    with pytest.raises(ReadError, match="row 2: found the word 'a' again"):
        read_vectors(path)
    with pytest.warns(ReadWarning, match="1 repeated word left out, the first at row 2"):
        assert read_vectors(path, repeats="first").words == ["a", "b"]


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
    with pytest.raises(MissingExtraError, match=r"install pyarrow: pip install 'pyarrow>=15' \("):
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
