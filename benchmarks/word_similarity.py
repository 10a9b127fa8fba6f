"""Both targets of a coder on pairs of words that people judged, set by set.

    python benchmarks/word_similarity.py VECTORS DATA [--bits 64,128,256,512] [--seeds 3]
        [--method near-lossless] [--param effort=long]

`VECTORS` is any file of word vectors, `DATA` a folder of evaluation data, with files of
`word word score` in `similarity`. Scores are Spearman's correlation x 100 with the Hamming
distance, means of the seeds; F is the Fisher mean of the sets, and `decoded` that of the cosines of
decoded vectors, whitened ones with the target "similarity". Recall is that of the ten nearest words
by plain cosine, by Hamming distance, for 1,000 words. The first line is the floats.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import embits
from embits.arrays import unit_rows
from embits.evaluation import DataFolder, as_space, evaluate_similarity

K, ASKED = 10, 1000


def main() -> None:
    """Fit, score and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--bits", default="64,128,256,512")
    parser.add_argument("--targets", default="neighbors,similarity")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", default="near-lossless")
    parser.add_argument("--param", action="append", default=[], help="NAME=VALUE, a text")
    args = parser.parse_args()
    vectors = embits.read_vectors(args.vectors)
    X, pairs = np.asarray(vectors.matrix, np.float32), DataFolder.at(args.data).similarity()
    asked = np.random.default_rng(7).choice(len(X), min(ASKED, len(X)), replace=False)
    cosines = unit_rows(X[asked]) @ unit_rows(X).T
    cosines[np.arange(len(asked)), asked] = -1
    nearest = np.argpartition(-cosines, K, axis=1)[:, :K]
    print(
        f"{'':16}" + "".join(f"{name:>9}" for name in [*pairs, "F", "recall", "decoded", "fit, s"])
    )
    print(line("floats", [scores(vectors, pairs)]))
    for n_bits in map(int, args.bits.split(",")):
        for target in args.targets.split(","):
            rows = []
            for seed in range(args.seeds):
                start = time.perf_counter()
                params = {
                    "target": target,
                    "random_state": seed,
                    **dict(p.split("=") for p in args.param),
                }
                coder = embits.coders.new_coder(args.method, n_bits, params).fit(X)
                seconds = time.perf_counter() - start
                bits = embits.BinaryVectors(vectors.words, coder.encode(X), coder)
                found = bits.search(bits.codes[asked], K + 1).rows
                share = (nearest[:, :, None] == found[:, None, :]).any(axis=2).mean()
                decoded = embits.WordVectors(vectors.words, coder.rebuilt(bits.codes))
                rows.append(
                    [*scores(bits, pairs), float(share), scores(decoded, pairs)[-1], seconds]
                )
            print(line(f"{n_bits} {target}", rows), flush=True)


def scores(vectors: object, pairs: dict) -> list[float]:
    """Spearman's correlation x 100 for each set, and their Fisher mean."""
    found = evaluate_similarity(as_space(vectors), pairs)
    return [100 * found[name]["spearman"] for name in pairs] + [100 * found["fisher_mean"]]


def line(name: str, rows: list[list[float]]) -> str:
    """The means of several seeds."""
    means = np.mean(rows, axis=0)
    return f"{name:16}" + "".join(f"{x:9.3f}" if x < 1 else f"{x:9.1f}" for x in means)


if __name__ == "__main__":
    main()
