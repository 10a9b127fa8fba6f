"""Columns of rows: texts, numbers, times and lists, held as Arrow arrays, and filters on them.

CellBudget, storing and filtering columns needs pyarrow, which is imported when it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from reprlib import repr as shortened
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.errors import FormatError, InputError, first_line, from_extra
from embits.search.filters import Selection, select
from embits.search.results import NO_ROW
from embits.search.stored import RowMap

RESERVED = "id", "lengths", "floats", "cells"
"""Names that no column may have."""

_KINDS = "string", "int", "float", "bool", "date", "timestamp", "timestamp UTC", "null"
KIND = re.compile(rf"(list of )?({'|'.join(_KINDS)})")
_NUMBERS = {"int", "float"}
_MAX_KNOWN_BYTES = 64 << 20  # of rows of filters that are remembered, or one filter


def arrow() -> Any:
    """pyarrow."""
    with from_extra("columns beside the codes", "arrow"):
        import pyarrow as pa
        import pyarrow.compute
    return pa


def arrow_type(kind: str) -> Any:
    """The Arrow type that values of a kind are stored as."""
    pa = arrow()
    if kind.startswith("list of "):
        return pa.large_list(arrow_type(kind.removeprefix("list of ")))
    types = (
        pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(),
        pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.null(),
    )  # fmt: skip
    return dict(zip(_KINDS, types, strict=True))[kind]


def kind_of(type: Any) -> str | None:
    """The kind of values of an Arrow type; None if they cannot be stored."""
    is_ = arrow().types
    if is_.is_dictionary(type):
        return kind_of(type.value_type)
    if is_.is_nested(type):
        inner = kind_of(type.value_type) if "list" in str(type).split("<")[0] else "list"
        return None if inner is None or inner.startswith("list") else f"list of {inner}"
    if is_.is_timestamp(type):
        return "timestamp" if type.tz is None else "timestamp UTC"
    tests = {
        "string": lambda t: is_.is_string(t) or is_.is_large_string(t) or "string_view" in str(t),
        "int": is_.is_integer, "float": is_.is_floating, "bool": is_.is_boolean,
        "date": is_.is_date, "null": is_.is_null,
    }  # fmt: skip
    return next((kind for kind, test in tests.items() if test(type)), None)


def _fits(kind: str, column: str) -> bool:
    """Whether values of a kind go into a column: of the same kind, missing, or other numbers."""
    inner = {each.removeprefix("list of ") for each in (kind, column)}
    is_list = kind.startswith("list") == column.startswith("list")
    return kind in ("null", column) or (is_list and ("null" in inner or inner <= _NUMBERS))


def given_columns(columns: Any, n: int) -> dict[str, Any]:
    """Columns as they are given, as Arrow arrays of n values in the types that are stored."""
    pa = arrow()
    if isinstance(columns, Mapping) or hasattr(columns, "iloc"):  # pandas: its index is no column
        pairs = list(columns.items())
    elif hasattr(columns, "__arrow_c_stream__") and {"columns", "schema"} & {*dir(columns)}:
        table = pa.table(columns)
        pairs = list(zip(table.column_names, table.columns, strict=True))
    else:
        expected = "a mapping of names to values, or a table of pandas, polars or Arrow"
        raise InputError(f"columns is of type {type(columns).__name__}, expected {expected}")
    found: dict[str, Any] = {}
    for name, values in pairs:
        if not isinstance(name, str) or name.encode(errors="ignore").decode() != name or not name:
            raise InputError(f"the name of a column is {shortened(name)}, expected a string")
        if name in found:
            raise InputError(f"columns has the name {name!r} twice")
        array = _array(name, values)
        if len(array) != n:
            raise InputError(f"column {name!r} has {len(array):,} values for {n:,} rows")
        found[name] = _stored(name, array)
    return found


def _array(name: str, values: Any) -> Any:
    pa = arrow()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | Mapping | set) or not isinstance(values, Iterable):
        raise InputError(f"column {name!r} is {shortened(values)}, expected one value for each row")
    if not hasattr(values, "__getitem__"):
        values = list(values)
    wrong = pa.ArrowException, TypeError, ValueError, OverflowError
    try:
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        array = pa.array(values, from_pandas=True)
        if pa.types.is_temporal(array.type):  # Arrow would cut times off dates, or take any as UTC
            times = (v for v in values if hasattr(v, "year") and v == v)
            if len({(hasattr(v, "hour"), getattr(v, "tzinfo", None) is None) for v in times}) > 1:
                raise TypeError("dates and times are mixed")
        return array
    except wrong as error:
        first: str | None = None
        for row, value in enumerate(values):
            kind = None
            with suppress(*wrong):
                kind = kind_of(pa.array([value], from_pandas=True).type)
            if kind is None:
                raise _not_stored(name, row, value, type(value).__name__) from None
            if first and not _fits(kind, first):
                mixed = f"column {name!r} has {kind} here, and {first} in rows before"
                raise InputError(mixed, row=row) from None
            first = first if first or kind == "null" else kind
        raise InputError(f"column {name!r}: {first_line(error)}") from None


def _not_stored(name: str, row: int, value: Any, kind: str) -> InputError:
    expected = "strings, numbers, booleans, dates, times, or lists of one of these"
    found = f"{shortened(value)}, of type {kind}"
    return InputError(f"column {name!r} has {found}; expected {expected}", row=row)


def _stored(name: str, array: Any) -> Any:
    pa = arrow()
    kind = kind_of(array.type)
    if kind is None:
        row = next((row for row, value in enumerate(array) if value.is_valid), 0)
        raise _not_stored(name, row, array[row].as_py() if len(array) else None, str(array.type))
    try:
        if pa.types.is_dictionary(array.type):  # Arrow decodes not all of those of polars
            array = array.cast(pa.dictionary(array.type.index_type, arrow_type(kind)))
        array = array if array.type == arrow_type(kind) else array.cast(arrow_type(kind))
    except pa.ArrowException as error:
        raise InputError(f"column {name!r}: {first_line(error)}") from None
    return pa.compute.if_else(array.is_nan(), None, array) if kind == "float" else array


def cast_columns(
    kinds: Mapping[str, str], given: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The kinds of all columns once new ones are added, and the new ones in these kinds."""
    if not given:  # collections without columns need no pyarrow
        return dict(kinds), {}
    pa, after, arrays = arrow(), dict(kinds), dict(given)
    for name, array in given.items():
        kind, there = str(kind_of(array.type)), after.get(name, "null")
        if name in RESERVED:
            raise InputError(f"a column is named {name!r}: {', '.join(RESERVED)} are reserved")
        if there == "null":
            there = after[name] = kind.replace("list of null", "list of string")
        if kind == there:
            continue
        try:
            arrays[name] = _cast(array, kind, there)
        except pa.ArrowException:
            for row, value in enumerate(array):
                try:
                    if value.is_valid:
                        _cast(value, kind, there)
                except pa.ArrowException:
                    found = f"{shortened(value.as_py())}, of type {kind}"
                    message = f"column {name!r} has {found}; expected {there}"
                    raise InputError(message, row=row) from None
            raise
    return after, arrays


