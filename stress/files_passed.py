"""How many source files a call passes through, and how often it goes from one to another.

    python stress/files_passed.py [--names]

Counts the files under src/embits whose functions run during `search(metric="asymmetric")`,
`collection.add` and `binarize`, each in a process that has imported everything and made the same
call once. Fewer files are fewer places to read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import embits

ROOT = Path(embits.__file__).parent


def passed(call: Callable[[], Any]) -> tuple[set[str], int]:
    """The files that a call passes through, and the crossings between them."""
    files: set[str] = set()
    crossings = 0

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal crossings
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(ROOT)):
            return
        files.add(str(Path(name).relative_to(ROOT)))
        before = frame.f_back.f_code.co_filename if frame.f_back else name
        crossings += before != name and before.startswith(str(ROOT))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files, crossings


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--names", action="store_true", help="print the files too")
    names = parser.parse_args().names
    rows = np.random.default_rng(0).standard_normal((2000, 64)).astype(np.float32)
    ids = [f"id{row}" for row in range(len(rows))]
    bits = embits.binarize(rows, n_bits=64)
    with tempfile.TemporaryDirectory() as folder:
        collection = embits.open_collection(Path(folder, "c"), bits.coder)
        collection.add(rows[:10], ids=ids[:10])
        calls: dict[str, Callable[[], Any]] = {
            'search(metric="asymmetric")': lambda: bits.search(rows[:3], 5, metric="asymmetric"),
            "collection.add": lambda: collection.add(rows[10:20], ids=ids[10:20]),
            "binarize": lambda: embits.binarize(rows, n_bits=64, ids=ids),
        }
        calls['search(metric="asymmetric")']()
        for name, call in calls.items():
            files, crossings = passed(call)
            print(f"{name}: {len(files)} files, {crossings} crossings")
            if names:
                print(*(f"  {file}" for file in sorted(files)), sep="\n")


if __name__ == "__main__":
    main()
