"""The folder that a job wrote is a collection."""

import numpy as np
import pytest

import embits

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")


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
    table = pa.table({"vector": fixed(matrix[:3]), "id": ["a", "b", "a"]})
    on_ray.encode(ray.data.from_arrow(table), coder, tmp_path / "out", ids="id")
    with pytest.raises(embits.FormatError, match=r"column 'id': .*'a' appears twice"):
        embits.load(tmp_path / "out")
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix[:3]))


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
