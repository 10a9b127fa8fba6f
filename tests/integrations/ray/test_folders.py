"""The folder that a job wrote is a collection."""

import numpy as np
import pytest

import embits

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.parquet import read_codes, read_column  # noqa: E402
from tests.support.ray_jobs import (  # noqa: E402
    fixed,
    leftovers,
)

pytestmark = pytest.mark.slow


def test_load_opens_what_a_job_wrote(folder, coder, matrix, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", ids="word", keep=[])
    bits = embits.load(tmp_path / "out", verify=True)
    assert np.array_equal(bits.codes, coder.transform(matrix))
    assert list(bits.words[:3]) == ["word0", "word1", "word2"]
    assert np.array_equal(bits.encode(matrix[:5]), bits.codes[:5])
    on_ray.encode(folder, coder, tmp_path / "numbers", ids="id")
    assert embits.load(tmp_path / "numbers").words[7] == "7"
    on_ray.encode(folder, coder, tmp_path / "rows")
    assert embits.load(str(tmp_path / "rows")).ids([7]).tolist() == ["7"]


def test_ids_that_cannot_name_rows_are_refused(folder, coder, matrix, tmp_path):
    with pytest.raises(embits.ReadError, match="'vector'"):
        on_ray.encode(folder, coder, tmp_path / "out", ids="vector")
    with pytest.raises(embits.EmbitsError, match="'title'"):
        on_ray.encode(folder, coder, tmp_path / "out", ids="title")
    assert leftovers(tmp_path) == []


def write_files(folder, matrix, ids):
    """A file for each list of ids, with vectors alone if they have none."""
    folder.mkdir()
    rows = iter(matrix)
    for number, some in enumerate(ids):
        table = {"vector": fixed(np.array([next(rows) for _ in some]))}
        pq.write_table(pa.table(table | ({"id": some} if some[0] else {})), folder / f"{number}.pq")


def test_repeated_ids_are_found_by_the_job(coder, matrix, tmp_path):
    write_files(tmp_path / "in", matrix, [["a", "b"], ["c", "a"], ["b"], ["d", "d"]])
    for repeats in ({}, {"repeats": "refuse"}):
        with pytest.raises(embits.ReadError, match=r"'id': found again 'a' in row 3 of all.*--rep"):
            on_ray.encode(tmp_path / "in", coder, tmp_path / "out", ids="id", **repeats)
        assert leftovers(tmp_path) == ["in"]
    with pytest.warns(embits.errors.ReadWarning, match="3 rows with a repeated id left out"):
        facts = on_ray.encode(tmp_path / "in", coder, tmp_path / "out", ids="id", repeats="first")
    assert (facts["rows"], facts["skipped"]) == (4, 0)
    bits = embits.load(tmp_path / "out")
    assert list(bits.words) == ["a", "b", "c", "d"]
    assert np.array_equal(bits.codes, coder.transform(matrix[[0, 1, 2, 5]]))


def test_files_of_vectors_alone_are_encoded(coder, matrix, tmp_path):
    matrix = matrix[:400].copy()
    matrix[[7, 300]] = np.nan
    write_files(tmp_path / "in", matrix, [[None] * 250, [None] * 150])
    facts = on_ray.encode(tmp_path / "in", coder, tmp_path / "out", on_bad="skip")
    assert (facts["rows"], facts["skipped"]) == (398, 2)
    good = coder.transform(np.delete(matrix, [7, 300], axis=0))
    assert np.array_equal(embits.load(tmp_path / "out").codes, good)


def test_finished_parts_of_a_job_that_was_killed_are_used_again(folder, coder, matrix, tmp_path):
    out, again = tmp_path / "out", {"ids": "word", "keep": []}
    on_ray.encode(folder, coder, out, **again)
    (out / "_embits.json").unlink()  # which is written last
    (out / "_coder.safetensors").unlink()
    lost, *parts = sorted(out.iterdir())
    lost.unlink()
    before = [part.stat().st_ino for part in parts]
    with pytest.raises(embits.InputError, match=f"holds {len(parts)} files already"):
        on_ray.encode(folder, coder, out, keep=[])  # another job
    with pytest.warns(embits.errors.ReadWarning, match=f"{len(parts)} finished parts of the same"):
        facts = on_ray.encode(folder, coder, out, **again)
    assert (facts["rows"], facts["skipped"]) == (len(matrix), 0)
    assert [part.stat().st_ino for part in parts] == before
    bits = embits.load(out, verify=True)
    assert np.array_equal(bits.codes, coder.transform(matrix))
    assert list(bits.words[-1:]) == [f"word{len(matrix) - 1}"]


def test_load_refuses_damage_in_a_part(folder, coder, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", keep=[])
    part = min(tmp_path.glob("out/*.parquet"))
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)
    with pytest.raises(embits.FormatError, match="damaged: part-00000"):
        embits.load(tmp_path / "out")


def test_a_folder_of_something_else_is_refused_in_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(embits.FormatError, match=r"no _embits.json: .* not a collection"):
        embits.load(tmp_path)


def test_an_unfinished_or_damaged_folder_is_refused(folder, coder, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", keep=[])
    max(tmp_path.glob("out/part-00001*")).rename(tmp_path / "hidden")
    with pytest.raises(embits.FormatError, match="part-00001"):
        read_codes(tmp_path / "out")
    with pytest.raises(embits.ReadError, match="expected one named 'id'"):
        read_column(tmp_path / "out", "id")
    (tmp_path / "out/_embits.json").unlink()
    with pytest.raises(embits.FormatError, match="has not finished"):
        read_codes(tmp_path / "out")
