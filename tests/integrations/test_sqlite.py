"""Codes go into one SQLite file whole, come back bit for bit, and are found there exactly."""

import contextlib
import json

import numpy as np
import pytest

import embits
from embits.errors import FormatError, InputError, UnknownWordError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes

pytest.importorskip("sqlite_vec")
sqlite = pytest.importorskip("embits.integrations.sqlite")


@pytest.mark.parametrize("n_bits", [1, 65, 256, 512])
@pytest.mark.parametrize("named", [True, False])
def test_answers_are_ours_with_distances_and_ties(tmp_path, n_bits, named):
    words = [f'it\'s "{i}" é' for i in range(1500)] if named else None
    bits = of_codes(random_codes(1500, n_bits), n_bits, words)
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    for row in (0, 7, 1499):
        assert sqlite.nearest(path, bits.words[row], 20) == expected(bits, row, 20)


def test_answers_beyond_what_sqlite_vec_returns_at_once(tmp_path):
    bits = of_codes(random_codes(5000, 4), 4)
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    for k in (0, 1, 4096, 4999, 10_000):
        assert sqlite.nearest(path, 7, k) == expected(bits, 7, k)


def test_asking_by_word_row_code_and_floats(tmp_path, vectors, bits):
    path = tmp_path / "words.db"
    export(bits, "sqlite", str(path))
    connection = sqlite.connect(path)
    by_word = sqlite.nearest(connection, "word7", 5)
    assert by_word == sqlite.nearest(connection, 7, 5) == expected(bits, 7, 5)
    by_code = sqlite.nearest(connection, bits["word7"], 6)
    assert sqlite.nearest(connection, vectors.matrix[7], 6, coder=bits.coder) == by_code
    assert {each for each in by_code if each.row != 7} <= {*sqlite.nearest(connection, 7, 6)}
    connection.close()


def test_the_bits_and_distances_are_sqlite_vecs_own(tmp_path):
    bits = of_codes(random_codes(2, 65), 65)
    export(bits, "sqlite", str(tmp_path / "codes.db"))
    connection = sqlite.connect(tmp_path / "codes.db")
    for row in range(2):
        select = "select vec_to_json(vec_bit(code)) from codes where id = ?"
        stored = json.loads(connection.execute(select, (row,)).fetchone()[0])
        assert stored[:65] == np.unpackbits(bits.codes[row], count=65).tolist()
        assert stored[65:] == [0] * 7
    distance = "select vec_distance_hamming(vec_bit(?), code) from codes where id = 1"
    found = connection.execute(distance, (sqlite.to_blob(bits.codes[0]),)).fetchone()[0]
    assert found == np.bitwise_count(bits.codes[0] ^ bits.codes[1]).sum()
    connection.close()


def test_files_of_someone_else_are_refused_and_left_alone(tmp_path, bits):
    import sqlite3

    path = tmp_path / "precious.db"
    theirs = sqlite3.connect(path)
    theirs.execute("create table precious (value)")
    theirs.commit()
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a database that embits wrote"):
        export(bits, "sqlite", str(path))
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