def _cast(values: Any, kind: str, there: str) -> Any:
    if not _fits(kind, there):
        raise arrow().ArrowInvalid(kind)
    return values.cast(arrow_type(there))


# -- filters ---------------------------------------------------------------------------------------


class Condition(NamedTuple):
    """A condition on a column: `op` is =, !=, <, <=, >, >= or in."""

    column: str
    op: str
    value: Any


def is_filter(where: Any) -> bool:
    """Whether it is a filter on columns: a mapping, an Arrow expression, or conditions."""
    of_arrow = type(where).__name__ == "Expression" and type(where).__module__.startswith("pyarrow")
    is_listed = isinstance(where, list) and bool(where) and isinstance(where[0], Condition)
    return of_arrow or is_listed or isinstance(where, Mapping)


def _conditions(where: Mapping[str, Any]) -> list[Condition]:
    """The conditions that a mapping of column to value, values or range stands for."""
    found = []
    for name, value in where.items():
        if isinstance(value, tuple):
            if len(value) != 2:
                expected = "(low, high), where None is open, or a list of values"
                given = f"the range of column {name!r} is {shortened(value)}"
                raise InputError(f"where: {given}, expected {expected}")
            bounds = [each for each in zip((">=", "<="), value, strict=True) if each[1] is not None]
            found += [Condition(name, op, bound) for op, bound in bounds or [("!=", None)]]
        elif isinstance(value, list | Set | range) or (
            hasattr(value, "__array__") and np.ndim(value)
        ):
            listed = value.to_pylist() if hasattr(value, "to_pylist") else list(value)
            found.append(Condition(name, "in", listed))
        else:
            found.append(Condition(name, "=", value))
    return found


