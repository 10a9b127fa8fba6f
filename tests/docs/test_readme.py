"""The README is short, and its numbers are those of stored runs."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_numbers_are_what_the_script_would_write():
    script = runpy.run_path(str(ROOT / "benchmarks/readme_numbers.py"))
    for name in script["TABLES"]:
        page = (ROOT / name).read_text()
        assert "<!-- /numbers -->" in page
        assert script["with_numbers"](page, name) == page, (
            "run: python benchmarks/readme_numbers.py"
        )


def test_the_readme_is_short():
    assert len(README.split()) <= 800
    table = README.split("<!-- numbers -->")[1].split("<!-- /numbers -->")[0]
    assert len(table.strip().splitlines()) == 2 + 6  # the header and six rows


def test_links_lead_to_files_that_are_there():
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README) + re.findall(
        r'src(?:set)?="([^"]+)"', README
    )
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_verb_is_in_the_table_of_commands():
    from embits.cli import VERBS

    table = (ROOT / "docs/reference/command-line.md").read_text()
    assert [verb for verb in VERBS if f"`{verb}" not in table] == []


def test_every_benchmark_script_is_named_on_its_page():
    page = (ROOT / "benchmarks/README.md").read_text()
    scripts = [
        path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()
    ]
    assert [path.name for path in scripts if f"`{path.name}" not in page] == []


def test_results_pages_have_the_main_rows_of_their_reports(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "docs/figures")
    shortened = runpy.run_path(str(ROOT / "docs/figures/results.py"))["shortened"]
    indent = " \u00a0 \u00a0 "
    tables = (
        "# Bits of x\n\n## Neighbors\n\nTable 4. Recall.\n\n|  | 64 |\n| --- | ---: |\n"
        f"| Recall@1, Hamming | |\n|{indent}lsh | 1.0 |\n"
        f"| Recall@10, Hamming | |\n|{indent}lsh | 2.0 |\n"
    )
    page = shortened(
        f"{tables}\n## Differences between methods\n\nTable 5. Tests.\n\n## Speed\n\n"
        "Table 6. Time.\n"
    )
    assert "Table 1. Recall.\n\n|  | 64 |" in page
    assert "1.0" not in page
    assert "2.0" in page
    assert page.endswith("\n\n## Speed\n\nTable 2. Time.\n")
    for path in (ROOT / "docs/results").glob("[!R]*.md"):
        assert shortened(path.read_text()) == path.read_text()
