"""The same damage to our file, FAISS, usearch, NumPy and safetensors: who notices, who crashes.

    python benchmarks/damage.py [--mutations 1000] [--write]

Each library writes the same 1,000 codes of 256 bits. Copies are damaged at random (bits flipped,
bytes changed, taken out, put in, files cut short), loaded and searched, each library in a worker
process that is started anew when it dies or hangs. --write puts the table into docs/trust.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import resource
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
LONGEST_S = 5.0  # a worker that has not answered by then hangs
MOST_BYTES = 8 << 30  # of address space: a file of 40 KB needs no more
N, BITS, K = 1000, 256, 10
OUTCOMES = ("clean error", "right answer", "wrong answer", "crash", "hang")

PRELOADED = ["numpy", "embits", "faiss", "usearch.index", "safetensors.numpy"]

Answer = bytes
Load = Callable[[str], Answer]


def codes() -> Any:
    return np.random.default_rng(0).integers(0, 256, (N, BITS // 8), dtype=np.uint8)


def _embits(verify: bool) -> tuple[Callable[[str], None], Load]:
    import embits
    from embits.ids.keys import RowNumbers

    def save(path: str) -> None:
        # A coder of 8 dimensions: the file is nearly all codes, as those of the others are.
        coder = embits.RandomHyperplanes(BITS).fit(np.random.default_rng(0).normal(size=(99, 8)))
        embits.BinaryVectors(RowNumbers(N), codes(), coder).save(path)

    def load(path: str) -> Answer:
        bits = embits.load(path, verify=verify)
        distances, rows = bits.search(codes()[:50], K)
        return distances.tobytes() + rows.tobytes()

    return save, load


def _faiss() -> tuple[Callable[[str], None], Load]:
    import faiss

    def save(path: str) -> None:
        index = faiss.IndexBinaryFlat(BITS)
        index.add(codes())
        faiss.write_index_binary(index, path)

    def load(path: str) -> Answer:
        distances, rows = faiss.read_index_binary(path).search(codes()[:50], K)
        return distances.tobytes() + rows.tobytes()

    return save, load


def _usearch() -> tuple[Callable[[str], None], Load]:
    from usearch.index import Index

    def save(path: str) -> None:
        index = Index(ndim=BITS, metric="hamming", dtype="b1")
        index.add(np.arange(N), codes(), threads=1)
        index.save(path)

    def load(path: str) -> Answer:
        found = Index.restore(path).on(threads=1).search(codes()[:50], K)
        return found.distances.tobytes() + found.keys.tobytes()

    return save, load


def _scan(found: Any) -> Answer:
    distances = np.bitwise_count(found[None] ^ codes()[:50, None]).sum(axis=2)
    return np.sort(distances, axis=1)[:, :K].tobytes()


def _numpy() -> tuple[Callable[[str], None], Load]:
    def save(path: str) -> None:
        with Path(path).open("wb") as file:
            np.save(file, codes())

    return save, lambda path: _scan(np.load(path, allow_pickle=False))


def _safetensors() -> tuple[Callable[[str], None], Load]:
    from safetensors.numpy import load_file, save_file

    return (
        lambda path: save_file({"codes": codes()}, path),
        lambda path: _scan(load_file(path)["codes"]),
    )


LIBRARIES: dict[str, Callable[[], tuple[Callable[[str], None], Load]]] = {
    "embits, `load(verify=True)`": lambda: _embits(True),
    "embits, `load`": lambda: _embits(False),
    "FAISS `IndexBinaryFlat`": _faiss,
    "usearch `Index`, b1": _usearch,
    "NumPy `.npy`": _numpy,
    "safetensors": _safetensors,
}


def work(name: str, pipe: multiprocessing.connection.Connection) -> None:
    """A worker: loads what it is told to, and says what came of it."""
    warnings.simplefilter("ignore")
    _, load = LIBRARIES[name]()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        path = pipe.recv()
        try:
            pipe.send(load(path))
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its error
            pipe.send(f"{type(error).__name__}: {error}")


class Worker:
    """A process that loads damaged files, and is replaced when one of them ends it."""

    def __init__(self, name: str) -> None:
        # Forked from a process that has imported it all, and used none of it.
        self._name, self._context = name, multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=work, args=(self._name, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def load(self, path: Path) -> Answer | str:
        """The answer, the error, or "crash" or "hang"."""
        self._pipe.send(str(path))
        try:
            if self._pipe.poll(LONGEST_S if self._warm else 60):
                self._warm = True
                answer: Answer | str = self._pipe.recv()
                return answer
            found = "hang"
        except (EOFError, ConnectionResetError):
            found = "crash"
        self.stop()
        self._warm = False
        self._start()
        return found

    _warm = False

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def measure(name: str, n: int, folder: Path) -> tuple[Counter[str], Counter[str]]:
    """What became of n damaged copies, and of those with but one bit flipped in the codes."""
    from tests.support import damage

    save, load = LIBRARIES[name]()
    path = folder / "whole"
    save(str(path))
    whole = path.read_bytes()
    right = load(str(path))
    start = whole.find(codes()[:2].tobytes())
    if start < 0:  # usearch keeps a code at a time
        start = whole.find(codes()[0].tobytes())
    rng, worker = random.Random(0), Worker(name)
    worker.load(path)  # imports are not part of the time
    damaged, flipped = Counter[str](), Counter[str]()
    for i in range(2 * n):
        if i < n:
            raw = damage.blind(whole, rng)
        else:
            at = start + rng.randrange(BITS // 8)  # in the first code, which is searched for
            raw = whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        (folder / "damaged").write_bytes(raw)
        found = worker.load(folder / "damaged")
        if isinstance(found, bytes):
            outcome = "right answer" if found == right else "wrong answer"
        else:
            outcome = found if found in OUTCOMES else "clean error"
        (damaged if i < n else flipped)[outcome] += 1
    worker.stop()
    return damaged, flipped


def main() -> int:
    arguments = argparse.ArgumentParser(description="The same damage to every library.")
    arguments.add_argument("--mutations", type=int, default=1000)
    arguments.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    options = arguments.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # FAISS' threads wait for each other, spinning
    n = options.mutations
    rows = [
        f"| {n:,} damaged files | {' | '.join(OUTCOMES)} | a flipped bit of a code is noticed |"
    ]
    rows.append("|---" * (len(OUTCOMES) + 2) + "|")
    failed = 0
    for name in LIBRARIES:
        try:
            with tempfile.TemporaryDirectory() as folder:
                damaged, flipped = measure(name, n, Path(folder))
        except ImportError as error:
            print(f"{name}: left out ({error})", file=sys.stderr)
            continue
        cells = [f"{100 * damaged[outcome] / n:.1f} %" for outcome in OUTCOMES]
        rows.append(f"| {name} | {' | '.join(cells)} | {100 * flipped['clean error'] / n:.1f} % |")
        print(rows[-1], flush=True)
        if name.startswith("embits"):
            failed += damaged["crash"] + damaged["hang"]
            failed += damaged["wrong answer"] if "verify" in name else 0
    if options.write:
        page = ROOT / "docs" / "trust.md"
        table = "<!-- damage -->\n" + "\n".join(rows) + "\n<!-- /damage -->"
        text = re.sub(r"(?s)<!-- damage -->.*<!-- /damage -->", lambda _: table, page.read_text())
        page.write_text(text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
