"""Quality of the paper's coder on GloVe 6B 100d, beside LSH and the raw floats.

    python benchmarks/paper_quality.py VECTORS [--data DIR] [--seeds 3]

Fisher means (×100) of Spearman over MEN, RW, SimLex, SimVerb and WS353, and the mean cosine of the
rebuilt floats, at 64, 128, 256 and 512 bits.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import embits
from embits.evaluation import DataFolder, Evaluator

EXPECTED = {64: 36.7, 128: 41.1, 256: 43.5, 512: 43.2}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    raw = embits.read_vectors(args.vectors)
    evaluator = Evaluator(DataFolder.at(args.data), raw, ["similarity", "reconstruction"])
    floats = evaluator.evaluate_raw()
    print(f"raw floats: F {100 * floats['similarity']['fisher_mean']:.1f}")
    for n_bits, expected in EXPECTED.items():
        scores = {}
        for method in ("paper", "lsh"):
            runs = []
            for seed in range(args.seeds):
                bits = embits.binarize(raw, n_bits, method, random_state=seed)
                result = evaluator.evaluate_bits(bits)
                runs.append((100 * result["similarity"]["fisher_mean"],
                             result["reconstruction"]["cosine"]))  # fmt: skip
            scores[method] = [statistics.mean(column) for column in zip(*runs, strict=True)]
        ours, lsh = scores["paper"], scores["lsh"]
        print(
            f"{n_bits:>3} bits: paper F {ours[0]:.1f} ({ours[0] - expected:+.1f} of {expected}), "
            f"cosine {ours[1]:.3f}; LSH F {lsh[0]:.1f}, cosine {lsh[1]:.3f}"
        )


if __name__ == "__main__":
    main()
