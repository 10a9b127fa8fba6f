"""Writers of a collection, killed at random moments: no change is lost or half-made.

    python stress/collection_kills.py [--kills 1000] [--folder DIR] [--seed 0]

A process adds rows, to the log or as pieces, updates, removes, compacts, with cells or without, and
fits the coder again, and reports each change before and after it. It is killed, and the collection
is opened and verified: it must hold all changes that were reported as made, and the one that was
under way either wholly or not at all; with its columns and kept vectors. Readers refresh all the
time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

import embits
from embits.search.rescoring import rescore_floats

# Before processes are forked: what pyarrow imports takes longer than they live.
pyarrow.array([["a"], None])

# Kept in 16 bits without a loss: a new coder has the planes of the old one, so codes stay.
ROWS = np.random.default_rng(0).normal(size=(500, 16)).astype("f2").astype("f4")
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)

Model = dict[str, int]  # id -> row of ROWS, in row order
Change = tuple[str, list[str], list[int]]


def random_changes(model: Model, seed: int) -> Iterator[Change]:
    """Changes without end; the model follows them. The seed makes the ids unique."""
    rng = random.Random(seed)
    number = 0
    while True:
        kind = rng.choice([*["add"] * 6, "update", "remove", "compact", "refit"])
        if kind == "add":
            number += 1
            n = rng.choice([1, 1, rng.randint(1, 40)])  # a few go to the log
            ids = [f"{seed}-{number}-{i}" for i in range(n)]
        else:
            ids = rng.sample(list(model), min(len(model), rng.randint(1, 20)))
        if kind in ("compact", "refit") or not ids:
            kind, ids = kind if model and kind == "refit" else "compact", []
        change = kind, ids, [rng.randrange(len(ROWS)) for _ in ids]
        if kind == "compact" and rng.random() < 0.5:
            change = kind, ids, [rng.randint(1, 9)]  # cells
        yield change
        apply(model, change)


def apply(model: Model, change: Change) -> None:
    """The change in the plain dictionary."""
    kind, ids, rows = change
    if kind in ("update", "remove"):
        for word in ids:
            del model[word]
    if kind in ("add", "update"):
        model |= dict(zip(ids, rows, strict=True))


def perform(collection: embits.Collection, change: Change) -> None:
    """The change in the collection."""
    kind, ids, rows = change
    if kind == "compact":
        collection.compact(cells=rows[0] if rows else None)
    elif kind == "refit":
        collection.refit()
    elif kind == "remove":
        collection.remove(ids)
    else:
        getattr(collection, kind)(ROWS[rows], ids, columns=columns_of(ids, rows))


def columns_of(ids: list[str], rows: list[int]) -> dict[str, list[Any]]:
    """The columns of rows: a text, a number that some lack, and tags."""
    numbers = [row if row % 5 else None for row in rows]
    tags = [["a"] * (row % 3) for row in rows]
    return {"text": [f"{id} {row}" for id, row in zip(ids, rows, strict=True)],
            "number": numbers, "tags": tags}  # fmt: skip


def has_columns(found: embits.BinaryVectors, model: Model) -> bool:
    """Whether columns and kept vectors are those of the model."""
    if not model:
        return True
    ids, rows = list(model), list(model.values())
    kept = found.search(ROWS[0], len(model), rescore=len(model))
    exact = rescore_floats(ROWS[rows], ROWS[0], np.arange(len(rows)), len(rows))
    is_same = np.array_equal(kept.rows, exact.rows)
    return is_same and found.get(ids) == columns_of(ids, rows)


def write_until_killed(path: Path, model: Model, seed: int, report: int) -> None:
    """The child: reports each change before it makes it, and after."""
    collection = embits.open_collection(path)
    for change in random_changes(model, seed):
        os.write(report, json.dumps(["start", change]).encode() + b"\n")
        perform(collection, change)
        os.write(report, json.dumps(["done", change]).encode() + b"\n")


def read_until_killed(path: Path) -> None:
    """A reader: whatever the writers do, it opens, refreshes and searches."""
    while True:
        collection = embits.open_collection(path)
        for _ in range(5):
            found = collection.search(ROWS[0], 5)
            words, texts = found.ids.tolist(), found.column("text") if len(found.rows) else []
            assert all(t.startswith(w + " ") for w, t in zip(words, texts, strict=True))
            collection.refresh()


def reported(pipe: int) -> list[Any]:
    """The lines that the killed child wrote completely."""
    content = b""
    while part := os.read(pipe, 1 << 16):
        content += part
    os.close(pipe)
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def check(path: Path, model: Model, lines: list[Any]) -> tuple[Model, bool]:
    """The state that was found, and whether a change was under way."""
    for what, change in lines:
        if what == "done":
            apply(model, change)
    under_way = lines[-1][1] if lines and lines[-1][0] == "start" else None
    found = embits.load(path, verify=True)
    words, codes = list(found.words), np.asarray(found.codes)
    allowed = [dict(model)]
    if under_way is not None:
        allowed.append(dict(model))
        apply(allowed[1], under_way)
    for state in allowed:
        is_state = words == list(state) and np.array_equal(codes, CODES[list(state.values())])
        if is_state and has_columns(found, state):
            return state, under_way is not None
    raise AssertionError(f"after {lines[-1:]}: {len(words)} rows, expected {len(model)}")


def forked(function: Any, *arguments: Any) -> int:
    """The number of a child process that runs a function."""
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        finally:
            traceback.print_exc()
            os._exit(3)
    return child


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "c")
        embits.open_collection(path, CODER, keep="float16")
        reader = forked(read_until_killed, path)
        model: Model = {}
        changes = halfway = leftovers = 0
        kinds = Counter[str]()  # of the changes that were under way
        for kill in range(options.kills):
            ours, theirs = os.pipe()
            child = forked(write_until_killed, path, dict(model), kill, theirs)
            os.close(theirs)
            select.select([ours], [], [], 30)  # it has begun: a busy machine takes a while
            time.sleep(rng.uniform(0, 0.2))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines = reported(ours)
            leftovers += len(list(path.glob(".*.tmp")))
            model, was_halfway = check(path, model, lines)
            changes += sum(what == "done" for what, _ in lines)
            halfway += was_halfway
            kinds[lines[-1][1][0] if was_halfway else "none"] += 1
        assert os.waitpid(reader, os.WNOHANG) == (0, 0), "the reader failed"
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
        last = embits.open_collection(path)
        last.add(ROWS[:1], ["last"], columns=columns_of(["last"], [0]))
        left = {each.name for each in path.iterdir()}
        assert left == last.manifest.files() | {"_lock"}, "leftovers are deleted"
    print(
        f"{options.kills} kills, {halfway} of them in a change, {leftovers} incomplete files; "
        f"{changes} changes were made, and none was lost; under way: {dict(kinds)}"
    )


if __name__ == "__main__":
    main()
