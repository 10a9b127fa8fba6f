"""What questions to the databases share: how they are asked, and what comes back."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.bits import has_padding_bits, packed_width
from embits.coders import Coder
from embits.errors import InputError
from embits.search.arguments import packed_queries

Query: TypeAlias = str | int | NDArray[Any]


class Neighbor(NamedTuple):
    """A row near to what was asked, with the number of bits that differ."""

    word: str
    distance: int
    row: int


def query_code(query: Any, n_bits: int, coder: Coder | None) -> NDArray[np.uint8]:
    """The packed code of a question that came as a code, or as floats with a coder for them.

    Raises:
        InputError: It is neither, or does not fit codes of `n_bits`.
    """
    query = np.asarray(query)
    if query.ndim != 1:
        raise InputError(f"the query has {query.ndim} dimensions, expected a single code or vector")
    if query.dtype != np.uint8:
        if coder is None:
            raise InputError("the query is floats: give the coder that made the codes as well")
        query = coder.encode(query[np.newaxis])[0]
        if coder.n_bits_ != n_bits:
            raise InputError(f"the coder makes {coder.n_bits_} bits, the table holds {n_bits}")
    code = packed_queries(query, packed_width(n_bits))
    if has_padding_bits(code, n_bits):
        raise InputError(f"the query has bits set beyond its {n_bits}")
    return code


def other_cases(word: str) -> list[str]:
    """The other letter cases that a word which was not found may be stored in."""
    return sorted({word.lower(), word.upper(), word.capitalize(), word.title()} - {word})
