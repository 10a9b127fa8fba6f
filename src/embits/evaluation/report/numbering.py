"""Numbers of the tables and figures of a report: 1, 2, … in order of appearance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from embits.evaluation.report.document import Block, Picture, Table

_NUMBERED = re.compile(r"(Table|Figure) N\.")


def numbered(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with a number for the N of captions that start with "Table N." or "Figure N.".

    Example:
        >>> [block.caption for block in numbered([Table([], [], "Table N. Scores.")])]
        ['Table 1. Scores.']
    """
    counts: Counter[str] = Counter()
    return [_numbered(block, counts) for block in blocks]


def _numbered(block: Block, counts: Counter[str]) -> Block:
    if not isinstance(block, Table | Picture) or not (found := _NUMBERED.match(block.caption)):
        return block
    kind = found[1]
    counts[kind] += 1
    return replace(block, caption=f"{kind} {counts[kind]}.{block.caption[found.end() :]}")
