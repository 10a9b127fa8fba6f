"""Snapshot: what a search sees from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.arrays import check_padding, single, to_numpy, unit_rows
from embits.checks import check_dims
from embits.coders import Coder
from embits.columns import Columns, is_filter
from embits.errors import InputError
from embits.ids.keys import Ids, RowNumbers
from embits.ids.segments import SegmentIds
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.search import filters
from embits.search.cells import Centers, calibrate, group_by_cell, train
from embits.search.metrics import METRICS
from embits.search.results import NO_ROW
from embits.search.stored import RowMap, StoredCodes
from embits.segment import FLOATS, LENGTHS, Floats, Segment, concat_columns, take_rows
from embits.vectors import is_id, normalize_ids

if TYPE_CHECKING:
    from embits.search.gpu import DeviceIndex


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Rows with their ids, codes and columns, and the coder: never changed.

    A file is a snapshot of one segment. A collection points to its latest snapshot.

    Attributes:
        coder: The coder that made the codes.
        segments: What the files hold, at least one.
        rows: The numbers of the rows, without those that are removed.
        subwords: What makes codes of unknown words.
        numbered: Whether the ids are numbers that rows got when they were added.
        kinds: The kinds of the Arrow columns of a collection, by name.
        state: What tells this state of a collection from others; None for a file.
        check: Reads every byte of mapped files, and raises FormatError.
    """

    coder: Coder
    segments: tuple[Segment, ...]
    rows: RowMap
    subwords: Subwords | None = None
    numbered: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    state: object = None
    check: Callable[[], None] | None = None

    @classmethod
    def of(cls, coder: Coder, segment: Segment, subwords: Subwords | None = None) -> Snapshot:
        """All rows of one segment."""
        return cls(coder, (segment,), RowMap([len(segment)]), subwords)

    def __len__(self) -> int:
        return len(self.rows)

    def __getstate__(self) -> dict[str, Any]:
        # A copy of the rows is whole by itself: there is no file to check.
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"check": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @property
    def is_plain(self) -> bool:
        """Whether these are all rows of one segment."""
        return len(self.segments) == 1 and not len(self.rows.removed)

    @LazyProperty
    def codes(self) -> StoredCodes:
        """The codes, where they are."""
        cells = [segment.cells for segment in self.segments]
        return StoredCodes([segment.codes for segment in self.segments], self.rows, cells)

    @LazyProperty
    def ids(self) -> Ids:
        """The ids of the rows."""
        ids = self.segments[0].ids
        is_own = not self.numbered or (isinstance(ids, RowNumbers) and not ids.first)
        if self.is_plain and is_own:
            return ids
        return SegmentIds([segment.ids for segment in self.segments], self.rows, self.numbered)

    @LazyProperty
    def columns(self) -> Columns:
        """The columns of the rows."""
        if self.kinds or self.segments[0].table is not None:
            tables = [segment.table for segment in self.segments]
            return Columns(self.kinds, tables, self.rows)
        return Columns.of(self.values, len(self))

    @LazyProperty
    def values(self) -> Mapping[str, Any]:
        """Lengths, kept vectors and columns that are not Arrow files, of the rows that are left."""
        if self.is_plain:
            return self.segments[0].columns
        parts = [
            take_rows(segment.columns, self.rows.live_in(place))
            if len(self.rows.removed_in(place))
            else segment.columns
            for place, segment in enumerate(self.segments)
        ]
        return concat_columns(parts)

    @property
    def lengths(self) -> NDArray[np.float32] | None:
        """The lengths of the vectors, if they are stored."""
        return self.values[LENGTHS].floats if LENGTHS in self.values else None

    @property
    def floats(self) -> Floats | None:
        """The vectors, if they are kept."""
        return self.values.get(FLOATS)

    @LazyProperty
    def stored_lengths(self) -> NDArray[np.float32]:
        """The lengths in the order of the stored codes."""
        if (lengths := self.lengths) is None:
            needed = 'metric="dot" needs the lengths of the vectors'
            raise InputError(f"{needed}: binarize with lengths=True (--lengths)")
        return self.codes.stored_lengths(lengths)

    @property
    def centers(self) -> Centers | None:
        """The centers of the cells of the codes, if there are some."""
        return self.codes.centers

    # -- keys and queries ------------------------------------------------------------------------

    def row(self, key: Any) -> int | None:
        """The row of an id; None for codes and ids that are not there."""
        return self.ids.find(str(key)) if is_id(key) else None

    def code(self, key: Any) -> NDArray[np.uint8]:
        """The code of an id, of an unknown word by its subwords, or a packed code itself."""
        if isinstance(key, np.ndarray) and key.dtype == np.uint8:
            codes = self.coder.check_codes(key[np.newaxis])
            check_padding(codes, self.coder.n_bits_)
            return single(codes)
        if not is_id(key):
            raise wrong_key(key)
        if (row := self.row(key)) is not None:
            return self.codes.take(row)
        word = str(key)
        if self.subwords is not None and self.subwords.rows(word):
            return self.encode(self.subwords.vector(word))
        raise self.ids.unknown(key)

    def codes_of(self, keys: Sequence[Any]) -> NDArray[np.uint8]:
        """The codes of several ids or codes, (n, width)."""
        if not len(keys):
            return np.empty((0, self.codes.width), np.uint8)
        return np.stack([self.code(each) for each in keys])

    def encode(self, vectors: Any, device: str = "cpu") -> NDArray[np.uint8]:
        """Codes of vectors: (width,) for one, (n, width) for several."""
        if not getattr(vectors, "is_cuda", False):  # what is on a GPU is encoded there
            vectors = to_numpy(vectors)
        check_dims(vectors, self.coder.n_features_in_)
        if vectors.ndim == 1:
            return single(self.coder.encode(vectors[np.newaxis], device=device))
        return self.coder.encode(vectors, device=device)

    def decode(self, rows: Any) -> NDArray[np.float32]:
        """Floats rebuilt from the codes of rows, or of a slice of them, of their true length."""
        vectors = self.coder.inverse_transform(self.codes.take(rows))
        if (lengths := self.lengths) is None:
            return vectors
        scaled: NDArray[np.float32] = unit_rows(vectors) * lengths[rows][:, None]
        return scaled

    def decode_keys(self, keys: Sequence[Any]) -> NDArray[np.float32]:
        """Floats rebuilt from ids, which have their true length, or from codes."""
        vectors = self.coder.inverse_transform(self.codes_of(keys))
        for place, key in enumerate(keys if self.lengths is not None else ()):
            if (row := self.row(key)) is not None:  # codes and unknown words have none
                vectors[place] = self.decode(np.array([row]))[0]
        return vectors

    def queries(self, queries: Any) -> NDArray[Any]:
        """Queries as an array: of floats or packed codes as they are, of ids their codes."""
        if is_id(queries):
            return self.code(queries)
        array, coder = to_numpy(queries), self.coder
        if array.ndim == 0:
            expected = "a float vector, a packed code or an id"
            raise InputError(f"the query is {shortened(queries)}, expected {expected}")
        are_strings = array.dtype.kind in "UT"
        if array.dtype.kind == "O" and array.size:
            are_strings = all(isinstance(each, str) for each in array.flat)
        if are_strings:
            return self.codes_of(array.ravel().tolist())
        if array.dtype == np.uint8:
            if array.shape[-1] == coder.n_bytes_:
                check_padding(array, coder.n_bits_)
            return array
        dims = coder.n_features_in_
        if array.dtype.kind in "iu" and array.shape[-1] != dims:
            found = f"the queries are whole numbers of shape {array.shape}"
            what = f"neither ids (strings) nor vectors of {dims} dimensions"
            raise InputError(f"{found}: {what}; bits.codes[rows] are the codes of rows")
        if dims:  # a collection without rows has no coder yet
            check_dims(array, dims)
        return array

    @LazyProperty
    def _device_indexes(self) -> dict[str, DeviceIndex]:
        return {}

    def on_device(self, device: str) -> DeviceIndex:
        """The codes in the memory of a GPU, where they stay."""
        if device not in self._device_indexes:
            # Imported here: a search on the processor needs no GPU code.
            from embits.search.gpu import DeviceIndex

            self._device_indexes[device] = DeviceIndex(self.codes.in_row_order(), device)
        return self._device_indexes[device]

    # -- rows ------------------------------------------------------------------------------------

    def column_values(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The values of a column as Python objects, in the shape of `rows`; None for row -1."""
        if name != LENGTHS or self.lengths is None:
            return self.columns.values(name, rows)
        values = np.full(rows.shape, None, object)
        values[rows != NO_ROW] = self.lengths[rows[rows != NO_ROW]].tolist()
        return values

    def take(self, rows: NDArray[np.int64]) -> Segment:
        """Some of the rows, in memory."""
        ids = Vocabulary.from_words(normalize_ids(self.ids.names(rows)))
        columns = {name: self.columns.take(name, rows) for name in self.kinds}
        columns |= take_rows(self.values, rows)
        return Segment(ids, self.codes.take(rows), columns)

    @property
    def all_columns(self) -> Mapping[str, Any]:
        """Every column by name: lengths, kept vectors, and Arrow arrays."""
        if not self.kinds:
            return self.values
        return {**self.values, **{name: self.columns.array(name) for name in self.kinds}}

    def merged_segment(self) -> Segment:
        """All rows as one segment of a collection, in row order, without Arrow columns."""
        ids = SegmentIds([segment.ids for segment in self.segments], self.rows, self.numbered)
        return Segment(ids.merged(), self.codes.in_row_order(), self.values)

    def one_segment(self) -> Segment:
        """All rows as one segment; those of a file are not copied."""
        first = self.segments[0]
        if self.is_plain and not self.numbered and first.table is None:
            return first
        ids = self.ids.merged() if isinstance(self.ids, SegmentIds) else self.ids
        if isinstance(ids, RowNumbers) and ids.first:  # a file numbers its rows from 0
            ids = Vocabulary.from_words(ids)
        if self.is_plain:  # with its cells
            return replace(first, ids=ids, columns=self.all_columns, table=None)
        return Segment(ids, self.codes.in_row_order(), self.all_columns)

    def with_centers(self, centers: Centers) -> Snapshot:
        """The same rows with another curve of their cells."""
        segments = tuple(
            replace(segment, cells=replace(segment.cells, centers=centers))
            if segment.cells is not None and segment.cells.centers.digest == centers.digest
            else segment
            for segment in self.segments
        )
        return replace(self, segments=segments)

    def check_undamaged(self) -> None:
        """Check mapped files once, before their rows are copied: FormatError if one is damaged."""
        if self.check is not None and not self._checked:
            self.check()
            self._checked.append(True)

    @LazyProperty
    def _checked(self) -> list[bool]:
        return []

    @LazyProperty
    def checked_originals(self) -> list[Any]:
        """The vectors that were last found to be those of the codes, if there were some."""
        return []

    # -- filters ---------------------------------------------------------------------------------

    def select(self, where: Any = None, exclude: Any = None, rows: Any = None) -> filters.Selection:
        """The rows that pass a filter."""
        where, exclude = self._of_columns(where, exclude, rows)
        selection = filters.select(len(self), where, exclude, self._rows_of_ids)
        return selection.in_state(self.state)

    def filters(
        self, shape: tuple[int, ...], where: Any = None, exclude: Any = None, rows: Any = None
    ) -> filters.Filters:
        """A filter for all queries of a shape, or one for each."""
        where, exclude = self._of_columns(where, exclude, rows)
        return filters.parse_filters(len(self), shape, where, exclude, self._rows_of_ids)

    def _of_columns(self, where: Any, exclude: Any, rows: Any) -> tuple[Any, Any]:
        where = self.selected(filters.rows_as_where(where, rows, len(self)))
        exclude = self.selected(exclude)
        filters.check_state(self.state, where=where, exclude=exclude)
        return where, exclude

    def selected(self, where: Any) -> Any:
        """A filter with its conditions on columns as selections; an empty one is none."""
        if isinstance(where, Mapping) and not where:
            return None
        if is_filter(where):
            return self.columns.selection(where)
        if isinstance(where, list | tuple) and any(map(is_filter, where)):
            return [self.selected(each) for each in where]
        return where

    def _rows_of_ids(self, name: str, ids: NDArray[Any]) -> NDArray[np.int64]:
        if ids.dtype.kind in "iu" and isinstance(self.ids, RowNumbers):  # the ids are the rows
            return ids
        rows = self.ids.find_many(normalize_ids(ids))
        return filters.found_rows(name, ids, rows, numbers=not self.numbered)

    def numbered_rows(self, rows: Any, least: int = 0) -> NDArray[np.int64]:
        """Row numbers from `least` on, checked: of one dimension, or of any if -1 is allowed."""
        array, n = to_numpy(rows), len(self)
        if (array.ndim != 1 and not least) or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"rows are {array.dtype} of shape {array.shape}, expected row numbers")
        if array.size and not least <= array.min() <= array.max() < n:
            row = array.min() if array.min() < least else array.max()
            hint = f"; -1 is no row in results, and the last row is {n - 1:,}"
            hint = hint if -n <= row < 0 else ""
            raise InputError(f"there is no row {row}: there are {n:,} rows{hint}")
        return array.astype(np.int64)

    def rows_of(self, which: Any, rows: Any, name: str = "subset") -> NDArray[np.int64]:
        """Row numbers of rows that are given as ids or a mask, or by number, in their order."""
        if (which is None) == (rows is None):
            raise InputError("expected ids or rows=, one of them")
        if rows is not None:
            return self.numbered_rows(rows)
        array = to_numpy(which)
        if array.ndim != 1:
            raise InputError(f"shape {array.shape}, expected a list of ids, or a mask")
        if array.dtype == bool:
            return filters.parsed(name, array, len(self)).rows
        if array.size and array.dtype.kind not in "UTOiu":
            raise InputError(f"rows are {array.dtype}, expected ids or a mask; or rows=")
        found = self._rows_of_ids(name, array) if array.size else array
        return self.numbered_rows(found.astype(np.int64))


def wrong_key(key: Any) -> InputError:
    expected = "an id, a packed code (uint8), or several of them"
    return InputError(f"the key is {shortened(key)}, expected {expected}")


def in_new_cells(
    segment: Segment, coder: Coder, n_cells: int, threads: int | None = None
) -> Segment:
    """A segment in cells that are trained on its codes."""
    codes = segment.codes_in_row_order
    centers, held_out = train(codes, n_cells, coder.n_bits_, threads)
    segment = in_cells(segment, centers, threads)
    queries = codes[held_out]
    found = calibrate(
        StoredCodes([segment.codes], cells=[segment.cells]), queries,
        _weights(coder, queries), held_out, threads,
    )  # fmt: skip
    assert segment.cells is not None
    return replace(segment, cells=replace(segment.cells, centers=found))


def in_cells(segment: Segment, centers: Centers, threads: int | None = None) -> Segment:
    """A segment in cells with these centers."""
    stored, cells = group_by_cell(segment.codes_in_row_order, centers, threads)
    return replace(segment, codes=stored, cells=cells)


def calibrated(snapshot: Snapshot, queries: NDArray[Any], threads: int | None) -> Centers:
    """The centers of the cells with a curve that is measured with vectors or codes."""
    codes = METRICS["hamming"].prepare(snapshot.coder, queries).queries
    weights = _weights(snapshot.coder, queries)
    return calibrate(snapshot.codes, codes, weights, threads=threads)


def _weights(coder: Coder, queries: NDArray[Any]) -> NDArray[np.float32] | None:
    """Vectors, or codes if there is a coder that decodes them, as weights of the bits."""
    are_codes = queries.dtype == np.uint8
    if are_codes and (coder.is_left_out or not len(queries)):
        return None
    metric = METRICS["decoded" if are_codes else "asymmetric"]
    return np.ascontiguousarray(metric.prepare(coder, queries).queries)
