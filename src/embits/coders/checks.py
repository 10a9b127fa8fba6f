"""The checks that every coder makes of vectors, numbers of bits and weights."""

from __future__ import annotations

from reprlib import repr as shortened
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, to_numpy
from embits.coders.lazy import LazyRows
from embits.errors import InputError

MAX_BITS = 1 << 16  # of a code: 8 KB; a larger number is more likely a mistake
MAX_FLOAT32 = float(np.finfo(np.float32).max)
MAX_WEIGHT = 1e18  # sums of squares of larger weights over a vector overflow float32


def check_n_bits(n_bits: Any) -> int:
    """`n_bits` as an int from 1 to MAX_BITS, or InputError."""
    if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or n_bits < 1:
        raise InputError(f"n_bits is {shortened(n_bits)}, expected a whole number of 1 or more")
    if n_bits > MAX_BITS:
        raise InputError(f"n_bits is {n_bits:,}, expected {MAX_BITS:,} at most")
    return int(n_bits)


def random_generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed.

    Raises:
        InputError: It is not a seed.
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state is {shortened(random_state)}, expected a whole number of 0 or more, or "
            "None"
        ) from None


def matrix_of_numbers(X: Any) -> NDArray[Any]:
    """`X` as a 2-d array of numbers; LazyRows as they are."""
    array = _as_numbers(X)
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead: vectors are rows of "
            "(n, dims). Reshape your data with array.reshape(1, -1) if it is a single vector"
        )
    return array


def _as_numbers(X: Any) -> NDArray[Any]:
    if isinstance(X, LazyRows):
        return cast("NDArray[Any]", X)
    if hasattr(X, "toarray"):  # scipy.sparse, recognised without importing it
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    if hasattr(X, "words") and hasattr(X, "matrix"):
        raise InputError(f"X is {type(X).__name__}, expected a matrix: pass its `matrix`")
    array = to_numpy(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: vectors are real numbers")
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"argument must be rows of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"vectors are {array.dtype}, expected numbers")
    return array


def check_dims(vectors: Any, dims: int) -> None:
    """Refuse vectors of other dimensions than those of a file or collection.

    Args:
        vectors: An array of shape (dims,) or (n, dims).
        dims: What is expected.

    Raises:
        InputError: They have other dimensions.
    """
    if vectors.ndim in (1, 2) and vectors.shape[-1] != dims:
        what = "a vector" if vectors.ndim == 1 else "vectors"
        raise InputError(f"{what} of {vectors.shape[-1]} dimensions, expected {dims}")


def check_not_empty(array: NDArray[Any]) -> None:
    """Refuse a matrix without rows or columns, in scikit-learn's words."""
    if array.shape[0] == 0:
        raise InputError("Found array with 0 sample(s): there is nothing to fit on")
    if array.shape[1] == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )


def check_finite(array: NDArray[Any]) -> None:
    """Refuse NaN, infinity and numbers beyond float32; the matrix is read in blocks (maybe mapped).

    Raises:
        InputError: There is such a number; names its row.
    """
    if isinstance(array, LazyRows) or array.dtype.kind != "f":
        return  # LazyRows were checked when they were read
    for rows in blocks(len(array)):
        block = array[rows]
        if not np.isfinite(_sum(block)):
            bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if bad.size:
                what = "NaN" if np.isnan(block).any() else "infinity"
                raise InputError(f"row {rows.start + int(bad[0])} of the vectors contains {what}")
        if block.dtype.itemsize > 4:
            _check_float32(block, rows.start)


def _check_float32(block: NDArray[Any], first: int) -> None:
    """Refuse numbers that float32 does not hold; `first` is the number of the first row."""
    if max(block.max(initial=0), -block.min(initial=0)) <= MAX_FLOAT32:
        return
    largest = np.abs(block).max(axis=1)
    row = int((largest > MAX_FLOAT32).argmax())
    raise InputError(
        f"row {first + row} of the vectors contains {largest[row]:g}, too large for float32"
    )


def _sum(block: NDArray[Any]) -> Any:
    """The sum of a block, finite only if all of it is: one fast pass. Large values may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return block.sum(dtype=np.float32 if block.dtype.itemsize < 4 else None)


def check_size(vectors: NDArray[Any]) -> None:
    """Refuse finite vectors with values so large that sums of squares overflow.

    Raises:
        InputError: There is such a value.
    """
    if not is_usual(vectors):
        raise too_large()


def too_large() -> InputError:
    """The error for vectors whose products or squares are beyond float32."""
    return InputError("vectors have values beyond 1e18: scale them down")


def is_usual(weights: NDArray[Any]) -> bool:
    """Whether all numbers are finite, and small enough for their squares to be summed."""
    # If there is a NaN, it is both the smallest and the largest, and compares as False.
    # As Python's numbers, because float16 cannot hold the limit.
    return weights.size == 0 or (
        float(weights.min()) >= -MAX_WEIGHT and float(weights.max()) <= MAX_WEIGHT
    )
