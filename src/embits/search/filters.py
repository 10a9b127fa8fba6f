"""Filters of searches: selections of rows, for all queries or for each, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set, Sized
from copy import copy
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.arrays import packed_width, to_numpy
from embits.errors import ROWS_BY_NAME, InputError, UnknownWordError

RowsOfIds: TypeAlias = Callable[[str, Any], NDArray[np.int64]]
"""Gives the rows of an array of ids; its first argument is what errors call the filter."""
RowNumbers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.uint64]

_ROWS_PER_SORTED = 16  # beyond one row in so many, marking rows is faster than sorting them
_BOOLS = {bool, np.bool_}


class Selection:
    """A set of rows of a collection of n rows, for `where` and `exclude` of any search.

    `select` and `BinaryVectors.select` make one, parsed once for many searches and threads.

    Attributes:
        n: Rows of the collection.
        state: The state of the collection that the rows were selected in; None fits any of n rows.
    """

    state: object = None

    def __init__(self, n: int, *, rows: RowNumbers | None = None, mask: Mask | None = None) -> None:
        """Rows in ascending order, each once, or a mask of n bits, the lowest of a word first."""
        self.n = n
        if mask is not None:
            self.mask = mask
            self._count = int(np.bitwise_count(mask).sum())
        if rows is not None:
            self.rows = rows
            self._count = len(rows)

    def in_state(self, state: object) -> Selection:
        """The same rows, of a state of a collection."""
        if state is None:
            return self
        selection = copy(self)
        selection.state = state
        return selection

    @classmethod
    def from_packed(cls, bits: NDArray[np.uint8], n: int) -> Selection:
        """The rows whose bit is 1 in a mask of `np.packbits`: uint8 (ceil(n / 8),), or InputError.

        Example:
            >>> Selection.from_packed(np.packbits([0, 1, 1, 0, 1]), n=5).rows.tolist()
            [1, 2, 4]
        """
        bits = np.asarray(bits)
        if bits.dtype != np.uint8 or bits.shape != (packed_width(n),):
            found = f"the packed mask is {bits.dtype} of shape {bits.shape}, expected uint8 of"
            raise InputError(f"{found} shape ({packed_width(n)},) for {n:,} rows")
        return Selection(n, mask=_packed(np.unpackbits(bits, count=n).view(bool)))

    @LazyProperty
    def rows(self) -> NDArray[np.int64]:
        """Row numbers, ascending, int64 of shape (len(selection),)."""
        rows = np.empty(len(self) + 1, np.int64)  # the core writes one more
        _core.mask_rows(self.mask, rows)
        return rows[:-1]

    @LazyProperty
    def mask(self) -> NDArray[np.uint64]:
        """A bit for each row, the lowest bit of a 64-bit word first."""
        if not self._is_sparse:
            return _marked(self.rows, self.n)
        mask = np.zeros(-(-self.n // 64), np.uint64)
        np.bitwise_or.at(mask, self.rows >> 6, np.uint64(1) << (self.rows & 63).astype(np.uint64))
        return mask

    def __len__(self) -> int:
        return self._count

    @property
    def _is_sparse(self) -> bool:
        return len(self) * _ROWS_PER_SORTED < self.n

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and the mask, as far as they are made."""
        return sum(each.nbytes for each in vars(self).copy().values() if hasattr(each, "nbytes"))

    def __repr__(self) -> str:
        return f"<Selection: {len(self):,} of {self.n:,} rows>"

    def without(self, other: Selection) -> Selection:
        """The rows that are not in `other`."""
        if not self._is_sparse:
            return Selection(self.n, mask=self.mask & ~other.mask)
        rows = self.rows
        bits = other.mask[rows >> 6] >> (rows & 63).astype(np.uint64)
        return Selection(self.n, rows=rows[bits & np.uint64(1) == 0])

    def between(self, start: int, stop: int) -> Selection:
        """The selected rows of [start, stop), counted from `start`.

        Example:
            >>> select(100, where=[3, 40, 41, 90]).between(40, 50)
            <Selection: 2 of 10 rows>
        """
        if self._is_sparse:
            first, last = np.searchsorted(self.rows, [start, stop])
            return Selection(stop - start, rows=self.rows[first:last] - start)
        return Selection(stop - start, mask=_packed(self.flags(start, stop)))

    def flags(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Whether each row of [start, stop) is selected."""
        words = self.mask[start >> 6 : -(-stop // 64)].astype("<u8", copy=False)
        flags = np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)
        return flags[start & 63 :][: stop - start]


def select(
    n: int, where: Any = None, exclude: Any = None, rows_of_ids: RowsOfIds | None = None
) -> Selection:
    """Parse a filter once, for many searches.

    Args:
        n: Rows of the collection.
        where: The rows that may be found: a boolean mask of shape (n,), row numbers in any order,
            or a selection. None is all rows.
        exclude: The rows that may not, in the same forms. None is no row.
        rows_of_ids: What finds ids; strings and whole numbers are then ids.

    Raises:
        InputError: A mask of another length, a row that does not exist, or another type.

    Example:
        >>> few = select(1000, where=[7, 5, 5, 900], exclude=[900])
        >>> few, few.rows.tolist()
        (<Selection: 2 of 1,000 rows>, [5, 7])
    """
    allowed = all_rows(n) if where is None else parsed("where", where, n, rows_of_ids)
    if exclude is None:
        return allowed
    return allowed.without(parsed("exclude", exclude, n, rows_of_ids))


def all_rows(n: int) -> Selection:
    mask = np.full(-(-n // 64), ~np.uint64(0))
    if n % 64:
        mask[-1] = (1 << n % 64) - 1
    return Selection(n, mask=mask)


def parsed(name: str, given: Any, n: int, rows_of_ids: RowsOfIds | None = None) -> Selection:
    """One filter as a selection; errors call it `name`."""
    if isinstance(given, Selection):
        if given.n != n:
            raise InputError(f"{name} selects among {given.n:,} rows, but there are {n:,}")
        return given
    if isinstance(given, str | bytes):
        expected = f"expected a list of ids: {name}=[{given!r}]"
        raise InputError(f"{name} is the single string {given!r}, {expected}")
    listed = list(given) if isinstance(given, Set | range | Iterator) else given
    kinds = set(map(type, listed if isinstance(listed, list | tuple) else ()))
    # NumPy makes strings of numbers among strings, in ten times the time, and numbers of bools.
    if any(issubclass(kind, str) for kind in kinds) or (kinds & _BOOLS and kinds - _BOOLS):
        array = np.empty(len(listed), object)
        array[:] = listed
    else:
        array = to_numpy(listed)
    listable = "row numbers" if rows_of_ids is None else "ids"
    expected = f"expected a boolean mask of {n:,} rows, or a list of {listable}"
    if array.ndim == 0:
        raise InputError(f"{name} is of type {type(given).__name__}, {expected}")
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions, {expected}")
    if array.dtype == bool:
        if len(array) != n:
            raise InputError(f"{name} is a mask of {len(array):,} rows, but there are {n:,}")
        return Selection(n, mask=_packed(array))
    if array.dtype.kind in "iu" and len(array) == n > 2 and array.min() >= 0 and array.max() <= 1:
        expected = f"expected a boolean one: {name}.astype(bool)"
        raise InputError(f"{name} is a mask of {array.dtype}, {expected}")
    if array.dtype == object and array.size and isinstance(array[0], bool | np.bool_):
        raise InputError(f"{name} is a mask with values other than True and False, {expected}")
    if array.size and array.dtype.kind in "UTOiu" and rows_of_ids is not None:
        array = rows_of_ids(name, array)
    if not array.size:
        return Selection(n, rows=np.empty(0, np.int64))
    if array.dtype.kind in "UTO":
        hint = "ids go in where=" if name == "rows" else "codes alone have no ids"
        raise InputError(f"{name} has {array[0]!r:.40}, expected row numbers: {hint}")
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} is {array.dtype}, {expected}")
    least, most = int(array.min()), int(array.max())
    if least < 0 or most >= n:
        wrong = least if least < 0 else most
        raise InputError(f"{name} has row {wrong}, but there are {n:,} rows")
    rows = array.astype(np.int64)  # a copy, which the selection keeps
    if (rows[1:] > rows[:-1]).all():
        return Selection(n, rows=rows)
    if len(rows) * _ROWS_PER_SORTED < n:
        return Selection(n, rows=np.unique(rows))
    return Selection(n, mask=_marked(rows, n))


def rows_as_where(where: Any, rows: Any, n: int) -> Any:
    """`where`, or the rows that are given by number instead of it."""
    if rows is None:
        return where
    if where is not None:
        raise InputError("where and rows are given, expected one of them")
    return parsed("rows", rows, n)


def found_rows(
    name: str, ids: NDArray[Any], rows: RowNumbers, *, numbers: bool = False
) -> RowNumbers:
    """The rows of the ids of the filter `name`, without those of `exclude` that are not there (-1).

    `numbers` says that whole numbers among the ids may be meant as rows: UnknownWordError says how.
    """
    unknown = ids[rows < 0].tolist()
    as_rows = [each for each in unknown if numbers and isinstance(each, int | np.integer)]
    if name == "exclude":  # to leave out what is not there changes nothing
        unknown = as_rows
    if unknown:
        listed = ", ".join(repr(str(each)) for each in unknown[:3])
        more = ", …" if len(unknown) > 3 else ""
        are = f"are unknown: {listed}{more}" if len(unknown) > 1 else "is unknown"
        hint = f"{len(unknown):,} of the {len(ids):,} ids of {name} {are}"
        raise UnknownWordError(str(unknown[0]), [], f"{hint}; {ROWS_BY_NAME}" if as_rows else hint)
    return rows[rows >= 0]


def _packed(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Packed by NumPy, which reads 20 bytes of the mask a nanosecond."""
    words = np.packbits(mask, bitorder="little")
    words = np.pad(words, (0, -len(words) % 8)) if len(words) % 8 else words
    return words.view("<u8").astype(np.uint64, copy=False)


def _marked(rows: NDArray[np.int64], n: int) -> NDArray[np.uint64]:
    mask = np.zeros(n, bool)
    mask[rows] = True
    return _packed(mask)


Filters: TypeAlias = Selection | list[Selection] | None
"""One selection for all queries, one for each, or no filter."""

Value = TypeVar("Value", bound=np.generic)
# Copying the code of a row takes as long as comparing so many of them with a query (measured): the
# first term is for the bytes, the second for the access to memory.
_COPY_COST, _ACCESS_BYTES = 4, 96
_NO_STARTS = np.empty(0, np.int64)


def parse_filters(
    n: int, shape: tuple[int, ...], where: Any, exclude: Any, rows_of_ids: RowsOfIds | None = None
) -> Filters:
    """`where` and `exclude` of a search of n rows: each a filter as for `select`, or one per query.

    The shape is () for a single query and (q,) for a batch. It is an error if there are not as many
    filters as queries.
    """
    if where is None and exclude is None:
        return None
    if not (_is_for_each(where) or _is_for_each(exclude)):
        selection = select(n, where, exclude, rows_of_ids)
        return None if len(selection) == n else selection

    def for_each(name: str, given: Any) -> Any:
        if not _is_for_each(given):  # parsed once
            one = None if given is None else parsed(name, given, n, rows_of_ids)
            return [one] * (shape[0] if shape else 1)
        if shape != (len(given),):
            queries = f"{shape[0]:,} queries" if shape else "a single query"
            raise InputError(f"{name} has {len(given):,} filters for {queries}")
        return given

    every = all_rows(n)  # once for all queries without a filter
    each = zip(for_each("where", where), for_each("exclude", exclude), strict=True)
    return [select(n, every if some is None else some, but, rows_of_ids) for some, but in each]


def check_state(state: object, **filters: Any) -> None:
    """Refuse selections that were made in another state of a collection: its rows have moved."""
    if state is None:
        return
    for name, given in filters.items():
        for each in given if _is_for_each(given) else [given]:
            if isinstance(each, Selection) and each.state not in (None, state):
                changed = f"{name} was selected before the collection changed"
                raise InputError(f"{changed}: select its rows again")


def row_filter(
    given: Selection | list[Selection], places: Callable[[RowNumbers], RowNumbers]
) -> _core.Filter:
    """Where the rows that pass are stored, by `places`, for all queries or for each."""
    if isinstance(given, Selection):
        rows, starts = np.sort(places(given.rows)), _NO_STARTS
    else:
        lists = [np.sort(places(each.rows)) for each in given]
        rows, starts = np.concatenate(lists), np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return _core.Filter(rows.view(np.uint64)[np.newaxis], starts, len(rows), is_mask=False)


def mask_filter(given: Selection | list[Selection]) -> _core.Filter:
    """Masks, for all queries or for each, read where they are: they must outlive the filter."""
    if isinstance(given, Selection):
        return _core.Filter(given.mask[np.newaxis], _NO_STARTS, len(given), is_mask=True)
    if len(given) == 1:
        return mask_filter(given[0])
    masks = np.array([[each.mask.ctypes.data] for each in given], np.uint64)
    return _core.Filter(masks, _NO_STARTS, min(map(len, given)), is_mask=True)


def are_few(selection: Selection, n_queries: float, width: int, read: float = 1) -> bool:
    """Whether to scan copies of the codes that pass, made once, or a share `read` of all codes."""
    return len(selection) * copied_cost(n_queries, width) < read * selection.n


def copied_cost(n_queries: float, width: int) -> float:
    """What a query costs for each row whose code is copied, in rows that are read in order."""
    return 1 + (_COPY_COST + _ACCESS_BYTES / max(width, 1)) / max(n_queries, 1e-9)


def _is_for_each(given: Any) -> bool:
    """Whether it is a filter for each query: a matrix, or a list of more than ids and numbers."""
    if not isinstance(given, list | tuple):
        return getattr(given, "ndim", 1) == 2
    if not given:
        return False
    first = given[0]  # alone: lists of ids and rows may be long
    is_plain = isinstance(first, str | bytes) or not isinstance(first, Sized)
    return first is None or not (is_plain or getattr(first, "ndim", 1) == 0)
