"""How soon the first answer is there: import, open, first top-10, a whole process; and the size.

    python benchmarks/startup.py [FILE] [--out benchmarks/results]

With --out, startup.json is written there. Without FILE, the demo's GloVe (400,000 words; extra
`demo`) is binarized to 256 bits first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import embits
from embits.cli.demo import glove
from provenance import provenance


def median(measure: Callable[[], float], runs: int = 15) -> float:
    return statistics.median(measure() for _ in range(runs))


def process_seconds(*command: str) -> float:
    # With bytecode, as an installed package has it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - start


def first_answer_ms(path: Path) -> float:
    start = time.perf_counter()
    embits.load(path).most_similar("queen", topn=10)
    return 1e3 * (time.perf_counter() - start)


def touched_bytes(path: Path) -> int:
    """How much of the mapped file is in this process after the first answer (Linux)."""
    bits = embits.load(path)
    bits.most_similar("queen", topn=10)
    pages = re.search(rf"{re.escape(str(path))}\n.*?Rss: +(\d+) kB",
                      Path("/proc/self/smaps").read_text(), re.S)  # fmt: skip
    return 1024 * int(pages[1]) if pages else -1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.file or Path(folder, "glove.256.safetensors")
        if not arguments.file:
            embits.binarize(glove(), 256, "paper").save(path)
        facts = report(path)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        stored = facts | {"about": provenance()}
        (arguments.out / "startup.json").write_text(json.dumps(stored, indent=1) + "\n")


def report(path: Path) -> dict[str, float]:
    bits = embits.load(path)
    first = median(lambda: first_answer_ms(path))
    print(f"open and first top-10 of {len(bits):,} words: {first:.2f} ms "
          f"(the paper: 310 ms, {310 / first:.0f} × more)")  # fmt: skip
    touched, size = touched_bytes(path), path.stat().st_size
    print(f"bytes of the file that this touched: {touched:,} of {size:,}")
    nothing = median(lambda: process_seconds("-c", "pass"))
    numpy = median(lambda: process_seconds("-c", "import numpy")) - nothing
    ours = median(lambda: process_seconds("-c", "import embits")) - nothing
    print(f"import embits: {1e3 * ours:.0f} ms, NumPy alone {1e3 * numpy:.0f} ms: "
          f"{1e3 * (ours - numpy):+.0f} ms")  # fmt: skip
    whole = median(lambda: process_seconds("-m", "embits", "neighbors", str(path), "queen"))
    print(f"embits neighbors as a process: {whole:.2f} s")
    parts = bits.byte_counts()
    a_word = (parts.words + parts.order) / len(bits)
    print(f"codes: {parts.codes / 1e6:.1f} MB; words: {a_word:.2f} "
          f"bytes a word with their text; whole file {size / 1e6:.2f} MB")  # fmt: skip
    return {
        "words": len(bits),
        "bits": bits.n_bits,
        "first_answer_ms": round(first, 3),
        "import_ms_over_numpy": round(1e3 * (ours - numpy), 1),
        "process_s": round(whole, 3),
        "file_bytes": size,
    }


if __name__ == "__main__":
    main()
