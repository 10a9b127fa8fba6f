"""A file that is not there: one wording wherever a file is read."""

import copy
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.errors import MissingFileError
from embits.evaluation import DataFolder
from embits.evaluation.data import read_labelled, read_pairs, read_qrels, read_questions
from tests.support.program import run

READERS = {
    "load": embits.load,
    "read_vectors": embits.read_vectors,
    "read_pairs": read_pairs,
    "read_questions": read_questions,
    "read_labelled": read_labelled,
    "read_qrels": read_qrels,
}


@pytest.mark.parametrize("suffix", ["", ".vec", ".npy", ".safetensors"])
@pytest.mark.parametrize("reader", READERS)
def test_a_missing_file_has_one_wording(tmp_path: Path, reader: str, suffix: str) -> None:
    path = tmp_path / f"absent{suffix}"
    with pytest.raises(embits.ReadError) as refused:
        READERS[reader](path)
    assert str(refused.value) == f"{path}: no such file"
    assert isinstance(refused.value, FileNotFoundError)


def test_a_missing_file_of_words_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(MissingFileError) as refused:
        embits.read_vectors(tmp_path / "x.npy", words=tmp_path / "absent.txt")
    assert str(refused.value) == f"{tmp_path / 'absent.txt'}: no such file"


def test_a_missing_data_set_is_noted_in_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "classification/ag_news").mkdir(parents=True)
    folder = DataFolder(tmp_path)
    assert not list(folder.classification())
    path = tmp_path / "classification/ag_news/train.csv"
    assert folder.problems[0] == f"ag_news is skipped: {path}: no such file"


def test_a_copy_of_the_error_says_the_same() -> None:
    again = copy.copy(MissingFileError("a.vec"))  # by __reduce__, as another process gets it
    assert (str(again), again.filename) == ("a.vec: no such file", "a.vec")


@pytest.mark.parametrize(
    "arguments",
    [
        "binarize absent -o b.safetensors",
        "binarize x.npy --words absent -o b.safetensors",
        "encode absent x.npy -o b.safetensors",
        "encode c.safetensors absent -o b.safetensors",
        "add collection x.npy --coder absent",
        "remove absent 1",
        "search absent x.npy",
        "search c.safetensors absent",
        "search c.safetensors x.npy --where absent",
        "search c.safetensors x.npy --floats absent",
        "info absent",
        "verify absent",
    ],
)
@pytest.mark.parametrize("suffix", ["", ".npy"])
def test_the_command_line_has_the_same_wording(tmp_path: Path, arguments: str, suffix: str) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    embits.binarize(np.eye(3), 8, "lsh").save(tmp_path / "c.safetensors")
    done = run(*arguments.replace("absent", f"absent{suffix}").split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"embits: error: absent{suffix}: no such file\n")
