"""Folders and lists of files, read as one; and tables in memory."""

from __future__ import annotations

import json
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.cli import embits as command
from embits.errors import InputError, ReadError, ReadWarning
from embits.jobs import encode_to_collection
from embits.readers import new_source, open_blocks, read_vectors
from tests.support.streaming import in_blocks, noted
from tests.support.vectors import clustered

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FLOATS = pa.list_(pa.float32())
MATRIX = clustered(90, dims=5)
pytestmark = pytest.mark.filterwarnings("ignore::embits.errors.ReadWarning")


def table(matrix: Any, kind: Any = FLOATS, **columns: Any) -> Any:
    return pa.table({**columns, "v": pa.array([list(row) for row in matrix], kind)})


def write(path: Path, matrix: Any, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, matrix)
    else:
        pq.write_table(table(matrix, **columns), path)
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """90 rows with ids in three files, by year."""
    for number, rows in enumerate((range(40), range(40, 41), range(41, 90))):
        year = 2023 + number // 2
        path = tmp_path / f"lake/year={year}/part-{number}.parquet"
        write(path, MATRIX[rows], id=[f"d{row}" for row in rows], title=[f"t{r}" for r in rows])
    write(tmp_path / "lake/_temporary/part-9.parquet", MATRIX[:2], id=["x", "y"])
    return tmp_path / "lake"


def run(*arguments: Any) -> Any:
    result = CliRunner().invoke(command, [*map(str, arguments), "--json"])
    if result.exception is not None:
        raise result.exception
    return json.loads(result.stdout)


def refused(path: Any, **options: Any) -> str:
    with pytest.raises(ReadError) as caught:
        read_vectors(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 90), max_size=5),
    suffix=st.sampled_from([".npy", ".parquet"]),
    bad=st.sets(st.integers(0, 89), max_size=4),
    limit=st.none() | st.integers(1, 100),
    size=st.integers(1, 400),
    at=st.integers(0, 99),
)
def test_several_files_are_one(tmp_path_factory, cuts, suffix, bad, limit, size, at) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("files")
    matrix = MATRIX.copy()
    matrix[sorted(bad), 1] = np.nan
    one = write(folder / f"one{suffix}", matrix)
    parts = pairwise([0, *sorted(cuts), 90])
    several = [write(folder / f"lake/{n}{suffix}", matrix[slice(*c)]) for n, c in enumerate(parts)]
    kept = MATRIX[[row for row in range(limit or 90)[:90] if row not in bad]]
    if not len(kept):
        return
    with pytest.MonkeyPatch.context() as patched:
        in_blocks(patched, block=size)
        expected, _ = noted(read_vectors, one, on_bad="skip", limit=limit)
        for path in (folder / "lake", several, [folder / "lake"]):
            found, notes = noted(read_vectors, path, on_bad="skip", limit=limit)
            assert np.array_equal(found.matrix, kept)
            assert found.words == expected.words
            assert len(notes) == bool(found.words)
            opened: Any = open_blocks(new_source(path, on_bad="skip", limit=limit))
            blocks = list(opened.read(opened.first))
            start = blocks[at % len(blocks)].start
            again = np.concatenate([block.matrix for block in opened.read(start)])
            assert np.array_equal(again, kept[start.rows :])


def test_files_are_read_by_name_and_ids_count_for_all(lake: Path) -> None:
    vectors, notes = noted(read_vectors, lake)
    assert vectors.words == [f"d{row}" for row in range(90)]
    assert np.array_equal(vectors.matrix, MATRIX)
    assert notes == [
        f"{lake}: columns of its folders left out: year (`embits add --columns` keeps them)"
    ]
    year = lake / "year=2023"
    assert read_vectors([lake / "year=2024", year], ids=False).matrix[49:].tolist() == (
        MATRIX[:41].tolist()
    )


def test_errors_and_warnings_name_the_file_and_the_row_in_it(lake: Path) -> None:
    last = lake / "year=2024/part-2.parquet"
    matrix, ids = MATRIX[41:].copy(), [f"d{row}" for row in range(41, 90)]
    write(last, matrix, id=[*ids[:7], "d3", *ids[8:]])
    assert refused(lake).startswith(f"{last}, row 7: found the word 'd3' again")
    vectors, notes = noted(read_vectors, lake, repeats="first")
    assert len(vectors) == 89
    assert f"{lake}: 1 repeated word left out, the first at {last}, row 7: 'd3'" in notes
    for value, found in ((np.nan, "nan"), (2e18, "2e+18, too large"), (-np.inf, "nan, inf")):
        matrix[8, 2] = value
        write(last, matrix, id=ids)
        message = refused(lake)
        assert message.startswith(f"{last}, row 8: found ")
        assert found in message
        vectors, notes = noted(read_vectors, lake, on_bad="skip")
        assert len(vectors) == 89
        assert any(f"1 row left out, the first at {last}, row 8: found " in note for note in notes)
    write(last, MATRIX[41:, :3], id=ids)
    first = lake / "year=2023/part-0.parquet"
    wanted = f"expected 5 numbers and an id a row as in {first}"
    assert refused(lake) == f"{last}: found 3 numbers and an id a row, {wanted}"
    write(last, MATRIX[41:])
    assert refused(lake) == f"{last}: found 5 numbers a row, {wanted}"


