"""Notes and errors that a new user meets on the command line."""

import json
import sys

import numpy as np
import pytest

import embits
from embits.cli.evaluate import note_missing_figures
from tests.support.program import messages, run

X = np.random.default_rng(0).normal(size=(300, 8)).astype("f4")


@pytest.fixture
def matrix(tmp_path):
    np.save(tmp_path / "docs.npy", X)
    return tmp_path / "docs.npy"


@pytest.fixture
def codes(tmp_path):
    bits = embits.binarize(X, n_bits=16, method="lsh")
    bits.save(tmp_path / "codes.safetensors")
    return tmp_path / "codes.safetensors"


def failed(*args):
    done = run(*args)
    assert done.returncode in (1, 2)
    return messages(done.stderr)


def test_binarize_notes_where_ids_come_from(matrix, tmp_path):
    matrix.with_suffix(".txt").write_text("\n".join(f"doc {row}" for row in range(len(X))))
    done = run("binarize", matrix, "-o", tmp_path / "b.safetensors", "--method", "lsh")
    assert messages(done.stderr) == "embits: note: ids from docs.txt\n"
    assert "as float32" in done.stdout


def test_a_wrong_file_of_words_is_passed_over_on_request(matrix, codes, tmp_path):
    matrix.with_suffix(".tsv").write_text("one line too many\n" * (len(X) + 1))
    assert "--no-ids" in failed("search", codes, matrix)
    assert run("search", codes, matrix, "--no-ids").returncode == 0
    report = ["--report", tmp_path / "r", "--bits", 8, "--methods", "sign", "--no-ids"]
    assert run("compare", matrix, *report).returncode == 0
    scored = json.loads((tmp_path / "r/results.json").read_text())["results"][0]["speed"]
    assert "load_top_10_ms" not in scored


class TestSearch:
    def test_floats_rescore_as_in_python(self, matrix, codes):
        done = run("search", codes, matrix, "-k", 3, "--floats", matrix, "--rescore", 24, "--json")
        found = json.loads(done.stdout)["queries"]
        cosines, rows = embits.load(codes).search(X, 3, rescore=embits.Rescore(24, X))
        for query, values, nearest in zip(found, cosines, rows, strict=True):
            assert [each["id"] for each in query["neighbors"]] == list(map(str, nearest))
            assert [each["cosine"] for each in query["neighbors"]] == pytest.approx(
                values, abs=1e-5
            )

    def test_floats_may_be_text_with_the_words_of_the_codes(self, matrix, tmp_path):
        words = [f"w{row}" for row in range(len(X))]
        bits = embits.binarize(embits.WordVectors(words, X), n_bits=16, method="lsh")
        bits.save(tmp_path / "w.safetensors")
        embits.write_vectors(tmp_path / "w.vec", embits.WordVectors(words, X))
        embits.write_vectors(tmp_path / "other.vec", embits.WordVectors(words[::-1], X))
        options = ["-k", 1, "--tsv", "--rescore", 300, "--floats"]
        done = run("search", tmp_path / "w.safetensors", matrix, *options, tmp_path / "w.vec")
        assert done.stdout.splitlines()[7] == "7\tw7\t1.0"
        np.save(tmp_path / "reversed.npy", X[::-1])  # in another order, with their ids beside them
        (tmp_path / "reversed.words").write_text("\n".join(words[::-1]))
        by_id = run("search", tmp_path / "w.safetensors", matrix, *options,
                    tmp_path / "reversed.npy")  # fmt: skip
        assert by_id.stdout == done.stdout
        error = failed("search", tmp_path / "w.safetensors", matrix, *options,
                       tmp_path / "other.vec")  # fmt: skip
        assert "not the vectors of the codes" in error

    def test_floats_of_another_shape_and_ids_as_queries_are_refused(self, matrix, codes, tmp_path):
        np.save(tmp_path / "few.npy", X[:5])
        assert "(5, 8)" in failed("search", codes, matrix, "--floats", tmp_path / "few.npy")
        (tmp_path / "ids.txt").write_text("7\n")
        error = failed("search", codes, tmp_path / "ids.txt", "--floats", matrix)
        assert "found ids; --floats needs float vectors" in error

    def test_oversample_has_a_range(self, matrix, codes):
        assert "1 or more" in failed("search", codes, matrix, "--floats", matrix, "--oversample", 0)


class TestAdd:
    def test_update_reports_updated_and_added_rows(self, codes, tmp_path):
        for name, words in (("one", ["a", "b"]), ("two", ["a", "b", "c"])):
            embits.write_vectors(
                tmp_path / f"{name}.vec", embits.WordVectors(words, X[: len(words)])
            )
        news = tmp_path / "news"
        assert "2 rows added; " in run("add", news, tmp_path / "one.vec", "--coder", codes).stdout
        done = run("add", news, tmp_path / "two.vec", "--update")
        assert "2 rows updated, 1 row added; 3 rows in" in done.stdout
        done = run("add", news, tmp_path / "two.vec", "--update", "--json")
        assert {"updated": 3, "added": 0}.items() <= json.loads(done.stdout).items()

    def test_errors_name_options(self, matrix, codes, tmp_path):
        news = tmp_path / "news"
        assert "--coder FILE" in failed("add", news, matrix)
        embits.write_vectors(tmp_path / "a.vec", embits.WordVectors(["a"], X[:1]))
        run("add", news, tmp_path / "a.vec", "--coder", codes)
        assert "--words FILE" in failed("add", news, matrix)
        (tmp_path / "ids").write_text("same\n" * len(X))
        error = failed("add", news, matrix, "--words", tmp_path / "ids")
        assert "--repeats first" in error

    def test_a_blank_line_in_a_file_of_words_is_refused(self, matrix, codes, tmp_path):
        ids = [f"doc{row}" for row in range(len(X))]
        ids[6] = ""
        (tmp_path / "ids").write_text("\n".join(ids))
        error = failed("add", tmp_path / "news", matrix, "--words", tmp_path / "ids",
                       "--coder", codes)  # fmt: skip
        assert "ids, row 6: found an empty word" in error


def test_evaluate_refuses_raw_vectors_of_other_dimensions(codes, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((300, 9), "f4"))
    error = failed("evaluate", codes, "--raw", tmp_path / "wide.npy", "--tasks", "speed")
    assert "vectors of 9 dimensions" in error
    assert "was made from 8 dimensions" in error


def test_a_report_without_figures_is_noted(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    note_missing_figures()
    install = "install matplotlib: pip install 'matplotlib>=3.8' (the extra embits[plots])"
    assert capsys.readouterr().err == f"embits: note: for figures, {install}\n"
