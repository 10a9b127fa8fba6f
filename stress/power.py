"""Losses of power in random changes of a file and a collection: no change is lost or half-made.

    python -m stress.power [--changes 500] [--folder DIR] [--seed 0] [--write]

The system calls of each change are recorded. For a loss of power after each of them, every state
that the disk may then have is made in another folder (tests/support/power_loss.py), opened and
verified: it must be that before the change or that after it, and after it if the change had
returned. A row is then added, so that what was left does not stand in the way. The folder should be
in memory, such as /dev/shm. --write puts the figures into docs/trust.md.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stress.collection_kills import (
    CODER,
    CODES,
    ROWS,
    Model,
    apply,
    columns_of,
    has_columns,
    perform,
    random_changes,
)
from tests.support.power_loss import Recorder, on_disk, states, written

import embits

PAGE = Path(__file__).parents[1] / "docs/trust.md"
KINDS = ("save", "add", "update", "remove", "compact", "refit")


def replay(root: Path, change: Callable[[], None], check: Callable[[Path, bool], None]) -> Counter:
    """Make a change, check all states of the disk, and count them."""
    before, recorder = on_disk(root), Recorder(root)
    with recorder.recording(pytest.MonkeyPatch()):
        change()
    found, target = Counter(changes=1, calls=len(recorder.calls)), root.with_name("after")
    for n, state in states(before, recorder.calls):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        written(state, root, target)
        found["states"] += 1
        check(target, n == len(recorder.calls))
    return found


def saved(root: Path, rng: random.Random) -> Counter:
    """Save another number of rows over a file."""
    old, new = rng.sample(range(len(ROWS)), 2)
    embits.BinaryVectors(None, CODES[:old], CODER).save(root / "f")

    def check(disk: Path, has_returned: bool) -> None:
        codes = embits.load(disk / "f", verify=True).codes
        assert len(codes) in ((new,) if has_returned else (old, new))
        assert np.array_equal(codes, CODES[: len(codes)])

    return replay(
        root, lambda: embits.BinaryVectors(None, CODES[:new], CODER).save(root / "f"), check
    )


def holds(folder: Path, model: Model) -> bool:
    bits = embits.load(folder, verify=True)
    is_same = list(bits.words) == list(model)
    is_same = is_same and np.array_equal(bits.codes, CODES[[*model.values()]])
    return is_same and has_columns(bits, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changes", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/trust.md")
    options = parser.parse_args()
    rng, totals = random.Random(options.seed), {kind: Counter() for kind in KINDS}
    model: Model = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        root = Path(folder, "root")
        collection = embits.open_collection(root / "c", CODER, keep="float16")
        for _, change in zip(
            range(options.changes), random_changes(model, options.seed), strict=False
        ):
            before, after = dict(model), dict(model)
            apply(after, change)

            def check(disk: Path, has_returned: bool, before=before, after=after) -> None:
                is_after = holds(disk / "c", after)
                assert is_after or (holds(disk / "c", before) and not has_returned)
                one = columns_of(["next"], [0])
                embits.open_collection(disk / "c").add(ROWS[:1], ["next"], columns=one)
                assert holds(disk / "c", {**(after if is_after else before), "next": 0})

            made = lambda change=change: perform(collection, change)  # noqa: E731
            totals[change[0]] += replay(root, made, check)
            totals["save"] += saved(root, rng)
    lines = ["| change | changes | system calls | states of the disk |"]
    lines += ["|---|---:|---:|---:|"]
    for kind, found in totals.items():
        cells = " | ".join(f"{found[name]:,}" for name in ("changes", "calls", "states"))
        lines.append(f"| `{kind}` | {cells} |")
    print("\n".join(lines))
    if options.write:
        block = "\n".join(["<!-- power -->", *lines, "<!-- /power -->"])
        PAGE.write_text(re.sub(r"(?s)<!-- power -->.*<!-- /power -->", block, PAGE.read_text()))


if __name__ == "__main__":
    main()