def test_large_values_are_bad_rows_in_a_matrix_too(tmp_path: Path) -> None:
    matrix = MATRIX.copy()
    matrix[11, 0] = 3e18
    np.save(tmp_path / "m.npy", matrix)
    assert f"{tmp_path / 'm.npy'}, row 11: found 3e+18, too large" in refused(tmp_path / "m.npy")
    out = tmp_path / "out"
    with pytest.warns(ReadWarning, match="1 row left out, the first at row 11"):
        bits = embits.binarize_to_file(tmp_path / "m.npy", out, 8, "lsh", on_bad="skip")
    assert len(bits) == 89


def test_what_is_no_folder_of_matrices_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    write(folder / "b.npy", MATRIX)
    np.save(folder / "a.npy", MATRIX[:3])
    pq.write_table(pa.table({"id": ["x", "y", "z"]}), folder / "a.parquet")  # the ids of a.npy
    assert "b.npy: found 5 numbers a row, expected 5 numbers and an id" in refused(folder)
    write(folder / "c.parquet", MATRIX)
    assert refused(folder) == (
        f"{folder}: found a.npy and c.parquet, expected files of one kind: name those to read"
    )
    (tmp_path / "v.vec").write_text("a 1 2 3 4 5\n")
    assert "found words and vectors" in refused([folder / "b.npy", tmp_path / "v.vec"])
    assert "no such file" in refused([folder / "b.npy", tmp_path / "none.npy"])
    write(tmp_path / "nothing/0.parquet", MATRIX[:0])
    assert "found 1 files of 0 rows" in refused(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"words .ids. are for one file"):
        embits.binarize(tmp_path / "nothing", 8, "lsh", ids=["a"])
    with pytest.raises(InputError, match="one of several"):
        read_vectors(["https://example.org/a.npy", "b.npy"])


@pytest.mark.parametrize("kind", [pa.uuid(), pa.binary(16)], ids=str)
def test_uuids_are_ids(tmp_path: Path, kind: Any) -> None:
    ids = [uuid.UUID(int=number) for number in range(90)]
    column = pa.array([each.bytes for each in ids], kind)
    path = write(tmp_path / "v.parquet", MATRIX, id=column)
    assert read_vectors(path).words == list(map(str, ids))
    bits = embits.binarize(pq.read_table(path), 8, "lsh")
    assert list(bits.words) == list(map(str, ids))


def test_columns_are_found_in_structs(tmp_path: Path) -> None:
    rows = [{"v": {"small": row.tolist()}, "id": f"s{n}"} for n, row in enumerate(MATRIX)]
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"doc": rows}), path)
    vectors = read_vectors(path, column="doc.v.small", ids="doc.id")
    assert np.array_equal(vectors.matrix, MATRIX)
    assert vectors.words == [f"s{n}" for n in range(90)]
    rows[4]["v"] = None  # type: ignore[assignment]
    pq.write_table(pa.table({"doc": rows}), path)
    assert f"{path}, row 4: found a null" in refused(path, column="doc.v.small")
    assert "expected one named 'doc.w'" in refused(path, column="doc.w")


def test_vectors_of_int8_are_vectors_and_those_of_uint8_if_they_are_named(tmp_path: Path) -> None:
    whole = (100 * MATRIX / np.abs(MATRIX).max()).astype(np.int8)
    path = tmp_path / "v.parquet"
    pq.write_table(table(whole, pa.list_(pa.int8())), path)
    assert np.array_equal(read_vectors(path).matrix, whole)
    pq.write_table(table(np.abs(whole), pa.list_(pa.uint8(), 5)), path)
    assert "expected one of float lists" in refused(path)
    assert np.array_equal(read_vectors(path, column="v").matrix, np.abs(whole))
    rows = [[1, 2], [3, None]]
    pq.write_table(pa.table({"v": pa.array(rows, pa.list_(pa.int8()))}), path)
    assert "row 1: found nan, inf or null" in refused(path)


