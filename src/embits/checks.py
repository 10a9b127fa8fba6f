"""Checks of arguments: numbers, choices, files, packed codes and queries, each with one message."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from embits.arrays import LazyRows, as_float32, blocks, to_numpy
from embits.errors import (
    EmbitsError,
    FormatError,
    InputError,
    TrainingWarning,
    named_if_missing,
    warn_caller,
)

if TYPE_CHECKING:
    from embits.coders.base import Coder

_MAX_THREADS = 1024
MAX_RESULTS = 100_000_000
"""Rows that a search without a k returns unless `max_results` says otherwise: 1.2 GB."""


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{name} is {shortened(value)}, expected a whole number {bounds}")
    return int(value)


def number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A number from `least` to `most`."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or math.isnan(value):
        raise InputError(f"{name} is {shortened(value)}, expected a number")
    if not least <= value <= most:
        bounds = f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"
        raise InputError(f"{name} is {value:g}, expected {bounds}")
    return float(value)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """One of several names."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        expected = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{name} is {shortened(value)}, expected {expected}")
    return value


def open_regular(
    path: str | os.PathLike[str], most: int | None = None, error: type[EmbitsError] = FormatError
) -> BufferedReader:
    """A file to read, of at most so many bytes; a pipe or device would block, or never end."""

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with named_if_missing(path):
        file = open(path, "rb", opener=opened)  # noqa: SIM115 - the caller closes it
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and (most is None or found.st_size <= most):
        return file
    file.close()
    if stat.S_ISREG(found.st_mode):
        raise error(f"found {found.st_size:,} bytes, expected at most {most:,}", path=path)
    kind = "a pipe" if stat.S_ISFIFO(found.st_mode) else "a device"
    raise error(f"found {kind}, expected a file", path=path)


