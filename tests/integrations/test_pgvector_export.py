"""Codes in Postgres: what an export writes, replaces and refuses."""

import json
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from embits.errors import DatabaseError, InputError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes

psycopg = pytest.importorskip("psycopg")
pgvector = pytest.importorskip("embits.integrations.pgvector")


@hypothesis_settings(max_examples=20)
@given(st.data())
def test_what_goes_in_comes_out(postgres, data):
    n_bits = data.draw(st.integers(1, 130))
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
    words = data.draw(st.one_of(st.none(), st.lists(text, max_size=20, unique=True)))
    n = data.draw(st.integers(0, 20)) if words is None else len(words)
    codes = random_codes(n, n_bits, seed=n_bits)
    export(of_codes(codes, n_bits, words), "pgvector", postgres, table="round", index=False)
    with psycopg.connect(postgres) as connection:
        back = pgvector.read(connection, of_codes(codes, n_bits).coder, "round")
    assert list(back.words) == (words if words is not None else [str(row) for row in range(n)])
    np.testing.assert_array_equal(back.codes, codes)


def test_rows_over_several_blocks_come_back_in_order(connection, postgres):
    n = 40_000
    words = [f"{'ü' * (i % 7)}{i}" for i in range(n)]
    bits = of_codes(random_codes(n, 24), 24, words)
    done = []
    export(bits, "pgvector", postgres, index=False, progress=lambda *each: done.append(each))
    back = pgvector.read(connection, bits.coder)
    assert list(back.words) == words
    np.testing.assert_array_equal(back.codes, bits.codes)
    assert done == [(16384, n), (32768, n), (n, n)]


def test_bits_are_in_postgres_order(connection, postgres):
    export(of_codes(np.packbits([[1, 0, 0, 1, 0, 1, 1, 0, 1]], axis=1), 9), "pgvector", postgres)
    assert connection.execute("select code::text from embits").fetchone() == ("100101101",)


def test_no_rows_are_a_table_too(connection, postgres):
    export(of_codes(random_codes(0, 65), 65, []), "pgvector", postgres, progress=print)
    assert pgvector.nearest(connection, random_codes(1, 65)[0]) == []
    assert list(pgvector.read(connection, of_codes(random_codes(0, 65), 65).coder).words) == []


@pytest.mark.parametrize(
    ("table", "schema", "name"),
    [
        ('my "table"; drop', "public", 'my "table"; drop'),
        ("App.Words", "App", "Words"),
        ('"App"."a.b"', "App", "a.b"),
        ("ü" * 31, "public", "ü" * 31),  # its indexes' names have to be shortened
    ],
)
def test_names_are_taken_as_written(connection, postgres, bits, table, schema, name):
    connection.execute('create schema if not exists "App"')
    for _ in range(2):
        export(bits, "pgvector", postgres, table=table)
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
        export(bits, "pgvector", postgres)
    assert connection.execute("select * from embits").fetchall() == [(1,)]
    with pytest.raises(InputError, match="not one that embits wrote"):
        pgvector.nearest(connection, "word7")
    with pytest.raises(InputError, match="no table nowhere"):
        pgvector.nearest(connection, "word7", table="nowhere")


def test_a_second_export_replaces_the_first_and_keeps_its_grants(connection, postgres, bits):
    connection.execute("drop role if exists reader; create role reader")
    export(of_codes(random_codes(9, 8), 8), "pgvector", postgres)
    connection.execute("grant select on embits to reader; grant select on embits to public")
    export(bits, "pgvector", postgres)
    assert connection.execute("select count(*) from embits").fetchone() == (len(bits),)
    access = "select has_table_privilege('reader', 'embits', 'select')"
    assert connection.execute(access).fetchone() == (True,)
    relations = connection.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace order by 1"
    ).fetchall()
    names = ["embits", "embits_code_idx", "embits_pkey", "embits_word_key"]
    assert [row[0] for row in relations] == names
    connection.execute("drop owned by reader; drop role reader")


