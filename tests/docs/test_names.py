"""Modules, functions and files that the pages name exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "js/README.md")),
    *(page for page in (ROOT / "docs").rglob("*.md") if page.name != "upgrading.md"),
]
# Folders that a path on a page may start in; others belong to the reader.
FOLDERS = "benchmarks|cli|coders|collection|cpp|docs|embits|evaluation|examples|file|fuzz|ids"
FOLDERS += "|integrations|jobs|js|readers|search|src|stress|tests"
NAME = re.compile(r"\bembits(?:\.[A-Za-z_]\w*)+(?!\w*\.(?:js|ts))\b")
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w)`")
ENDINGS = {"d", "js", "safetensors", "whl"}  # of files called embits


def is_there(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_dotted_names_can_be_imported():
    pytest.importorskip("pyarrow")
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in sorted(set(NAME.findall(page.read_text())))
        if name.split(".")[1] not in ENDINGS and not is_there(name)
    ]
    assert missing == []


def test_paths_lead_to_files():
    starts = (ROOT, ROOT / "src", ROOT / "src/embits")
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in sorted(set(PATH.findall(page.read_text())))
        if "NAME" not in path
        and not any((start / path).exists() for start in (*starts, page.parent))
    ]
    assert missing == []


def test_the_map_of_the_code_names_modules_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawing = (ROOT / "docs/images/way-of-the-data.svg").read_text()
    names = set(re.findall(r"`(\w+\.(?:py|cpp|h))`", text))
    names |= set(
        re.findall(r"[\w/]+(?:\.py|/)", " ".join(re.findall(r'"file"[^>]*>([^<]*)<', drawing)))
    )
    assert len(names) > 20
    starts = (ROOT, ROOT / "src/embits", *(ROOT / "src/embits").iterdir(), ROOT / "cpp/search")
    starts += (ROOT / "cpp", ROOT / ".github/workflows", ROOT / "tests")
    missing = [
        name for name in sorted(names) if not any((start / name).exists() for start in starts)
    ]
    assert missing == []
