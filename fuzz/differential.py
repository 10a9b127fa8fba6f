"""Compare what Python and JavaScript make of the same files that lie, for some time.

    python fuzz/differential.py [--seconds 60] [--seed N]

Each round writes mutants of all golden files and collections; both readers check every byte of
each, and answer where they accept it. A difference, or a traceback in Python, is a finding: its
recipe is printed and appended to build/fuzz/differential.json. Findings that are fixed belong in
tests/golden/differential.json, which the tests replay.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "build" / "fuzz" / "differential.json"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
ROUND = 1000


def main() -> int:
    arguments = argparse.ArgumentParser(description="Compare the readers of Python and JavaScript.")
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = arguments.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.support import differential
    from tests.support.javascript import NODE

    if NODE is None:
        print("note: there is no Node.js, so the readers are not compared")
        return 0
    end, cases, accepted, found = time.monotonic() + options.seconds, 0, 0, []
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for seed in range(options.seed, options.seed + 2**32):
            for recipe, problem in differential.compared(
                differential.drawn(seed, ROUND), Path(folder, "mutants")
            ):
                cases, accepted = cases + 1, accepted + (problem == differential.ACCEPTED)
                if problem and problem != differential.ACCEPTED:
                    found.append(recipe)
                    print(f"seed {seed}: {problem}\n    {json.dumps(recipe)}", flush=True)
            if time.monotonic() > end:
                break
    print(
        f"{cases:,} files and collections, {accepted:,} of them accepted: {len(found)} differences"
    )
    if found:
        FOUND.parent.mkdir(parents=True, exist_ok=True)
        before = json.loads(FOUND.read_text()) if FOUND.exists() else []
        FOUND.write_text(json.dumps([*before, *found], indent=1))
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
