"""Parquet files for the jobs of Ray tests, and the workers of a job."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

DIMS = 24


def fixed(matrix, kind="f4"):
    flat = np.ascontiguousarray(matrix.astype(kind)).ravel()
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def write_folder(folder, matrix, files=5, vectors=fixed):
    """Parquet files of unequal length, each with several row groups."""
    folder.mkdir()
    cuts = np.linspace(0, 1, files + 1) ** 1.5 * len(matrix)
    for number, (start, stop) in enumerate(
        zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)
    ):
        table = pa.table(
            {
                "id": np.arange(start, stop),
                "vector": vectors(matrix[start:stop]),
                "word": [f"word{i}" for i in range(start, stop)],
            }
        )
        pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=311)
    return folder


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def spoilt(matrix, how):
    """Row 1,234 is bad in the named way."""
    rows = list(matrix.astype("f8"))
    rows[1234] = {
        "null": None,
        "short": rows[1234][:5],
        "nan": np.full(DIMS, np.nan),
        "huge": np.full(DIMS, 1e300),
        "hole": [None, *rows[1234][1:]],
    }[how]
    return pa.array(rows, pa.list_(pa.float64()))


def busy_workers(task):
    """Processes of this session's Ray that are at work on a task of this name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            title = (entry / "cmdline").read_bytes()
            parents = [int(entry.name)]
            for _ in range(2):
                stat = Path(f"/proc/{parents[-1]}/stat").read_text()
                parents.append(int(stat.rpartition(")")[2].split()[1]))
        except (OSError, ValueError, IndexError):
            continue
        if title.startswith(b"ray::") and task.encode() in title and parents[-1] == os.getpid():
            found.append(int(entry.name))
    return found


def with_ray(*arguments):
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "embits", *map(str, arguments), "--ray-address", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def same(found, expected):
    """Check that two results are equal, with their types."""
    assert type(found) is type(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
