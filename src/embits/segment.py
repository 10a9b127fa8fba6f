"""Segment: what one file holds: ids, codes, cells, and the columns beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.arrays import LazyRows, as_float32, blocks
from embits.coders import Coder
from embits.columns import RESERVED, ColumnTable
from embits.errors import InputError, ReadWarning, warn_caller
from embits.ids.keys import Ids
from embits.ids.vocabulary import Vocabulary
from embits.search.cells import Cells

LENGTHS = "lengths"
"""The column of the lengths of vectors."""
FLOATS = "floats"
"""The column of the vectors themselves."""
KEEPS = "float16", "int8"

# The parts that can be left out, and what no longer works without them.
PARTS = {
    "coder": 'encoding vectors, decoding codes, float queries and metric="decoded", the default '
    "of `embits analogy`",
    "subwords": "codes of unknown words",
    "lengths": "inner products, and decoded vectors of their true length",
    "columns": "their values, and filters on them",
    "floats": "rescoring by the vectors that a collection keeps",
    "order": "row numbers as before, and completion with frequent words first, because rows are "
    "sorted by their ids",
}
_DECODER = "decoder"

_STEPS = 16  # of a doubling: a length is stored with an error of at most 2.2 %
_DOUBLINGS = 14  # below the longest vector that are stored; shorter vectors get the least length


class Lengths:
    """The lengths of vectors, in one byte each on a log scale.

    Byte 0 of `steps`, (n,), is the length 0, and byte b is the length 2 ** (base + (b - 1) / 16).
    """

    def __init__(self, steps: NDArray[np.uint8], base: int) -> None:
        self.steps = steps
        self.base = base

    @classmethod
    def of(cls, lengths: Any) -> Lengths:
        """Lengths of shape (n,), rounded to the scale."""
        lengths = np.asarray(lengths, np.float64)
        if lengths.ndim != 1 or not np.isfinite(lengths).all() or (lengths < 0).any():
            raise InputError("lengths must be one finite number of 0 or more for each row")
        longest = lengths.max(initial=0)
        top = np.rint(_STEPS * np.log2(longest)) if longest else 0
        base = int(top // _STEPS) - _DOUBLINGS if longest else 0
        steps = np.zeros(len(lengths), np.uint8)
        some = lengths > 0
        logs = np.rint(_STEPS * (np.log2(lengths[some]) - base))
        _warn_of_short(logs < 0)
        steps[some] = np.maximum(logs, 0).astype(np.uint8) + 1
        return cls(steps, base)

    @classmethod
    def of_vectors(cls, X: Any) -> Lengths:
        """The lengths of vectors of shape (n, dims)."""
        return cls.of(vector_lengths(X))

    @classmethod
    def joined(cls, parts: Sequence[Lengths]) -> Lengths:
        """Several, one after the other."""
        base = max((part.base for part in parts if part.steps.any()), default=0)
        return cls(np.concatenate([part._steps_from(base) for part in parts]), base)

    def _steps_from(self, base: int) -> NDArray[np.uint8]:
        if base == self.base or not self.steps.any():
            return self.steps
        moved = self.steps.astype(np.int64) - _STEPS * (base - self.base)
        _warn_of_short((moved < 1) & (self.steps > 0))
        return np.where(self.steps, np.maximum(moved, 1), 0).astype(np.uint8)

    @LazyProperty
    def floats(self) -> NDArray[np.float32]:
        """The lengths as float32."""
        scale = 2.0 ** (self.base + np.arange(-1, 255) / _STEPS)
        scale[0] = 0
        return scale.astype(np.float32)[self.steps]

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, rows: Any) -> Lengths:
        """The lengths of some rows."""
        return Lengths(self.steps[rows], self.base)


def _warn_of_short(short: NDArray[np.bool_]) -> None:
    if n := int(short.sum()):
        found = f"{n:,} of {len(short):,} vectors are over 16,000 times shorter than the longest"
        warn_caller(f"{found}: they are stored with too large a length", ReadWarning)


class Floats:
    """Vectors that are kept beside their codes, in 16 or 8 bits a dimension; read when used.

    `records` are uint8 of shape (n, width), or what is indexed so: of "float16", the numbers of a
    row; of "int8", a float32 scale, then the whole numbers that it is multiplied with.
    """

    def __init__(self, records: Any, keep: str) -> None:
        self.records, self.keep = records, keep

    @classmethod
    def of(cls, X: Any, keep: str) -> Floats:
        """Vectors of shape (n, dims), which are converted when they are read."""
        for rows in blocks(len(X)) if keep == KEEPS[0] else ():
            if (np.abs(np.asarray(X[rows])) > np.finfo(np.float16).max).any():
                raise InputError("vectors have numbers beyond 65,504, which keep='int8' can keep")
        dims, pack = X.shape[1], _PACK[keep]
        width = 2 * dims if keep == KEEPS[0] else 4 + dims
        return cls(_Records(lambda rows: pack(as_float32(X[rows])), range(len(X)), width), keep)

    @classmethod
    def joined(cls, parts: Sequence[Floats]) -> Floats:
        """Several, one after the other; nothing is read."""
        if len({part.keep for part in parts}) > 1:
            raise InputError("some of the rows keep floats in 16 bits and others in 8")
        starts = np.cumsum([0, *map(len, parts)])
        width = int(parts[0].records.shape[1])

        def take(rows: Any) -> NDArray[np.uint8]:
            found = np.empty((len(rows), width), np.uint8)
            owners = np.searchsorted(starts, rows, "right")
            for owner in np.unique(owners).tolist():
                mine = owners == owner
                found[mine] = parts[owner - 1].records[rows[mine] - starts[owner - 1]]
            return found

        return cls(_Records(take, range(int(starts[-1])), width), parts[0].keep)

    @property
    def dims(self) -> int:
        """Dimensions of the vectors."""
        width = int(self.records.shape[1])
        return width // 2 if self.keep == KEEPS[0] else width - 4

    @property
    def lazy(self) -> LazyRows:
        """The vectors as a matrix that is read when it is used."""
        return LazyRows(self.vectors, len(self), self.dims)

    def vectors(self, rows: Any) -> NDArray[np.float32]:
        """The vectors of some rows, float32 of shape (m, dims)."""
        records = np.ascontiguousarray(self.records[rows])
        if self.keep == KEEPS[0]:
            return records.view("<f2").astype(np.float32)
        scales = np.ascontiguousarray(records[:, :4]).view("<f4")
        vectors: NDArray[np.float32] = np.float32(records[:, 4:].view(np.int8)) * scales
        return vectors

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, rows: Any) -> Floats:
        """Those of some rows; nothing is read."""
        take, width = self.records.__getitem__, self.records.shape[1]
        return Floats(_Records(take, np.arange(len(self))[rows], width), self.keep)


class _Records:
    """Some of the rows of a matrix of bytes, which are made when they are read."""

    def __init__(self, take: Callable[[Any], Any], rows: Any, width: int) -> None:
        self._take, self._rows, self.shape = take, rows, (len(rows), width)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        rows = self._rows if not isinstance(self._rows, range) else np.arange(len(self))
        found: NDArray[np.uint8] = self._take(rows[key])
        return found


def _as_int8(X: NDArray[np.float32]) -> NDArray[np.uint8]:
    scales = np.abs(X).max(axis=1, keepdims=True, initial=0) / np.float32(127)
    steps = np.rint(np.divide(X, scales, out=np.zeros_like(X), where=scales > 0)).astype(np.int8)
    return np.hstack([scales.astype("<f4").view(np.uint8), steps.view(np.uint8)])


_PACK: dict[str, Callable[[NDArray[np.float32]], NDArray[np.uint8]]] = {
    "float16": lambda X: np.ascontiguousarray(X, "<f2").view(np.uint8),
    "int8": _as_int8,
}


@dataclass(frozen=True, eq=False)
class Segment:
    """What one file holds, with rows that may be removed.

    Attributes:
        ids: The ids of the rows.
        codes: Packed codes, uint8 (n, width), as they are stored: in row order, or cell by cell.
        columns: Columns by name: `Lengths`, `Floats`, or a NumPy or Arrow array of n values.
        cells: The cells of the codes, if they are stored in their order.
        table: The Arrow file beside a file of a collection.
    """

    ids: Ids
    codes: NDArray[np.uint8]
    columns: Mapping[str, Any] = field(default_factory=dict)
    cells: Cells | None = None
    table: ColumnTable | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def codes_in_row_order(self) -> NDArray[np.uint8]:
        """The codes by row number."""
        return self.codes if self.cells is None else self.codes[self.cells.places]


_INDEXED = Lengths, Floats, np.ndarray


def vector_lengths(X: Any) -> NDArray[np.float64]:
    """The lengths of vectors of shape (n, dims), not rounded."""
    lengths = np.empty(len(X))
    for rows in blocks(len(X)):
        lengths[rows] = np.linalg.norm(np.asarray(X[rows], np.float64), axis=1)
    return lengths


def take_rows(columns: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """The columns of some rows."""
    return {
        name: column[rows] if isinstance(column, _INDEXED) else column.take(rows)
        for name, column in columns.items()
    }


def concat_columns(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of several parts, one after the other."""
    names = set(parts[0]) if parts else set()
    for part in parts:
        if set(part) != names:
            name = min(set(part) ^ names)
            raise InputError(f"some of the rows have {name} and others have none")
    return {name: _joined([part[name] for part in parts]) for name in sorted(names)}


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], Lengths | Floats):
        return type(parts[0]).joined(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa  # its arrays are given: it is installed

    chunks = [chunk for part in parts for chunk in getattr(part, "chunks", [part])]
    try:
        return pa.chunked_array(chunks)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"some of the rows have columns of other types: {error}") from None


