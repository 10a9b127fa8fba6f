"""Draw the last run of hamming_search.py for the README: docs/images/search.png."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
WIDTHS = (64, 128, 256, 512)
# Okabe and Ito's colours: told apart by people who see few.
FAISS, OURS, INK = "#999999", "#0072B2", "#222222"


def main() -> None:
    report = json.loads((HERE / "results" / "hamming_search.json").read_text())
    rows = {(row["what"], row["subject"]): row for row in report["rows"]}
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, task in zip(axes, ("one query", "batch of 1,000"), strict=True):
        pairs = [rows[f"{task}, {width} bits", "avx512"] for width in WIDTHS]
        places = range(len(WIDTHS))
        axis.bar([p - 0.2 for p in places], [r["rival_us"] for r in pairs], 0.38, color=FAISS,
                 label="FAISS IndexBinaryFlat")  # fmt: skip
        axis.bar([p + 0.2 for p in places], [r["subject_us"] for r in pairs], 0.38, color=OURS,
                 hatch="//", edgecolor="white", label="embits")  # fmt: skip
        for place, row in zip(places, pairs, strict=True):
            axis.text(place + 0.2, row["subject_us"], f"{row['ratio']:.1f} ×", ha="center",
                      va="bottom", fontsize=9, color=INK)  # fmt: skip
        axis.set_xticks(list(places), [f"{width} bits" for width in WIDTHS])
        axis.set_title(f"{task}: exact top 10", fontsize=10, loc="left", color=INK)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("µs a query, one thread")
    axes[0].legend(frameon=False, fontsize=9)
    fig.suptitle("Search over 341,479 codes", fontsize=11, x=0.01, ha="left", color=INK)
    out = HERE.parent / "docs" / "images" / "search.png"
    out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(out, dpi=160)
    print(out)


if __name__ == "__main__":
    main()
