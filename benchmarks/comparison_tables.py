"""Write the tables of docs/comparison.md from the stored run.

    python benchmarks/comparison_tables.py

Reads benchmarks/results/comparison.json, and replaces the text between `<!-- NAME -->` and
`<!-- /NAME -->`, for the names recall, bits and cost. tests/docs/test_comparison.py checks that
the page is up to date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "comparison.md"
RUN = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())
NAMES = {"minilm": "MiniLM", "mpnet": "MPNet", "gnews": "GoogleNews"}
SIZES = (8, 16, 32, 64, 128)  # bytes
SHOWN = ("recall_at_10", "unseen_at_10")
COST_SIZES = (8, 32, 64, 128)  # the others are on the page of the run
METHODS = {  # with any number of bytes, as regular expressions
    **{
        f"{coder}, {way}": rf"{coder} \d+, {way}"
        for way in ("float query", "decoded", "Hamming")
        for coder in ("NearLossless", "Neural", "Neural long", "Neural long float")
        if way == "float query" or coder in ("NearLossless", "Neural")
    },
    **{
        f"FAISS {kind}{way}": rf"FAISS {kind} \d+{way}"
        for kind in ("RQ", "LSQ", "PRQ")
        for way in ("", ", cosine")
    },
    **{f"FAISS {kind}": rf"FAISS {kind} \d+" for kind in ("OPQ", "PQ")},
    "ScaNN": r"ScaNN [\d.]+",
}
BITS = r"sign|EDEN|FAISS RaBitQ|rabitqlib|turbovec|FAISS SQ[48]|usearch e4m3"
COST = (  # key, format
    ("recall_at_10", ".3f"),
    ("recall_at_40", ".3f"),
    ("ndcg_at_10", ".3f"),
    ("fit_s", ",.1f"),
    ("encode_us", ",.0f"),
)
Row = dict[str, Any]
ROWS: dict[str, list[Row]] = {name: RUN["sets"][name]["rows"] for name in NAMES}


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text()))


def with_tables(page: str) -> str:
    """Return the page with the stored numbers."""
    for name, lines in (("recall", recall()), ("bits", bits()), ("cost", cost())):
        block = "\n".join([f"<!-- {name} -->", "", *lines, "", f"<!-- /{name} -->"])
        page = re.sub(rf"(?s)<!-- {name} -->.*<!-- /{name} -->", block, page)
    return page


def recall() -> Iterator[str]:
    """A table for each set: methods by sizes, the best of each size in bold."""
    for place, (name, title) in enumerate(NAMES.items()):
        if place:
            yield ""
        yield f"| {title} | {' | '.join(f'{size} bytes' for size in SIZES)} |"
        yield "|---|" + "---:|" * len(SIZES)
        found = {method: [at(name, method, size) for size in SIZES] for method in METHODS}
        columns = list(zip(*found.values(), strict=True))
        best = [
            {key: max(value(row, key) for row in column) for key in SHOWN} for column in columns
        ]
        for method, rows in found.items():
            if any(rows):
                yield f"| {method} | {' | '.join(map(cell, rows, SIZES, best))} |"


def at(name: str, method: str, size: int) -> Row | None:
    """The row of a method with a size, or with the next smaller size that it has."""
    above = dict(pairwise((*reversed(SIZES), 0)))[size]
    for row in ROWS[name]:
        if re.fullmatch(METHODS[method], row["method"]) and above < row["bytes"] <= size:
            return row
    return None


def value(row: Row | None, key: str = "recall_at_10") -> float:
    return float(row.get(key, 0)) if row else 0.0


def cell(row: Row | None, size: int, best: dict[str, float]) -> str:
    """Recall among all rows and among unseen ones, where both were measured."""
    if row is None:
        return "–"
    texts = {key: f"{value(row, key):.3f}" for key in SHOWN if key in row}
    texts = {key: f"**{of}**" if value(row, key) == best[key] else of for key, of in texts.items()}
    return " · ".join(texts.values()) + (f" ({row['bytes']:g})" if row["bytes"] != size else "")


def bits() -> Iterator[str]:
    """Methods with a number of bits for each dimension."""
    yield f"| method | {' | '.join(NAMES.values())} |"
    yield "|---|" + "---:|" * len(NAMES)
    found: dict[str, dict[str, str]] = {}
    for name in NAMES:
        for row in ROWS[name]:
            if re.match(BITS, row["method"]):
                text = f"{value(row):.3f} ({row['bytes']:.0f} bytes)"
                found.setdefault(row["method"], {})[name] = text
    for method, cells in found.items():
        yield f"| {method} | {' | '.join(cells[name] for name in NAMES)} |"


def cost() -> Iterator[str]:
    """What a method takes on MiniLM, where nDCG was measured too."""
    heads = "recall@10 | recall@40 | nDCG@10 | fit, s | encoding, µs a row | codebook, KB"
    yield f"| bytes | method | {heads} |"
    yield "|---:|---|" + "---:|" * (len(COST) + 1)
    for size in COST_SIZES:
        for method in METHODS:
            row = at("minilm", method, size)
            if row and "fit_s" in row and not method.endswith(("decoded", "Hamming", "cosine")):
                values = [format(row[key], style) if key in row else "–" for key, style in COST]
                values.append(f"{row['shared_bytes'] / 1000:,.0f}")
                yield f"| {row['bytes']:g} | {method} | {' | '.join(values)} |"


if __name__ == "__main__":
    main()
