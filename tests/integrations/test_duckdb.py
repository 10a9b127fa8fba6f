"""Codes in DuckDB: SQL on them, and tables that embits did not write."""

import subprocess
import sys

import numpy as np
import pytest

from embits.errors import DatabaseError, FormatError, InputError
from embits.integrations import export
from embits.integrations.table import Description, arrow_tables, from_arrow
from tests.support.codes import expected, of_codes, random_codes

duckdb = pytest.importorskip("duckdb", reason="embits[duckdb] is not installed")
pa = pytest.importorskip("pyarrow")
ours = pytest.importorskip("embits.integrations.duckdb")


@pytest.fixture
def path(tmp_path, bits):
    path = tmp_path / "codes.duckdb"
    export(bits, "duckdb", str(path))
    return path


def test_the_first_bit_is_the_highest_of_the_first_column(tmp_path):
    code = np.zeros((1, 70), dtype=np.uint8)
    code[0, [0, 63, 64]] = 1
    export(of_codes(np.packbits(code, axis=1), 70), "duckdb", str(tmp_path / "a.duckdb"))
    with ours.connect(tmp_path / "a.duckdb") as connection:
        found = connection.execute("select c0, c1 from embits").fetchall()
    assert found == [(2**63 + 1, 2**63)]


def test_distances_join_and_filter_in_sql(path, bits):
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table titles as select id, id % 7 as shelf from embits")
        distance = ours.distance(bits["word7"])
        found = connection.execute(
            f"select word, {distance} as distance, id from embits join titles using (id) "
            "where shelf = 3 order by distance, id limit 5"
        ).fetchall()
    every = [*expected(bits, 7, len(bits)), ("word7", 0, 7)]
    wanted = [each for each in every if each[2] % 7 == 3]
    assert found == sorted(wanted, key=lambda each: (each[1], each[2]))[:5]


def test_pairs_of_rows_are_compared_by_a_join(path, bits):
    with ours.connect(path) as connection:
        found = connection.execute(
            "select b.id, bit_count(xor(a.c0, b.c0))::integer + bit_count(xor(a.c1, b.c1)) as d "
            "from embits a, embits b where a.word = 'word7' and b.id <> a.id "
            "order by d, b.id limit 10"
        ).fetchall()
    assert found == [(row, distance) for _, distance, row in expected(bits, 7, 10)]


def test_values_of_a_filter_are_parameters(path, bits):
    found = ours.nearest(path, "word7", where="word in (?, ?)", params=["word1", "it's"])
    assert [each.word for each in found] == ["word1"]
    assert len(ours.nearest(path, "word7", where="id < 3 -- a comment")) == 3


def test_rows_may_be_updated_added_and_removed(path, bits):
    with duckdb.connect(str(path)) as connection:
        connection.execute("update embits set word = 'new' where id = 7")
        connection.execute("delete from embits where id = 8")
        connection.execute("insert into embits select 999, 'more', c0, c1 from embits where id = 9")
        back = ours.read(connection, bits.coder)
        assert ours.nearest(connection, "more", 1)[0].distance == 0
    assert len(back) == len(bits)
    assert "word8" not in back
    np.testing.assert_array_equal(back["new"], bits["word7"])


@pytest.mark.parametrize(
    "change",
    [
        "comment on table embits is null",
        "drop table embits; create view embits as select 1",
        "drop table embits; create table embits as select 1 as precious",
    ],
)
def test_what_embits_did_not_write_is_never_replaced(path, bits, change):
    with duckdb.connect(str(path)) as connection:
        connection.execute(change)
        before = connection.execute("select * from embits").fetchall()
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "duckdb", str(path), overwrite=True)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("select * from embits").fetchall() == before


def test_other_tables_of_the_database_are_kept(path, bits):
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table precious as select 1 as value")
        connection.execute("create view short as select word from embits")
    few = of_codes(random_codes(9, 8), 8, list("abcdefghi"))
    export(few, "duckdb", str(path), overwrite=True)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("select value from precious").fetchall() == [(1,)]
        assert len(connection.execute("select word from short").fetchall()) == 9


