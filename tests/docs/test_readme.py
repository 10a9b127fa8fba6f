"""The README is short, and its numbers are those of stored runs."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_numbers_are_what_the_script_would_write():
    with_numbers = runpy.run_path(str(ROOT / "benchmarks/readme_numbers.py"))["with_numbers"]
    assert with_numbers(README) == README, "run: python benchmarks/readme_numbers.py"


def test_links_lead_to_files_that_are_there():
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README) + re.findall(
        r'src(?:set)?="([^"]+)"', README
    )
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_verb_is_named():
    from embits.cli import VERBS

    assert [verb for verb in VERBS if f"`{verb}" not in README] == []


def test_every_benchmark_script_is_named_on_its_page():
    page = (ROOT / "docs/benchmarks.md").read_text()
    scripts = [
        path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()
    ]
    assert [path.name for path in scripts if f"`{path.name}`" not in page] == []
