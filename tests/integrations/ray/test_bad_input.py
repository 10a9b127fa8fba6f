"""A job refuses what it cannot read in one line, and replaces nothing that it should not."""

import numpy as np
import pytest

import embits

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.parquet import read_codes, read_column  # noqa: E402
from tests.support.ray_jobs import (  # noqa: E402
    leftovers,
    spoilt,
    write_folder,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("how", ["null", "short", "nan", "huge", "hole"])
def test_bad_rows_are_refused_by_name_or_left_out(how, matrix, coder, tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in/a.parquet"
    table = pa.table({"vector": spoilt(matrix[:2000], how), "id": np.arange(2000)})
    pq.write_table(table, path, row_group_size=500)
    with pytest.raises(embits.ReadError) as caught:
        on_ray.encode(path.parent, coder, tmp_path / "out")
    assert str(caught.value).startswith(f"{path}, column 'vector', row 1234: found ")
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path) == ["in"]

    facts = on_ray.encode(path.parent, coder, tmp_path / "out", on_bad="skip")
    assert (facts["rows"], facts["skipped"]) == (1999, 1)
    good = np.delete(np.arange(2000), 1234)
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix[good]))
    assert np.array_equal(read_column(tmp_path / "out", "id").to_numpy(), good)


def test_a_bad_row_of_a_dataset_is_named_by_what_stands_beside_it(matrix, coder, tmp_path):
    table = pa.table({"vector": spoilt(matrix[:2000], "null"), "id": np.arange(2000)})
    with pytest.raises(embits.ReadError, match="the row of id 1234: found a null"):
        on_ray.encode(ray.data.from_arrow(table), coder, tmp_path / "out")


def test_what_cannot_be_read_is_refused_in_one_line(folder, coder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.parquet").write_text("not Parquet at all")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "ids.parquet")
    pq.write_table(pa.table({"x0": [1.0], "x1": [2.0]}), tmp_path / "floats.parquet")
    wide = embits.RandomHyperplanes(n_bits=8).fit(np.eye(5))
    for source, options, message in [
        (tmp_path / "nowhere", {}, "nowhere"),
        (tmp_path / "empty", {}, "empty"),
        (tmp_path / "text", {}, "a.parquet"),
        (tmp_path / "ids.parquet", {}, "ids.parquet"),
        (tmp_path / "floats.parquet", {}, "floats.parquet"),
        (folder, {"column": "id"}, "'id'"),
        (folder, {"column": "x"}, "'x'"),
        (folder, {"keep": ["x"]}, "'x'"),
        (folder, {"coder": wide}, "found 24 numbers, expected 5"),
    ]:
        options = {"coder": coder, **options}
        with pytest.raises(embits.EmbitsError, match=message) as caught:
            on_ray.encode(source, target=tmp_path / "out", **options)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_replaced_only_when_asked(folder, coder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(embits.InputError, match="1 files"):
        on_ray.encode(folder, coder, tmp_path / "out")
    assert (tmp_path / "out/mine.txt").read_text() == "mine"
    on_ray.encode(folder, coder, tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out/mine.txt").exists()
    assert leftovers(tmp_path) == ["out"]


def test_a_job_that_fails_leaves_the_folder_as_it_was(folder, matrix, coder, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    table = pa.table({"vector": spoilt(matrix[:2000], "null")})
    pq.write_table(table, tmp_path / "bad.parquet", row_group_size=500)
    with pytest.raises(embits.ReadError):
        on_ray.encode(tmp_path / "bad.parquet", coder, tmp_path / "out", overwrite=True)
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_the_vectors_are_never_overwritten(matrix, coder, tmp_path):
    source = write_folder(tmp_path / "in", matrix[:900], files=2)
    before = {path: path.read_bytes() for path in source.iterdir()}
    (tmp_path / "link").symlink_to(source)
    single = source / "000.parquet"
    dataset = ray.data.read_parquet(str(source))
    for vectors, target in [
        (source, source),
        (source, tmp_path / "link"),
        (source, tmp_path),
        (single, source),
        (dataset, source),
        (str(source) + "/", source),
    ]:
        with pytest.raises(embits.InputError, match="may hold the vectors to encode"):
            on_ray.encode(vectors, coder, target, overwrite=True)
    assert {path: path.read_bytes() for path in source.iterdir()} == before
