"""Pages that live outside docs/, and links that lead out of it.

CHANGELOG.md and its like stand where people look for them in a repository, and are pages of the
site as well. Their links, and links of pages to them, are written for the repository: here they
are turned to where the site has the page, or to the repository's own view of a file.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?P<start>!?\[[^\]]*\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def outside_pages() -> dict[str, str]:
    """Where the site has the pages of the repository that are not in docs/."""
    pages = {name: name.lower() for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        pages[f"benchmarks/results/{path.name}"] = f"benchmark-results/{path.name}"
    return pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in outside_pages().items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = Path(os.path.relpath(page.file.abs_src_path or "", ROOT)).parent.as_posix()
    return LINK.sub(lambda link: _turned(link, folder, page, config, files), markdown)


def _turned(
    link: re.Match[str], folder: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """The link as the site needs it; as it is where that is the same."""
    path = posixpath.normpath(posixpath.join(folder, link["target"]))
    if not (ROOT / path).exists():
        return link[0]
    inside = outside_pages().get(path) or path.removeprefix("docs/")
    if files.get_file_from_path(inside):
        target = posixpath.relpath(inside, posixpath.dirname(page.file.src_uri) or ".")
        return f"{link['start']}{target}{link['anchor'] or ''})"
    if config.repo_url:
        return f"{link['start']}{config.repo_url.rstrip('/')}/blob/main/{path})"
    return link["start"].strip("![(]")  # nowhere to lead to: the text alone
