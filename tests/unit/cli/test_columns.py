"""Ids and vectors of Parquet on the command line: by name, said in one line, never lost."""

import json

import numpy as np
import pytest

import embits
from tests.support.program import messages, run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(300, 8)).astype("f4")
    vectors = pa.array(list(matrix), pa.list_(pa.float32()))
    names = [f"doc {row}" for row in range(300)]
    columns = {"vector": vectors, "category": ["x", "y"] * 150, "id": range(300), "name": names}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    return tmp_path / "v.parquet"


def test_no_row_is_lost_and_the_columns_are_said_in_one_line(table):
    out = table.with_name("out")
    binarize = ["binarize", table, "-o", out, "--bits", 16, "--method", "lsh"]
    for options, said, ids in (
        ([], "ids from column 'id'", ["0", "1"]),
        (["--ids", "name"], "ids from column 'name'", ["doc 0", "doc 1"]),
        (["--no-ids", "--column", "vector"], "no column of ids", ["0", "1"]),
    ):
        done = run(*binarize, *options)
        assert done.returncode == 0, done.stderr
        assert f"vectors from column 'vector', {said}" in messages(done.stderr)
        assert len(done.stderr.splitlines()) == 1
        bits = embits.load(out)
        assert len(bits) == 300
        assert list(bits.words[:2]) == ids
    done = run(*binarize, "--ids", "category")
    assert done.returncode == 1
    assert "row 2: found the word 'x' again" in done.stderr
    assert run(*binarize, "--keep", "name").returncode == 2  # needs --ray
    assert run(*binarize, "--no-ids", "--ids", "id").returncode == 2


def test_a_file_is_not_added_twice(table):
    coder, collection = table.with_name("coder"), table.with_name("c")
    assert run("binarize", table, "-o", coder, "--bits", 16, "--method", "lsh").returncode == 0
    add = ["add", collection, table, "--json"]
    assert run(*add, "--coder", coder).returncode == 0
    assert run(*add).returncode == 1
    done = run(*add, "--update")
    assert json.loads(done.stdout)["updated"] == 300
    assert len(embits.load(collection)) == 300


def test_columns_are_added_and_filtered_by_conditions_as_they_are_typed(table):
    coder, collection = table.with_name("coder"), table.with_name("c")
    queries = table.with_name("queries.txt")
    queries.write_text("0\n")
    assert run("binarize", table, "-o", coder, "--bits", 16, "--method", "lsh").returncode == 0
    flags = pa.array([row % 4 == 0 for row in range(300)])
    years = pa.array([2000 + row % 30 for row in range(300)])
    pq.write_table(
        pq.read_table(table).append_column("flag", flags).append_column("year", years), table
    )
    added = run("add", collection, table, "--coder", coder, "--columns", "category,flag,year")
    assert added.returncode == 0, added.stderr

    def found(*conditions):
        where = [text for each in conditions for text in ("--where", each)]
        done = run("search", collection, queries, "-k", 300, "--json", *where)
        assert done.returncode == 0, done.stderr
        names = [each["id"] for each in json.loads(done.stdout)["queries"][0]["neighbors"]]
        return sorted(map(int, names))

    odd, of_2029 = list(range(1, 300, 2)), list(range(29, 300, 30))
    assert found("category==y") == found("category in 'y', z") == found('category != "x"') == odd
    assert found("flag = True", "year>=2000") == list(range(0, 300, 4))
    assert found("year > 2028") == found("year in 2029,1999") == of_2029
    for condition in ("year = soon", "flag = 1", "yaer = 1", "year => 2000"):
        done = run("search", collection, queries, "--where", condition)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert run("remove", collection, "--where", "year", "--where", "flag=true").returncode == 2
    assert run("remove", collection, "--where", "year < 2029", "--json").returncode == 0
    assert list(embits.load(collection).words) == list(map(str, of_2029))


@pytest.mark.parametrize("keep", [[], ["--keep", "float16"]])
def test_columns_leave_out_the_rows_that_are_left_out(table, keep):
    coder, collection = table.with_name("coder"), table.with_name("c")
    assert run("binarize", table, "-o", coder, "--bits", 16, "--method", "lsh").returncode == 0
    vectors = pq.read_table(table)["vector"].to_pylist()
    vectors[4], vectors[7] = [float("nan")] * 8, None
    ids = [*(f"r{row}" for row in range(299)), "r2"]
    columns = {"vector": vectors, "id": ids, "row": range(300)}
    pq.write_table(pa.table(columns), table)
    add = ["add", collection, table, "--coder", coder, "--columns", "row", *keep]
    assert run(*add, "--skip-bad", "--repeats", "first").returncode == 0
    kept = [row for row in range(299) if row not in (4, 7)]
    assert embits.load(collection).ids().tolist() == [f"r{row}" for row in kept]
    assert embits.load(collection).get(rows=np.arange(297))["row"] == kept


def test_an_update_does_not_empty_columns(table):
    coder, collection = table.with_name("coder"), table.with_name("c")
    assert run("binarize", table, "-o", coder, "--bits", 16, "--method", "lsh").returncode == 0
    add = ["add", collection, table, "--coder", coder]
    assert run(*add, "--columns", "category,name").returncode == 0
    done = run(*add[:3], "--update", "--columns", "name")
    assert done.returncode == 2
    assert "--columns would empty category of updated rows: name all" in messages(done.stderr)
    for options in ([], ["--columns", "name,category"]):
        assert run(*add[:3], "--update", *options).returncode == 0
        assert embits.load(collection).get(["0"])["category"] == ["x"]


def test_values_with_open_quotes_are_refused(table):
    coder, collection = table.with_name("coder"), table.with_name("c")
    assert run("binarize", table, "-o", coder, "--bits", 16, "--method", "lsh").returncode == 0
    values = pa.array(['say "hi"', "x"] * 150)
    pq.write_table(pq.read_table(table).append_column("said", values), table)
    add = ["add", collection, table, "--coder", coder, "--columns", "said"]
    assert run(*add).returncode == 0
    for condition in ('said = "say', "said = 'x", 'said = "say \\"hi\\""'):
        done = run("remove", collection, "--where", condition)
        assert done.returncode == 2
        assert "the value has quotes within or an open one" in messages(done.stderr)
    assert run("remove", collection, "--where", "said = 'say \"hi\"'").returncode == 0
    assert len(embits.load(collection)) == 150
