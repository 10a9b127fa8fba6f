"""What each part of Neural adds, on rows that no fit has seen.

    python benchmarks/ablations.py [--bits 64,256,1024] [--seeds 3] [--json FILE]

Fitted on half of 31,600 sentence embeddings in $EMBITS_DATA (or ../shared/data), asked with 1,000
of the others. The rows of a table, each with all that stands above it:

    thresholds       a bit is the sign of a linear score
    linear search    bits flipped while the linear decoder gains (NearLossless from 128 bits on)
    net              a net that decodes such bits; float queries with a second look
    search under it  bits flipped while the net gains (Neural)
    ... no look      float queries without the second look
    hidden layer     an encoder with a hidden layer, trained together with the net, where held-out
                     rows favor it

U is recall@10 by float query among the rows of the other half alone, `hamming` that by Hamming
distance among all rows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

import embits
from embits.coders.near_lossless import bit_search
from embits.coders.neural import coder as neural
from neural import QUERIES, recall
from provenance import provenance
from unseen_rows import sentences

DEFAULT = neural.EFFORTS["default"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bits", default="64,256,1024")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="where nets are trained")
    parser.add_argument("--json", type=Path, help="append every run here, a line each")
    options = parser.parse_args()
    X = sentences()
    for n_bits in map(int, options.bits.split(",")):
        runs: dict[str, list[dict[str, float]]] = {}
        for seed in range(options.seeds):
            for name, scores in ablations(X, n_bits, seed, options.device):
                runs.setdefault(name, []).append(scores)
                if options.json:
                    line = {"part": name, "bits": n_bits, "seed": seed, **scores}
                    line["about"] = provenance([seed], sentences=X)
                    with options.json.open("a") as file:
                        print(json.dumps(line), file=file)
        for name, of in runs.items():
            U, hamming = (np.mean([scores[key] for scores in of]) for key in ("U", "hamming"))
            print(f"{n_bits} bits  {name:16} U {U:.3f}  hamming {hamming:.3f}", flush=True)


def ablations(
    X: np.ndarray, n_bits: int, seed: int, device: str
) -> Iterator[tuple[str, dict[str, float]]]:
    half = X[: len(X) // 2]

    def fitted(kind: type[embits.NearLossless], **effort: object) -> embits.NearLossless:
        of = {"default": DEFAULT._replace(**effort)}
        with patch.object(neural, "EFFORTS", of):
            return kind(n_bits, random_state=seed, device=device).fit(half)

    with patch.object(bit_search, "MIN_ROWS", len(X)):
        yield "thresholds", scores(X, fitted(embits.NearLossless))
    with patch.object(bit_search, "FEWEST_BITS", 0):
        yield "linear search", scores(X, fitted(embits.NearLossless))
    yield "net", scores(X, fitted(embits.Neural, rounds=0))
    coder = fitted(embits.Neural)
    yield "search under it", scores(X, coder)
    yield "... no look", scores(X, coder, second_look=0)
    yield "hidden layer", scores(X, fitted(embits.Neural, widest=(9, 9)))


def scores(X: np.ndarray, coder: embits.NearLossless, **asked: int) -> dict[str, float]:
    half, queries = len(X) // 2, np.arange(len(X) // 2, len(X) // 2 + QUERIES)
    bits = embits.BinaryVectors(None, coder.encode(X, device=coder.device), coder)
    unseen = bits.subset(np.arange(len(X)) >= half)
    by_float = unseen.search(X[queries], 11, metric="asymmetric", **asked).rows + half
    by_code = bits.search(bits.codes[queries], 11).rows
    return {"U": recall(by_float, X, queries, half), "hamming": recall(by_code, X, queries)}


if __name__ == "__main__":
    main()
