"""Search times beside FAISS: docs/images/search.svg.

    python docs/figures/search.py

Draws the run of benchmarks/hamming_search.py stored in benchmarks/results/hamming_search.json.
"""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
from style import LIGHT, ROOT, WIDTHS, save


def main() -> None:
    report = json.loads((ROOT / "benchmarks/results/hamming_search.json").read_text())
    rows = {(row["what"], row["subject"]): row for row in report["rows"]}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, task in zip(axes, ("one query", "batch of 1,000"), strict=True):
        pairs = [rows[f"{task}, {width} bits", "avx512"] for width in WIDTHS]
        places = range(len(WIDTHS))
        axis.bar([p - 0.2 for p in places], [r["rival_us"] for r in pairs], 0.38, color=LIGHT.grey,
                 label="FAISS IndexBinaryFlat")  # fmt: skip
        axis.bar([p + 0.2 for p in places], [r["subject_us"] for r in pairs], 0.38, color=LIGHT.one,
                 label="embits")  # fmt: skip
        for place, row in zip(places, pairs, strict=True):
            axis.text(place + 0.2, row["subject_us"], f"{row['ratio']:.1f} ×", ha="center",
                      va="bottom", fontsize=9, color=LIGHT.ink)  # fmt: skip
        axis.set_xticks(list(places), [f"{width} bits" for width in WIDTHS])
        axis.set_title(f"{task}: exact top 10", fontsize=10, loc="left", color=LIGHT.ink)
    axes[0].set_ylabel("µs per query, one thread")
    axes[0].legend(frameon=False, fontsize=9)
    figure.suptitle("Search over 341,479 codes", fontsize=11, x=0.01, ha="left", color=LIGHT.ink)
    save(figure, "search")


if __name__ == "__main__":
    main()
