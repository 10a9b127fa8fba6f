"""The page's numbers in a real Chromium, and the reader's in Node: 400,000 words × 256 bits.

Needs Node, Chromium and `npm ci --prefix tests/page`; says so and ends well where they are not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

import embits
from embits.page import write_page

WORDS, BITS = 400_000, 256
TESTS = Path(__file__).parents[1] / "tests" / "page"
GOLDEN = TESTS.parent / "golden" / "paper-64-bits.safetensors"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def vectors(path: Path) -> None:
    """A file of random codes; a search takes the same time whatever the bits are."""
    rng = np.random.default_rng(0)
    coder = embits.RandomHyperplanes(BITS).fit(rng.normal(size=(300, 50)))
    names = [f"{rng.integers(1 << 40):x}" for _ in range(WORDS)]
    matrix = rng.normal(size=(WORDS, 50)).astype("f4")
    embits.BinaryVectors.encoded(
        embits.WordVectors(list(dict.fromkeys(names)), matrix[: len(set(names))]), coder
    ).save(path)


def main() -> None:
    """Write the page, measure it, print the numbers."""
    node = shutil.which("node")
    if node is None or not Path(CHROMIUM).exists() or not (TESTS / "node_modules").is_dir():
        print("skipped: needs node, chromium and `npm ci --prefix tests/page`")
        return
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "f.safetensors"
        if not file.exists():
            vectors(file)
        folder, small = Path(temporary) / "site", Path(temporary) / "small"
        written = write_page(file, folder)
        shell = [p for p in written if p.suffix != ".safetensors"]
        write_page(GOLDEN, small)
        packed = sum(len(zlib.compress(p.read_bytes(), 9)) for p in shell)
        print(f"page without its data, compressed   {packed / 1000:8.1f} kB", flush=True)
        subprocess.run([node, TESTS / "node_benchmark.mjs", file.resolve()], check=True, cwd=TESTS)
        subprocess.run([node, TESTS / "benchmark.mjs", folder, small], check=True, cwd=TESTS)


if __name__ == "__main__":
    main()
