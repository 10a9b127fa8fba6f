"""Codes in a real Postgres: its index, SQL, names, and tables that embits did not write."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import embits
from embits.errors import DatabaseError, InputError, UnknownWordError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes
from tests.support.vectors import clustered

psycopg = pytest.importorskip("psycopg")
pgvector = pytest.importorskip("embits.integrations.pgvector")


def test_the_query_in_the_docs_is_exact_without_the_index(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute("set enable_indexscan = off")
    found = connection.execute(
        "select word, (code <~> (select code from embits where word = 'word7'))::int, id "
        "from embits where word <> 'word7' order by 2, 3 limit 10"
    ).fetchall()
    assert found == expected(bits, 7, 10)


def test_distance_is_an_expression_for_ones_own_sql(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    for exact in (True, False):
        distance = pgvector.distance(bits["word7"], bits.n_bits, exact=exact)
        found = connection.execute(
            f"select id, ({distance})::int from embits where id % 7 = 3 order by 2, 1 limit 5"
        ).fetchall()
        wanted = [each for each in expected(bits, 7, len(bits)) if each[2] % 7 == 3]
        assert found == [(row, distance) for _, distance, row in wanted[:5]]


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


def test_asking_leaves_the_users_transaction_and_settings_alone(postgres, connection, bits):
    export(bits, "pgvector", postgres)
    with psycopg.connect(postgres, row_factory=psycopg.rows.dict_row) as users:
        pgvector.nearest(users, "word7")
        assert users.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with users.transaction():
            users.execute("set local hnsw.ef_search = 555")
            pgvector.nearest(users, "word7")
            setting = users.execute("select current_setting('hnsw.ef_search') as ef").fetchone()
        assert setting == {"ef": "555"}


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
        ({"index": "maybe"}, "index is 'maybe', expected true or false"),
        ({"colour": 1}, "not colour"),
    ],
)
def test_options_out_of_range_are_refused(connection, postgres, bits, options, message):
    with pytest.raises((InputError, DatabaseError), match=message):
        export(bits, "pgvector", postgres, **options)
    assert connection.execute("select 1 from pg_tables where schemaname = 'public'").rowcount == 0


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


def test_bits_are_in_postgres_order(connection, postgres):
    export(of_codes(np.packbits([[1, 0, 0, 1, 0, 1, 1, 0, 1]], axis=1), 9), "pgvector", postgres)
    assert connection.execute("select code::text from embits").fetchone() == ("100101101",)


@pytest.mark.parametrize(
    ("table", "schema", "name"),
    [
        ('my "table"; drop', "public", 'my "table"; drop'),
        ("App.Words", "App", "Words"),
        ("ü" * 31, "public", "ü" * 31),  # its indexes' names have to be shortened
    ],
)
def test_names_are_taken_as_written(connection, postgres, bits, table, schema, name):
    connection.execute('create schema if not exists "App"')
    for _ in range(2):
        export(bits, "pgvector", postgres, table=table, overwrite=True)
    found = connection.execute(
        "select schemaname, tablename from pg_tables where schemaname in ('App', 'public')"
    ).fetchall()
    assert found == [(schema, name)]
    assert len(pgvector.nearest(connection, "word7", table=table)) == 10
    connection.execute('drop schema "App" cascade')


@pytest.mark.parametrize("table", ["a.b.c", "", "a.", "n" * 64, "a\0b"])
def test_what_is_no_name_is_refused(postgres, bits, table):
    with pytest.raises(InputError):
        export(bits, "pgvector", postgres, table=table)


def test_a_table_of_someone_else_is_refused_and_left_alone(connection, postgres, bits):
    connection.execute("create table embits as select 1 as precious")
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "pgvector", postgres, overwrite=True)
    assert connection.execute("select * from embits").fetchall() == [(1,)]
    with pytest.raises(InputError, match="not one that embits wrote"):
        pgvector.nearest(connection, "word7")
    with pytest.raises(InputError, match="no table nowhere"):
        pgvector.nearest(connection, "word7", table="nowhere")


def test_a_second_export_replaces_the_first_and_its_indexes(connection, postgres, bits):
    export(of_codes(random_codes(9, 8), 8), "pgvector", postgres)
    export(bits, "pgvector", postgres, overwrite=True)
    assert connection.execute("select count(*) from embits").fetchone() == (len(bits),)
    relations = connection.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace order by 1"
    ).fetchall()
    names = ["embits", "embits_code_idx", "embits_pkey", "embits_word_key"]
    assert [row[0] for row in relations] == names


def test_an_export_that_fails_leaves_the_old_table(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute("create view depends as select word from embits")
    with pytest.raises(DatabaseError, match="depends on table embits"):
        export(of_codes(random_codes(9, 8), 8), "pgvector", postgres, overwrite=True)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(bits, "pgvector", postgres, table="other", progress=interrupt)
    tables = connection.execute("select tablename from pg_tables where schemaname = 'public'")
    assert tables.fetchall() == [("embits",)]
    assert connection.execute("select count(*) from depends").fetchone() == (len(bits),)


def test_readers_see_the_old_table_or_the_new_one(connection, postgres, bits):
    few = of_codes(random_codes(9, 8), 8)
    export(few, "pgvector", postgres)
    writer = threading.Thread(
        target=lambda: [
            export(each, "pgvector", postgres, overwrite=True) for each in (bits, few, bits)
        ]
    )
    writer.start()
    seen = set()
    while writer.is_alive():
        seen.add(connection.execute("select count(*) from embits").fetchone()[0])
    writer.join()
    assert seen <= {len(few), len(bits)}


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@localhost:1/db",
        "postgresql://me:sec@ret@localhost:1/db",
        "postgresql://me:sec/ret@localhost:1/db",
        "postgresql://me:se%cret@localhost:1/db",
        "host=localhost port=1 password=secret",
        "secret",
    ],
)
def test_an_address_that_fails_gives_one_line_without_the_password(bits, address):
    with pytest.raises((DatabaseError, InputError)) as caught:
        export(bits, "pgvector", address)
    assert "\n" not in str(caught.value)
    assert "sec" not in str(caught.value)
    assert "ret" not in str(caught.value)


def test_the_command_shows_the_address_without_the_password(connection, postgres, saved):
    address = postgres.replace("postgres:@", "postgres:secret@")
    command = ["export", str(saved), "--to", "pgvector", "-o", address, "--option", "table=words"]
    for more in ([], ["--json", "--force"]):
        done = subprocess.run(
            [sys.executable, "-m", "embits", *command, *more], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "secret" not in done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["rows"] == 600
    assert facts["table"] == "words"


def test_a_user_who_may_not_enable_pgvector_is_told_so(connection, postgres, bits):
    connection.execute("drop extension if exists vector; drop role if exists plain")
    connection.execute("create role plain login; grant usage, create on schema public to plain")
    address = postgres.replace("postgres:@", "plain:@")
    with pytest.raises(DatabaseError, match="permission denied to create extension"):
        export(bits, "pgvector", address)
    export(bits, "pgvector", address, index=False)  # and needs none without an index
    assert pgvector.nearest(connection, "word7", 3) == expected(bits, 7, 3)
    connection.execute("drop owned by plain; drop role plain")
