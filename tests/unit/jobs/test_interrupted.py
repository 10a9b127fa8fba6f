"""Jobs that are stopped are resumed, and give the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import embits
from embits.errors import InputError
from embits.jobs import stream
from tests.support.streaming import in_blocks, noted, words_of, write
from tests.support.vectors import clustered

_JOB = """
import os, signal, sys
import embits, embits.cli
from embits.jobs import stream
from embits.readers import blocks, source
stream.STREAM_FROM = stream.SECONDS_APART = -1
blocks.BLOCK_BYTES = source.CHUNK_BYTES = 1 << 13
end, how, stage, left = {end!r}
real = stream.Stage.save
def save(self, *args, **kwargs):
    global left
    left -= self._name == stage
    if left < 0 and how == "before":
        for file in self.files.values():
            file.flush()
        os.kill(os.getpid(), end)
    real(self, *args, **kwargs)
    if left < 0:
        os.kill(os.getpid(), end)
stream.Stage.save = save
sys.argv = ["embits", *sys.argv[1:]]
embits.cli.main()
"""
NEVER = (0, "", "", 0)


def run_job(folder, args, end=NEVER):
    """A job that ends itself by a signal, before or after a record of a stage, the n-th."""
    return subprocess.run(
        [sys.executable, "-c", _JOB.format(end=(int(end[0]), *end[1:])), *args],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    matrix = clustered(9000, dims=6)
    write(folder, "v.vec", words_of(len(matrix)), matrix)
    np.save(folder / "m.npy", matrix)
    words = [f"w{row}" for row in range(len(matrix))]
    write(folder, "lake", words, matrix)
    embits.binarize(matrix[:100], 16, "lsh").save(folder / "coder.safetensors")
    return folder


COMMANDS = {
    "binarize": ["binarize", "v.vec", "-o", "out", "--bits", "24", "--method", "itq"],
    "rows": ["binarize", "m.npy", "-o", "out", "--bits", "24", "--method", "lsh", "--lengths"],
    "encode": ["encode", "coder.safetensors", "v.vec", "-o", "out"],
    "lake": ["binarize", "lake", "-o", "out", "--bits", "24", "--method", "lsh"],
}


ENDS = {
    "binarize": [("after", "scan", 3), ("before", "scan", 5), ("before", "sample", 1),
                 ("after", "sample", 4), ("before", "fit", 0), ("after", "encode", 1),
                 ("before", "encode", 1)],
    "rows": [("before", "sample", 9), ("after", "fit", 0), ("before", "encode", 2)],
    "encode": [("before", "scan", 9), ("after", "encode", 0), ("before", "encode", 3)],
    "lake": [("before", "scan", 2), ("after", "scan", 9), ("before", "sample", 5),
             ("after", "encode", 1), ("before", "encode", 2)],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_job_that_is_killed_again_and_again_gives_the_same_bytes(killed, name):
    """kill -9 right after a record of a stage, and when more was written than was recorded."""
    assert run_job(killed, COMMANDS[name]).returncode == 0
    expected = (killed / "out").read_bytes()
    (killed / "out").unlink()
    for end in ENDS[name]:
        done = run_job(killed, COMMANDS[name], (signal.SIGKILL, *end))
        assert done.returncode == -signal.SIGKILL, (end, done.stderr)
        assert "starting again" not in done.stderr
        state, _ = (killed / ".out.partial/state.json").read_text().splitlines()
        assert end[0] == "before" or end[1] in json.loads(state)["stages"]
    assert run_job(killed, COMMANDS[name]).returncode == 0
    assert (killed / "out").read_bytes() == expected
    assert not (killed / ".out.partial").exists()
    (killed / "out").unlink()


def test_a_finished_fit_is_not_done_again(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    monkeypatch.setattr(stream, "SECONDS_APART", -1)
    np.save(tmp_path / "m.npy", clustered(5000, dims=6))
    args = tmp_path / "m.npy", tmp_path / "out", 16, "lsh"

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(stream.Passes, "encode", stop)
        with pytest.raises(KeyboardInterrupt, match="run the same command again to resume"):
            embits.binarize_to_file(*args)
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as patched:
        patched.setattr(embits.RandomHyperplanes, "fit", stop)
        bits = embits.binarize_to_file(*args)
    whole = embits.binarize(np.load(tmp_path / "m.npy"), 16, "lsh")
    assert np.array_equal(bits.codes, whole.codes)
    assert {path.name for path in tmp_path.iterdir()} == {"m.npy", "out"}


def interrupted(monkeypatch, *args, **kwargs):
    """Leave the folder of a job that was stopped when all rows were encoded."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(embits.BinaryVectors, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            embits.binarize_to_file(*args, **kwargs)


