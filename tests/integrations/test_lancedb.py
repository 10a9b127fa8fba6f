"""Codes in LanceDB: its index, object stores, and tables that embits did not write."""

import numpy as np
import pytest

import embits
from embits.errors import DatabaseError, InputError
from embits.integrations import export
from embits.integrations.table import from_arrow
from tests.support.codes import expected, of_codes
from tests.support.vectors import clustered

lancedb = pytest.importorskip("lancedb", reason="embits[lancedb] is not installed")
pa = pytest.importorskip("pyarrow")
ours = pytest.importorskip("embits.integrations.lancedb")


@pytest.fixture
def path(tmp_path, bits):
    path = tmp_path / "lance"
    export(bits, "lancedb", str(path))
    return path


def test_bits_are_in_the_order_of_embits(tmp_path):
    code = np.packbits([[1, 0, 0, 1, 0, 1, 1, 0, 1]], axis=1)
    export(of_codes(code, 9), "lancedb", str(tmp_path / "lance"))
    table = ours.connect(tmp_path / "lance").open_table("embits")
    assert table.to_arrow()["code"].to_pylist() == [[0b10010110, 0b10000000]]


def test_the_query_in_the_docs_is_exact(path, bits):
    table = lancedb.connect(path).open_table("embits")
    found = (
        table.search(bits["word7"], vector_column_name="code")
        .distance_type("hamming")
        .where("id >= 300")
        .limit(10)
        .to_list()
    )
    wanted = [each for each in expected(bits, 7, len(bits)) if each[2] >= 300][:10]
    assert [each["_distance"] for each in found] == [distance for _, distance, _ in wanted]


def test_some_rows_of_a_table_are_read_through_arrow(path, bits):
    table = ours.connect(path).open_table("embits")
    back = from_arrow(table.search().where("id in (3, 9)").to_arrow().sort_by("id"), bits.coder)
    assert list(back.words) == ["word3", "word9"]
    np.testing.assert_array_equal(back.codes, bits.codes[[3, 9]])


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A database with an index, and the codes in it."""
    bits = embits.binarize(clustered(3000, clusters=300), n_bits=128, method="lsh")
    path = tmp_path_factory.mktemp("lance") / "db"
    facts = export(bits, "lancedb", str(path), index="ivf_flat")
    assert facts["index"] == "ivf_flat"
    return path, bits


def test_the_index_finds_nearly_all_in_a_part_of_its_partitions(indexed, monkeypatch):
    path, bits = indexed
    monkeypatch.setattr(ours, "PARTITIONS", 14)  # of 55
    database, found = ours.connect(path), 0
    for row in range(0, 3000, 60):
        within = expected(bits, row, 10)[-1][1]
        found += sum(each.distance <= within for each in ours.nearest(database, row))
    assert found / 500 >= 0.9


def test_exact_answers_with_an_index_are_ours(indexed):
    path, bits = indexed
    for row in (0, 2999):
        assert ours.nearest(path, row, 10, exact=True) == expected(bits, row, 10)
        assert ours.nearest(path, row, 10) == expected(bits, row, 10)  # 100 of 55 partitions


def test_a_filter_that_leaves_few_rows_searches_more_partitions(indexed, monkeypatch):
    path, _ = indexed
    monkeypatch.setattr(ours, "PARTITIONS", 1)
    found = ours.nearest(path, 0, 3, where="id in (5, 1500, 2990)")
    assert {each.row for each in found} == {5, 1500, 2990}


def test_a_second_export_replaces_a_table_with_an_index(indexed):
    path, bits = indexed
    export(bits, "lancedb", str(path), index="ivf_flat", overwrite=True)
    assert ours.nearest(path, 7, 5, exact=True) == expected(bits, 7, 5)


def test_rows_may_be_updated_added_and_removed(path, bits):
    table = ours.connect(path).open_table("embits")
    more = bits["word9"].tolist()
    table.update(where="id = 7", values={"word": "new", "code": more})
    table.delete("id = 8")
    table.add(pa.table({"id": [999], "word": ["more"], "code": [more]}, schema=table.schema))
    found = {each.word for each in ours.nearest(path, "word9", 2)}
    assert found == {"new", "more"}
    back = ours.read(path, bits.coder)
    assert [*back.words[6:9], back.words[-1]] == ["word6", "new", "word9", "more"]


def test_a_table_of_someone_else_is_refused_and_left_alone(tmp_path, bits):
    path = tmp_path / "lance"
    theirs = lancedb.connect(path)
    theirs.create_table("embits", pa.table({"precious": [1]}))
    with pytest.raises(InputError, match="not one that embits wrote"):
        export(bits, "lancedb", str(path), overwrite=True)
    with pytest.raises(InputError, match="not one that embits wrote"):
        ours.nearest(path, "word7")
    assert theirs.open_table("embits").to_arrow().to_pylist() == [{"precious": 1}]
    export(bits, "lancedb", str(path), table="codes")  # beside it


def test_an_index_of_another_kind_is_refused(tmp_path, bits):
    with pytest.raises(InputError, match="expected"):
        export(bits, "lancedb", str(tmp_path / "lance"), index="hnsw")
    with pytest.raises(InputError, match="needs codes"):
        export(of_codes(bits.codes[:0], 100), "lancedb", str(tmp_path / "lance"), index="ivf_flat")
    assert list(tmp_path.iterdir()) == []


# -- an object store -----------------------------------------------------------------------------


@pytest.fixture
def bucket(monkeypatch):
    """The address of an empty bucket on an S3 server of this machine, set in the environment."""
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "name",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    boto3 = pytest.importorskip("boto3")
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1").create_bucket(
        Bucket="bucket"
    )
    yield "s3://bucket/lance"
    server.stop()


def test_an_object_store_is_written_and_searched(bucket, bits):
    for _ in range(2):
        export(bits, "lancedb", bucket, index="ivf_flat", overwrite=True)
    assert ours.nearest(bucket, "word7", 5, exact=True) == expected(bits, 7, 5)
    found = ours.nearest(bucket, "word7", 3, where="id >= 500")
    assert all(each.row >= 500 for each in found)
    assert list(ours.read(bucket, bits.coder).words) == list(bits.words)


def test_an_object_store_that_cannot_be_reached_is_one_line(bits, monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "name",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": "http://localhost:1",
        "AWS_ALLOW_HTTP": "true",
        "CLIENT_MAX_RETRIES": "0",
        "OBJECT_STORE_CLIENT_MAX_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DatabaseError, match="s3://bucket/lance: ") as caught:
        export(bits, "lancedb", "s3://bucket/lance")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
