"""`embits duplicates`: groups, JSON, files and errors."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import embits
from tests.support.program import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("duplicates")
    X = np.random.default_rng(0).normal(size=(200, 16))
    X = np.vstack([X, X[:3], X[:2] + 0.05])
    ids = [f"doc-{row}" for row in range(len(X))]
    ids[200] = "a\x1bb"
    embits.binarize(X, n_bits=64, method="lsh", ids=ids).save(folder / "ids.safetensors")
    embits.binarize(X, n_bits=64, method="lsh").save(folder / "rows.safetensors")
    return folder


def expected(bits, distance):
    offsets, rows, distances = bits.duplicates(distance)
    groups = [slice(*bounds) for bounds in pairwise(offsets)]
    return [
        {
            "ids": bits.ids(rows[group]).tolist(),
            "rows": rows[group].tolist(),
            "distances": distances[group].tolist(),
        }
        for group in groups
    ]


@pytest.mark.parametrize("file", ["ids.safetensors", "rows.safetensors"])
@pytest.mark.parametrize("distance", [0, 3])
def test_json_has_the_groups_of_python(folder, file, distance):
    done = run("duplicates", file, "--within", distance, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    bits = embits.load(folder / file)
    groups = expected(bits, distance)
    assert len(groups) == 3
    assert found == {
        "file": file,
        "within": distance,
        "rows": 205,
        "groups": groups,
        "duplicates": sum(len(group["rows"]) - 1 for group in groups),
    }


def test_people_see_groups_and_a_count(folder):
    done = run("duplicates", "ids.safetensors", "--within", 0, cwd=folder)
    assert done.stdout == (
        "    0  doc-0\n    0  a\\x1bb\n\n"
        "    0  doc-1\n    0  doc-201\n\n"
        "    0  doc-2\n    0  doc-202\n\n"
        "3 duplicates in 3 groups of 205 rows within 0 of 64 bits\n"
    )
    done = run("duplicates", "rows.safetensors", "--within", 0, cwd=folder)
    assert done.stdout.startswith("    0  0\n    0  200\n\n")
    assert done.stdout.endswith("3 duplicates in 3 groups of 205 rows within 0 of 64 bits\n")


def test_no_duplicates_are_an_empty_list(folder, tmp_path):
    bits = embits.load(folder / "ids.safetensors").subset(rows=np.arange(3, 60))
    bits.save(tmp_path / "few.safetensors")
    done = run("duplicates", tmp_path / "few.safetensors", "--within", 0, "--json")
    assert json.loads(done.stdout)["groups"] == []
    done = run("duplicates", tmp_path / "few.safetensors", "--within", 0)
    assert done.stdout == "0 duplicates in 0 groups of 57 rows within 0 of 64 bits\n"


def test_groups_go_into_a_file(folder, tmp_path):
    command = ["duplicates", "ids.safetensors", "--within", 3]
    printed = run(*command, "--json", cwd=folder).stdout
    done = run(*command, "--json", "-o", tmp_path / "d.json", cwd=folder)
    assert (tmp_path / "d.json").read_text() == printed
    facts = json.loads(done.stdout)
    assert facts == {
        "file": "ids.safetensors", "within": 3, "rows": 205, "groups": 3,
        "duplicates": json.loads(printed)["duplicates"], "output": str(tmp_path / "d.json"),
    }  # fmt: skip
    again = run(*command, "-o", tmp_path / "d.json", cwd=folder)
    assert again.returncode == 1
    assert "exists: choose another output" in again.stderr
    assert (tmp_path / "d.json").read_text() == printed
    forced = run(*command, "-o", tmp_path / "d.json", "--force", cwd=folder)
    assert forced.stdout.endswith(f"within 3 of 64 bits, in {tmp_path / 'd.json'}\n")
    assert "doc-1\n" in (tmp_path / "d.json").read_text()
    onto_itself = run(*command, "-o", "ids.safetensors", "--force", cwd=folder)
    assert onto_itself.returncode == 1
    assert "is an input of this job" in onto_itself.stderr


def test_errors_are_one_line(folder):
    done = run("duplicates", "ids.safetensors", "--within", 65, cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("embits: error: distance is 65")
    assert done.stderr.count("\n") == 1
    for wrong in (["--within", "-1"], ["--within", "few"], []):
        assert run("duplicates", "ids.safetensors", *wrong, cwd=folder).returncode == 2
    missing = run("duplicates", "none.safetensors", "--within", 3, cwd=folder)
    assert missing.returncode == 1
    assert missing.stderr.count("\n") == 1


def test_a_broken_pipe_ends_it_quietly(folder):
    X = np.repeat(np.eye(64), 3000, axis=0)
    embits.binarize(X, n_bits=64, method="lsh").save(folder / "many.safetensors", overwrite=True)
    command = [sys.executable, "-m", "embits", "duplicates", "many.safetensors", "--within", "0"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        program.stdout.readline()
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait() == 141
