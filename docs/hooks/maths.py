"""Convert formulas to MathML at build time, so that pages need no script."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.S
)


def on_page_content(content: str, **_: Any) -> str:
    return FORMULA.sub(_mathml, content)


def _mathml(formula: re.Match[str]) -> str:
    latex, *number = re.split(r"\\tag\{(\d+)\}", html.unescape(formula["latex"]))
    if formula["tag"] == "span":
        return str(convert(latex))
    mathml = convert(latex, display="block")
    tag = f'<span class="number">({number[0]})</span>' if number else ""
    return f'<div class="formula">{mathml}{tag}</div>'
