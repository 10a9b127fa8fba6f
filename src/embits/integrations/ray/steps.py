"""What workers do with a batch of rows: encode it, or draw a sample from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder, coder_class
from embits.errors import InputError, ReadError
from embits.integrations.parquet_codes import CODE, from_arrays
from embits.integrations.ray.columns import Vectors, refusal, vectors_in
from embits.integrations.ray.pieces import Place

OnBad = Literal["raise", "skip"]
_SHOWN_TYPES = (int, str)


class ShippedCoder:
    """A coder in Ray's object store: its arrays are shared by all workers of a machine."""

    def __init__(self, coder: Coder) -> None:
        import ray

        coder.check_fitted()
        if coder_class(coder.method) is not type(coder):
            raise InputError(f"{type(coder).__name__} is not a coder of embits: it has no file")
        self.dims = coder.n_features_in_
        self.n_bytes = coder.n_bytes_
        parts = coder.method, coder.get_params(), coder.state(), self.dims, coder.n_bits_
        self._parts = ray.put(parts)

    def get(self) -> Coder:
        """The coder, made at the first call in a process and kept for the next."""
        import ray

        key = self._parts.hex()
        if key not in _coders:
            _coders.clear()
            _coders[key] = from_arrays(*ray.get(self._parts))
        return _coders[key]


_coders: dict[str, Coder] = {}


class Encode:
    """Puts a column of codes in the place of the column of vectors.

    Bad rows are refused, left out, or given a null (`"mark"`), so that a writer can count them.
    """

    def __init__(
        self,
        coder: ShippedCoder,
        column: str,
        keep: Sequence[str],
        on_bad: OnBad | Literal["mark"],
    ) -> None:
        self.coder = coder
        self.column = column
        self.keep = list(keep)
        self.on_bad = on_bad

    def __call__(self, table: Any, place: Place | None = None) -> Any:
        vectors = vectors_in(table.column(self.column), self.coder.dims)
        if len(vectors.bad) and self.on_bad == "raise":
            raise _refuse(table, self.column, self.keep, place, vectors, self.coder.dims)
        try:
            codes = self.coder.get().transform(vectors.matrix)
        except InputError as error:  # numbers too large for the method
            raise ReadError(f"{place or 'the dataset'}, column {self.column!r}: {error}") from None
        kept = table.select(self.keep)
        if len(vectors.bad) == 0:
            return kept.append_column(CODE, code_array(codes))
        good = np.ones(table.num_rows, bool)
        good[vectors.bad] = False
        if self.on_bad == "skip":
            return kept.filter(_mask(good)).append_column(CODE, code_array(codes))
        padded = np.zeros((len(good), codes.shape[1]), np.uint8)
        padded[good] = codes
        return kept.append_column(CODE, code_array(padded, good))


class Draw:
    """Keeps the vectors whose hash is small: a sample that no order or cut of the rows changes."""

    def __init__(self, column: str, share: float, seed: int, on_bad: OnBad) -> None:
        self.column = column
        self.below = np.uint64(min(share, 1.0) * float(2**64 - 2**11))
        self.seed = seed
        self.on_bad = on_bad

    def __call__(self, table: Any, place: Place | None = None) -> Any:
        import pyarrow as pa

        vectors = vectors_in(table.column(self.column), None)
        if len(vectors.bad) and self.on_bad == "raise":
            raise _refuse(table, self.column, table.column_names, place, vectors, None)
        hashes = row_hashes(vectors.matrix, self.seed)
        drawn = hashes <= self.below
        rows = vectors.matrix[drawn]
        return pa.table(
            {
                "hash": hashes[drawn],
                "dims": np.full(len(rows), vectors.matrix.shape[1]),
                "row": pa.array([row.tobytes() for row in rows], pa.binary()),
            }
        )


def row_hashes(matrix: NDArray[np.float32], seed: int) -> NDArray[np.uint64]:
    """A uint64 of each row's bytes, the same on every machine.

    >>> rows = np.float32([[1, 2], [1, 2], [2, 1]])
    >>> first, same, other = row_hashes(rows, seed=0)
    >>> first == same, first == other, first == row_hashes(rows, seed=1)[0]
    (np.True_, np.False_, np.False_)
    """
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, 2**64, matrix.shape[1], dtype=np.uint64) | np.uint64(1)
    words = np.ascontiguousarray(matrix, dtype="<f4").view("<u4").astype(np.uint64)
    words *= factors  # wraps, as a hash may
    hashes: NDArray[np.uint64] = words.sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        hashes ^= hashes >> np.uint64(shift)  # the finish of splitmix64: high bits from all bits
        hashes *= np.uint64(factor)
    return hashes


def code_array(codes: NDArray[np.uint8], valid: NDArray[np.bool_] | None = None) -> Any:
    """Codes as an Arrow array of fixed-size binary, not copied."""
    import pyarrow as pa

    packed = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [packed, pa.py_buffer(np.ascontiguousarray(codes))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(codes.shape[1]), len(codes), buffers)


def _mask(good: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(good)


def _refuse(
    table: Any,
    column: str,
    keep: Sequence[str],
    place: Place | None,
    vectors: Vectors,
    dims: int | None,
) -> ReadError:
    """Name the row by its file and number, or by what stands beside it where there is no file."""
    at = int(vectors.bad[0])
    if place is not None:
        return refusal(str(place), column, vectors.found, dims, f"row {place.first_row + at + 1}")
    beside = {name: table.column(name)[at].as_py() for name in keep if name != column}
    named = [f"{k} {v!r:.60}" for k, v in beside.items() if isinstance(v, _SHOWN_TYPES)]
    row = f"the row of {named[0]}" if named else "a row"
    return refusal("the dataset", column, vectors.found, dims, row)
