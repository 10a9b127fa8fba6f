"""The steps that workers apply to a batch of rows: encode it, or draw a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder, coder_class
from embits.errors import InputError, ReadError
from embits.file.parquet_codes import CODE, coder_from_arrays
from embits.integrations.ray.columns import VectorBatch, bad_row_error, read_vectors
from embits.integrations.ray.pieces import BatchLocation

OnBad = Literal["raise", "skip"]
_SHOWN_TYPES = (int, str)


class SharedCoder:
    """A coder in Ray's object store: the workers of a machine share its arrays."""

    def __init__(self, coder: Coder) -> None:
        import ray

        coder.check_fitted()
        if coder_class(coder.method) is not type(coder):
            raise InputError(
                f"{type(coder).__name__} is not a coder of embits and cannot be sent to workers"
            )
        self.dims = coder.n_features_in_
        self.n_bytes = coder.n_bytes_
        parts = coder.method, coder.get_params(), coder.state(), self.dims, coder.n_bits_
        self._parts = ray.put(parts)

    def get(self) -> Coder:
        """Return the coder; the first call in a process builds it."""
        import ray

        key = self._parts.hex()
        if key not in _coders:
            _coders.clear()
            _coders[key] = coder_from_arrays(*ray.get(self._parts))
        return _coders[key]


_coders: dict[str, Coder] = {}


class Encode:
    """Replaces the column of vectors by a column of codes.

    Bad rows raise an error, or get a null ("mark") so that the writer can count them.
    """

    def __init__(
        self,
        coder: SharedCoder,
        column: str,
        keep: Sequence[str],
        on_bad: Literal["raise", "mark"],
    ) -> None:
        self.coder = coder
        self.column = column
        self.keep = list(keep)
        self.on_bad = on_bad

    def __call__(self, table: Any, place: BatchLocation | None = None) -> Any:
        vectors = read_vectors(table.column(self.column), self.coder.dims)
        if len(vectors.bad) and self.on_bad == "raise":
            raise _bad_row(table, self.column, self.keep, place, vectors, self.coder.dims)
        try:
            codes = self.coder.get().transform(vectors.matrix)
        except InputError as error:  # numbers too large for the method
            raise ReadError(f"{place or 'the dataset'}, column {self.column!r}: {error}") from None
        kept = table.select(self.keep)
        if len(vectors.bad) == 0:
            return kept.append_column(CODE, code_array(codes))
        good = np.ones(table.num_rows, bool)
        good[vectors.bad] = False
        padded = np.zeros((len(good), codes.shape[1]), np.uint8)
        padded[good] = codes
        return kept.append_column(CODE, code_array(padded, good))


class Draw:
    """Keeps the vectors with small hashes: the sample does not depend on the rows' order."""

    def __init__(self, column: str, share: float, seed: int, on_bad: OnBad) -> None:
        self.column = column
        self.below = np.uint64(min(share, 1.0) * float(2**64 - 2**11))
        self.seed = seed
        self.on_bad = on_bad

    def __call__(self, table: Any, place: BatchLocation | None = None) -> Any:
        import pyarrow as pa

        vectors = read_vectors(table.column(self.column), None)
        if len(vectors.bad) and self.on_bad == "raise":
            raise _bad_row(table, self.column, table.column_names, place, vectors, None)
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
    """Return a uint64 hash of each row's bytes, the same on every machine.

    >>> rows = np.float32([[1, 2], [1, 2], [2, 1]])
    >>> first, same, other = row_hashes(rows, seed=0)
    >>> first == same, first == other, first == row_hashes(rows, seed=1)[0]
    (np.True_, np.False_, np.False_)
    """
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, 2**64, matrix.shape[1], dtype=np.uint64) | np.uint64(1)
    words = np.ascontiguousarray(matrix, dtype="<f4").view("<u4").astype(np.uint64)
    words *= factors  # modulo 2^64
    hashes: NDArray[np.uint64] = words.sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        hashes ^= hashes >> np.uint64(shift)  # as splitmix64 ends: every bit affects the high bits
        hashes *= np.uint64(factor)
    return hashes


def code_array(codes: NDArray[np.uint8], valid: NDArray[np.bool_] | None = None) -> Any:
    """Return codes as an Arrow array of fixed-size binary, without a copy."""
    import pyarrow as pa

    packed = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [packed, pa.py_buffer(np.ascontiguousarray(codes))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(codes.shape[1]), len(codes), buffers)


def _bad_row(
    table: Any,
    column: str,
    keep: Sequence[str],
    place: BatchLocation | None,
    vectors: VectorBatch,
    dims: int | None,
) -> ReadError:
    """Name the row by its file and number, or by another column of a dataset."""
    at = int(vectors.bad[0])
    if place is not None:
        return bad_row_error(str(place), column, vectors.found, dims, f"row {place.first_row + at}")
    others = {name: table.column(name)[at].as_py() for name in keep if name != column}
    named = [f"{k} {v!r:.60}" for k, v in others.items() if isinstance(v, _SHOWN_TYPES)]
    row = f"the row of {named[0]}" if named else "a row"
    return bad_row_error("the dataset", column, vectors.found, dims, row)
