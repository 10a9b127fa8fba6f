"""Write the tables of numbers in the README and in docs/benchmarks.md from stored results.

    python benchmarks/readme_numbers.py

Reads benchmarks/results/*.json and docs/results/scores.json, and replaces the text between
`<!-- numbers -->` and `<!-- /numbers -->`. tests/docs/test_readme.py checks that it is up to date.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WIDTHS = (64, 128, 256, 512)
Row = tuple[str, ...]


def main() -> None:
    for page in TABLES:
        path = ROOT / page
        path.write_text(with_numbers(path.read_text(), page))


def with_numbers(text: str, page: str) -> str:
    """Return the page with the stored numbers in its table."""
    head, *rows = TABLES[page]()
    rule = ["---", *("---:" if page == "README.md" else "---" for _ in head[1:])]
    lines = (f"| {' | '.join(row)} |" for row in (head, rule, *rows))
    block = "<!-- numbers -->\n" + "\n".join(lines) + "\n<!-- /numbers -->"
    return re.sub(r"(?s)<!-- numbers -->.*<!-- /numbers -->", lambda _: block, text)


def readme() -> list[Row]:
    """A column for each width, and one for the floats."""
    scores = stored("docs/results/scores.json")["glove-840B-300d"]
    found = searches()

    def quality(measure: str) -> list[str]:
        return [f"{scores['near-lossless'][str(width)][measure]:.1f}" for width in WIDTHS]

    def microseconds(what: str, who: str = "subject_us") -> list[str]:
        cells = [found[f"{what}, {width} bits", "avx512", "FAISS"] for width in WIDTHS]
        return [f"{cell[who]:,.0f}" for cell in cells]

    raw = f"{scores['raw']['9600']['similarity']:.1f}"
    return [
        ("", *(f"{width} bits" for width in WIDTHS), "floats"),
        (
            "bytes of a 300-dimensional vector",
            *(f"{width // 8}" for width in WIDTHS),
            f"{4 * 300:,}",
        ),
        ("word similarity (GloVe 840B), Spearman × 100", *quality("similarity"), raw),
        ("recall@10 of nearest words, %", *quality("recall_at_10"), "100"),
        ("the same with float queries, %", *quality("asymmetric_recall_at_10"), "100"),
        ("exact top 10 of 341,479 codes, one core, µs", *microseconds("one query"), "–"),
        ("the same with FAISS `IndexBinaryFlat`, µs", *microseconds("one query", "rival_us"), "–"),
    ]


def benchmarks() -> list[Row]:
    """Everything, beside what it compares with."""
    return [("", "embits", "for comparison"), *size(), *quality(), *search(), *opening()]


def size() -> list[Row]:
    return [
        (
            "bytes of a 300-dimensional vector at 64 / 128 / 256 / 512 bits",
            joined(f"{width // 8}" for width in WIDTHS),
            f"float32: {4 * 300:,} ({joined(f'{32 * 300 / w:.3g}' for w in WIDTHS)} times larger)",
        )
    ]


def quality() -> list[Row]:
    scores = stored("docs/results/scores.json")["glove-840B-300d"]

    def over_widths(method: str, measure: str) -> str:
        return joined(f"{scores[method][str(width)][measure]:.1f}" for width in WIDTHS)

    raw = scores["raw"]["9600"]["similarity"]
    return [
        (
            "agreement with human similarity scores (GloVe 840B 300d, Spearman × 100), same widths",
            over_widths("near-lossless", "similarity"),
            f"the floats: {raw:.1f}; the paper's model: {over_widths('paper', 'similarity')}",
        ),
        (
            "recall@10 of nearest words, %",
            over_widths("near-lossless", "recall_at_10"),
            f"the paper's model: {over_widths('paper', 'recall_at_10')}; "
            f"embits with float queries: {over_widths('near-lossless', 'asymmetric_recall_at_10')}",
        ),
    ]


def search() -> list[Row]:
    found = searches()

    def compared(what: str) -> tuple[str, str]:
        cells = [found[f"{what}, {width} bits", "avx512", "FAISS"] for width in WIDTHS]
        return joined(f"{c['subject_us']:.0f}" for c in cells), joined(
            f"{c['ratio']:.1f}" for c in cells
        )

    one, batch = compared("one query"), compared("batch of 1,000")
    floats = found["341,479 × 300 floats, or 256 bits", "Hamming scan", "FAISS IndexFlatIP"]
    index = found["10 million × 64 bits, top 10", "multi-index", "scan"]
    return [
        ("one exact top-10 query over 341,479 codes, one core, µs", one[0],
         f"FAISS `IndexBinaryFlat` is {one[1]} times slower"),
        ("the same in batches of 1,000 queries, µs per query", batch[0],
         f"FAISS is {batch[1]} times slower"),
        ("one query over 341,479 rows of 256 bits, or of 300 floats",
         f"{floats['subject_us'] / 1e3:.2f} ms",
         f"FAISS `IndexFlatIP` on the floats is {floats['ratio']:.0f} times slower"),
        ("10 million codes of 64 bits, top 10, multi-index", f"{index['subject_us'] / 1e3:.2f} ms",
         f"a full scan is {index['ratio']:.0f} times slower"),
    ]  # fmt: skip


def opening() -> list[Row]:
    start = stored("benchmarks/results/startup.json")
    text = stored("benchmarks/results/read_text.json")
    return [
        (f"open a file of {start['words']:,} words × {start['bits']} bits "
         "and answer the first query",
         f"{start['first_answer_ms']:.1f} ms", "the paper: 310 ms"),
        (f"reading word2vec text, {text['words']:,} × {text['dims']}", f"{text['embits_s']:.2f} s",
         f"gensim is {text['ratio']:.0f} times slower"),
    ]  # fmt: skip


def searches() -> dict[Row, Any]:
    runs = stored("benchmarks/results/hamming_search.json")["rows"]
    return {(run["what"], run["subject"], run["rival"]): run for run in runs}


def stored(path: str) -> Any:
    return json.loads((ROOT / path).read_text())


def joined(values: Any) -> str:
    return " / ".join(values)


TABLES = {"README.md": readme, "docs/benchmarks.md": benchmarks}

if __name__ == "__main__":
    main()
