"""Codes go into a real Postgres whole, come back bit for bit, and are found there."""

import numpy as np
import pytest

import embits
from embits.errors import DatabaseError, InputError, UnknownWordError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes
from tests.support.vectors import clustered

psycopg = pytest.importorskip("psycopg")
pgvector = pytest.importorskip("embits.integrations.pgvector")


@pytest.mark.parametrize("n_bits", [1, 65, 256, 512])
@pytest.mark.parametrize("index", [True, False])
def test_exact_answers_are_ours_with_distances_and_ties(connection, postgres, n_bits, index):
    words = [f'it\'s "{i}" é' for i in range(400)]
    bits = of_codes(random_codes(400, n_bits), n_bits, words)
    export(bits, "pgvector", postgres, index=index)
    for row in (0, 7, 399):
        assert pgvector.nearest(connection, words[row], 20, exact=True) == expected(bits, row, 20)


def test_the_query_in_the_docs_is_exact_without_the_index(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute("set enable_indexscan = off")
    found = connection.execute(
        "select word, (code <~> (select code from embits where word = 'word7'))::int, id "
        "from embits where word <> 'word7' order by 2, 3 limit 10"
    ).fetchall()
    assert found == expected(bits, 7, 10)


def test_the_index_finds_nearly_all_at_the_documented_settings(connection, postgres):
    vectors = clustered(3000, clusters=300)
    bits = embits.binarize(vectors, n_bits=128, method="lsh")
    export(bits, "pgvector", postgres)
    connection.execute("set enable_seqscan = off; set enable_sort = off")
    plan = connection.execute(
        "explain select id from embits order by code <~> %s::bit(128) limit 10", ("01" * 64,)
    ).fetchall()
    assert "embits_code_idx" in str(plan)
    found = 0
    for row in range(0, 3000, 30):
        within = expected(bits, row, 10)[-1][1]
        found += sum(each.distance <= within for each in pgvector.nearest(connection, row, 10))
    assert found / 1000 >= 0.95


def test_asking_by_word_row_code_and_floats(connection, postgres, vectors, bits):
    export(bits, "pgvector", postgres)
    by_word = pgvector.nearest(connection, "word7", 5, exact=True)
    assert pgvector.nearest(connection, 7, 5, exact=True) == by_word
    by_code = pgvector.nearest(connection, bits["word7"], 6, exact=True)
    assert by_code == [("word7", 0, 7), *by_word] or by_code[0].distance == 0
    asked = vectors.matrix[7]
    assert pgvector.nearest(connection, asked, 6, exact=True, coder=bits.coder) == by_code
    assert len(pgvector.nearest(connection, 7, 1500)) == len(bits) - 1  # more than the index finds


def test_asking_leaves_the_users_transaction_and_settings_alone(postgres, connection, bits):
    export(bits, "pgvector", postgres)
    with psycopg.connect(postgres, row_factory=psycopg.rows.dict_row) as users:
        pgvector.nearest(users, "word7", ef_search=77)
        assert users.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with users.transaction():
            users.execute("set local hnsw.ef_search = 55")
            pgvector.nearest(users, "word7", ef_search=77)
            setting = users.execute("select current_setting('hnsw.ef_search') as ef").fetchone()
        assert setting == {"ef": "55"}


def test_rows_without_words_go_by_their_number(connection, postgres):
    bits = of_codes(random_codes(50, 16), 16)
    export(bits, "pgvector", postgres)
    columns = "select column_name from information_schema.columns where table_name = 'embits'"
    assert {row[0] for row in connection.execute(columns)} == {"id", "code"}
    by_name = pgvector.nearest(connection, "3", 4, exact=True)
    assert by_name == pgvector.nearest(connection, 3, 4, exact=True) == expected(bits, 3, 4)
    for unknown in ("03", "50", "queen"):
        with pytest.raises((UnknownWordError, InputError)):
            pgvector.nearest(connection, unknown)


def test_words_as_long_as_texts_are_stored_and_found(connection, postgres):
    rng = np.random.default_rng(0)
    texts = ["".join(map(chr, rng.integers(33, 0x3000, 5000))) for _ in range(3)]
    export(of_codes(random_codes(3, 8), 8, texts), "pgvector", postgres)
    assert {each.word for each in pgvector.nearest(connection, texts[1])} == {texts[0], texts[2]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 1}, "m is 1, expected a number from 2 to 100"),
        ({"m": 16, "ef_construction": 16}, "ef_construction is 16, expected a number from 32"),
        ({"m": "many"}, "m is 'many'"),
        ({"maintenance_work_mem": "lots"}, "maintenance_work_mem"),
        ({"index": "maybe"}, "index is 'maybe', expected true or false"),
        ({"colour": 1}, "not colour"),
    ],
)
def test_options_out_of_range_are_refused(connection, postgres, bits, options, message):
    with pytest.raises((InputError, DatabaseError), match=message):
        export(bits, "pgvector", postgres, **options)
    assert connection.execute("select 1 from pg_tables where schemaname = 'public'").rowcount == 0


