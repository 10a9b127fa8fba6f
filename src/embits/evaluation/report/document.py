"""A report as a list of blocks, rendered as Markdown and as one HTML file.

Words and file names are data: the renderers escape them.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Heading:
    """A section's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table: the first column is aligned left, the others right, or left if `of_text`.

    A row whose first cell starts with a space belongs to the last row above whose first cell does
    not. A cell written as *x* is bold.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    of_text: bool = False


@dataclass(frozen=True)
class Picture:
    """A PNG with its caption; `others` are the same picture in other formats, by suffix."""

    name: str
    png: bytes
    caption: str
    others: Mapping[str, bytes] = field(default_factory=dict)


Block: TypeAlias = Heading | Text | Table | Picture


def to_markdown(blocks: Sequence[Block], folder: str) -> str:
    """Render as Markdown; pictures are links into `folder`."""
    parts = []
    for block in blocks:
        match block:
            case Heading(text, level):
                parts.append(f"{'#' * level} {_marked(text)}")
            case Text(text):
                parts.append(_marked(text))
            case Table(header, rows, caption, of_text):
                rule = ["---", *["---" if of_text else "---:"] * (len(header) - 1)]
                lines = [_row(header), rule, *map(_row, rows)]
                table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
                parts.append(f"{_marked(caption)}\n\n{table}" if caption else table)
            case Picture(name, _, caption):
                parts.append(f"![{_marked(caption)}]({folder}/{name})\n\n{_marked(caption)}")
    return "\n\n".join(parts) + "\n"


def _row(row: Sequence[str]) -> list[str]:
    first = f"&nbsp;&nbsp;{_marked(row[0].strip())}" if row[0].startswith(" ") else _marked(row[0])
    return [first, *(_best(cell, "**", "**") or _marked(cell) for cell in row[1:])]


def _best(cell: str, before: str, after: str) -> str:
    """The content of a cell *x* between `before` and `after`; "" for any other cell."""
    return f"{before}{cell[1:-1]}{after}" if re.fullmatch(r"\*[-\d.]+\*", cell) else ""


def _marked(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .92rem; }
caption, figcaption { text-align: left; color: #555; padding-bottom: .4rem; max-width: 46rem; }
th, td { padding: .15rem .7rem; text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
table.text th, table.text td { text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #1a1a1a; }
tr.group td { border-top: 1px solid #ddd; } tr.under td:first-child { padding-left: 1.8rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; } img.bits { image-rendering: pixelated; }
@media print { body { font-size: 11px; max-width: none; } h2, figure { break-inside: avoid; } }
"""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Render as one HTML file with embedded pictures and without scripts."""
    body = "\n".join(map(_html_block, blocks))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _html_block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Text(text):
            return f"<p>{html.escape(text)}</p>"
        case Table(header, rows, caption, of_text):
            kind = ' class="text"' if of_text else ""
            heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
            lines = "\n".join(map(_html_row, rows))
            return (
                f'<div class="wide"><table{kind}>\n<caption>{html.escape(caption)}</caption>\n'
                f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}\n</tbody>\n</table></div>"
            )
        case Picture(name, png, caption):
            data = base64.b64encode(png).decode()
            kind = ' class="bits"' if name.startswith("bits") else ""
            text = html.escape(caption)
            return (
                f'<figure><img{kind} alt="{text}" src="data:image/png;base64,{data}">'
                f"<figcaption>{text}</figcaption></figure>"
            )


def _html_row(row: Sequence[str]) -> str:
    kind = "under" if row[0].startswith(" ") else "group"
    cells = (_best(cell, "<strong>", "</strong>") or html.escape(cell.strip()) for cell in row)
    return f'<tr class="{kind}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
