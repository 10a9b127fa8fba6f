"""Files of a collection that are damaged, lost or in the way: one clear line, or an answer."""

import datetime
import shutil

import numpy as np
import pytest

import embits
from tests.support import damaged_collections

pa = pytest.importorskip("pyarrow")

GOLDEN = damaged_collections.GOLDEN / "collection-v2"
PIECE, COLUMNS = "piece-00000003.safetensors", "piece-00000003.arrow"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(GOLDEN, tmp_path / "collection")


def test_a_plain_load_notices_a_damaged_coder(folder):
    path = folder / "_coder-00000001.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(embits.FormatError, match="restore it from a copy"):
        embits.load(folder)


@pytest.mark.parametrize("name", [PIECE, COLUMNS, "_coder-00000001.safetensors"])
def test_a_folder_in_place_of_a_file_is_named_in_one_line(name, folder):
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(embits.FormatError, match=rf"{name} cannot be read .*: restore it"):
        embits.load(folder)


@pytest.mark.parametrize("name", [PIECE, COLUMNS])
def test_a_file_that_cannot_be_read_any_more_is_named_before_rows_are_copied(name, folder):
    opened = embits.load(folder).snapshot()
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name)  # a loop
    with pytest.raises(embits.FormatError, match=rf"{name} cannot be read"):
        opened.save(folder.with_name("copy.safetensors"))


def dated(folder):
    """A collection with days and times that Python has not, in all kinds of columns."""
    rows = np.eye(3, 8, dtype="f4")
    coder = embits.RandomHyperplanes(n_bits=16).fit(rows)
    collection = embits.open_collection(folder, coder)
    late = 2**60  # in microseconds
    columns = {
        "day": pa.array([0, 3_000_000, None], pa.int32()).cast(pa.date32()),
        "time": pa.array([late, 0, None], pa.int64()).cast(pa.timestamp("us")),
        "utc": pa.array([0, -late, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "times": pa.array([[0, late], None, []], pa.list_(pa.int64())).cast(
            pa.list_(pa.timestamp("us"))
        ),
    }
    collection.add(rows, ["a", "b", "c"], columns=columns)
    return collection


def test_days_and_times_beyond_those_of_python_are_numpys(tmp_path):
    collection = dated(tmp_path / "c")
    found = embits.load(tmp_path / "c", verify=True).get(["a", "b", "c"])
    assert found["day"] == [datetime.date(1970, 1, 1), np.datetime64(3_000_000, "D"), None]
    assert found["time"] == [np.datetime64(2**60, "us"), datetime.datetime(1970, 1, 1), None]
    assert found["utc"][1:] == [np.datetime64(-(2**60), "us"), None]
    assert found["utc"][0].isoformat() == "1970-01-01T00:00:00+00:00"
    times = [datetime.datetime(1970, 1, 1), np.datetime64(2**60, "us")]
    assert found["times"] == [times, None, []]
    found = collection.search(np.eye(1, 8), 3, where={"time": (datetime.date(2020, 1, 1), None)})
    assert found.ids.tolist() == [["a"]]
    assert found.column("time").tolist() == [[np.datetime64(2**60, "us")]]
    assert collection.to_arrow().num_rows == 3
