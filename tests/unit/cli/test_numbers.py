"""Options that are numbers, and columns of numbers for people."""

import json

import numpy as np
import pytest

import embits
from tests.support.program import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers")
    X = np.random.default_rng(0).normal(size=(60, 12)).astype(np.float32)
    np.save(path / "x.npy", X)
    ids = [f"doc-{row}" for row in range(60)]
    embits.binarize(embits.WordVectors(ids, X), 32, "lsh").save(path / "b.safetensors")
    return path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("search b.safetensors x.npy -k abc",
         "-k: 'abc' is not a valid whole number."),
        ("neighbors b.safetensors doc-1 --topn 0",
         "-k / --topn: 0 is not in the range 1 or more."),
        ("binarize x.npy -o c.safetensors --bits 70000",
         "--bits: 70000 is not in the range 1 to 65536."),
        ("binarize x.npy -o c.safetensors --seed 1.5",
         "--seed: '1.5' is not a valid whole number."),
        ("search b.safetensors x.npy --oversample x",
         "--oversample: 'x' is not a valid number."),
        ("search b.safetensors x.npy --recall nan",
         "--recall: nan is not a number"),
        ("ask b.safetensors x --least nan",
         "--least: nan is not a number"),
    ],
)  # fmt: skip
def test_a_number_that_is_not_accepted_is_named_in_one_line(folder, arguments, says):
    done = run(*arguments.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (2, f"embits: error: {says}\n")


def test_scores_have_four_decimals_and_end_in_one_column(folder):
    arguments = ["search", "b.safetensors", "x.npy", "--metric", "decoded"]
    lines = run(*arguments, cwd=folder).stdout.splitlines()
    answers = json.loads(run(*arguments, "--json", cwd=folder).stdout)["queries"]
    starts = [place for place, line in enumerate(lines) if not line.startswith(" ")]
    assert len(starts) == len(answers) == 60
    for start, answer in zip(starts, answers, strict=True):
        rows = lines[start + 1 : start + 11]
        scores = [f"{each['score']:.4f}" for each in answer["neighbors"]]
        assert [row.split() for row in rows] == [
            [each["id"], score] for each, score in zip(answer["neighbors"], scores, strict=True)
        ]
        assert len({len(row) for row in rows}) == 1


def test_people_read_of_rows_and_programs_of_words(folder):
    shown = run("info", "b.safetensors", cwd=folder).stdout
    assert shown.startswith("rows ")
    assert "bytes per row" in shown
    assert "  ids" in shown
    assert json.loads(run("info", "b.safetensors", "--json", cwd=folder).stdout)["words"] == 60
    assert "(60 rows × 32 bits)" in run("verify", "b.safetensors", cwd=folder).stdout
