"""Codes in SQLite: what an export writes, replaces and refuses."""

import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.errors import InputError
from embits.integrations import export
from tests.support.codes import of_codes, random_codes

pytest.importorskip("sqlite_vec")
sqlite = pytest.importorskip("embits.integrations.sqlite")


@settings(max_examples=25)
@given(st.data())
def test_what_goes_in_comes_out(memory_path_factory, data):
    n_bits = data.draw(st.integers(1, 130))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    words = data.draw(st.one_of(st.none(), st.lists(text, max_size=20, unique=True)))
    n = data.draw(st.integers(0, 20)) if words is None else len(words)
    codes = random_codes(n, n_bits, seed=n_bits)
    path = memory_path_factory / "round.db"
    export(of_codes(codes, n_bits, words), "sqlite", str(path))
    back = sqlite.read(path, of_codes(codes, n_bits).coder)
    assert list(back.words) == (words if words is not None else [str(row) for row in range(n)])
    np.testing.assert_array_equal(back.codes, codes)
    for row, word in enumerate(words or ()):
        assert all(each.row != row for each in sqlite.nearest(path, word))


@pytest.fixture(scope="module")
def memory_path_factory(tmp_path_factory):
    return tmp_path_factory.mktemp("sqlite")


def test_no_rows_are_a_database_too(tmp_path):
    path = tmp_path / "empty.db"
    export(of_codes(random_codes(0, 65), 65, []), "sqlite", str(path))
    assert sqlite.nearest(path, random_codes(1, 65)[0]) == []
    assert list(sqlite.read(path, of_codes(random_codes(0, 65), 65).coder).words) == []


def test_what_the_codes_are_is_in_the_file(tmp_path, bits):
    export(bits, "sqlite", str(tmp_path / "codes.db"))
    connection = sqlite.connect(tmp_path / "codes.db")
    facts = dict(connection.execute("select name, value from embits").fetchall())
    connection.close()
    assert len(facts.pop("digest")) == len(facts.pop("coder")) == 32
    assert facts == {"version": embits.__version__, "rows": 600, "bits": 100, "dims": 24,
                     "method": "paper", "words": 1}  # fmt: skip


def test_a_second_export_replaces_the_first(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(of_codes(random_codes(9, 8), 8), "sqlite", str(path))
    done = []
    export(bits, "sqlite", str(path), progress=lambda *each: done.append(each))
    assert list(sqlite.read(path, bits.coder).words) == list(bits.words)
    assert done == [(600, 600)]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "added"),
    [
        ("create table notes (text)", "the table 'notes'"),
        ("create table codes_mine (text)", "the table 'codes_mine'"),
        ("create view short as select word from words", "the view 'short'"),
        ("create index by_length on words (length(word))", "the index 'by_length'"),
        ("alter table words add column title text", "columns in 'words'"),
        ("insert into words values (10000, 'mine')", "rows in 'words'"),
        ("insert into embits values ('mine', 1)", "a row in 'embits'"),
        ("update words set word = 'mine' where id = 7", "changed rows"),
    ],
)
def test_a_second_export_does_not_drop_what_people_added(tmp_path, bits, change, added):
    import sqlite3

    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.execute(change)
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"has {added} that embits did not write"):
        export(bits, "sqlite", str(path))
    assert path.read_bytes() == before


def test_an_export_that_fails_leaves_the_old_file(tmp_path, bits):
    path = tmp_path / "codes.db"
    export(bits, "sqlite", str(path))
    before = path.read_bytes()

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(of_codes(random_codes(9, 8), 8), "sqlite", str(path), progress=interrupt)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


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
    with pytest.raises(InputError, match="at most 8,192 bits, the codes have 8,193"):
        export(of_codes(random_codes(3, 8193), 8193), "sqlite", str(tmp_path / "wider.db"))


def test_the_command_writes_it_beside_odd_names(tmp_path, saved):
    target = tmp_path / "ünd #1?.db"
    command = ["export", str(saved), "--to", "sqlite", "-o", str(target), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "embits", *command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == target.stat().st_size
    assert sqlite.nearest(target, "word7", 3)


def test_what_is_no_binary_vectors_is_refused(tmp_path):
    with pytest.raises(InputError, match="bits is ndarray, expected BinaryVectors"):
        sqlite.export(np.zeros((3, 8)), str(tmp_path / "codes.db"))
