"""The net that decodes bits, in integers of one byte, and the search for bits under it.

With b in {0, 1}ᵐ, s = 2 b - 1 and q rounding to whole numbers from 0 to 63, the rebuilt vector is

    p = q(α (A s) + a),   r = q(β (G p) + g),   y = c (M [63 b, p, r]) + o

A, G and M are int8; α, a, β, g, c and o are floats, one for each row of their matrix. Sums are of
whole numbers: y is the same on every processor, and so are codes that are searched under it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.coders.backend import product
from embits.coders.near_lossless.bit_search import Decoder
from embits.errors import FormatError

TOP = 63  # the largest activation
LANE = 64  # rows of weights are padded with zeros to a multiple of it
LARGEST = 1e6  # scale of a layer in a file; with larger ones, sums could leave float32

Bytes = NDArray[np.int8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Net:
    """Weights of a net for codes of `bits` and vectors of `dims`, with `hidden` units a layer."""

    A: Bytes  # (hidden, bits)
    G: Bytes  # (hidden, hidden)
    M: Bytes  # (dims, bits + 2 hidden)
    alpha: Floats  # (hidden,)
    a: Floats
    beta: Floats
    g: Floats
    c: Floats  # (dims,)
    o: Floats

    def __post_init__(self) -> None:
        hidden, bits = self.A.shape
        shapes: list[tuple[int, ...]] = [(hidden, bits), (hidden, hidden)]
        shapes += [(len(self.c), bits + 2 * hidden)]
        shapes += [(hidden,)] * 4 + [(len(self.c),)] * 2
        actual = [getattr(self, field.name).shape for field in fields(self)]
        if actual != shapes:
            raise FormatError(f"damaged: the arrays of the coder's net have the shapes {actual}")

    def __reduce__(self) -> tuple[type[Net], tuple[NDArray[Any], ...]]:
        return Net, tuple(getattr(self, field.name) for field in fields(self))

    @LazyProperty
    def squares(self) -> Floats:
        """What a flipped bit adds to |y|², by its own weights: (bits,)."""
        halves = self.M[:, : self.A.shape[1]].astype(np.float64) * self.c[:, None] * (TOP / 2)
        squares: Floats = (halves * halves).sum(axis=0).astype(np.float32)
        return squares

    @LazyProperty
    def _native(self) -> _core.Net:
        hidden, bits = self.A.shape
        rows = -(-hidden // LANE) * LANE
        from_bits, from_p, from_r = np.split(self.M, [bits, bits + hidden], axis=1)
        inner = np.concatenate([_padded(from_p, columns=rows), _padded(from_r, columns=rows)], 1)
        matrices = [
            _padded(self.A, rows=rows),
            _padded(self.A.T, columns=rows),
            _padded(self.G, rows=rows, columns=rows),
            _padded(self.G.T, rows=rows, columns=rows),
            _padded(from_bits),
            inner,
            _padded(np.concatenate([from_bits.T, inner.T])),
        ]
        pads = [(0, rows - hidden)]
        of_units = [np.pad(each, pads) for each in (self.alpha, self.a, self.beta, self.g)]
        scales = [*of_units, self.c, self.o, self.squares]
        scales = [np.ascontiguousarray(each, np.float32) for each in scales]
        return _core.Net(matrices, scales, hidden)

    def decode(self, codes: NDArray[np.uint8], threads: int = 0) -> Floats:
        """Vectors of packed codes, shape (n, dims)."""
        vectors = np.empty((len(codes), len(self.c)), dtype=np.float32)
        self._native.decode(np.ascontiguousarray(codes), threads, vectors)
        return vectors

    def search(
        self, unit: Floats, pulls: Floats, codes: NDArray[np.uint8], rounds: int, tries: int
    ) -> NDArray[np.uint8]:
        """Packed codes, flipped bit by bit while -2 cos(x, y) - pulls · s falls.

        Vectors x have norm 1. `pulls`, (n, bits), is what each bit is pulled to. A code has at most
        `rounds` flips, and each tries those `tries` whose slopes promise most.
        """
        codes = codes.copy()
        self._native.search(np.ascontiguousarray(unit), pulls, rounds, tries, 0, codes)
        return codes


@dataclass(frozen=True)
class Layer:
    """The hidden layer of an encoder: υ (U relu(σ (S x) + u)), summed in one order."""

    S: Bytes  # (hidden, dims)
    U: Bytes  # (bits, hidden)
    sigma: Floats  # (hidden,)
    u: Floats
    upsilon: Floats  # (bits,)

    def __post_init__(self) -> None:
        hidden, shapes = len(self.S), [getattr(self, field.name).shape for field in fields(self)]
        if shapes[1:4] != [(len(self.upsilon), hidden), (hidden,), (hidden,)]:
            raise FormatError(f"damaged: the coder's hidden layer has the shapes {shapes}")
        if any(
            np.abs(each).max(initial=0) > LARGEST for each in (self.sigma, self.u, self.upsilon)
        ):
            raise FormatError("damaged: the coder's hidden layer holds numbers that no fit gives")

    @classmethod
    def of(cls, S: NDArray[Any], u: NDArray[Any], U: NDArray[Any]) -> Layer:
        """The layer U relu(S x + u) in bytes."""
        (S, sigma), (U, upsilon) = _bytes(S), _bytes(U)
        return cls(S, U, *(each.astype(np.float32) for each in (sigma, u, upsilon)))

    def scores(self, unit: Floats) -> Floats:
        """What it adds to the scores of unit rows, (n, bits)."""
        h = product(unit, self.S.T.astype(np.float32)) * self.sigma + self.u
        scores: Floats = product(np.maximum(h, 0), self.U.T.astype(np.float32)) * self.upsilon
        return scores


def _padded(matrix: Bytes, rows: int | None = None, columns: int | None = None) -> Bytes:
    """A matrix with rows and columns of zeros up to the given numbers, or to whole lanes."""
    height = matrix.shape[0] if rows is None else rows
    width = -(-matrix.shape[1] // LANE) * LANE if columns is None else columns
    padded = np.zeros((height, width), dtype=np.int8)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded


def quantized(
    D: Floats,
    o: Floats,
    layers: tuple[Floats, Floats, Floats, Floats],
    out: tuple[Floats, Floats],
    tops: tuple[Floats, Floats],
) -> Net:
    """The net in bytes of y = D s + o + P p + R r, p = relu(A s + a), r = relu(G p + g).

    D, (bits, dims), is for s in {-1, 1}. `layers` are A, a, G and g, `out` P and R, (hidden, dims),
    and `tops` the largest activations p and r of each unit that are distinguished.
    """
    A, a, G, g = (each.astype(np.float64) for each in layers)
    units = [np.maximum(each.astype(np.float64), 1e-6) / TOP for each in tops]
    A_bytes, alpha = _bytes(A / units[0][:, None])
    G_bytes, beta = _bytes(G * units[0] / units[1][:, None])
    parts = [2 * D.T.astype(np.float64) / TOP, *(w.T * u for w, u in zip(out, units, strict=True))]
    M, c = _bytes(np.concatenate(parts, axis=1))
    offset = o - D.sum(axis=0, dtype=np.float64)
    floats = (alpha, a / units[0], beta, g / units[1], c, offset)
    return Net(A_bytes, G_bytes, M, *(each.astype(np.float32) for each in floats))


def linear_net(decoder: Decoder) -> Net:
    """A net without hidden units, which decodes as a linear decoder does."""
    none, (D, o) = np.zeros(0, np.float32), (part.astype(np.float32) for part in decoder[:2])
    layers = np.zeros((0, len(D)), np.float32), none, np.zeros((0, 0), np.float32), none
    out = np.zeros((0, len(o)), np.float32)
    return quantized(D, o, layers, (out, out), (none, none))


def _bytes(matrix: NDArray[np.float64]) -> tuple[Bytes, NDArray[np.float64]]:
    """Each row as whole numbers up to 127, and their unit."""
    units = np.maximum(np.abs(matrix).max(axis=1, initial=0), 1e-30) / 127
    return np.rint(matrix / units[:, None]).astype(np.int8), units