@pytest.mark.parametrize("change", ["input", "bits", "damage", "huge", "state", "coder", "codes"])
def test_what_another_job_left_is_thrown_away_with_a_word(tmp_path, monkeypatch, change):
    in_blocks(monkeypatch)
    path, target = tmp_path / "m.npy", tmp_path / "out"
    np.save(path, clustered(3000, dims=6))
    interrupted(monkeypatch, path, target, 16, "lsh")
    folder = tmp_path / ".out.partial"
    assert folder.stat().st_mode & 0o777 == 0o700
    n_bits = 24 if change == "bits" else 16
    if change == "input":
        np.save(path, clustered(3000, dims=6, seed=1))
    elif change == "damage":
        (folder / "state.json").write_bytes(b'{"stages": [')
    elif change == "huge":
        os.truncate(folder / "state.json", 1 << 40)
    elif change in ("state", "coder", "codes"):  # one bit of a file, in its middle
        damaged = folder / ("state.json" if change == "state" else change)
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 1
        damaged.write_bytes(content)
    bits, notes = noted(embits.binarize_to_file, path, target, n_bits, "lsh")
    assert ["starting again" in note for note in notes] == [True]
    assert np.array_equal(bits.codes, embits.binarize(np.load(path), n_bits, "lsh").codes)
    assert not folder.exists()


@pytest.mark.parametrize("change", ["another", "changed", "gone"])
def test_all_files_of_a_folder_are_the_input_of_a_job(tmp_path, monkeypatch, change):
    in_blocks(monkeypatch)
    lake, target = tmp_path / "lake", tmp_path / "out"
    lake.mkdir()
    for number in range(3):
        np.save(lake / f"{number}.npy", clustered(900, dims=6, seed=number))
    interrupted(monkeypatch, lake, target, 16, "lsh")
    if change == "gone":
        (lake / "1.npy").unlink()
    else:
        np.save(
            lake / ("1.npy" if change == "changed" else "3.npy"), clustered(900, dims=6, seed=5)
        )
    bits, notes = noted(embits.binarize_to_file, lake, target, 16, "lsh")
    assert ["starting again" in note for note in notes] == [True]
    matrix = np.concatenate([np.load(path) for path in sorted(lake.iterdir())])
    assert np.array_equal(bits.codes, embits.binarize(matrix, 16, "lsh").codes)


def test_two_jobs_do_not_write_one_file(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(3000, dims=6))
    first = stream.Checkpoint(tmp_path / ".out.partial", {})
    with pytest.raises(InputError, match="is locked by process"):
        embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "out", 16, "lsh")
    first.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["m.npy"]


def test_a_link_or_pipe_that_others_prepared_is_not_written(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(3000, dims=6))
    (tmp_path / "mine").write_text("mine")
    folder = tmp_path / ".out.partial"
    folder.symlink_to(tmp_path)
    for prepare in (
        lambda: None,
        lambda: (folder / "_lock").symlink_to(tmp_path / "mine"),
        lambda: (folder / "codes").symlink_to(tmp_path / "mine"),
        lambda: os.mkfifo(folder / "_lock"),
    ):
        prepare()
        with pytest.raises(InputError, match=r"link|regular"):
            embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "out", 16, "lsh")
        assert (tmp_path / "mine").read_text() == "mine"
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()


def test_files_of_others_in_the_folder_stay(tmp_path):
    kept = stream.Checkpoint(tmp_path / ".out.partial", {})
    (tmp_path / ".out.partial/mine").write_text("x")
    kept.remove()
    assert [path.name for path in (tmp_path / ".out.partial").iterdir()] == ["mine"]


def test_ctrl_c_says_that_the_same_command_goes_on(killed):
    done = run_job(killed, COMMANDS["binarize"], (signal.SIGINT, "after", "sample", 2))
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().endswith(".out.partial: run the same command again to resume")
    assert not (killed / "out").exists()
    assert run_job(killed, COMMANDS["binarize"]).returncode == 0
    assert embits.load(killed / "out", verify=True).n_bits == 24
    (killed / "out").unlink()