def _value(condition: Condition, value: Any, kind: str) -> Any:
    """A value of a condition as an Arrow scalar that is compared with values of a kind."""
    pa = arrow()
    try:
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        value = value.item() if isinstance(value, np.generic) else value
        if value != value:  # NaN, which is above and below nothing
            raise ValueError
        if kind in _NUMBERS and type(value) in (int, float):
            if kind == "int" and value % 1 == 0:
                if -(2**63) <= value < 2**63:
                    return pa.scalar(int(value))
                value = math.copysign(math.inf, value)  # beyond all values of the column
            if float(value) == value:  # else no float is that whole number
                return pa.scalar(float(value))
        scalar = pa.scalar(value)
        found = kind_of(scalar.type)
        is_date = found in ("string", "date") and kind.startswith(("date", "timestamp"))
        if is_date and len(str(value)) == 10:  # a day; a time has its zone if the column has one
            scalar = scalar.cast(arrow_type("date"))
        if found == kind or is_date:
            return scalar.cast(arrow_type(kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    what = f"column {condition.column!r} holds {kind}"
    raise InputError(f"where: {what}, found {shortened(value)}, of type {type(value).__name__}")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _flags(column: Any, kind: str, condition: Condition) -> NDArray[np.bool_]:
    """Whether each value of an Arrow array fulfils a condition; missing values only `= None`."""
    pc = arrow().compute
    op, value = condition.op, condition.value
    if op in ("=", "!=") and _is_missing(value):
        valid = _bools(column.is_valid())
        return valid if op == "!=" else ~valid
    if op == "in" and any(map(_is_missing, value)):
        rest = condition._replace(value=[each for each in value if not _is_missing(each)])
        return _flags(column, kind, rest) | ~_bools(column.is_valid())
    if kind == "null":
        return np.zeros(len(column), bool)
    if kind.startswith("list of "):  # a row fulfils it if one of its values does
        if op not in ("=", "in"):
            holds = f"column {condition.column!r} holds {kind}"
            raise InputError(f"where: {holds}, which = and in take")
        flags = np.zeros(len(column), bool)
        parents = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
        inner = _flags(column.flatten(), kind.removeprefix("list of "), condition)
        flags[parents[inner]] = True
        return flags
    if op == "in":
        values = [_value(condition, each, kind) for each in value]
        values = [each.as_py() for each in values if each.type == column.type]  # 1.5 is no integer
        if kind == "float":  # -0.0 is 0.0
            values, column = [each + 0.0 for each in values], pc.add(column, 0.0)
        return _bools(pc.is_in(column, value_set=arrow().array(values, column.type)))
    names = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater"}
    compare, scalar = getattr(pc, names.get(op, "greater_equal")), _value(condition, value, kind)
    if scalar.type != column.type:  # whole numbers, and a float
        column = column.cast(scalar.type, safe=False)
    return _bools(pc.fill_null(compare(column, scalar), False))


def _bools(array: Any) -> NDArray[np.bool_]:
    """Arrow booleans, none missing; chunked ones too. NumPy unpacks bits faster than Arrow."""
    if hasattr(array, "chunks") or not len(array):
        flags: NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
        return flags
    bits, stop = np.frombuffer(array.buffers()[1], np.uint8), array.offset + len(array)
    return np.unpackbits(bits, count=stop, bitorder="little").view(bool)[array.offset :]


# -- tables of columns -----------------------------------------------------------------------------


class ColumnTable:
    """The columns of the n rows of a segment, as an Arrow table; values of others are missing.

    A mapped file has a name, and is untrusted.
    """

    def __init__(self, table: Any, n: int, name: str = "") -> None:
        self.table, self.name, self.n = table, name, n
        self._checked: set[str] = set()
        self._known: dict[Any, NDArray[np.uint8]] = {}

    @classmethod
    def of(cls, arrays: Mapping[str, Any], n: int) -> ColumnTable:
        """Arrow arrays of n values by name, in memory."""
        return cls(arrow().table(arrays) if arrays else None, n)

    def __len__(self) -> int:
        return self.n

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return 0 if self.table is None else int(self.table.nbytes)

    def has(self, name: str) -> bool:
        """Whether some of the rows may have values."""
        return self.table is not None and name in self.table.column_names

    @LazyProperty
    def starts(self) -> NDArray[np.int64]:
        """The first row of each chunk."""
        chunks = self.table.column(0).chunks if self.table is not None else []
        return np.cumsum([0, *map(len, chunks)])[: max(1, len(chunks))]

    def chunks(self, name: str, kind: str) -> list[Any]:
        """The Arrow arrays of a column; its offsets, which may be damaged, are checked once."""
        if not self.has(name):
            return [arrow().nulls(self.n, arrow_type(kind))]
        chunks: list[Any] = self.table.column(name).chunks
        if self.name and name not in self._checked:
            if not all(map(_is_sound, chunks)):
                raise FormatError(f"{self.name}: damaged: the offsets of column {name!r}")
            self._checked.add(name)
        return chunks

    def take(self, name: str, kind: str, rows: NDArray[np.int64]) -> Any:
        """The values of some rows as an Arrow array; no others are read."""
        pa = arrow()
        if not self.has(name):
            return pa.nulls(len(rows), arrow_type(kind))
        chunks = self.chunks(name, kind)
        return take_chunked(rows, self.starts, lambda i, rows: chunks[i].take(pa.array(rows)))

    def flags(self, kinds: Mapping[str, str], key: Any, where: Any) -> NDArray[np.bool_]:
        """Whether each row passes a filter on columns; it is remembered by its key."""
        packed = self._known.get(key)
        if packed is None:
            packed = np.packbits(self._found(kinds, where))
            remember(self._known, key, packed)
        return np.unpackbits(packed, count=self.n).view(bool)

    def _found(self, kinds: Mapping[str, str], where: Any) -> NDArray[np.bool_]:
        pa = arrow()
        if isinstance(where, list):
            flags = np.ones(self.n, bool)
            for each in where:
                kind, has = kinds[each.column], self.has(each.column)
                # One missing value stands for all of a column that is not there.
                chunks = self.chunks(each.column, kind) if has else [pa.nulls(1, arrow_type(kind))]
                parts = [_flags(chunk, kind, each) for chunk in chunks]
                flags &= np.concatenate([np.empty(0, bool), *parts])
            return flags
        from pyarrow import dataset

        columns = [
            pa.chunked_array(self.chunks(name, kind), arrow_type(kind))
            for name, kind in kinds.items()
        ]
        source = dataset.dataset(pa.table(columns, names=list(kinds)))
        found = source.to_table(columns={"found": where}, use_threads=False)[0]
        if found.type != pa.bool_():
            raise InputError(f"where: the expression gives {found.type}, expected booleans")
        return _bools(pa.compute.fill_null(found, False))


def _is_sound(array: Any) -> bool:
    """Whether the offsets of strings and lists lie in their values: a damaged file may lie."""
    is_ = arrow().types
    is_list = is_.is_large_list(array.type)
    if not len(array) or not (is_list or is_.is_large_string(array.type)):
        return True
    buffers = array.buffers()
    try:
        offsets = np.frombuffer(buffers[1], np.int64, len(array) + 1, 8 * array.offset)
    except ValueError:  # there are not so many
        return False
    most = len(array.values) if is_list else (buffers[2].size if buffers[2] else 0)
    good = offsets[0] >= 0 and offsets[-1] <= most and (offsets[1:] >= offsets[:-1]).all()
    return bool(good) and (not is_list or _is_sound(array.values))


def take_chunked(
    rows: NDArray[np.int64], starts: NDArray[np.int64], take: Callable[[int, Any], Any]
) -> Any:
    """The values of rows, of which `take` gives those of one part, as an Arrow array."""
    owners = np.searchsorted(starts, rows, side="right") - 1
    there = np.unique(owners).tolist() or [0]
    parts = [take(owner, rows[owners == owner] - starts[owner]) for owner in there]
    if len(parts) == 1:
        return parts[0]
    places = np.argsort(np.argsort(owners, kind="stable"))  # of the rows, in the order of the parts
    return arrow().concat_arrays(parts).take(arrow().array(places))


def remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Bounded cache insert; threads may insert at the same time."""
    left = _MAX_KNOWN_BYTES - value.nbytes
    for oldest, each in reversed(list(known.items())):
        left -= each.nbytes
        if left < 0:
            known.pop(oldest, None)
    known[key] = value


class Columns:
    """The Arrow columns of rows in several segments, without removed rows.

    Args:
        kinds: The kind of each column, by name.
        tables: The columns of each segment; None has none.
        rows: The rows.
    """

    def __init__(
        self, kinds: Mapping[str, str], tables: Sequence[ColumnTable | None], rows: RowMap
    ) -> None:
        sizes = np.diff(rows.starts).tolist()
        self.kinds, self.rows = kinds, rows
        self.tables = [
            table or ColumnTable(None, n) for table, n in zip(tables, sizes, strict=True)
        ]
        self._known: dict[Any, Selection] = {}

    @classmethod
    def of(cls, columns: Mapping[str, Any], n: int) -> Columns:
        """The columns that n rows have in memory; lengths and kept vectors are not among them."""
        own = {name: each for name, each in columns.items() if name not in RESERVED}
        arrays = given_columns(own, n) if own else {}
        kinds = {name: str(kind_of(array.type)) for name, array in arrays.items()}
        return cls(kinds, [ColumnTable.of(arrays, n)], RowMap([n]))

    @property
    def nbytes(self) -> int:
        """Bytes of the values, with those of removed rows."""
        return sum(table.nbytes for table in self.tables)

    def array(self, name: str) -> Any:
        """All values of a column as an Arrow array."""
        self.check(name)
        kind, chunks = self.kinds[name], []
        for segment, table in enumerate(self.tables):
            if len(self.rows.removed_in(segment)):
                chunks.append(table.take(name, kind, self.rows.live_in(segment)))
            else:
                chunks += table.chunks(name, kind)
        return arrow().chunked_array(chunks, arrow_type(kind))

    def take(self, name: str, rows: NDArray[np.int64]) -> Any:
        """The values of some rows as an Arrow array; that of row -1 is missing."""
        kind, there = self.kinds[name], np.flatnonzero(rows != NO_ROW)
        stored = self.rows.stored(rows[there])
        if not len(stored):
            return arrow().nulls(len(rows), arrow_type(kind))
        starts = self.rows.starts[:-1]
        found = take_chunked(stored, starts, lambda i, rows: self.tables[i].take(name, kind, rows))
        if len(there) == len(rows):
            return found
        places = np.full(len(rows), -1)
        places[there] = np.arange(len(there))
        return found.take(arrow().array(places, mask=places < 0))

    def table(self, ids: NDArray[Any]) -> Any:
        """The ids and all columns as an Arrow table."""
        pa = arrow()
        columns = [pa.array(ids, pa.large_string()), *(self.array(name) for name in self.kinds)]
        return pa.table(columns, names=["id", *self.kinds])

    def selection(self, where: Any) -> Selection:
        """The rows that pass a filter on columns. It is remembered."""
        where = _conditions(where) if isinstance(where, Mapping) else where
        for each in where if isinstance(where, list) else ():
            self.check(each.column)
        parts = [np.empty(0, bool)]
        try:
            # The text of an Arrow expression leaves out long lists; its bytes do not.
            key = repr(where) if isinstance(where, list) else bytes(where.__reduce__()[1][0])
            found = self._known.get(key)
            if found is not None:
                return found
            for segment, table in enumerate(self.tables):
                flags, removed = table.flags(self.kinds, key, where), self.rows.removed_in(segment)
                parts.append(np.delete(flags, removed) if len(removed) else flags)
        except (arrow().ArrowException, UnicodeDecodeError) as error:
            if missing := re.search(r"No match for FieldRef\.Name\((.*?)\)", str(error)):
                self.check(missing[1])
            raise InputError(f"where: {first_line(error)}") from None
        found = select(len(self.rows), np.concatenate(parts))
        remember(self._known, key, found)
        return found

    def check(self, name: Any) -> None:
        """Refuse the name of a column that is not there."""
        if name not in self.kinds:
            known = f"the columns are {', '.join(map(repr, self.kinds))}"
            known = known if self.kinds else "the rows have no columns"
            raise InputError(f"there is no column {name!r}: {known}")

    def values(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The values of a column as Python objects, in the shape of `rows`; None for row -1."""
        self.check(name)
        try:
            listed = _to_python(self.take(name, rows.ravel()))
        except UnicodeDecodeError:
            raise FormatError("damaged: a column holds text that is not valid UTF-8") from None
        return np.fromiter(listed, object, len(listed)).reshape(rows.shape)


def _to_python(array: Any) -> list[Any]:
    """Arrow values as Python objects; of a day or time beyond Python's years, NumPy's."""
    try:
        values: list[Any] = array.to_pylist()
    except (ValueError, OverflowError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        if len(array) == 1 and arrow().types.is_nested(array.type):
            return [_to_python(array.flatten())]
        if len(array) == 1:
            value, is_day = array[0].value, arrow().types.is_date(array.type)
            return [np.datetime64(value, "D") if is_day else np.datetime64(value, "us")]
        return [value for i in range(len(array)) for value in _to_python(array.slice(i, 1))]
    return values
