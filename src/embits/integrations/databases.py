"""Queries and results that the database integrations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.bits import has_padding_bits, packed_width
from embits.coders import Coder
from embits.errors import InputError, UnknownWordError
from embits.integrations.codes import check_coder
from embits.search.arguments import packed_queries

Query: TypeAlias = str | int | NDArray[Any]


class Neighbor(NamedTuple):
    """A row that a search found, and its Hamming distance to the query."""

    word: str
    distance: int
    row: int


def query_code(
    query: Any, n_bits: int, coder: Coder | None, checksum: Any = None
) -> NDArray[np.uint8]:
    """Return the packed code of a query that is a code, or a float vector with its coder.

    Raises:
        InputError: It is neither, its width is not `n_bits`, or the coder is not the one of this
            checksum.
    """
    query = np.asarray(query)
    if query.ndim != 1:
        raise InputError(f"the query has {query.ndim} dimensions, expected a single code or vector")
    if query.dtype != np.uint8:
        if coder is None:
            raise InputError("the query is a float vector: pass the coder that made the codes too")
        check_coder(coder, n_bits, checksum, "the table")
        query = coder.encode(query[np.newaxis])[0]
    code = packed_queries(query, packed_width(n_bits))
    if has_padding_bits(code, n_bits):
        raise InputError(f"the query has bits set after its {n_bits} bits")
    return code


def other_cases(word: str) -> list[str]:
    """Return the other letter cases in which an unknown word may be stored."""
    return sorted({word.lower(), word.upper(), word.capitalize(), word.title()} - {word})


def where_clause(where: str | None) -> str:
    """The SQL of a condition, or nothing without one. The condition is run as it is.

    Raises:
        InputError: It is empty.
    """
    if where is None:
        return ""
    if not where.strip():
        raise InputError("where is empty, expected a condition in SQL, or None for all rows")
    return f"where ({where}\n)"  # a new line: the condition may end in a comment


def number_ids(numbers: Sequence[int] | NDArray[np.int64]) -> Any:
    """Row numbers as ids; None if they are 0, 1, …, which need no ids.

    They are others after rows were added or removed.
    """
    return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers


def row_number(text: str) -> int:
    """Return the row number that a query names in a table without words.

    Raises:
        UnknownWordError: It is not a row number.
    """
    if len(text) > 18 or not text.isdecimal() or str(int(text)) != text:
        raise UnknownWordError(text, [])
    return int(text)
