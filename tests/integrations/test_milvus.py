"""Codes in Milvus Lite: the order of bits, limits, and collections that embits did not write."""

import json
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from embits.errors import DatabaseError, InputError
from embits.integrations import export
from tests.support.codes import expected, of_codes, random_codes

pymilvus = pytest.importorskip("pymilvus", reason="embits[milvus] is not installed")
lite = pytest.importorskip("milvus_lite.server_manager", reason="embits[milvus] is not installed")
ours = pytest.importorskip("embits.integrations.milvus")


@pytest.fixture
def client(tmp_path):
    """A client of an empty file, `codes.db`."""
    client = ours.connect(tmp_path / "codes.db")
    yield client
    client.close()
    lite.server_manager_instance.release_server(str(tmp_path / "codes.db"))


@pytest.fixture
def path(client, tmp_path):
    return str(tmp_path / "codes.db")


def test_bits_are_in_the_order_of_embits(client, path):
    code = np.packbits([[1, 0, 0, 1, 0, 1, 1, 0, 1]], axis=1)
    export(of_codes(code, 9), "milvus", path)
    (found,) = client.get("embits", ids=[0])
    assert found["code"] == [bytes([0b10010110, 0b10000000])]
    fields = {field["name"]: field for field in client.describe_collection("embits")["fields"]}
    assert fields["code"]["params"]["dim"] == 16  # padded


def test_the_query_in_the_docs_is_exact(client, path, bits):
    export(bits, "milvus", path)
    (found,) = client.search(
        "embits",
        data=[bits["word7"].tobytes()],
        limit=10,
        filter="id >= 300",
        output_fields=["word"],
    )
    wanted = [each for each in expected(bits, 7, len(bits)) if each[2] >= 300][:10]
    assert [each["distance"] for each in found] == [distance for _, distance, _ in wanted]


def test_what_the_codes_are_is_in_the_description(client, path, bits):
    export(bits, "milvus", path)
    facts = json.loads(client.describe_collection("embits")["description"])
    assert (facts["bits"], facts["rows"], facts["method"]) == (100, 600, "paper")


def test_rows_may_be_updated_added_and_removed(client, path, bits):
    export(bits, "milvus", path)
    code = bits["word9"].tobytes()
    client.upsert("embits", [{"id": 7, "word": "new", "code": code}])
    client.delete("embits", ids=[8])
    client.insert("embits", [{"id": 999, "word": "more", "code": code}])
    assert {each.word for each in ours.nearest(client, "word9", 2)} == {"new", "more"}
    back = ours.read(client, bits.coder)
    assert [*back.words[6:9], back.words[-1]] == ["word6", "new", "word9", "more"]


def test_a_collection_of_someone_else_is_refused_and_left_alone(client, path, bits):
    client.create_collection("embits", dimension=8)
    client.insert("embits", [{"id": 1, "vector": [0.5] * 8}])
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "milvus", path, overwrite=True)
    assert len(client.get("embits", ids=[1])) == 1
    export(bits, "milvus", path, collection="codes")  # beside it
    assert sorted(client.list_collections()) == ["codes", "embits"]


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path, bits):
    theirs = tmp_path / "precious.db"
    connection = sqlite3.connect(theirs)
    connection.execute("create table precious (value)")
    connection.commit()
    connection.close()
    before = theirs.read_bytes()
    with pytest.raises(InputError, match="not a file of Milvus Lite"):
        export(bits, "milvus", str(theirs), overwrite=True)
    assert theirs.read_bytes() == before


def test_more_rows_than_milvus_returns_are_refused(client, path):
    export(of_codes(random_codes(20_000, 8), 8), "milvus", path)
    assert len(ours.nearest(client, 0, 16_383)) == 16_383
    with pytest.raises(InputError, match="k is 16384, expected"):
        ours.nearest(client, 0, 16_384)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("codes.sqlite", {}, "ends in .db"),
        ("é.db", {}, "ASCII"),
        ("http://me:sec/ret@localhost:1", {}, "put user:password in MILVUS_TOKEN"),
        ("http://me:secret@localhost:x", {}, "put user:password in MILVUS_TOKEN"),
    ],
)
def test_targets_and_options_that_do_not_fit_are_refused(tmp_path, bits, target, options, message):
    if "://" not in target:
        target = str(tmp_path / target)
    with pytest.raises(InputError, match=message) as caught:
        export(bits, "milvus", target, **options)
    assert "ret" not in str(caught.value).replace("returns", "")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_too_long_are_refused(tmp_path):
    bits = of_codes(random_codes(2, 8), 8, ["a", "x" * 65_536])
    with pytest.raises(InputError, match="the id of row 1 has 65,536 bytes"):
        export(bits, "milvus", str(tmp_path / "codes.db"))


def test_a_server_that_cannot_be_reached_is_one_line_without_the_password(bits, monkeypatch):
    monkeypatch.setattr("embits.integrations.milvus.TIMEOUT_S", 1.0)
    monkeypatch.setenv("MILVUS_TOKEN", "me:secret")
    with pytest.raises(DatabaseError, match="http://localhost:1/app: ") as caught:
        export(bits, "milvus", "http://localhost:1/app")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_another_process_has_open_is_one_line(client, path, saved):
    command = ["export", str(saved), "--to", "milvus", "-o", path]
    done = subprocess.run(
        [sys.executable, "-m", "embits", *command], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"embits: error: {path}: ")
    assert done.stderr.count("\n") == 1


def test_a_filter_that_cannot_be_parsed_is_one_line_at_once(client, path, bits):
    export(bits, "milvus", path)
    for where in ("word == {w}", "no such", "id =="):
        with pytest.raises(DatabaseError) as caught:
            ours.nearest(client, "word7", where=where)
        assert "\n" not in str(caught.value)
    assert ours.nearest(client, "word7", 5) == expected(bits, 7, 5)
