"""Losses of power: what is on the disk if it happens at any moment of a recorded change.

A file's bytes are on the disk once the file is synced, and what a folder lists once the folder is.
What is appended to a file is torn until then: its end is missing, or a part is zeros.
Until then POSIX allows any part of it: each creation, renaming and deletion of a name may be lost
alone. A file that is renamed before its bytes are synced could be empty, and is refused at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Names = dict[Path, bytes | None]  # what a disk holds: files, and folders as None
MAX_PENDING = 6  # of so many, all subsets are tried


@dataclass
class Recorder:
    """The system calls of a change, as (name of the call, path, bytes or other path)."""

    root: Path
    calls: list[tuple] = field(default_factory=list)

    @contextlib.contextmanager
    def recording(self, monkeypatch) -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", self._fsync(os.fsync))
            for name in ("replace", "unlink", "mkdir", "rmdir"):
                patched.setattr(Path, name, self._of_path(name, getattr(Path, name)))
            yield

    def _fsync(self, real):
        def fsync(handle):
            path = Path(f"/proc/self/fd/{handle}").readlink()
            real(handle)
            self.calls.append(("sync", path, None if path.is_dir() else path.read_bytes()))

        return fsync

    def _of_path(self, name, real):
        def call(path, *args, **options):
            result = real(path, *args, **options)
            if self.root in path.absolute().parents:
                target = Path(args[0]).absolute() if name == "replace" else None
                self.calls.append((name, path.absolute(), target))
            return result

        return call


def states(before: Names, calls: list[tuple]) -> Iterator[tuple[int, Names]]:
    """What may be on the disk after the first n calls, for each n."""
    durable, pending, contents = dict(before), [], dict(before)
    yield from ((0, state) for state in _losses(durable, pending))
    for n, (name, path, other) in enumerate(calls, 1):
        if name == "sync" and path in contents and contents[path] is None:
            done = [change for change in pending if change[0].parent == path]
            pending = [change for change in pending if change[0].parent != path]
            _apply(durable, done)
        elif name == "sync" and other is not None:
            if path not in contents:
                pending.append((path, other))
            elif path in durable and path not in {change[0] for change in pending}:
                for torn in _torn(durable[path], other):
                    yield from (
                        (n - 1, state) for state in _losses(durable | {path: torn}, pending)
                    )
                durable[path] = other
            contents[path] = other
        elif name == "replace":
            assert path in contents, "renamed before it was synced"
            contents[other] = contents.pop(path)
            pending.append((other, contents[other], path))
        elif name == "mkdir":
            contents[path] = None
            pending.append((path, None))
        elif name in ("unlink", "rmdir") and path in contents:
            del contents[path]
            pending.append((path,))
        yield from ((n, state) for state in _losses(durable, pending))


def _losses(durable: Names, pending: list[tuple]) -> Iterator[Names]:
    """The durable state with every subset of what is not synced yet, or with many of them."""
    places = range(len(pending))
    if len(pending) <= MAX_PENDING:
        chosen = itertools.chain.from_iterable(
            itertools.combinations(places, size) for size in range(len(pending) + 1)
        )
    else:
        rng = random.Random(len(pending))
        one_lost = [[i for i in places if i != lost] for lost in places]
        some = [[i for i in places if rng.random() < 0.5] for _ in range(60)]
        chosen = iter([*(list(range(i)) for i in range(len(pending) + 1)), *one_lost, *some])
    for subset in chosen:
        state = dict(durable)
        _apply(state, [pending[i] for i in subset])
        yield {  # a folder that is lost takes its files with it
            path: content
            for path, content in state.items()
            if all(each in state or each not in _folders(pending) for each in path.parents)
        }


def _torn(before: bytes, after: bytes) -> Iterator[bytes]:
    """What a disk may hold of bytes that were added to a file, or cut off, and not synced yet."""
    if not after.startswith(before):
        assert before.startswith(after), "bytes of a file were replaced"
        return
    added = after[len(before) :]
    for cut in {0, 1, len(added) // 2, len(added) - 1}:
        yield before + added[:cut]
        yield before + added[:cut] + bytes(len(added) - cut)
        yield before + bytes(cut) + added[cut:]


def _folders(pending: list[tuple]) -> set[Path]:
    return {change[0] for change in pending if len(change) == 2 and change[1] is None}


def _apply(state: Names, changes: list[tuple]) -> None:
    for path, *rest in changes:
        if not rest:
            state.pop(path, None)
            continue
        state[path] = rest[0]
        if len(rest) == 2:  # renamed
            state.pop(rest[1], None)


def written(state: Names, root: Path, target: Path) -> None:
    """Make a state in another folder."""
    for path, content in sorted(state.items()):
        place = target / path.relative_to(root)
        if content is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def on_disk(root: Path) -> Names:
    """All files and folders of a folder, durable."""
    return {path: None if path.is_dir() else path.read_bytes() for path in root.rglob("*")} | {
        root: None
    }
