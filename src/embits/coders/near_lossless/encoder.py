"""Encoding by search, in exact integers: threshold, then flip bits while an error falls.

With y = D b + o, b in {-1, 1}ᵐ, the code of a vector x of norm 1 makes

    |y|² - 2 (W x - t + D o) · b + μ (|y|² - c)²

small: docs/near-lossless.md has what each term is for. The first code is the sign of W x - t. Bits
are then visited in order, and flipped when that lowers the error. Vectors, W and D Dᵀ are rounded
to 16-bit integers and summed in 32 bits: a vector has one code on every processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import as_float32, namespace
from embits.checks import too_large

Floats = NDArray[np.floating]
UNIT_BITS = 14  # a vector of norm 1 is 2¹⁴ integers long
MAX_NORM = 32000  # of a row of W in integers: its entries fit 16 bits, its sums 32
MAX_GRAM = 1 << 14  # of |D|² of a bit in integers
MAX_LENGTH = 1 << 27  # of |y|² in integers
LANE = 32  # rows of int16 are padded with zeros to a multiple of it
SWEEPS = 8  # passes over the bits, at most: most rows need fewer
TINY = 1e-30  # the norm of a row of zeros
SHORT = 1e-12  # squares of the values of shorter rows may underflow
SCALE = 2.0**100  # brings short rows to where their squares do not


@dataclass(frozen=True)
class Encoder:
    """Integer weights of a search, made of the floats of a coder."""

    weights: NDArray[np.int16]  # W in units of 2^-(shift + unit bits), (bits, padded dims)
    thresholds: NDArray[np.int32]  # t, (bits,), in the units of `gram`
    gram: NDArray[np.int16]  # D Dᵀ, (bits, padded bits)
    centre: NDArray[np.int32]  # D o, (bits,)
    shift: int  # a score is W x, shifted to the right by so many bits
    offset: int  # |o|²
    length: int  # c
    pull: np.float32  # μ over four times the unit

    @classmethod
    def of(
        cls, W: Floats, t: Floats, decoder: Floats, offset: Floats, length: float, pull: float
    ) -> Encoder:
        """Round the weights of a coder; the decoder is that of bits in {0, 1}.

        W and `decoder`, 2 D, have the shape (bits, dims), t has (bits,), and `offset`, o - Σ D,
        has (dims,). `length` is c, and `pull` is μ.
        """
        # Integers in float64: their products are exact, in whatever order they are summed.
        w, weight_places = rounded_integers(W)
        d, places = rounded_integers(decoder)
        o = 2 * np.rint(np.ldexp(offset.astype(np.float64), places)) + d.sum(axis=0)
        gram, centre, places = d @ d.T, d @ o, 2 * places + 2  # 2 D and 2 o: four times as much
        largest = float(np.ldexp(gram.diagonal().max(initial=0), -places))
        norm = float(np.ldexp(np.sqrt((w * w).sum(axis=1).max(initial=0)), -weight_places))
        weight_bits = _places(MAX_NORM, norm)
        gram_bits = min(
            _places(MAX_GRAM, largest),
            _places(MAX_LENGTH, length + len(d) * largest),
            weight_bits + UNIT_BITS,
        )
        return cls(
            _padded(np.rint(np.ldexp(w, weight_bits - weight_places))),
            np.rint(np.ldexp(t.astype(np.float64), gram_bits)).astype(np.int32),
            _padded(np.rint(np.ldexp(gram, gram_bits - places))),
            np.rint(np.ldexp(centre, gram_bits - places)).astype(np.int32),
            weight_bits + UNIT_BITS - gram_bits,
            round(float(np.ldexp(o @ o, gram_bits - places))),
            round(float(np.ldexp(length, gram_bits))),
            np.float32(pull / 4 / 2.0**gram_bits),
        )

    def encode(self, X: NDArray[np.float32], threads: int = 0) -> NDArray[np.uint8]:
        """Packed codes of vectors of shape (n, dims); 0 threads: all cores."""
        codes = np.empty((len(X), -(-len(self.thresholds) // 8)), dtype=np.uint8)
        _core.encode_searched(
            as_float32(X), self.weights, self.thresholds, self.gram, self.centre, self.shift,
            self.offset, self.length, float(self.pull), SWEEPS, threads, codes,
        )  # fmt: skip
        return codes


def rounded_integers(weights: NDArray[np.floating]) -> tuple[NDArray[np.float64], int]:
    """Weights as whole numbers of at most 20 bits, and their binary places."""
    places = _places(1 << 20, float(np.abs(weights).max(initial=0)))
    return np.rint(np.ldexp(weights.astype(np.float64), places)), places


def _places(largest: int, value: float) -> int:
    """Binary places at which `value`, as a whole number, is no more than `largest`."""
    return math.frexp(largest)[1] - 1 - math.frexp(value)[1] if value > 0 else 0


def _padded(integers: NDArray[np.float64]) -> NDArray[np.int16]:
    """Rows of int16, padded with zeros, that start on a cache line: 20 % faster to multiply."""
    rows, columns = integers.shape
    width = -(-columns // LANE) * LANE
    room = np.zeros(rows * width + LANE, dtype=np.int16)
    start = -room.__array_interface__["data"][0] // 2 % LANE  # a cache line is LANE numbers
    padded = room[start : start + rows * width].reshape(rows, width)
    padded[:, :columns] = integers
    return padded


def norms_of(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Norms of rows; a row of zeros has a tiny one."""
    rows, norms = scaled_rows(x)
    return norms if rows is x else _not_zero(np.where(_lengths(x) < SHORT, norms / SCALE, norms))


def scaled_rows(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Rows of the same directions whose squares do not underflow, and their norms.

    Short rows are multiplied by a power of two, which rounds nothing; the others stay as they are.
    A row of zeros has a tiny norm, so that it has a direction to be coded by.
    """
    xp = namespace(x)
    norms = _lengths(x)
    is_short = norms < SHORT
    if xp.any(is_short):
        ones = xp.ones_like(norms)
        x = x * xp.where(is_short, SCALE * ones, ones)[:, None]
        norms = _lengths(x)
    return x, _not_zero(norms)


def unit_of(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of norm 1; a row of zeros stays one."""
    rows, norms = scaled_rows(x)
    return rows / norms[:, None]


def exact_unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of norm 1 whose last digits are the same on every processor."""
    unit = np.empty(x.shape, dtype=np.float32)
    _core.unit_rows(np.ascontiguousarray(x, np.float32), unit)
    return unit


def _lengths(x: NDArray[np.float32]) -> NDArray[np.float32]:
    xp = namespace(x)
    # NumPy's vector_norm makes a copy of all the squares first.
    norms = xp.sqrt(np.einsum("ij,ij->i", x, x)) if xp is np else xp.linalg.vector_norm(x, axis=1)
    if not xp.all(xp.isfinite(norms)):
        raise too_large()
    return norms  # type: ignore[no-any-return]


def _not_zero(norms: NDArray[np.float32]) -> NDArray[np.float32]:
    xp = namespace(norms)
    floored: NDArray[np.float32] = xp.where(norms > 0, norms, xp.full_like(norms, TINY))
    return floored
