"""What `openRemote` of JavaScript reads of a file of 100 MB on a web server.

    python benchmarks/remote_search.py DATA [ROWS]  # 2,800,000 rows: takes about 15 minutes

Rows are mixed from the sentence embeddings in DATA/sentences. Needs Node.js. Prints bytes and
requests, which do not depend on the machine, and the recall of the rows of an exact search, with
queries that are no rows.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import embits

SCRIPT = Path(__file__).parents[1] / "tests" / "page" / "remote_benchmark.mjs"
BLOCK = 100_000


def mixed(sentences, n, rng):
    """Sentences mixed with others, and some noise."""
    share = rng.uniform(0.6, 0.95, (n, 1)).astype("f4")
    one, other = (sentences[rng.integers(0, len(sentences), n)] for _ in range(2))
    rows = share * one + (1 - share) * other
    return rows + rng.normal(0, 0.02, rows.shape).astype("f4")


def main():
    files = sorted(Path(sys.argv[1], "sentences").glob("*.npy"))
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 2_800_000
    sentences = np.concatenate([np.load(file) for file in files]).astype("f4")
    coder = embits.ITQ(n_bits=256).fit(sentences)
    rng = np.random.default_rng(0)
    codes = np.empty((n, 32), np.uint8)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        codes[start : start + size] = coder.transform(mixed(sentences, size, rng))
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        embits.BinaryVectors(None, codes, coder).save(plain)
        for cells in ("1024", "4096"):
            target = Path(folder, f"cells-{cells}.safetensors")
            command = [sys.executable, "-m", "embits", "cells", plain, "-o", target]
            subprocess.run([*command, "--cells", cells], check=True)
        queries = mixed(sentences, 30, np.random.default_rng(1))
        Path(folder, "queries.json").write_text(json.dumps(queries.tolist()))
        subprocess.run(["node", str(SCRIPT), folder], check=True)


if __name__ == "__main__":
    main()
