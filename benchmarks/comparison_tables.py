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
COST_SIZES = (8, 32, 64, 128)  # the others are on the page of the run
METHODS = {  # with any number of bytes, as regular expressions
    "embits, float query": r"embits \d+, float query",
    "embits, decoded": r"embits \d+, decoded",
    "embits, Hamming": r"embits \d+, Hamming",
    **{f"FAISS {kind}": rf"FAISS {kind} \d+" for kind in ("RQ", "LSQ", "PRQ", "OPQ", "PQ")},
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
        best = [max(value(row) for row in column) for column in zip(*found.values(), strict=True)]
        for method, rows in found.items():
            yield f"| {method} | {' | '.join(map(cell, rows, SIZES, best))} |"


def at(name: str, method: str, size: int) -> Row | None:
    """The row of a method with a size, or with the next smaller size that it has."""
    above = dict(pairwise((*reversed(SIZES), 0)))[size]
    for row in ROWS[name]:
        if re.fullmatch(METHODS[method], row["method"]) and above < row["bytes"] <= size:
            return row
    return None


def value(row: Row | None) -> float:
    return float(row["recall_at_10"]) if row else 0.0


def cell(row: Row | None, size: int, best: float) -> str:
    if row is None:
        return "–"
    text = f"{value(row):.3f}"
    if row["bytes"] != size:
        text += f" ({row['bytes']:g})"
    return f"**{text}**" if value(row) == best else text


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
            if row and method not in ("embits, decoded", "embits, Hamming"):
                values = [format(row[key], style) for key, style in COST]
                values.append(f"{row['shared_bytes'] / 1000:,.0f}")
                yield f"| {row['bytes']:g} | {method} | {' | '.join(values)} |"


if __name__ == "__main__":
    main()
