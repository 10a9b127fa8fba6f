"""Recall of true neighbors against the time of a query and the memory, as ann-benchmarks draws it.

    python benchmarks/recall_time.py words FOLDER --vectors glove-6b.npy --build
    python benchmarks/recall_time.py words FOLDER --write
    python benchmarks/recall_time.py sentences FOLDER --vectors mpnet.npy --build
    python benchmarks/recall_time.py mixed FOLDER --rows 1000000 --build
    python benchmarks/recall_time.py mixed FOLDER --rows 1000000 --write

`--build` makes the queries, their true neighbors and every index in FOLDER, `--only NAME` one of
them. Without it they are loaded and timed, and `--write` stores the settings that no other setting
of the same index beats in results/cells.json.

Neighbors are the ten rows of the highest cosine; no fit has seen the queries. A time is the
processor time of the whole process for a query, the mean over 500 queries, the median of three
rounds, on one thread, with Python's call in it. Recall is that of 1,000 queries, 500 of ten million
rows. Memory is the file of the index, with the floats where the library keeps them; those that
embits reads are a mapped file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import embits
from cells import K, make_rows, shares
from provenance import provenance

ROUNDS, QUERIES, TIMED = 3, 1000, 500
RESULTS = Path(__file__).parent / "results/cells.json"
PROBES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
WIDTHS = (10, 16, 25, 40, 64, 100, 160, 250, 400, 800)  # of a walk through a graph
LISTS = (20, 40, 100, 200)  # rows that are ordered by their floats
TITLES = {
    "words": "words of GloVe 6B",
    "sentences": "sentences by all-mpnet-base-v2",
    "mixed": "mixes of sentence vectors",
}
RECALLS = (0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


class Data:
    """Rows, queries and true neighbors in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def path(self, what: str) -> Path:
        return self.folder / f"{self.name}-{what}"

    @property
    def rows(self) -> np.ndarray:
        """The vectors of length 1, mapped."""
        return np.load(self.path("floats.npy"), mmap_mode="r")

    @property
    def queries(self) -> np.ndarray:
        return np.load(self.path("queries.npy"))

    def in_memory(self) -> np.ndarray:
        return np.asarray(self.rows, np.float32)

    def make_truth(self) -> None:
        """The K best rows of each query, of the rows read in blocks."""
        X, queries = self.rows, self.queries
        best = np.full((len(queries), K), -1)
        top = np.full((len(queries), K), -np.inf, np.float32)
        for start in range(0, len(X), 50_000):
            scores = queries @ np.asarray(X[start : start + 50_000], np.float32).T
            some = np.argpartition(-scores, K, axis=1)[:, :K]
            values = np.hstack([top, np.take_along_axis(scores, some, 1)])
            numbers = np.hstack([best, some + start])
            order = np.argsort(-values, axis=1)[:, :K]
            top, best = np.take_along_axis(values, order, 1), np.take_along_axis(numbers, order, 1)
        np.save(self.path("truth.npy"), best)


def held_out(what: str, folder: Path, vectors: Path | None, seed: int) -> Data:
    """The rows of a file, but for a thousand that are queries."""
    data = Data(folder, f"{what}-{seed}")
    if vectors is not None and not data.path("floats.npy").exists():
        X = np.load(vectors).astype(np.float32)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
        held = np.zeros(len(X), bool)
        held[np.random.default_rng(2000 + seed).choice(len(X), QUERIES, replace=False)] = True
        np.save(data.path("queries.npy"), X[held])
        np.save(data.path("floats.npy"), X[~held])
        data.make_truth()
    return data


