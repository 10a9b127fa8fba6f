"""Add every module of embits.integrations to the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "src" / "embits" / "integrations"
MARK = "<!-- every integration -->"
HELPERS = {"documents", "table"}  # shared by several integrations, not public


def on_page_markdown(markdown: str, **_: Any) -> str:
    if MARK not in markdown:
        return markdown
    names = sorted(
        path.stem
        for path in FOLDER.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists())
        and not path.name.startswith("_")
        and path.stem not in HELPERS
    )
    return markdown.replace(MARK, "\n\n".join(_section(name) for name in names))


def _section(name: str) -> str:
    options = "heading_level: 2, show_root_full_path: true, show_symbol_type_heading: false"
    return f"::: embits.integrations.{name}\n    options: {{ {options} }}"