def test_a_parquet_file_of_someone_else_is_refused(tmp_path, bits):
    target = tmp_path / "theirs.parquet"
    duckdb.sql(f"copy (select 1 as id) to '{target}'")
    before = target.read_bytes()
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "duckdb", str(target), overwrite=True)
    assert target.read_bytes() == before


def test_a_private_parquet_file_that_is_replaced_stays_private(tmp_path, bits):
    target = tmp_path / "codes.parquet"
    export(bits, "duckdb", str(target))
    target.chmod(0o600)
    export(bits, "duckdb", str(target), overwrite=True)
    assert target.stat().st_mode & 0o777 == 0o600


def test_parquet_files_that_duckdb_wrote_for_embits_0_3_are_read(tmp_path, bits):
    path, codes = tmp_path / "codes.parquet", ours_as_arrow(bits)
    text = Description.of(bits).to_json()
    with duckdb.connect() as connection:
        connection.register("codes", codes)
        options = f"format parquet, kv_metadata {{embits: '{text}'}}"
        connection.execute(f"copy (from codes order by id) to '{path}' ({options})")
    assert ours.nearest(path, "word7", 5) == expected(bits, 7, 5)
    np.testing.assert_array_equal(ours.read(path, bits.coder).codes, bits.codes)
    export(bits, "duckdb", str(path), overwrite=True)


def ours_as_arrow(bits):
    return pa.concat_tables(arrow_tables(bits, ours._columns, None)).replace_schema_metadata()


def test_the_rows_of_a_query_are_read_in_its_order(path, bits):
    with ours.connect(path) as connection:
        select = "select * from embits where id % 100 = 7 order by id desc"
        back = from_arrow(connection.sql(select), bits.coder)
    rows = [507, 407, 307, 207, 107, 7]
    assert list(back.words) == [bits.words[row] for row in rows]
    np.testing.assert_array_equal(back.codes, bits.codes[rows])


@pytest.mark.parametrize(
    "select",
    ["c0, c1", "id, word, c0", "id, c0, c1, c0 as c2", "id, c0, nullif(c1, c1) as c1",
     "id, nullif(word, 'word7') as word, c0, c1", "id, [1, 2]::utinyint[] as code"],
)  # fmt: skip
def test_a_query_without_the_codes_of_the_coder_is_refused(path, bits, select):
    with ours.connect(path) as connection, pytest.raises(InputError):
        from_arrow(connection.sql(f"select {select} from embits"), bits.coder)


@pytest.mark.parametrize("size", [4, 40, -1])
def test_a_damaged_parquet_file_is_not_replaced(tmp_path, bits, size):
    path = tmp_path / "codes.parquet"
    export(bits, "duckdb", str(path))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "duckdb", str(path), overwrite=True)
    with pytest.raises((InputError, DatabaseError, FormatError)) as caught:
        ours.read(path, bits.coder)
    assert "\n" not in str(caught.value)


def test_other_programs_read_the_parquet_file(tmp_path, bits):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(bits, "duckdb", str(tmp_path / "codes.parquet"))
    table = parquet.read_table(tmp_path / "codes.parquet")
    assert table.column_names == ["id", "word", "c0", "c1"]
    assert table["word"].to_pylist() == list(bits.words)


def test_what_is_no_database_is_refused(tmp_path, path):
    (tmp_path / "text").write_text("some text, long enough")
    with pytest.raises(FormatError, match="not a DuckDB database"):
        ours.connect(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        ours.nearest(tmp_path / "nothing.duckdb", "word7")
    with pytest.raises(DatabaseError, match="no_such"):
        ours.nearest(path, "word7", where="no_such = 1")
    with pytest.raises(InputError, match="2 dimensions"):
        ours.distance(random_codes(2, 8))


def test_a_damaged_database_is_one_line(path, bits):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatabaseError) as caught:
        ours.read(path, bits.coder)
    assert "\n" not in str(caught.value)


def test_a_database_that_another_process_writes_is_one_line(path, bits):
    held = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    command = [sys.executable, "-c", held, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        for use in (lambda: export(bits, "duckdb", str(path)), lambda: ours.nearest(path, "word7")):
            with pytest.raises(DatabaseError, match="lock") as caught:
                use()
            assert "\n" not in str(caught.value)
        other.communicate(b"\n")
    assert len(ours.read(path, bits.coder)) == len(bits)