def mixed(folder: Path, source: Path, n: int) -> Data:
    """Mixes of sentence vectors; the queries are other mixes (`cells.py`)."""
    data = Data(folder, f"mixed-{n}")
    if not data.path("truth.npy").exists():
        *_, queries = make_rows(folder, source, n, 256, floats=True)
        data.path("floats.npy").symlink_to(folder.resolve() / f"floats-{n}.npy")
        data.path("codes.bits").symlink_to(folder.resolve() / f"cells-{n}-256.bits")
        queries = queries[: QUERIES if n < 3e6 else QUERIES // 2]
        np.save(data.path("queries.npy"), queries / np.linalg.norm(queries, axis=1, keepdims=True))
        data.make_truth()
    return data


Search = Callable[[np.ndarray, Any], Any]  # the rows of a query, by a setting


class Embits:
    """Codes of 256 bits with cells; the shortlist is ordered by floats of a mapped file."""

    method, settings = "near-lossless", tuple(itertools.product(RECALLS, LISTS))

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, data.path("codes.bits")

    def build(self) -> None:
        X = self.data.in_memory()
        embits.binarize(X, n_bits=256, method=self.method).with_cells(threads=1).save(self.path)

    def load(self) -> None:
        self.bits, self.floats = embits.load(self.path), self.data.rows
        self.bytes = self.bits.nbytes / len(self.bits)

    def search(self, query: np.ndarray, setting: Any) -> Any:
        recall, rescore = setting
        bits, finer = self.bits.on(threads=1), embits.Rescore(rescore, self.floats)
        return bits.search(query, K, recall=recall, rescore=finer).rows


class EmbitsExact(Embits):
    settings = tuple((None, count) for count in LISTS)


class EmbitsCodes(Embits):
    settings = RECALLS

    def search(self, query: np.ndarray, setting: Any) -> Any:
        return self.bits.on(threads=1).search(query, K, metric="asymmetric", recall=setting).rows


class EmbitsNeural(EmbitsCodes):
    method, settings = "neural", tuple(itertools.product(RECALLS, (20, 50, 100, 200)))

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, data.path("neural.bits")

    def search(self, query: np.ndarray, setting: Any) -> Any:
        recall, look = setting
        return (
            self.bits.on(threads=1)
            .search(
                query,
                K,
                metric="asymmetric",
                recall=recall,
                rescore=embits.Rescore(look, "decoded"),
            )
            .rows
        )


class Flat:
    """FAISS, all floats."""

    settings = (0,)

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, None

    def load(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        X = self.data.in_memory()
        self.index, self.bytes = faiss.IndexFlatIP(X.shape[1]), 4 * X.shape[1]
        self.index.add(X)

    def search(self, query: np.ndarray, _: Any) -> Any:
        return self.index.search(query[None], K)[1][0]


class Ivf:
    """A FAISS index of inverted lists; `refined` ones keep the floats beside it."""

    settings = PROBES

    def __init__(self, data: Data, kind: str) -> None:
        self.data, self.kind, self.path = data, kind, data.path(f"ivf-{kind}.faiss")
        if kind.startswith("PQ"):
            self.kind = f"PQ{data.rows.shape[1] // 2}x4fs"

    def build(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        X = self.data.in_memory()
        lists = int(4 * len(X) ** 0.5)
        index = faiss.index_factory(
            X.shape[1], f"IVF{lists},{self.kind}", faiss.METRIC_INNER_PRODUCT
        )
        index.cp.niter = 10
        index.train(X[:: max(1, len(X) // (40 * lists))].copy())
        index.add(X)
        faiss.write_index(index, str(self.path))

    def load(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(str(self.path))
        self.bytes = self.path.stat().st_size / len(self.data.rows)

    def search(self, query: np.ndarray, setting: Any) -> Any:
        self.index.nprobe = setting
        return self.index.search(query[None], K)[1][0]


class IvfRefined(Ivf):
    settings = tuple(itertools.product(PROBES, LISTS))

    def load(self) -> None:
        import faiss

        super().load()
        X = self.data.in_memory()
        self.refined = faiss.IndexRefineFlat(self.index, faiss.swig_ptr(X))
        self.bytes += 4 * X.shape[1]

    def search(self, query: np.ndarray, setting: Any) -> Any:
        self.index.nprobe, count = setting
        self.refined.k_factor = count / K
        return self.refined.search(query[None], K)[1][0]


class Scann:
    settings = tuple(itertools.product(PROBES, LISTS))

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, data.path("scann")

    def build(self) -> None:
        import scann

        X = self.data.in_memory()
        lists = int(4 * len(X) ** 0.5)
        made = scann.scann_ops_pybind.builder(X, K, "dot_product")
        made = made.tree(lists, 16, training_sample_size=40 * lists, training_iterations=10)
        made = made.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(40)
        made = made.set_n_training_threads(1).build()
        self.path.mkdir(exist_ok=True)
        made.serialize(str(self.path))

    def load(self) -> None:
        import scann

        self.found = scann.scann_ops_pybind.load_searcher(str(self.path))
        self.bytes = sum(p.stat().st_size for p in self.path.iterdir()) / len(self.data.rows)

    def search(self, query: np.ndarray, setting: Any) -> Any:
        probes, count = setting
        return self.found.search(
            query, K, pre_reorder_num_neighbors=count, leaves_to_search=probes
        )[0]


class Hnswlib:
    settings = WIDTHS

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, data.path("hnswlib")

    def build(self) -> None:
        import hnswlib

        X = self.data.in_memory()
        graph = hnswlib.Index("ip", X.shape[1])
        graph.init_index(len(X), ef_construction=100, M=16, random_seed=0)
        graph.add_items(X, num_threads=1)
        graph.save_index(str(self.path))

    def load(self) -> None:
        import hnswlib

        self.graph = hnswlib.Index("ip", self.data.rows.shape[1])
        self.graph.load_index(str(self.path))
        self.bytes = self.path.stat().st_size / len(self.data.rows)

    def search(self, query: np.ndarray, setting: Any) -> Any:
        self.graph.set_ef(setting)
        return self.graph.knn_query(query, K, num_threads=1)[0][0]


class Usearch:
    settings = WIDTHS

    def __init__(self, data: Data) -> None:
        self.data, self.path = data, data.path("usearch")

    def index(self) -> Any:
        from usearch.index import Index

        dims = self.data.rows.shape[1]
        return Index(ndim=dims, metric="ip", dtype="f32", connectivity=16, expansion_add=100)

    def build(self) -> None:
        X, index = self.data.in_memory(), self.index()
        index.add(np.arange(len(X)), X, threads=1)
        index.save(str(self.path))

    def load(self) -> None:
        self.graph = self.index()
        self.graph.load(str(self.path))
        self.bytes = self.path.stat().st_size / len(self.data.rows)

    def search(self, query: np.ndarray, setting: Any) -> Any:
        self.graph.expansion_search = setting
        return self.graph.on(threads=1).search(query, K).keys


FLAT = "all floats (FAISS)"
RIVALS: dict[str, Callable[[Data], Any]] = {
    "embits, exact, rescored": EmbitsExact,
    "embits, cells, rescored": Embits,
    "embits, cells": EmbitsCodes,
    "embits, Neural, cells, second look": EmbitsNeural,
    FLAT: Flat,
    "FAISS IVF, PQ, refined": lambda data: IvfRefined(data, "PQ"),
    "FAISS IVF, RaBitQ, refined": lambda data: IvfRefined(data, "RaBitQ"),
    "FAISS IVF, PQ": lambda data: Ivf(data, "PQ"),
    "FAISS IVF, RaBitQ": lambda data: Ivf(data, "RaBitQ"),
    "FAISS IVF, SQ8": lambda data: Ivf(data, "SQ8"),
    "ScaNN": Scann,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


def build(data: Data, names: list[str]) -> None:
    """Make what is missing; note the processor time of each."""
    for name in names:
        rival = RIVALS[name](data)
        if rival.path is None or rival.path.exists():
            continue
        begin = time.process_time()
        try:
            rival.build()
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        seconds = time.process_time() - begin
        data.path(f"{rival.path.name}.seconds").write_text(f"{seconds:.1f}")
        print(f"{name}: {seconds:.0f} s of processors", flush=True)


def measured(data: Data, name: str) -> dict[str, Any] | None:
    """Recall and time of each setting; the bytes of a row, and the seconds that building took."""
    rival, truth = RIVALS[name](data), np.load(data.path("truth.npy"))
    if rival.path is not None and not rival.path.exists():
        return None
    rival.load()
    queries = data.queries[:50] if name == FLAT else data.queries
    reached, turns = {}, {setting: [] for setting in rival.settings}
    for setting in rival.settings:  # this also brings everything into memory
        rows = [rival.search(query, setting) for query in queries]
        reached[setting] = float(shares(truth[: len(rows)], rows).mean())
    for setting in rival.settings * ROUNDS:
        wall, begin = time.perf_counter(), time.process_time()
        for query in queries[:TIMED]:
            rival.search(query, setting)
        taken = time.process_time() - begin, time.perf_counter() - wall
        turns[setting].append(1000 * np.array(taken) / len(queries[:TIMED]))
    points = []
    for setting, each in turns.items():
        ms, wall_ms = (float(x) for x in np.median(each, axis=0))
        print(f"{name}, {setting}: {reached[setting]:.4f}, {ms:.4f} ms, by the clock {wall_ms:.4f}")
        points.append((str(setting), round(reached[setting], 4), round(ms, 4)))
    found = {"name": name, "bytes": round(rival.bytes, 1), "points": frontier(points)}
    seconds = data.path(f"{rival.path.name}.seconds") if rival.path is not None else None
    if seconds is not None and seconds.exists():
        found["built s"] = float(seconds.read_text())
    print(json.dumps(found), flush=True)
    return found


def frontier(points: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """The points that no faster one reaches, the fastest first."""
    best: list[tuple[str, float, float]] = []
    for point in sorted(points, key=lambda point: (point[2], -point[1])):
        if not best or point[1] > best[-1][1]:
            best.append(point)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=TITLES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vectors", type=Path, help="a matrix of words or sentences")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of mixes")
    parser.add_argument("--seed", type=int, default=0, help="of the rows that are queries")
    parser.add_argument("--only", action="append", choices=RIVALS, help="this index, and others")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--write", action="store_true", help="store the result")
    asked = parser.parse_args()
    if asked.what == "mixed":
        data = mixed(asked.folder, asked.data, asked.rows)
    else:
        vectors = asked.vectors if asked.build else None
        data = held_out(asked.what, asked.folder, vectors, asked.seed)
    names = asked.only or list(RIVALS)
    if asked.build:
        build(data, names)
        return
    measurements = [measured(data, name) for name in names]
    if not asked.write:
        return
    n, dims = data.rows.shape
    inputs = {"rows": data.path("floats.npy").resolve(), "queries": data.queries}
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    entry = stored.setdefault(data.name, {"curves": []})
    entry["title"] = f"{n:,} {TITLES[asked.what]}, {dims} floats"
    entry["about"] = provenance([asked.seed], **inputs)
    curves = {each["name"]: each for each in entry["curves"]}
    curves |= {each["name"]: each for each in measurements if each is not None}
    entry["curves"] = [curves[name] for name in RIVALS if name in curves]
    text = json.dumps(stored, indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda point: " ".join(point[0].split()), text)
    RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
