"""Filters of searches: `where` and `exclude`, for all queries or for each, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import InputError
from embits.search.arguments import wanted_rows
from embits.search.results import NO_ROW
from embits.search.selection import RowsOfIds, Selection, all_rows, parsed

Filters: TypeAlias = Selection | list[Selection] | None
"""One selection for all queries, one for each, or no filter."""

Value = TypeVar("Value", bound=np.generic)
Search: TypeAlias = Callable[
    [NDArray[Any], NDArray[Value], NDArray[np.int64], _core.Filter | None], None
]
"""Fills values and rows of queries, with a filter."""

# Copying the code of a row takes as long as comparing so many of them with a query (measured): the
# first term is for the bytes, the second for the access to memory.
_COPY_COST, _ACCESS_BYTES = 4, 96
_NO_STARTS = np.empty(0, np.int64)


def parse_filters(
    n: int,
    shape: tuple[int, ...],
    where: Any,
    exclude: Any,
    rows_of_ids: RowsOfIds | None = None,
) -> Filters:
    """Parse `where` and `exclude` of a search.

    Args:
        n: Rows of the collection.
        shape: () for a single query, (q,) for a batch.
        where: The rows that may be found: a mask, row numbers, ids, a selection, or one of them for
            each query.
        exclude: The rows that may not, in the same forms.
        rows_of_ids: What finds ids.

    Raises:
        InputError: A filter does not fit the rows or the queries.
    """
    if where is None and exclude is None:
        return None
    allowed = _parsed("where", where, n, shape, rows_of_ids)
    refused = _parsed("exclude", exclude, n, shape, rows_of_ids)
    if isinstance(allowed, list) or isinstance(refused, list):
        pairs = zip(_for_each(allowed, shape), _for_each(refused, shape), strict=True)
        every = all_rows(n)
        return [_joined(every if own is None else own, but) for own, but in pairs]
    joined = _joined(all_rows(n) if allowed is None else allowed, refused)
    return None if len(joined) == n else joined


def check_state(state: object, **filters: Any) -> None:
    """Refuse selections that were made in another state of a collection: rows have moved.

    Args:
        state: The state to search; None takes every selection.
        filters: `where` and `exclude`, as for `parse_filters`.

    Raises:
        InputError: A selection is of another state.
    """
    if state is None:
        return
    for name, given in filters.items():
        for each in given if _is_for_each(given) else [given]:
            if isinstance(each, Selection) and each.state not in (None, state):
                raise InputError(
                    f"{name} was selected before the collection changed: select its rows again"
                )


def run_filtered(
    search: Search[Value],
    queries: NDArray[Any],
    k: int,
    shape: tuple[int, int],
    filters: Filters,
    no_value: Value,
) -> tuple[NDArray[Value], NDArray[np.int64]]:
    """Run a search with a filter.

    Args:
        search: The search.
        queries: One query, or several.
        k: How many rows are wanted.
        shape: Rows of the collection, and bytes of a code.
        filters: The filter.
        no_value: The value beside row -1, where a query has fewer rows than others.

    Returns:
        Values and rows, with min(k, rows that pass) columns; if filters differ, the most that pass
        one of them.
    """
    if isinstance(filters, list):
        return _run_each(search, queries, k, shape[1], filters, no_value)
    found = (*queries.shape[:-1], wanted_rows(k, shape[0] if filters is None else len(filters)))
    values, rows = np.empty(found, no_value.dtype), np.empty(found, np.int64)
    native = None
    if filters is not None:
        native = _native(filters, found[0] if len(found) == 2 else 1, shape[1])
    search(queries, values, rows, native)
    return values, rows


def _run_each(
    search: Search[Value],
    queries: NDArray[Any],
    k: int,
    width: int,
    filters: list[Selection],
    no_value: Value,
) -> tuple[NDArray[Value], NDArray[np.int64]]:
    shape = (len(filters), wanted_rows(k, max(map(len, filters), default=0)))
    values, rows = np.full(shape, no_value), np.full(shape, NO_ROW, np.int64)
    for part, native in _parts(filters, width):
        some_values, some_rows = values[part], rows[part]  # copies
        search(queries[part], some_values, some_rows, native)
        values[part], rows[part] = some_values, some_rows
    return values, rows


def _parts(
    filters: list[Selection], width: int
) -> Iterator[tuple[NDArray[np.int64], _core.Filter]]:
    """Queries that are searched together, and their filter."""
    # In a batch, comparing a code with one more query takes down to a fifth of the time.
    batch_gain = 1 + min(len(filters), 16) / 4
    is_few = np.array([are_few(each, 1 / batch_gain, width) for each in filters], dtype=bool)
    few, many = np.flatnonzero(is_few), np.flatnonzero(~is_few)
    if len(few):
        lists = [filters[q].rows for q in few]
        starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        yield few, _of_rows(np.concatenate(lists), starts)
    if len(many):
        yield many, _mask_filters([filters[q] for q in many])


def _mask_filters(selections: list[Selection]) -> _core.Filter:
    """A mask for each query, read where it is: the selections must outlive the filter."""
    if len(selections) == 1:
        return mask_filter(selections[0])
    addresses = np.array([[each.mask.ctypes.data] for each in selections], np.uint64)
    return _core.Filter(addresses, _NO_STARTS, min(map(len, selections)), is_mask=True)


def _native(selection: Selection, n_queries: int, width: int) -> _core.Filter:
    if are_few(selection, n_queries, width):
        return _of_rows(selection.rows, _NO_STARTS)
    return mask_filter(selection)


def mask_filter(selection: Selection) -> _core.Filter:
    """A selection as one mask for all queries."""
    mask = selection.mask[np.newaxis]
    return _core.Filter(mask, _NO_STARTS, len(selection), is_mask=True)


def _of_rows(rows: NDArray[np.int64], starts: NDArray[np.int64]) -> _core.Filter:
    numbers = rows.view(np.uint64)[np.newaxis]
    return _core.Filter(numbers, starts, len(rows), is_mask=False)


def are_few(selection: Selection, n_queries: float, width: int) -> bool:
    """Whether to scan copies of the codes that pass, made once for all queries, or all codes."""
    copy = _COPY_COST + _ACCESS_BYTES / max(width, 1)
    return len(selection) * (n_queries + copy) < selection.n * n_queries


def _parsed(
    name: str, given: Any, n: int, shape: tuple[int, ...], rows_of_ids: RowsOfIds | None
) -> Selection | list[Selection | None] | None:
    if given is None:
        return None
    if not _is_for_each(given):
        return parsed(name, given, n, rows_of_ids)
    if shape != (len(given),):
        queries = f"{shape[0]:,} queries" if shape else "a single query"
        raise InputError(f"{name} has {len(given):,} filters for {queries}")
    return [None if each is None else parsed(name, each, n, rows_of_ids) for each in given]


def _is_for_each(given: Any) -> bool:
    """Whether it is a filter for each query: a matrix, or a list of other than strings or numbers.

    Lists of ids and rows may be long, so only the first entry is looked at.
    """
    if not isinstance(given, list | tuple):
        return getattr(given, "ndim", 1) == 2
    if not given:
        return False
    first = given[0]
    is_plain = isinstance(first, str | bytes) or not isinstance(first, Sized)
    return first is None or not (is_plain or getattr(first, "ndim", 1) == 0)


def _for_each(filters: Any, shape: tuple[int, ...]) -> list[Selection | None]:
    return filters if isinstance(filters, list) else [filters] * shape[0]


def _joined(allowed: Selection, refused: Selection | None) -> Selection:
    return allowed if refused is None else allowed.without(refused)
