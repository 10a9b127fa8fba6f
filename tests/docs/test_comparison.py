"""The tables of the comparison are those of the stored run."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_tables_are_what_the_script_would_write():
    with_tables = runpy.run_path(str(ROOT / "benchmarks/comparison_tables.py"))["with_tables"]
    page = (ROOT / "docs/comparison.md").read_text()
    assert page.count("<!-- /") == 3
    assert with_tables(page) == page, "run: python benchmarks/comparison_tables.py"
