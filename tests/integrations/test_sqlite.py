"""Codes in one SQLite file: sqlite-vec's own queries, files of others, and damage."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import embits
from embits.errors import DatabaseError, FormatError, InputError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes

pytest.importorskip("sqlite_vec")
sqlite = pytest.importorskip("embits.integrations.sqlite")


@pytest.fixture
def path(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    return path


def test_answers_beyond_what_sqlite_vec_returns_at_once(tmp_path):
    bits = of_codes(random_codes(5000, 4), 4)
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    for k in (0, 1, 4096, 4999, 10_000):
        assert sqlite.nearest(path, 7, k) == expected(bits, 7, k)


def test_the_bits_and_distances_are_sqlite_vecs_own(tmp_path):
    bits = of_codes(random_codes(2, 65), 65)
    export(bits, "sqlite", str(tmp_path / "codes.db"))
    with contextlib.closing(sqlite.connect(tmp_path / "codes.db")) as connection:
        for row in range(2):
            select = "select vec_to_json(vec_bit(code)) from codes where id = ?"
            stored = json.loads(connection.execute(select, (row,)).fetchone()[0])
            assert stored[:65] == np.unpackbits(bits.codes[row], count=65).tolist()
            assert stored[65:] == [0] * 7
        distance = "select vec_distance_hamming(vec_bit(?), code) from codes where id = 1"
        found = connection.execute(distance, (sqlite.to_blob(bits.codes[0]),)).fetchone()[0]
        assert found == np.bitwise_count(bits.codes[0] ^ bits.codes[1]).sum()


def test_distances_join_and_filter_in_sql(path, bits):
    with contextlib.closing(sqlite.connect(path)) as connection:
        found = connection.execute(
            f"select word, {sqlite.distance(bits['word7'])} as distance, id "
            "from codes join words using (id) where id % 7 = 3 order by distance, id limit 5"
        ).fetchall()
    assert found == [each for each in expected(bits, 7, len(bits)) if each[2] % 7 == 3][:5]


def test_files_of_someone_else_are_refused_and_left_alone(tmp_path, bits):
    path = tmp_path / "precious.db"
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.execute("create table precious (value)")
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a database that embits wrote"):
        export(bits, "sqlite", str(path), overwrite=True)
    assert path.read_bytes() == before
    for contents in (before, b"", b"some text"):
        path.write_bytes(contents)
        with pytest.raises(FormatError, match="not a database that embits wrote"):
            sqlite.nearest(path, "word7")
    (tmp_path / "new.db-wal").touch()
    with pytest.raises(InputError, match="in use"):
        export(bits, "sqlite", str(tmp_path / "new.db"))
    with pytest.raises(FileNotFoundError):
        sqlite.nearest(tmp_path / "nothing.db", "word7")


@pytest.mark.parametrize(
    "change", ["create table codes_mine (text)", "create view short as select word from words"]
)
def test_tables_of_others_are_never_dropped(path, bits, change):
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.execute(change)
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(InputError, match="of someone else"):
        export(bits, "sqlite", str(path), overwrite=True)
    assert path.read_bytes() == before


def test_a_file_cut_short_is_refused_or_still_whole_where_it_is_read(path, bits):
    whole, refused = path.read_bytes(), 0
    for size in np.linspace(100, len(whole) - 1, 20).astype(int).tolist():
        path.write_bytes(whole[:size])
        try:
            back = sqlite.read(path, bits.coder)
        except (DatabaseError, FormatError):
            refused += 1
        else:
            assert list(back.words) == list(bits.words)
            np.testing.assert_array_equal(back.codes, bits.codes)
    assert refused > 10


def test_filters_are_applied_before_the_search(path, bits, tmp_path):
    wanted = [each for each in expected(bits, 7, len(bits)) if each[0].startswith("word59")]
    for k in (3, 11, 2000):  # 2000: every row is compared
        assert sqlite.nearest(path, "word7", k, where="word like 'word59%'") == wanted[:k]
    found = sqlite.nearest(path, "word7", where="word in (?, ?)", params=["word1", "it's"])
    assert [each.word for each in found] == ["word1"]
    export(of_codes(bits.codes, bits.n_bits), "sqlite", str(tmp_path / "rows.db"))
    found = sqlite.nearest(tmp_path / "rows.db", 7, 3, where="id >= 500")
    assert [each.row for each in found] == [r for _, _, r in expected(bits, 7, 600) if r >= 500][:3]


def test_a_join_filters_after_the_search_and_a_subquery_before(path, bits):
    query = (sqlite.to_blob(bits["word7"]),)
    farthest = expected(bits, 7, len(bits))[-1][0]
    joined = "select word from codes join words using (id) where code match vec_bit(?) and k = 10"
    with contextlib.closing(sqlite.connect(path)) as connection:
        after = connection.execute(f"{joined} and word = '{farthest}'", query).fetchall()
        before = connection.execute(
            f"{joined} and codes.id in (select id from words where word = '{farthest}')", query
        ).fetchall()
    assert after == []
    assert before == [(farthest,)]


def test_rows_may_be_updated_added_and_removed(path, bits):
    with contextlib.closing(sqlite.connect(path, writable=True)) as connection:
        code = sqlite.to_blob(bits["word9"])
        # sqlite-vec cannot update a code: an update forgets that the blob is of bits.
        connection.execute("begin")
        connection.execute("delete from codes where id = 7")
        connection.execute("insert into codes (id, code) values (7, vec_bit(?))", (code,))
        connection.execute("commit")
        connection.execute("update words set word = 'new' where id = 7")
        connection.execute("delete from codes where id = 8")
        with pytest.raises(FormatError, match="do not match"):
            sqlite.read(connection, bits.coder)
        connection.execute("delete from words where id = 8")
        connection.execute("insert into codes (id, code) values (999, vec_bit(?))", (code,))
        connection.execute("insert into words values (999, 'more')")
        assert {each.word for each in sqlite.nearest(connection, "word9", 2)} == {"new", "more"}
    back = sqlite.read(path, bits.coder)
    assert [*back.words[6:9], back.words[-1]] == ["word6", "new", "word9", "more"]
    np.testing.assert_array_equal(back["more"], bits["word9"])


def test_what_the_codes_are_is_in_the_file(path, bits, vectors):
    with contextlib.closing(sqlite.connect(path, writable=True)) as connection:
        facts = dict(connection.execute("select name, value from embits").fetchall())
        connection.execute("delete from embits where name = 'coder'")  # as earlier versions wrote
    assert len(facts.pop("coder")) == 32
    assert facts == {"version": embits.__version__, "rows": 600, "bits": 100, "dims": 24,
                     "method": "paper", "words": 1}  # fmt: skip
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    assert len(sqlite.read(path, other)) == len(bits)
    with contextlib.closing(sqlite.connect(path, writable=True)) as connection:
        connection.execute("update embits set value = 'many' where name = 'bits'")
    with pytest.raises(FormatError, match="does not describe the codes"):
        sqlite.read(path, bits.coder)


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no limit on file sizes here")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, saved):
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "sys.argv = ['embits', *sys.argv[1:]]; from embits.cli import main; main()"
    )
    target = str(tmp_path / "codes.db")
    command = [sys.executable, "-c", limited, "export", str(saved), "--to", "sqlite", "-o", target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"embits: error: {target}: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [saved]


def test_codes_wider_than_sqlite_vec_holds_are_refused(tmp_path):
    export(of_codes(random_codes(3, 8192), 8192), "sqlite", str(tmp_path / "wide.db"))
    with pytest.raises(InputError, match="8,193 bits, expected at most 8,192"):
        export(of_codes(random_codes(3, 8193), 8193), "sqlite", str(tmp_path / "wider.db"))


def test_what_is_no_binary_vectors_is_refused(tmp_path):
    with pytest.raises(InputError, match="bits is ndarray, expected BinaryVectors"):
        sqlite.export(np.zeros((3, 8)), str(tmp_path / "codes.db"))