def read_small(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a file of at most so many bytes; FormatError if it has more."""
    with open_regular(path, most) as file:
        return file.read(most + 1)


def packed(name: str, array: Any) -> NDArray[np.uint8]:
    """`array` as contiguous packed bits, or an InputError that calls it `name`."""
    codes = np.asarray(array)
    if codes.dtype != np.uint8:
        raise InputError(f"{name} are {codes.dtype}, expected packed bits: uint8 (see np.packbits)")
    return codes if codes.flags.c_contiguous else np.ascontiguousarray(codes)


def packed_codes(codes: Any) -> NDArray[np.uint8]:
    """`codes` as contiguous packed bits of shape (n, width)."""
    checked = packed("codes", codes)
    if checked.ndim != 2:
        raise InputError(f"codes have {checked.ndim} dimension(s), expected 2: (rows, bytes)")
    return checked


def packed_queries(queries: Any, width: int) -> NDArray[np.uint8]:
    """`queries` as contiguous packed bits of shape (width,) or (q, width)."""
    checked = packed("queries", queries)
    if checked.ndim not in (1, 2):
        raise InputError(f"queries have {checked.ndim} dimensions, expected 1 or 2")
    if checked.shape[-1] != width:
        raise InputError(f"queries are {checked.shape[-1]} bytes wide, the codes {width}")
    return checked


def float_queries(name: str, queries: Any) -> NDArray[np.float32]:
    """`queries` as contiguous, finite float32 of shape (dims,) or (q, dims)."""
    queries = np.asarray(queries)
    if queries.dtype.kind not in "fiu":
        raise InputError(f"{name} are {queries.dtype}, expected numbers")
    if queries.ndim not in (1, 2):
        raise InputError(f"{name} have {queries.ndim} dimensions, expected 1 or 2")
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        checked = np.ascontiguousarray(queries, dtype=np.float32)
    if not np.isfinite(checked).all():
        raise InputError(f"{name} hold NaN, infinity or a number beyond float32")
    return checked


def wanted_rows(k: Any, n: int) -> int:
    """How many rows to return when `k` of `n` are asked for."""
    return min(whole("k", k), n)


def wanted_threads(threads: Any) -> int:
    """`threads` as the core counts them: 0 stands for every core."""
    return 0 if threads is None else min(whole("threads", threads, least=1), _MAX_THREADS)


def wanted_distance(distance: Any, n_bits: int) -> int:
    """`distance` as a number of bits from 0 to `n_bits`."""
    return whole("distance", distance, most=n_bits)


def distance_of(similarity: float, n_bits: int) -> int:
    """The largest distance whose share of equal bits is at least `similarity`.

    >>> distance_of(0.9, 10), distance_of(0.91, 10), distance_of(1, 10)
    (1, 0, 0)
    """
    # In floats 1 - 56 / 100 is below 0.44, but 44 / 100 is not; with other numbers it is the other
    # way round, and `similarity` returns 1 - distance / n_bits. Both reach the bound.
    equal = max(round(similarity * n_bits) - 1, 0)
    while max(equal / n_bits, 1 - (n_bits - equal) / n_bits) < similarity:
        equal += 1
    return n_bits - equal


def wanted_results(max_results: Any) -> int:
    """How many results may be returned."""
    return MAX_RESULTS if max_results is None else min(whole("max_results", max_results), 2**62)


MAX_BITS = 1 << 16  # of a code: 8 KB; a larger number is more likely a mistake
MAX_FLOAT32 = float(np.finfo(np.float32).max)
MAX_WEIGHT = 1e18  # sums of squares of larger weights over a vector overflow float32

COLLAPSE_ROWS = 1_024  # rows that are encoded to see whether codes tell them apart
COLLAPSE_MIN_ROWS = 64  # different ones; with fewer, good codes can look alike by chance
MAX_CONSTANT = 0.25  # share of bits that are the same for all rows
MIN_DISTINCT = 0.1  # codes for each row, among codes of COLLAPSE_MIN_ROWS bits or more


def check_n_bits(n_bits: Any) -> int:
    """`n_bits` as an int from 1 to MAX_BITS, or InputError."""
    return whole("n_bits", n_bits, 1, MAX_BITS)


def random_generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed, or InputError."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        found = shortened(random_state)
        raise InputError(f"random_state is {found}, expected a whole number or None") from None


def matrix_of_numbers(X: Any) -> NDArray[Any]:
    """`X` as a 2-d array of numbers; LazyRows as they are."""
    if isinstance(X, LazyRows):
        return cast("NDArray[Any]", X)
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
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead: vectors are rows of "
            "(n, dims). Reshape your data with array.reshape(1, -1) if it is a single vector"
        )
    return array


def check_dims(vectors: Any, dims: int) -> None:
    """Refuse vectors that are not (n, dims) or (dims,), as those of a file or collection are."""
    if vectors.ndim not in (1, 2):
        found = f"an array of {vectors.ndim} dimensions" if vectors.ndim else "a single value"
        raise InputError(f"found {found}, expected vectors of shape (n, {dims}) or ({dims},)")
    if vectors.shape[-1] != dims:
        what = "a vector" if vectors.ndim == 1 else "vectors"
        raise InputError(f"{what} of {vectors.shape[-1]} dimensions, expected {dims}")


def check_finite(array: NDArray[Any]) -> None:
    """Refuse NaN, infinity and numbers beyond float32, and name their row; reads in blocks."""
    if isinstance(array, LazyRows) or array.dtype.kind != "f":
        return  # LazyRows were checked when they were read
    for rows in blocks(len(array)):
        block = array[rows]
        with np.errstate(over="ignore", invalid="ignore"):  # large values may overflow a sum
            total = block.sum(dtype=np.float32 if block.dtype.itemsize < 4 else None)
        if not np.isfinite(total):
            bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if bad.size:
                what = "NaN" if np.isnan(block).any() else "infinity"
                raise InputError(f"row {rows.start + int(bad[0])} of the vectors contains {what}")
        if array.dtype.itemsize > 4 and np.abs(block).max(initial=0) > MAX_FLOAT32:
            largest = np.abs(block).max(axis=1)
            row = int((largest > MAX_FLOAT32).argmax())
            found = f"{largest[row]:g}, too large for float32"
            raise InputError(f"row {rows.start + row} of the vectors contains {found}")


def check_size(vectors: NDArray[Any]) -> None:
    """Refuse finite vectors with values so large that sums of squares overflow."""
    if not is_usual(vectors):
        raise too_large()


def too_large() -> InputError:
    """The error for vectors whose products or squares are beyond float32."""
    return InputError("vectors have values beyond 1e18: scale them down")


def is_usual(weights: NDArray[Any]) -> bool:
    """Whether all numbers are finite, and small enough for their squares to be summed."""
    # A NaN is both the smallest and the largest, and compares as False. Python's floats hold the
    # limit, float16 does not.
    least, most = (float(weights.min()), float(weights.max())) if weights.size else (0, 0)
    return least >= -MAX_WEIGHT and most <= MAX_WEIGHT


def warn_if_collapsed(coder: Coder, X: NDArray[Any]) -> None:
    """Warn, once for a fit on X, of bits that are constant and of codes that most rows share."""
    rows = coder.rows_for_fit(*X.shape)
    if rows is None:
        rows = np.arange(len(X))
    sample = as_float32(X[rows[:: -(-len(rows) // COLLAPSE_ROWS)]])
    if found := _collapse(coder, sample):
        warn_caller(f"method {coder.method!r}: {found}", TrainingWarning)


def _collapse(coder: Coder, sample: NDArray[np.float32]) -> str | None:
    n_rows = len(np.unique(sample, axis=0))
    if n_rows == 1 and len(sample) >= COLLAPSE_MIN_ROWS:
        kind = "equal" if sample[0].any() else "zero"
        return f"all of {len(sample):,} rows are {kind}, and have one code"
    if n_rows < COLLAPSE_MIN_ROWS:
        return None
    codes = coder.encode_rows(sample)
    differing = np.bitwise_or.reduce(codes ^ codes[0], axis=0)
    n_constant = coder.n_bits_ - int(np.unpackbits(differing).sum())
    n_codes = len(np.unique(codes, axis=0))
    if n_constant > MAX_CONSTANT * coder.n_bits_:
        found = f"{n_constant} of {coder.n_bits_} bits are the same for all of {len(codes):,} rows"
    elif coder.n_bits_ >= COLLAPSE_MIN_ROWS and n_codes < MIN_DISTINCT * n_rows:
        found = f"{n_rows:,} different rows have only {n_codes:,} different codes"
    else:
        return None
    hint = "Subtract the mean of the vectors, or take another method"
    return f"{found}; searches will find few true neighbors. {hint}"
