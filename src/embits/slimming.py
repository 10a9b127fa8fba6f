"""Smaller files, without parts that are not needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from embits.coders import Coder
from embits.columns import RESERVED
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.rows import Rows, taken

# The parts that can be left out, and what no longer works without them.
PARTS = {
    "coder": 'encoding vectors, decoding codes, float queries and metric="decoded", the default '
    "of `embits analogy`",
    "subwords": "codes of unknown words",
    "lengths": "inner products, and decoded vectors of their true length",
    "columns": "their values, and filters on them",
    "order": "row numbers as before, and completion with frequent words first, because rows are "
    "sorted by their ids",
}
DECODER = "decoder"


def check_parts(without: Iterable[str]) -> frozenset[str]:
    """The parts to leave out."""
    parts = (without,) if isinstance(without, str) else tuple(without)
    for part in parts:
        if part not in PARTS:
            raise InputError(f"{part!r} cannot be left out: choose from {', '.join(PARTS)}")
    return frozenset(parts)


def slim(
    rows: Rows, coder: Coder, without: frozenset[str], half_decoder: bool
) -> tuple[Rows, Coder]:
    """Rows and their coder without some parts, and with the decoder rounded to 16 bits."""
    if half_decoder:
        coder = _with_half_decoder(coder)
    if "coder" in without:
        coder = coder.left_out(coder.get_params(), coder.n_features_in_, coder.n_bits_)
    left = [name for name in rows.columns if name in RESERVED or "columns" not in without]
    rows = replace(rows, columns={name: rows.columns[name] for name in left if name not in without})
    if "order" in without and isinstance(rows.ids, Vocabulary):
        order = rows.ids.order.astype(np.int64)
        in_order = Vocabulary.from_words(rows.ids.names(order).tolist())
        rows = Rows(in_order, rows.codes[order], taken(rows.columns, order))
    return rows, coder


def _with_half_decoder(coder: Coder) -> Coder:
    state: dict[str, Any] = coder.state()
    if DECODER not in state:
        reason = "was left out" if coder.is_left_out else "has none of its own"
        raise InputError(f"the decoder of {type(coder).__name__} {reason}")
    with np.errstate(over="ignore"):
        state[DECODER] = state[DECODER].astype(np.float16)
    if not np.isfinite(state[DECODER]).all():
        raise InputError("the decoder has numbers that 16 bits cannot hold")
    return type(coder).from_state(coder.get_params(), state, coder.n_features_in_, coder.n_bits_)