def check_parts(without: Iterable[str]) -> frozenset[str]:
    """The parts to leave out."""
    parts = (without,) if isinstance(without, str) else tuple(without)
    for part in parts:
        if part not in PARTS:
            raise InputError(f"{part!r} cannot be left out: choose from {', '.join(PARTS)}")
    return frozenset(parts)


def slim_segment(
    segment: Segment, coder: Coder, without: frozenset[str], half_decoder: bool
) -> tuple[Segment, Coder]:
    """A segment and its coder without some parts, and with the decoder rounded to 16 bits."""
    if half_decoder:
        coder = _with_half_decoder(coder)
    if "coder" in without:
        coder = coder.left_out(coder.get_params(), coder.n_features_in_, coder.n_bits_)
    columns = {
        name: column
        for name, column in segment.columns.items()
        if name not in without and (name in RESERVED or "columns" not in without)
    }
    segment = replace(segment, columns=columns)
    if "order" in without and isinstance(segment.ids, Vocabulary):
        order = segment.ids.order.astype(np.int64)
        in_order = Vocabulary.from_words(segment.ids.names(order).tolist())
        codes = segment.codes_in_row_order[order]
        segment = Segment(in_order, codes, take_rows(columns, order))
    return segment, coder


def _with_half_decoder(coder: Coder) -> Coder:
    state: dict[str, Any] = coder.state()
    if _DECODER not in state:
        reason = "was left out" if coder.is_left_out else "has none of its own"
        raise InputError(f"the decoder of {type(coder).__name__} {reason}")
    with np.errstate(over="ignore"):
        state[_DECODER] = state[_DECODER].astype(np.float16)
    if not np.isfinite(state[_DECODER]).all():
        raise InputError("the decoder has numbers that 16 bits cannot hold")
    return type(coder).from_state(coder.get_params(), state, coder.n_features_in_, coder.n_bits_)