@pytest.mark.parametrize(
    ("change", "added"),
    [
        ("alter table embits add column title text", "the column 'title'"),
        ("alter table embits alter column word type varchar(99)", "the column 'word'"),
        ("create index by_length on embits (length(word))", "the index 'by_length'"),
        ("create index first on embits (id) where id < 9", "the index 'first'"),
        ("alter table embits add constraint few check (id < 10000)", "the constraint 'few'"),
        (
            "create table other (id bigint references embits (id))",
            "the foreign key 'other_id_fkey'",
        ),
        ("create rule no_delete as on delete to embits do instead nothing", "the rule 'no_delete'"),
        ("create policy mine on embits using (true)", "the policy 'mine'"),
        (
            "create trigger watch before update on embits for each row "
            "execute function suppress_redundant_updates_trigger()",
            "the trigger 'watch'",
        ),
        ("insert into embits select 9999, word || '!', code from embits where id = 7", "601 rows"),
    ],
)
def test_a_second_export_does_not_drop_what_people_added(connection, postgres, bits, change, added):
    export(bits, "pgvector", postgres)
    connection.execute(change)
    with pytest.raises(InputError, match=f"the table embits has {added}"):
        export(bits, "pgvector", postgres)
    kept = connection.execute("select count(*) from embits").fetchone()[0]
    assert kept == len(bits) + ("rows" in added)


def test_an_export_that_fails_leaves_the_old_table(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    connection.execute("create view depends as select word from embits")
    with pytest.raises(DatabaseError, match="depends on table embits"):
        export(of_codes(random_codes(9, 8), 8), "pgvector", postgres)

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
        target=lambda: [export(each, "pgvector", postgres) for each in (bits, few, bits)]
    )
    writer.start()
    seen = set()
    while writer.is_alive():
        seen.add(connection.execute("select count(*) from embits").fetchone()[0])
    writer.join()
    assert seen <= {len(few), len(bits)}


def test_what_the_codes_are_is_noted_on_the_table(connection, postgres, bits):
    export(bits, "pgvector", postgres)
    (note,) = connection.execute("select obj_description('embits'::regclass)").fetchone()
    facts = json.loads(note)
    assert facts["bits"] == 100
    assert facts["dims"] == 24
    assert facts["method"] == "paper"
    assert facts["rows"] == 600


def test_words_with_nul_are_refused_before_anything_is_sent(bits):
    codes = random_codes(3, 8)
    with pytest.raises(InputError, match=r"'b\\x00' of row 1 has a NUL"):
        export(of_codes(codes, 8, ["a", "b\0", "c"]), "pgvector", "postgresql://nowhere")


def test_codes_too_wide_for_the_index_are_stored_without_it(connection, postgres):
    bits = of_codes(random_codes(20, 64_008), 64_008)
    with pytest.raises(InputError, match="index=false"):
        export(bits, "pgvector", postgres)
    export(bits, "pgvector", postgres, index=False)
    assert pgvector.nearest(connection, 3, 5) == expected(bits, 3, 5)


def test_too_little_memory_for_the_index_is_noted(connection, postgres):
    bits = of_codes(random_codes(800, 512), 512)
    with pytest.warns(UserWarning, match="maintenance_work_mem=1GB"):
        export(bits, "pgvector", postgres, maintenance_work_mem="128kB")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(bits, "pgvector", postgres, maintenance_work_mem="32MB", progress=lambda *_: None)


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
    for more in ([], ["--json"]):
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
    with pytest.raises(DatabaseError, match='ask the owner to run "create extension vector"'):
        export(bits, "pgvector", address)
    export(bits, "pgvector", address, index=False)  # and needs none without an index
    assert pgvector.nearest(connection, "word7", 3) == expected(bits, 7, 3)
    connection.execute("drop owned by plain; drop role plain")


@pytest.mark.parametrize(
    "changes",
    [
        ["update embits set word = 'mine' where id = 7"],
        ["update embits set code = ~code where id = 7"],
        ["delete from embits where id = 7", "update embits set id = 7 where id = 8",
         "insert into embits (id, code, word) select 8, ~code, 'mine' from embits where id = 7"],
    ],
)  # fmt: skip
def test_a_second_export_does_not_drop_rows_that_people_changed(
    connection, postgres, bits, changes
):
    export(bits, "pgvector", postgres, index=False)
    export(bits, "pgvector", postgres, index=False)
    for change in changes:
        connection.execute(change)
    with pytest.raises(InputError, match=r"rows of .* were changed .* drop the table embits"):
        export(bits, "pgvector", postgres, index=False)
