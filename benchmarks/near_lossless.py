"""The table of docs/near-lossless.md: codes of several methods, scored against the floats.

    python benchmarks/near_lossless.py VECTORS.npy [--words FILE] [--similarity DIR]
        [--bits 64,128,256,512] [--methods lsh,paper,sign,neighbors,similarity]
        [--seeds 3] [--device cpu] [--json FILE]

`VECTORS.npy` holds rows of floats; `--words` names them, a word a line, for the similarity
sets of `--similarity` (files of `word word score`, such as MEN.txt). A row of the table:

    F       Fisher mean x 100 of Spearman's correlation with people's judgements
    r@10    share of the ten nearest rows by raw cosine that are among the ten nearest codes
    asym    the same for a float query: the score of a code b is <W x - t|x|, 2b - 1>
    s40     the same with a shortlist of 40 codes by that score, which is then rescored
    cos     mean cosine of vectors and vectors rebuilt from their codes
    mse     mean of |x - rebuilt|^2 over the mean of |x|^2: norms count
    fit     seconds

Queries are 1,000 rows of the first 30,000; they are looked up among all rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embits import search
from embits.arrays import blocks, unpack
from embits.coders import (
    Coder,
    NearLossless,
    PaperAutoencoder,
    RandomHyperplanes,
    SignBits,
)

QUERIES, AMONG_FIRST, K, SHORTLIST = 1000, 30_000, 10, 40
COLUMNS = ("F", "r@10", "asym", "s40", "cos", "mse", "fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--similarity", type=Path)
    parser.add_argument("--bits", default="64,128,256,512")
    parser.add_argument("--methods", default="lsh,paper,sign,neighbors,similarity")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--json", type=Path, help="write every run here")
    args = parser.parse_args()

    X = np.load(args.vectors, mmap_mode="r")
    bench = Bench(X, args.words, args.similarity)
    runs = []
    print(f"{'method':12} {'bits':>5} " + " ".join(f"{c:>6}" for c in COLUMNS))
    for method in args.methods.split(","):
        for n_bits in map(int, [X.shape[1]] if method == "sign" else args.bits.split(",")):
            seeds = range(1 if method == "sign" else args.seeds)
            scores = [bench.score(coder(method, n_bits, seed, args)) for seed in seeds]
            runs += [
                {"data": args.vectors.stem, "method": method, "bits": n_bits, "seed": seed, **s}
                for seed, s in zip(seeds, scores, strict=True)
            ]
            means = (np.mean([s[c] for s in scores]) for c in COLUMNS)
            print(f"{method:12} {n_bits:5} " + " ".join(f"{m:6.3f}" for m in means), flush=True)
    if args.json:
        args.json.write_text(json.dumps(runs))


def coder(method: str, n_bits: int, seed: int, args: argparse.Namespace) -> Coder:
    """An unfitted coder; "neighbors" and "similarity" are the two targets of NearLossless."""
    if method == "lsh":
        return RandomHyperplanes(n_bits, random_state=seed)
    if method == "paper":
        return PaperAutoencoder(n_bits, random_state=seed)
    if method == "sign":
        return SignBits()
    return NearLossless(
        n_bits,
        target=method,
        random_state=seed,
        device=args.device,
        steps=args.steps,
        batch_size=args.batch_size,
    )


class Bench:
    """The raw side of every comparison, computed once."""

    def __init__(self, X: np.ndarray, words: Path | None, similarity: Path | None) -> None:
        self.X = np.asarray(X, dtype=np.float32)
        self.norms = np.linalg.norm(self.X, axis=1)
        rng = np.random.default_rng(7)
        self.queries = rng.choice(min(AMONG_FIRST, len(X)), min(QUERIES, len(X)), replace=False)
        unit = self.X / np.maximum(self.norms, 1e-12)[:, None]
        self.nearest = self.top(unit[self.queries], lambda rows: unit[rows], K)
        self.judged = judgements(words, similarity) if words and similarity else []

    def score(self, coder: Coder) -> dict[str, float]:
        """Fit a coder, and score its codes."""
        X = self.X
        if isinstance(coder, PaperAutoencoder) and self.norms.mean() < 2:
            # The paper's learning rates fit entries of standard deviation 0.4 or so, as GloVe's.
            X = X * np.float32(0.4 / X.std())
        start = time.perf_counter()
        coder.fit(X)
        fit = time.perf_counter() - start
        codes = coder.transform(X)

        def bits(rows: slice) -> NDArray[np.float32]:
            return 2 * unpack(codes[rows], coder.n_bits_) - 1

        found = search.top_k(codes, codes[self.queries], K + 1)[1]
        found = np.array(
            [[r for r in row if r != q][:K] for q, row in zip(self.queries, found, strict=True)]
        )
        scores = coder.project(X[self.queries])
        shortlist = self.top(scores, bits, SHORTLIST)
        rebuilt = coder.inverse_transform(codes)
        lengths = np.linalg.norm(rebuilt, axis=1) * np.linalg.norm(X, axis=1)
        cosines = np.einsum("ij,ij->i", rebuilt, X) / np.maximum(lengths, 1e-12)
        return {
            "F": self.fisher(codes),
            "r@10": recall(found, self.nearest),
            "asym": recall(shortlist[:, :K], self.nearest),
            "s40": recall(shortlist, self.nearest),
            "cos": float(cosines.mean()),
            "mse": float(((rebuilt - X) ** 2).mean() / (X**2).mean()),
            "fit": fit,
        }

    def top(self, queries, rows_of, k):
        """Rows with the largest inner products, best first, the query itself left out."""
        best = np.full((len(queries), k), -np.inf, dtype=np.float32)
        rows = np.zeros((len(queries), k), dtype=np.int64)
        for block in blocks(len(self.X)):
            scores = queries @ rows_of(block).T
            inside = (self.queries >= block.start) & (self.queries < block.stop)
            scores[np.flatnonzero(inside), self.queries[inside] - block.start] = -np.inf
            width = min(k, scores.shape[1])
            top = np.argpartition(-scores, width - 1, axis=1)[:, :width]
            best = np.hstack([best, np.take_along_axis(scores, top, axis=1)])
            rows = np.hstack([rows, top + block.start])
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            best = np.take_along_axis(best, order, axis=1)
            rows = np.take_along_axis(rows, order, axis=1)
        return rows

    def fisher(self, codes: np.ndarray) -> float:
        """Fisher mean of Spearman's correlation over the sets, x 100; NaN without words."""
        if not self.judged:
            return float("nan")
        values = []
        for first, second, people in self.judged:
            differing = np.bitwise_count(codes[first] ^ codes[second]).sum(axis=1)
            values.append(np.arctanh(np.corrcoef(ranks(-differing), ranks(people))[0, 1]))
        return float(100 * np.tanh(np.mean(values)))


def judgements(words: Path, folder: Path) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, rows, scores) of each set, pairs with an unknown word left out."""
    row: dict[str, int] = {}
    for number, word in enumerate(words.read_text(encoding="utf-8").split("\n")[:-1]):
        row.setdefault(word, number)
    sets = []
    for file in sorted(folder.glob("*.txt")):
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        pairs = [
            (row.get(a, row.get(a.lower())), row.get(b, row.get(b.lower())), float(score))
            for a, b, score, *_ in lines
        ]
        known = [p for p in pairs if p[0] is not None and p[1] is not None]
        sets.append(tuple(map(np.array, zip(*known, strict=True))))
    return sets


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, ties at their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def recall(found: np.ndarray, wanted: np.ndarray) -> float:
    return float((wanted[:, :, None] == found[:, None, :]).any(axis=2).mean())


if __name__ == "__main__":
    main()
