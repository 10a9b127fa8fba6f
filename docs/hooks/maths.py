"""Formulas as MathML, made while the site is built: a browser draws them without a script."""

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
    block = formula["tag"] == "div"
    mathml = convert(html.unescape(formula["latex"]), display="block" if block else "inline")
    return f'<div class="formula">{mathml}</div>' if block else mathml