@pytest.mark.parametrize("groups", [30, 3000])
def test_skipping_keeps_the_rows_of_the_width_that_most_have(tmp_path: Path, groups: int) -> None:
    good = clustered(2500, dims=6)
    odd = pa.array([[1.0, 2.0]] * 500, FLOATS)
    both = pa.chunked_array([odd, pa.array(list(good), FLOATS)])
    pq.write_table(pa.table({"v": both}), tmp_path / "v.parquet", row_group_size=groups)
    vectors, notes = noted(read_vectors, tmp_path / "v.parquet", on_bad="skip")
    assert np.array_equal(vectors.matrix, good)
    assert "500 rows left out, the first at row 0: found 2 numbers" in notes[0]


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas"])
def test_tables_in_memory_are_read_as_files(kind: str) -> None:
    ids = [f"d{row}" for row in range(90)]
    made = table(MATRIX, id=ids, other=ids[::-1], w=list(map(list, MATRIX[:, :2])))
    numbers = pa.table({f"c{number}": MATRIX[:, number] for number in range(5)})
    if kind == "polars":
        made, numbers = map(pytest.importorskip("polars").from_arrow, (made, numbers))
    elif kind == "pandas":
        pytest.importorskip("pandas")
        made, numbers = made.to_pandas(), numbers.to_pandas()
    codes = embits.binarize(numbers, 8, "lsh").codes  # numbers alone are a matrix
    assert np.array_equal(codes, embits.binarize(MATRIX, 8, "lsh").codes)
    bits = embits.binarize(made, 8, "lsh", column="v")
    assert np.array_equal(bits.codes, embits.binarize(MATRIX, 8, "lsh").codes)
    assert list(bits.words) == ids
    assert list(embits.binarize(made, 8, "lsh", column="v", ids="other").words) == ids[::-1]
    assert list(embits.binarize(made, 8, "lsh", column="v", ids=range(90)).words)[1] == "1"
    assert embits.binarize(made, 8, "lsh", column="v", ids=False).ids()[1] == "1"
    with pytest.raises(ReadError, match="the table: found several columns of vectors"):
        embits.binarize(made, 8, "lsh")
    with pytest.raises(InputError, match="the table, row 1: found nan, inf or null"):
        embits.binarize(table([[1, 2], [3, np.nan]]), 8, "lsh")


def test_columns_of_files_and_folders_are_kept_in_collections(lake: Path) -> None:
    none = pa.array([], pa.string())
    write(lake / "year=2024/part-3.parquet", MATRIX[:0], id=none, title=none)
    collection = embits.open_collection(lake.parent / "c", embits.binarize(MATRIX, 8, "lsh").coder)
    first = lake / "year=2023/part-0.parquet"
    matrix = MATRIX[:40].copy()
    matrix[5] = np.nan
    write(first, matrix, id=[f"d{r}" for r in range(40)], title=[f"t{r}" for r in range(40)])
    _, notes = noted(
        encode_to_collection, collection, lake, columns=["title", "year"], on_bad="skip"
    )
    assert notes == [f"{lake}: 1 row left out, the first at {first}, row 5: found nan, inf or null"
                     " among the numbers"]  # fmt: skip
    assert len(collection) == 89
    rows = collection.get(["d4", "d6", "d89"], columns=["title", "year"])
    assert rows["title"] == ["t4", "t6", "t89"]
    assert rows["year"] == [2023, 2023, 2024]
    with pytest.raises(ReadError, match="expected one named 'month'"):
        encode_to_collection(collection, lake, columns=["month"])


def test_the_command_line_takes_folders_and_several_files(lake: Path) -> None:
    codes, files = lake.parent / "codes", sorted(lake.glob("year=*/*"))
    assert run("binarize", lake, "-o", codes, "--bits", 8, "--method", "lsh")["words"] == 90
    assert run("encode", codes, *files, "-o", lake.parent / "more")["words"] == 90
    assert np.array_equal(embits.load(lake.parent / "more").codes, embits.load(codes).codes)
    done = run("add", lake.parent / "c", *files, "--coder", codes, "--columns", "year,title")
    assert (done["added"], done["rows"]) == (90, 90)
    found = embits.load(lake.parent / "c").search(MATRIX[50], 1, where={"year": 2024})
    assert found.ids.tolist() == ["d50"] or found.distances[0] == 0
    result = CliRunner().invoke(command, ["binarize", *map(str, files), "-o", "x", "--ray"])
    assert "--ray takes one file or one folder" in result.output
