"""What is measured of a quantizer: recall on unseen rows, nDCG, sizes and times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

QUERIES, K, FURTHER, TURNS = 1000, 10, 40, 50
ENOUGH = 400  # rows of an answer, of which those that no fit has seen are kept
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Search = Callable[[Floats, int], Rows]  # float queries, k -> rows


class Fitted(NamedTuple):
    """A quantizer with all rows in it.

    Attributes:
        ways: Ways to search, by name; "" is the usual one.
        among: Ways to search rows from a number on alone, where they are not a part of the answers
            of `ways`, because a second look has a shortlist.
        n_bytes: Of a row.
        shared: Bytes that do not grow with the rows: codebooks, rotations, weights.
        fit_s: Processor seconds of the fit.
        encode_us: Processor microseconds to encode a row.
    """

    ways: dict[str, Search]
    n_bytes: float
    shared: int
    fit_s: float
    encode_us: float
    among: Mapping[str, Callable[[int], Search]] = MappingProxyType({})


Maker = Callable[[Floats, Floats], Fitted]  # rows to fit on, rows to hold


class Clock:
    """Processor time of this process, all threads together."""

    def __init__(self) -> None:
        self._start = time.process_time()

    def lap(self) -> float:
        """Seconds since the last lap."""
        start, self._start = self._start, time.process_time()
        return self._start - start


def unit(X: NDArray[Any]) -> Floats:
    """Rows of length 1."""
    X = X.astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Unseen:
    """Rows in random order, the first half to fit on, and 1,000 queries from the other half.

    Args:
        X: (n, dims) floats, compared by cosine.
    """

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = unit(X)[np.random.default_rng(0).permutation(len(X))]
        self.sample = self.X[: len(X) // 2]
        self.asked = np.arange(len(self.sample), min(len(self.sample) + QUERIES, len(X)))
        self.queries = self.X[self.asked]
        self._near = {first: self._nearest(first) for first in (0, len(self.sample))}

    def _nearest(self, first: int) -> list[list[int]]:
        """The true ten nearest rows of each query, among rows from `first` on."""
        cosines = self.queries @ self.X[first:].T
        cosines[np.arange(len(self.asked)), self.asked - first] = -np.inf
        near: list[list[int]] = (np.argpartition(-cosines, K, axis=1)[:, :K] + first).tolist()
        return near

    def recalls(self, fitted: Fitted, way: str) -> dict[str, float]:
        """The share of the true ten nearest among the first 10 and 40, and among unseen rows."""
        first = len(self.sample)
        if way in fitted.among:
            rows = fitted.ways[way](self.queries, FURTHER + 1).tolist()
            unseen = fitted.among[way](first)(self.queries, K + 1).tolist()
        else:
            rows = fitted.ways[way](self.queries, ENOUGH).tolist()
            unseen = [[row for row in of if row >= first] for of in rows]
        found = {f"recall_at_{k}": self._recall(rows, k) for k in (K, FURTHER)}
        return found | {"unseen_at_10": self._recall(unseen, K, first)}

    def _recall(self, found: list[list[int]], k: int, first: int = 0) -> float:
        shares = []
        for near, rows, own in zip(self._near[first], found, self.asked, strict=True):
            shares.append(len(set(near) & set([row for row in rows if row != own][:k])) / K)
        return round(float(np.mean(shares)), 4)


def milliseconds(searches: list[Search], queries: Floats) -> list[float]:
    """Median time of one query for each way to search, in turns; the first turn is not counted."""
    taken: list[list[float]] = [[] for _ in searches]
    for query in queries[: TURNS + 1]:
        for search, times in zip(searches, taken, strict=True):
            start = time.perf_counter()
            search(query[None], K)
            times.append(1e3 * (time.perf_counter() - start))
    return [round(statistics.median(times[1:]), 4) for times in taken]


class Scifact:
    """Claims, abstracts, and which abstract answers which claim.

    Args:
        folder: corpus.npy, queries.npy, their ids and qrels.tsv.
    """

    def __init__(self, folder: Path) -> None:
        self.corpus, self.queries = (
            unit(np.load(folder / f"{name}.npy")) for name in ("corpus", "queries")
        )
        ids = [(folder / f"{name}_ids.txt").read_text().split() for name in ("corpus", "query")]
        documents, claims = ({each: i for i, each in enumerate(of)} for of in ids)
        self.relevant: list[set[int]] = [set() for _ in self.queries]
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            claim, document, grade = line.split("\t")
            if int(grade) > 0 and claim in claims:
                self.relevant[claims[claim]].add(documents[document])

    def ndcg(self, search: Search) -> float:
        """nDCG@10 over the claims with an answer."""
        gains = 1 / np.log2(np.arange(2, K + 2))
        scores = [
            sum(gain for gain, row in zip(gains, found, strict=True) if row in wanted)
            / gains[: min(K, len(wanted))].sum()
            for found, wanted in zip(search(self.queries, K).tolist(), self.relevant, strict=True)
            if wanted
        ]
        return round(float(np.mean(scores)), 4)
