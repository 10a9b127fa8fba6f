"""Include pages from outside docs/, and adjust links that lead there.

CHANGELOG.md, CONTRIBUTING.md and SECURITY.md are in the root of the repository, where people look
for them, and are also pages of the site. Links in the sources work in the repository; here they are
changed to the page on the site, or to the file on the repository's web site.
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
    """Map each page outside docs/ to its path on the site."""
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
    """Return the link with its target on the site."""
    path = posixpath.normpath(posixpath.join(folder, link["target"]))
    if not (ROOT / path).exists():
        return link[0]
    inside = outside_pages().get(path) or path.removeprefix("docs/")
    if files.get_file_from_path(inside):
        target = posixpath.relpath(inside, posixpath.dirname(page.file.src_uri) or ".")
        return f"{link['start']}{target}{link['anchor'] or ''})"
    if config.repo_url:
        return f"{link['start']}{config.repo_url.rstrip('/')}/blob/main/{path})"
    return link["start"].strip("![(]")  # no target: keep the text alone
