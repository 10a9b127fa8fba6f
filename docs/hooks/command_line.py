"""Generate the command line reference from the help of each verb."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from mkdocs.structure.pages import Page

from embits.cli import VERBS, embits

MARK = "<!-- every verb, from embits VERB --help -->"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    if MARK not in markdown:
        return markdown
    with click.Context(embits, info_name="embits") as group:
        verbs = [_verb(name, group) for name in VERBS]
    return markdown.replace(MARK, "\n\n".join(verbs))


def _verb(name: str, group: click.Context) -> str:
    command = embits.get_command(group, name)
    assert command is not None
    with click.Context(command, info_name=name, parent=group) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        parts = [f"## {name}", f"`embits {name} {usage}`", *_help(command)]
        options = [
            record
            for each in command.params  # --help is the same for all
            if isinstance(each, click.Option) and (record := each.get_help_record(context))
        ]
    rows = [f"| `{names.replace('|', '&#124;')}` | {_cell(text)} |" for names, text in options]
    if rows:
        parts.append("\n".join(["| option | what |", "|---|---|", *_codes(rows)]))
    return "\n\n".join(parts)


def _help(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of the help; those marked \\b, the examples, become code blocks."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            lines = paragraph.splitlines()[1:]
            yield "\n".join(["```sh", *lines, "```"])
        elif paragraph.strip():
            yield html.escape(" ".join(paragraph.split()), quote=False)


def _codes(rows: list[str]) -> list[str]:
    """Use HTML code spans where a cell contains `|`, which Markdown code spans show escaped."""
    return [re.sub(r"`([^`]*&#124;[^`]*)`", r"<code>\1</code>", row) for row in rows]


def _cell(text: str) -> str:
    return html.escape(text.replace("  [", " ["), quote=False).replace("|", "&#124;")
