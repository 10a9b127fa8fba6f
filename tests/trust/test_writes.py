"""A save that is interrupted, however it is, loses nothing and leaves nothing behind."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.file import atomic
from tests.support.failing_disk import FailAt, failing_disk
from tests.support.vectors import clustered

KILLS = 300


@pytest.fixture(scope="module")
def old():
    return embits.binarize(clustered(200), n_bits=64, method="lsh")


@pytest.fixture(scope="module")
def new():
    return embits.binarize(clustered(300), n_bits=96, method="lsh")


def state_of(path):
    """Which of the two files it is, whole; a damaged one raises."""
    return {64: "old", 96: "new"}[embits.load(path, verify=True).n_bits]


# -- kill -9 ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(memory_path):
    # In a process of its own: a fork of one whose threads hold locks (other tests') may hang.
    done = subprocess.run(
        [sys.executable, "-m", "tests.trust.test_writes", memory_path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def kill_saves(folder):
    """Killed between two saves or in one: a forked child for each, as a start takes a second."""
    path = folder / "f"
    old = embits.binarize(clustered(200), n_bits=64, method="lsh")
    new = embits.binarize(clustered(300), n_bits=96, method="lsh")
    old.save(path)
    rng = random.Random(0)
    found = set()
    start = time.perf_counter()
    new.save(path)
    usual = time.perf_counter() - start
    leftovers = 0
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            while True:
                old.save(path)
                new.save(path)
        time.sleep(rng.uniform(0, 4 * usual))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found.add(state_of(path))
        leftovers += len(list(folder.glob(".f.*.tmp")))
    assert found == {"old", "new"}
    assert leftovers > 0, "no save was ever killed half-way"
    old.save(path)
    assert [p.name for p in folder.iterdir()] == ["f"], "stale files are removed"


def test_only_stale_files_of_ours_are_removed(tmp_path, old):
    alive, dead = os.getpid(), dead_process()
    kept = [
        f".f.{alive}-00000000.tmp",  # its writer may be another thread
        f".g.{dead}-00000000.tmp",  # another file's
        f".f.{dead}-0000000.tmp",
        f".f.{dead}-00000000.tmp.bak",
        f"f.{dead}-00000000.tmp",
        ".f.tmp",
    ]
    for name in (*kept, f".f.{dead}-0123abcd.tmp"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / f".f.{dead}-11111111.tmp").symlink_to(tmp_path / ".f.tmp")
    (tmp_path / f".f.{dead}-22222222.tmp").mkdir()
    old.save(tmp_path / "f")
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {*kept, "f", f".f.{dead}-11111111.tmp", f".f.{dead}-22222222.tmp"}


def test_a_temporary_file_that_is_locked_is_in_use(tmp_path, old):
    """A writer in another container: its number means nothing here, but its lock is held."""
    fcntl = pytest.importorskip("fcntl")
    other = tmp_path / f".f.{dead_process()}-0123abcd.tmp"
    with other.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        old.save(tmp_path / "f")
        assert other.exists()
    old.save(tmp_path / "f")
    assert not other.exists()


def test_a_file_that_is_being_written_is_locked(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with atomic.atomic_write(tmp_path / "f"):
        (temporary,) = tmp_path.glob(".f.*.tmp")
        with temporary.open("rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_temporary_file_of_another_users_process_is_in_use(tmp_path, old, monkeypatch):
    def refused(process, signal):
        raise PermissionError(errno.EPERM, "not yours")

    other = tmp_path / ".f.1-0123abcd.tmp"
    other.write_bytes(b"x")
    monkeypatch.setattr(atomic.os, "kill", refused)
    old.save(tmp_path / "f")
    assert other.exists()


def dead_process():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


# -- a disk that fails -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_every_failing_write_fsync_and_rename_leaves_a_whole_file(
    tmp_path, old, new, number, monkeypatch
):
    path = tmp_path / "f"
    old.save(path)
    outcomes = []
    for n in range(1, 100):
        fail = FailAt(n, number)
        with failing_disk(monkeypatch, fail, opening_folders=True):
            try:
                new.save(path)
                outcomes.append("saved")
            except OSError as error:
                outcomes.append(error.errno)
        assert [p.name for p in tmp_path.iterdir()] == ["f"]
        assert state_of(path) in ("old", "new")
        if outcomes[-1] == "saved":
            break
        if fail.left == 0 and state_of(path) == "new":
            old.save(path)  # it failed after the rename: the new file is there, whole
    assert outcomes[-1] == "saved"
    assert outcomes[:-1] == [number] * len(outcomes[:-1])
    assert (
        len(outcomes) > 10
    )  # open, header, each tensor, flush, fsync, rename, fsync of the folder


def test_a_file_size_limit_is_an_error_that_names_the_file(tmp_path, old):
    program = f"""
import resource, signal
import embits
bits = embits.load({str(tmp_path / "f")!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    bits.save({str(tmp_path / "g")!r})
except OSError as error:
    print(error.filename, error.strerror)
"""
    old.save(tmp_path / "f")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"{tmp_path / 'g'} File too large\n"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.fixture
def full_disk(tmp_path):
    """A real file system of 64 KB, where we may mount one."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True
    )
    if done.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_disk_that_is_full_keeps_the_old_file(full_disk, old):
    path = full_disk / "f"
    old.save(path)
    large = embits.binarize(clustered(9000), n_bits=96, method="lsh")
    with pytest.raises(OSError, match="No space left on device") as error:
        large.save(path)
    assert error.value.filename == str(path)
    assert state_of(path) == "old"
    assert [p.name for p in full_disk.iterdir()] == ["f"]


# -- readers and other writers ---------------------------------------------------------------------


def test_a_reader_keeps_the_file_it_opened_whatever_is_saved_over_it(tmp_path, old, new):
    path = tmp_path / "f"
    old.save(path)
    reader = embits.load(path)
    before = reader.most_similar(3)
    for _ in range(5):
        new.save(path)
        assert reader.most_similar(3) == before
        assert np.array_equal(reader.codes, old.codes)
    assert state_of(path) == "new"


def test_an_interrupt_leaves_nothing(tmp_path):
    def interrupted(stop):
        with atomic.atomic_write(tmp_path / "f") as file:
            file.write(b"half")
            raise stop

    for stop in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(stop):
            interrupted(stop)
    assert list(tmp_path.iterdir()) == []


def test_files_have_the_mode_that_the_umask_gives(tmp_path, old):
    before = os.umask(0o027)
    try:
        old.save(tmp_path / "f")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("replaced", [None, 0o644])
def test_nobody_else_may_open_a_file_while_it_is_written(tmp_path, old, monkeypatch, replaced):
    path, modes = tmp_path / "f", []
    if replaced:
        path.touch(replaced)

    def fsync(handle, real=os.fsync):
        modes.append(os.fstat(handle).st_mode)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    before = os.umask(0)
    try:
        with atomic.atomic_write(path) as file:
            modes.append(os.fstat(file.fileno()).st_mode)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(mode) for mode in modes if stat.S_ISREG(mode)] == [0o600, 0o600]
    assert stat.S_IMODE(path.stat().st_mode) == (replaced or 0o666)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, old):
    path = tmp_path / "bits.safetensors"
    old.save(path)
    path.chmod(0o600)
    old.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


if __name__ == "__main__":
    kill_saves(Path(sys.argv[1]))