def test_questions_that_do_not_fit_are_refused(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    with pytest.raises(UnknownWordError, match="did you mean 'word7'"):
        pgvector.nearest(connection, "WORD7")
    other = embits.RandomHyperplanes(n_bits=64).fit(np.eye(3))
    for query, coder, message in [
        (np.zeros(5, np.uint8), None, "5 bytes wide, the codes 13"),
        (np.full(13, 255, np.uint8), None, "bits set after its 100"),
        (np.zeros(24), None, "pass the coder"),
        (np.zeros(3), other, "makes 64 bits, the table holds 100"),
        (np.zeros((2, 13), np.uint8), None, "2 dimensions"),
        (600, None, "no row 600"),
    ]:
        with pytest.raises(InputError, match=message):
            pgvector.nearest(connection, query, coder=coder)
    for options in ({"k": -1}, {"ef_search": 0}, {"ef_search": 1001}):
        with pytest.raises(InputError):
            pgvector.nearest(connection, "word7", **options)


def test_pgvector_may_lie_in_a_schema_of_its_own(connection, postgres, bits):
    connection.execute("drop extension if exists vector; create schema if not exists extensions")
    connection.execute("create extension vector schema extensions")
    export(bits, "pgvector", postgres)
    assert len(pgvector.nearest(connection, "word7", 3)) == 3
    connection.execute("drop schema extensions cascade")


@pytest.mark.parametrize("index", [True, False])
def test_filters_are_applied_before_an_exact_search(connection, postgres, bits, index):
    export(bits, "pgvector", postgres, index=index)
    wanted = [each for each in expected(bits, 7, len(bits)) if each[0].startswith("word59")]
    where = "word like 'word59%%'"
    assert pgvector.nearest(connection, "word7", 5, where=where, exact=True) == wanted[:5]
    options = {"where": "word = any(%s) -- mine", "params": [["word1", "it's"]]}
    found = pgvector.nearest(connection, "word7", **options, exact=True)
    assert [each.word for each in found] == ["word1"]
    assert {each.word for each in pgvector.nearest(connection, "word7", **options)} <= {"word1"}
    with pytest.raises(psycopg.Error, match="no_such"):
        pgvector.nearest(connection, "word7", where="no_such = 1")


def test_a_filter_joins_other_tables(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute("create table shelves as select id, id %% 7 as shelf from embits", ())
    where = "id in (select id from shelves where shelf = %s)"
    found = pgvector.nearest(connection, 7, 5, where=where, params=[3], exact=True)
    assert found == [each for each in expected(bits, 7, len(bits)) if each[2] % 7 == 3][:5]


def test_rows_may_be_updated_added_and_removed(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute(
        "update embits set word = 'new', code = (select code from embits where id = 9) where id = 7"
    )
    connection.execute("delete from embits where id = 8")
    connection.execute(
        "insert into embits (id, code, word) select 999, code, 'more' from embits where id = 9"
    )
    found = pgvector.nearest(connection, "word9", 2)  # the index follows
    assert {each.word for each in found} == {"new", "more"}
    back = pgvector.read(connection, bits.coder)
    assert [*back.words[6:9], back.words[-1]] == ["word6", "new", "word9", "more"]
    np.testing.assert_array_equal(back["more"], bits["word9"])


def test_row_numbers_stay_with_their_codes_when_rows_are_removed(connection, postgres):
    bits = of_codes(random_codes(9, 16), 16)
    export(bits, "pgvector", postgres)
    connection.execute("delete from embits where id = 3")
    back = pgvector.read(connection, bits.coder)
    assert list(back.words) == ["0", "1", "2", "4", "5", "6", "7", "8"]
    np.testing.assert_array_equal(back["8"], bits.codes[8])


def test_another_coder_of_the_same_width_is_refused(connection, postgres, bits, vectors):
    export(bits, "pgvector", postgres)
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    with pytest.raises(InputError, match=r"method 'lsh'\) did not make the codes in the table"):
        pgvector.read(connection, other)
    with pytest.raises(InputError, match="did not make the codes"):
        pgvector.nearest(connection, vectors.matrix[7], coder=other)
