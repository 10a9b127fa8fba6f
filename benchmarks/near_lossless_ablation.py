"""What each part of NearLossless adds: one part left out at a time.

    python benchmarks/near_lossless_ablation.py VECTORS.npy [--words FILE] [--similarity DIR]
        [--bits 128] [--seeds 3] [--device cpu] [--parts "the start,random batches"] [--json FILE]

The columns are those of near_lossless.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from embits.coders import NearLossless
from embits.coders.near_lossless import coder as module
from embits.coders.near_lossless import loss as objective
from embits.coders.near_lossless import sampling
from near_lossless import COLUMNS, Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--similarity", type=Path)
    parser.add_argument("--bits", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--json", type=Path, help="write every run here")
    args = parser.parse_args()

    bench = Bench(np.load(args.vectors, mmap_mode="r"), args.words, args.similarity)
    runs = []
    print(f"{'':24} " + " ".join(f"{c:>6}" for c in COLUMNS))
    for part in args.parts.split(","):
        scores = []
        for seed in range(args.seeds):
            steps = 0 if part == "the start" else None
            coder = NearLossless(args.bits, steps=steps, random_state=seed, device=args.device)
            with PARTS[part]():
                scores.append(bench.score(coder))
            runs.append({"data": args.vectors.stem, "part": part, "seed": seed, **scores[-1]})
        means = (np.mean([s[c] for s in scores]) for c in COLUMNS)
        print(f"{part:24} " + " ".join(f"{m:6.3f}" for m in means), flush=True)
    if args.json:
        args.json.write_text(json.dumps(runs))


def setting(owner: Any, name: str, value: Any) -> Callable[[], Any]:
    """A context in which a constant or a function of the library is another one."""
    return lambda: mock.patch.object(owner, name, value)


@contextmanager
def without_term(number: int) -> Iterator[None]:
    """Leave out the first (Hamming) or the second (float queries) divergence of a step."""
    whole, calls = objective._cross_entropy, [0]

    def part(xp: Any, logits: Any, P: Any) -> tuple[Any, Any, Any]:
        calls[0] += 1
        kept = 0.0 if calls[0] % 2 == number % 2 else 1.0
        return tuple(kept * value for value in whole(xp, logits, P))

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(objective, "_cross_entropy", part))
        yield


def any_rows(n: int, dims: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(n, min(n, sampling.SAMPLE_ROWS), replace=False))


RAW = {"neighbors": module.Target(0.0, 0)}
PARTS: dict[str, Callable[[], Any]] = {
    "all of it": ExitStack,
    "no float queries": lambda: without_term(2),
    "no Hamming distance": lambda: without_term(1),
    "no flattening": setting(module, "TARGETS", RAW),
    "random batches": setting(sampling, "NEIGHBORS", 1),
    "wide surrogate": setting(objective, "SURROGATE_WIDTH", 1.0),
    "rows from anywhere": setting(sampling, "sample_rows", any_rows),
    "the start": ExitStack,
}


if __name__ == "__main__":
    main()
