"""Output files: inputs and files of others are not overwritten, and a suffix means its format."""

import json
import shutil

import pytest

import embits
from embits.cli.output import one_line
from embits.evaluation.report import PICTURE_FORMATS
from tests.support.program import messages, run

FAST = ["--method", "lsh", "--bits", "32"]


@pytest.fixture
def folder(tmp_path, vectors, bits):
    embits.write_vectors(tmp_path / "v.npy", vectors)
    bits.save(tmp_path / "b.safetensors")
    (tmp_path / "notes.md").write_text("my notes")
    shutil.copy(tmp_path / "v.words", tmp_path / "w.txt")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        ["binarize", "v.npy", "-o", "v.npy", *FAST],
        ["binarize", "v.npy", "-o", "w.txt", "--words", "w.txt", *FAST],
        ["encode", "b.safetensors", "v.npy", "-o", "v.npy"],
        ["encode", "b.safetensors", "v.npy", "-o", "b.safetensors"],
        ["encode", "b.safetensors", "v.npy", "-o", "link"],
        ["decode", "b.safetensors", "-o", "b.safetensors"],
        ["export", "b.safetensors", "--to", "npy", "-o", "b.safetensors"],
        ["picture", "b.safetensors", "word1", "-o", "link.png"],
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_input_is_never_overwritten(folder, command, force):
    (folder / "link").symlink_to(folder / "v.npy")
    (folder / "link.png").hardlink_to(folder / "b.safetensors")
    before = contents(folder)
    done = run(*command, *force, cwd=folder)
    assert done.returncode == 1
    assert "is an input of this job" in done.stderr
    assert len(messages(done.stderr).splitlines()) == 1
    assert contents(folder) == before


FOREIGN = [
    (["binarize", "v.npy", "-o", "notes.md", *FAST], "notes.md"),
    (["encode", "b.safetensors", "v.npy", "-o", "notes.md"], "notes.md"),
    (["decode", "b.safetensors", "-o", "notes.vec"], "notes.vec"),
    (["decode", "b.safetensors", "-o", "new.npy"], "new.words"),
    (["export", "b.safetensors", "--to", "npy", "-o", "notes.npy"], "notes.npy"),
    (["export", "b.safetensors", "--to", "npy", "-o", "new.npy"], "new.words"),
    (["export", "b.safetensors", "--to", "paper", "-o", "notes.md"], "notes.md"),
    (["picture", "b.safetensors", "word1", "-o", "notes.png"], "notes.png"),
]