def test_a_file_cut_short_is_a_format_error_or_still_whole_where_it_is_read(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    whole, refused = path.read_bytes(), 0
    for size in np.linspace(100, len(whole) - 1, 20).astype(int).tolist():
        path.write_bytes(whole[:size])
        try:
            back = sqlite.read(path, bits.coder)
        except FormatError:
            refused += 1
        else:
            assert list(back.words) == list(bits.words)
            np.testing.assert_array_equal(back.codes, bits.codes)
    assert refused > 10


def test_questions_that_do_not_fit_are_refused(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    with pytest.raises(UnknownWordError, match="did you mean 'word7'"):
        sqlite.nearest(path, "WORD7")
    for query in (np.zeros(5, np.uint8), np.full(13, 255, np.uint8), np.zeros(24), 600, -1):
        with pytest.raises(InputError):
            sqlite.nearest(path, query)
    with pytest.raises(InputError, match="k is -1"):
        sqlite.nearest(path, 7, -1)


def test_filters_are_applied_before_the_search(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    wanted = [each for each in expected(bits, 7, len(bits)) if each[0].startswith("word59")]
    for k in (3, 11, 2000):  # 2000: every row is compared
        assert sqlite.nearest(path, "word7", k, where="word like 'word59%'") == wanted[:k]
    found = sqlite.nearest(path, "word7", where="word in (?, ?)", params=["word1", "it's"])
    assert [each.word for each in found] == ["word1"]
    assert sqlite.nearest(path, "word7", where="id < 0") == []
    with pytest.raises(InputError, match="cannot be run: no such column"):
        sqlite.nearest(path, "word7", where="no_such = 1")
    with pytest.raises(InputError, match="where is empty, expected a condition"):
        sqlite.nearest(path, "word7", where="")
    export(of_codes(bits.codes, bits.n_bits), "sqlite", str(tmp_path / "rows.db"))
    found = sqlite.nearest(tmp_path / "rows.db", 7, 3, where="id >= 500")
    assert [each.row for each in found] == [r for _, _, r in expected(bits, 7, 600) if r >= 500][:3]


def test_a_join_filters_after_the_search_and_a_subquery_before(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    query = (sqlite.to_blob(bits["word7"]),)
    joined = "select word from codes join words using (id) where code match vec_bit(?) and k = 5 "
    farthest = expected(bits, 7, 599)[-1][0]
    with contextlib.closing(sqlite.connect(path)) as connection:
        after = connection.execute(f"{joined} and word = '{farthest}'", query).fetchall()
        before = connection.execute(
            f"{joined} and codes.id in (select id from words where word = '{farthest}')", query
        ).fetchall()
    assert after == []
    assert before == [(farthest,)]


def test_rows_may_be_updated_added_and_removed(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    with contextlib.closing(sqlite.connect(path, writable=True)) as connection:
        code = sqlite.to_blob(bits["word9"])
        # sqlite-vec cannot update a code: an update forgets that the blob is of bits.
        connection.execute("begin")
        connection.execute("delete from codes where id = 7")
        connection.execute("insert into codes (id, code) values (7, vec_bit(?))", (code,))
        connection.execute("commit")
        connection.execute("update words set word = 'new' where id = 7")
        connection.execute("delete from codes where id = 8")
        connection.execute("delete from words where id = 8")
        connection.execute("insert into codes (id, code) values (999, vec_bit(?))", (code,))
        connection.execute("insert into words values (999, 'more')")
        assert {each.word for each in sqlite.nearest(connection, "word9", 2)} == {"new", "more"}
    back = sqlite.read(path, bits.coder)
    assert [*back.words[6:9], back.words[-1]] == ["word6", "new", "word9", "more"]
    np.testing.assert_array_equal(back["more"], bits["word9"])
    with pytest.raises(InputError, match="that embits did not write"):
        export(bits, "sqlite", str(path))


def test_row_numbers_stay_with_their_codes_when_rows_are_removed(tmp_path):
    bits = of_codes(random_codes(9, 16), 16)
    export(bits, "sqlite", str(tmp_path / "codes.db"))
    with contextlib.closing(sqlite.connect(tmp_path / "codes.db", writable=True)) as connection:
        connection.execute("delete from codes where id = 3")
    back = sqlite.read(tmp_path / "codes.db", bits.coder)
    assert list(back.words) == ["0", "1", "2", "4", "5", "6", "7", "8"]
    np.testing.assert_array_equal(back["8"], bits.codes[8])


def test_another_coder_of_the_same_width_is_refused(tmp_path, bits, vectors):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    with pytest.raises(InputError, match=r"method 'lsh'\) did not make the codes"):
        sqlite.read(path, other)
    with pytest.raises(InputError, match="did not make the codes"):
        sqlite.nearest(path, vectors.matrix[7], coder=other)
    with contextlib.closing(sqlite.connect(path, writable=True)) as connection:
        connection.execute("delete from embits where name = 'coder'")  # as earlier versions wrote
    assert len(sqlite.read(path, other)) == len(bits)
