"""Expand `folder/*` in the navigation to the pages of the folder that no other entry names.

Pages are sorted by title. A new page appears in the navigation without an entry of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).parents[2]
FOLDERS = {"benchmark-results": ROOT / "benchmarks" / "results"}  # others are in docs/


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = _expanded(config.nav, Path(config.docs_dir), set(_named(config.nav)))
    return config


def _named(entry: Any) -> Iterator[str]:
    """Yield every page that the navigation names."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _named(inner)


def _expanded(entries: list[Any], docs: Path, named: set[str]) -> list[Any]:
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/*"):
            expanded += _pages_of(entry.removesuffix("/*"), docs, named)
        elif isinstance(entry, dict) and isinstance(inside := next(iter(entry.values())), list):
            if pages := _expanded(inside, docs, named):
                expanded.append({next(iter(entry)): pages})
        else:
            expanded.append(entry)
    return expanded


def _pages_of(folder: str, docs: Path, named: set[str]) -> list[dict[str, str]]:
    prefix = "" if folder == "." else f"{folder}/"
    pages = [
        (_title(path), prefix + path.name)
        for path in FOLDERS.get(folder, docs / folder).glob("*.md")
        if prefix + path.name not in named
    ]
    return [{title: page} for title, page in sorted(pages, key=lambda entry: entry[0].lower())]


def _title(path: Path) -> str:
    heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M)
    return heading[1].replace("`", "") if heading else path.stem
