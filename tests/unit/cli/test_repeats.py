"""Words of another file that repeat: the command line has the rule that Python has."""

import numpy as np
import pytest

import embits
from tests.support.program import messages, run


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "news.npy", np.random.default_rng(0).normal(size=(40, 8)).astype("f4"))
    texts = [f"text {chr(97 + i % 26)}{i}" for i in range(40)]
    texts[7] = texts[3]
    (tmp_path / "texts.lst").write_text("\n".join(texts) + "\n")
    return tmp_path


@pytest.mark.parametrize("verb", ["binarize", "encode"])
def test_repeats_in_the_file_of_words_are_refused_unless_the_first_is_asked_for(folder, verb):
    out = folder / "out.safetensors"
    binarize = ["binarize", folder / "news.npy", "--bits", 16, "--method", "lsh"]
    assert run(*binarize, "-o", folder / "coder").returncode == 0
    command = binarize if verb == "binarize" else ["encode", folder / "coder", folder / "news.npy"]
    command += ["--words", folder / "texts.lst", "-o", out]
    done = run(*command)
    assert done.returncode != 0
    assert not out.exists()
    assert len(messages(done.stderr).splitlines()) == 1
    assert "row 7: found the word 'text d3' again in " in done.stderr
    with pytest.raises(embits.ReadError, match="row 7: found the word 'text d3' again"):
        embits.read_vectors(folder / "news.npy", words=folder / "texts.lst")
    done = run(*command, "--repeats", "first")
    assert done.returncode == 0, done.stderr
    assert "1 repeated word left out, the first at row 7" in done.stderr
    assert len(embits.load(out)) == 39


def test_rows_keep_their_numbers_so_that_floats_rescore_them(folder):
    texts = (folder / "texts.lst").read_text().splitlines()
    texts[7] = "another"
    (folder / "texts.lst").write_text("\n".join(texts))
    out = folder / "out.safetensors"
    done = run("binarize", folder / "news.npy", "--words", folder / "texts.lst", "-o", out,
               "--bits", 16, "--method", "lsh", "--repeats", "refuse")  # fmt: skip
    assert done.returncode == 0, done.stderr
    matrix = np.load(folder / "news.npy")
    _, rows = embits.load(out).search(matrix[9], 1, rescore=embits.Rescore(by=folder / "news.npy"))
    assert rows.tolist() == [9]
