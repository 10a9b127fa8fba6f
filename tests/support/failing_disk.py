"""A disk that fails at one step of a write."""

import contextlib
import os
from pathlib import Path

from embits.file import atomic


class FailingFile:
    """A file whose n-th write or flush fails, having written half of it."""

    def __init__(self, file, fail):
        self._file, self._fail = file, fail

    def write(self, data):
        if self._fail():
            self._file.write(bytes(data)[: len(data) // 2])
            raise OSError(self._fail.errno, os.strerror(self._fail.errno))
        return self._file.write(data)

    def flush(self):
        if self._fail():
            raise OSError(self._fail.errno, os.strerror(self._fail.errno))
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


class FailAt:
    """Says yes at its n-th call."""

    def __init__(self, n, errno):
        self.left, self.errno = n, errno

    def __call__(self):
        self.left -= 1
        return self.left == 0


@contextlib.contextmanager
def failing_disk(monkeypatch, fail, *, opening_folders=False):
    """Let one of these steps of a write fail: create, write, flush, fsync or rename a file.

    Args:
        fail: A `FailAt`, which counts the steps.
        opening_folders: `os.open`, by which a folder is opened for its fsync, is a step too.
    """

    def failing(real):
        def call(*args, **kwargs):
            if fail():
                raise OSError(fail.errno, os.strerror(fail.errno))
            return real(*args, **kwargs)

        return call

    def opened(path, mode, **kwargs):
        return FailingFile(failing(open)(path, mode, **kwargs), fail)

    real_open = Path.open

    def opened_log(self, mode="r", *args, **kwargs):
        if mode != "r+b":
            return real_open(self, mode, *args, **kwargs)
        return FailingFile(failing(real_open)(self, mode, *args, **kwargs), fail)

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "open", opened, raising=False)
        patched.setattr(Path, "open", opened_log)
        patched.setattr(atomic.os, "fsync", failing(os.fsync))
        patched.setattr(Path, "replace", failing(Path.replace))
        if opening_folders:
            patched.setattr(atomic.os, "open", failing(os.open))
        yield