@pytest.mark.parametrize(("command", "target"), FOREIGN)
def test_a_file_that_embits_did_not_write_is_replaced_only_with_force(folder, command, target):
    (folder / target).write_text("my own work")
    before = contents(folder)
    done = run(*command, cwd=folder)
    assert done.returncode == 1
    assert f"{target} exists: choose another output, or overwrite it" in done.stderr
    assert "--force" in done.stderr
    assert contents(folder) == before
    done = run(*command, "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / target).read_bytes() != before[target]


def test_a_file_that_embits_wrote_is_replaced(folder):
    for command in (["binarize", "v.npy", *FAST], ["encode", "b.safetensors", "v.npy"]):
        done = run(*command, "-o", "x.safetensors", cwd=folder)
        assert done.returncode == 0, done.stderr
    assert embits.load(folder / "x.safetensors").n_bits == 100


@pytest.mark.parametrize(
    "command",
    [
        ["decode", "b.safetensors", "-o", "c.safetensors"],
        ["export", "b.safetensors", "--to", "npy", "-o", "c.safetensors"],
        ["export", "b.safetensors", "--to", "sqlite", "-o", "c.safetensors"],
        ["picture", "b.safetensors", "word1", "-o", "c.png"],
    ],
)
def test_an_output_without_codes_does_not_replace_a_file_of_codes(folder, command):
    for name in ("c.safetensors", "c.png"):
        shutil.copy(folder / "b.safetensors", folder / name)
    before = contents(folder)
    done = run(*command, cwd=folder)
    assert done.returncode == 1
    assert command[-1] in done.stderr
    assert contents(folder) == before


def test_a_picture_has_the_format_of_its_suffix(folder):
    pytest.importorskip("matplotlib")  # for .svg and .pdf
    starts = {".png": b"\x89PNG\r\n", ".svg": b"<?xml ", ".pdf": b"%PDF-1."}
    assert set(starts) == set(PICTURE_FORMATS)
    for suffix, start in starts.items():
        done = run("picture", "b.safetensors", "word1", "-o", f"q{suffix.upper()}", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (folder / f"q{suffix.upper()}").read_bytes().startswith(start)
    for name in ("q.jpg", "q"):
        done = run("picture", "b.safetensors", "word1", "-o", name, cwd=folder)
        assert done.returncode == 1
        assert ".png, .svg, .pdf" in done.stderr
        assert not (folder / name).exists()


# -- evaluate --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", ["neighbors", "reconstruction", "neighbors,similarity"])
def test_tasks_that_need_the_floats_ask_for_them(folder, tasks):
    done = run("evaluate", "b.safetensors", "--tasks", tasks, "--data", ".", cwd=folder)
    assert done.returncode == 2
    assert "give --raw FILE" in done.stderr


def test_an_empty_result_is_an_error(folder):
    (folder / "similarity").mkdir()
    done = run("evaluate", "b.safetensors", "--tasks", "similarity", "--data", ".", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("embits: error: nothing could be scored: similarity is skipped")
    (folder / "similarity/MEN.txt").write_text("no such 1\nwords here 2\n")
    command = ["evaluate", "b.safetensors", "--tasks", "similarity", "--data", ".", "--json"]
    assert run(*command, cwd=folder).returncode == 1
    (folder / "similarity/MEN.txt").write_text("word1 word2 1\nword3 word4 2\n")
    done = run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["similarity"]["MEN"]["pairs"] == 2


COMPARE = ["compare", "v.npy", "--tasks", "neighbors", "--report", "mine", "--methods"]
EVALUATE = ["evaluate", "b.safetensors", "--raw", "v.npy", "--tasks", "neighbors"]


@pytest.mark.parametrize("name", ["report.md", "results.json", "figures"])
def test_a_report_replaces_its_own_files_with_force_and_no_others(folder, name):
    (folder / "mine").mkdir()
    if name == "figures":
        (folder / "mine" / name).mkdir()
    else:
        (folder / "mine" / name).write_text("mine")
    commands = ([*COMPARE, "lsh", "--bits", "32"], [*EVALUATE, "--report", "mine"])
    for command in commands:
        done = run(*command, cwd=folder)
        assert done.returncode == 1
        assert f"{name} exists" in done.stderr
        assert "--force" in done.stderr
    assert [path.name for path in (folder / "mine").iterdir()] == [name]
    (folder / "mine/figures").mkdir(exist_ok=True)
    for kept in ("notes.txt", "figures/mine.png"):
        (folder / "mine" / kept).write_text("mine")
    for command in commands:
        done = run(*command, "--force", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "Table 1. Recall" in (folder / "mine/report.md").read_text()
        for kept in ("notes.txt", "figures/mine.png"):
            assert (folder / "mine" / kept).read_text() == "mine"


def test_compare_adds_methods_and_widths_to_a_report(folder):
    assert run(*COMPARE, "lsh", "--bits", "32", cwd=folder).returncode == 0
    done = run(*COMPARE, "itq", "--bits", "16", "--json", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = [(entry["method"], entry["bits"]) for entry in json.loads(done.stdout)]
    assert found[1:] == [("itq", 16), ("lsh", 32)]
    assert "lsh" in (folder / "mine/report.md").read_text()


@pytest.mark.parametrize(
    "other", [["--limit", "300"], ["--seed", "1"], ["--tasks", "neighbors,speed"]]
)
def test_compare_refuses_a_report_of_other_vectors_tasks_or_seed(folder, other):
    command = [*COMPARE, "lsh", "--bits", "32"]
    assert run(*command, cwd=folder).returncode == 0
    (folder / "mine/report.md").unlink()  # as if it had been interrupted
    shutil.rmtree(folder / "mine/figures")
    (folder / "mine/results.json").unlink()
    done = run(*command, *other, cwd=folder)
    assert done.returncode == 1
    assert "choose another folder for the report" in done.stderr
    assert run(*command, *other, "--force", cwd=folder).returncode == 0


def test_a_comparison_without_scores_is_an_error_each_time(folder):
    (folder / "similarity").mkdir()
    command = ["compare", "v.npy", "--methods", "lsh", "--bits", "32", "--tasks", "similarity"]
    for _ in range(2):
        done = run(*command, "--data", ".", "--report", "none", cwd=folder)
        assert done.returncode == 1
        assert "nothing could be scored: similarity is skipped: no data sets" in done.stderr
    assert not (folder / "none/report.md").exists()


# -- info ------------------------------------------------------------------------------------------


def test_info_shows_how_many_bytes_each_part_takes(folder, bits):
    facts = json.loads(run("info", "b.safetensors", "--json", cwd=folder).stdout)
    parts = facts["parts"]
    assert list(parts) == [
        "codes", "words", "order", "coder", "subwords", "lengths", "cells", "floats", "columns",
        "header",
    ]  # fmt: skip
    assert sum(parts.values()) == facts["bytes"]
    assert (parts["codes"], parts["subwords"]) == (bits.codes.nbytes, 0)
    assert parts["order"] == (600 * 10 + 20 * 10) / 8  # 10 bits a row, and a link for 31 rows
    assert 0 < parts["words"] < len("".join(bits.words))  # they are compressed
    lines = run("info", "b.safetensors", cwd=folder).stdout.splitlines()
    shown = [line.split() for line in lines if line.startswith("  ") and "%" in line]
    assert [name for name, *_ in shown] == ["codes", "ids", "order", "coder", "header"]
    assert [int(size.replace(",", "")) for _, size, *_ in shown] == [
        size for size in parts.values() if size
    ]


def test_a_lack_of_memory_is_one_line_with_advice():
    error = MemoryError("Unable to allocate 32.0 GiB")
    assert one_line(error) == (
        "not enough memory (Unable to allocate 32.0 GiB): use fewer bits or fewer rows"
    )
    assert one_line(MemoryError()) == "not enough memory: use fewer bits or fewer rows"
