"""The table of a text encoder: the codes of tokens, and what turns counted bits into vectors.

A row stands for the vector s (D b + o): b its bits, s its scale. A weighted sum of rows is then
D (Σ w s b) + (Σ w s) o: bits are counted, and one product follows. Where a net decodes the bits, a
row is s times the direction that it gives, and all rows are decoded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.arrays import blocks, unit_rows, unpack
from embits.checks import is_usual, whole
from embits.coders import Coder, Neural
from embits.coders.neural.coder import NET
from embits.coders.neural.net import LARGEST, Net
from embits.errors import InputError
from embits.segment import Lengths, vector_lengths

Floats = NDArray[np.float32]
Tensors = Mapping[str, NDArray[Any]]
_RIDGE = 1e-6
_MAX_BASE = 64  # of a scale in a file: a product of two scales is then a float32


@dataclass(frozen=True, eq=False)
class Table:
    """Codes of tokens or words, and their decoder."""

    codes: NDArray[np.uint8]  # packed, (n, ceil(n_bits / 8)); may be mapped
    n_bits: int
    scales: Lengths  # what each row is multiplied by
    decoder: NDArray[np.int8]  # (n_bits, dims), in units of `units`
    units: Floats  # (dims,)
    offset: Floats  # (dims,)
    net: Net | None = None  # decodes the bits in place of the three before, which are then zeros

    @classmethod
    def of(
        cls, codes: NDArray[np.uint8], n_bits: int, directions: Any, lengths: Any = None
    ) -> Table:
        """A table whose rows have about these directions, (n, dims) of any length, and lengths.

        The decoder is the least-squares map from bits to directions, where long rows count more.
        No `lengths` are 1 for all rows that are not zero.
        """
        norms = vector_lengths(directions)
        lengths = np.where(norms > 0, 1.0, 0.0) if lengths is None else np.asarray(lengths)
        gram = np.zeros((n_bits + 1, n_bits + 1))
        target = np.zeros((n_bits + 1, directions.shape[1]))
        for rows in blocks(len(codes)):
            b = np.ones((len(codes[rows]), n_bits + 1))
            b[:, :-1] = unpack(codes[rows], n_bits)
            weighted = b * np.square(lengths[rows, None])
            gram += weighted.T @ b
            target += weighted.T @ unit_rows(np.asarray(directions[rows], np.float64))
        gram.flat[:: n_bits + 2] += _RIDGE * max(float(np.trace(gram)) / (n_bits + 1), _RIDGE)
        solution = np.linalg.solve(gram, target)
        units = np.abs(solution[:-1]).max(axis=0, initial=0) / 127
        units = np.where(units > 0, units, 1).astype(np.float32)
        decoder = np.rint(solution[:-1] / units).astype(np.int8)
        offset = solution[-1].astype(np.float32)
        table = cls(codes, n_bits, Lengths.of(np.ones(len(codes))), decoder, units, offset)
        rebuilt = np.zeros(len(codes))
        for rows in blocks(len(codes)):
            rebuilt[rows] = vector_lengths(table.rows(rows))
        scales = Lengths.of(np.where(rebuilt > 0, lengths / np.where(rebuilt > 0, rebuilt, 1), 0))
        return cls(codes, n_bits, scales, decoder, units, offset)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def dims(self) -> int:
        return len(self.offset)

    @LazyProperty
    def matrix(self) -> Floats:
        """The decoder as float32, (n_bits, dims)."""
        matrix: Floats = self.decoder * self.units
        return matrix

    def rows(self, rows: Any) -> Floats:
        """The vectors of some rows, (len(rows), dims)."""
        codes = np.ascontiguousarray(self.codes[rows])
        if self.net is None:
            decoded = unpack(codes, self.n_bits) @ self.matrix + self.offset
        else:
            decoded = unit_rows(self.net.decode(codes))
        vectors: Floats = decoded * self.scales[rows].floats[:, None]
        return vectors

    @LazyProperty
    def _decoded(self) -> Floats:
        """All vectors, (n, dims)."""
        return self.rows(slice(None))

    def pool(self, rows: NDArray[np.uint32], weights: Floats, ends: NDArray[np.int64]) -> Floats:
        """Weighted sums, (len(ends), dims), of the rows of texts, each of which ends in `ends`."""
        if self.net is not None:
            pooled = np.zeros((len(ends), self.dims), np.float32)
            for text, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
                pooled[text] = weights[start:end] @ self._decoded[rows[start:end]]
            return pooled
        weights = np.ascontiguousarray(weights * self.scales.floats[rows], np.float32)
        counts = np.empty((len(ends), 8 * self.codes.shape[1]), np.float32)
        codes = np.ascontiguousarray(self.codes)
        if not _core.pool_bits(codes, rows, weights, ends, counts):
            raise InputError("a token or an end is out of range")
        sums: Floats = counts[:, : self.n_bits] @ self.matrix
        totals = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
        of_texts = np.diff(totals[np.concatenate([[0], ends])]).astype(np.float32)
        sums += of_texts[:, None] * self.offset
        return sums

    @classmethod
    def from_tensors(
        cls,
        codes: NDArray[np.uint8],
        n_bits: int,
        dims: int,
        tensors: Tensors,
        settings: Mapping[str, Any],
    ) -> Table:
        """The table of a file; InputError if its arrays do not fit."""
        scales = byte_scale("scales", tensors, len(codes), settings)
        if scales is None:
            raise InputError("text.scales is missing")
        if "net_A" in tensors:
            found = {name: tensors[f"net_{name}"] for name in NET}
            for name, shape in NET.items():
                kind = np.int8 if len(shape) == 2 else np.float32
                array = array_of(f"net_{name}", tensors, kind, found[name].shape)
                if np.abs(array.astype(np.float32)).max(initial=0) > LARGEST:
                    raise InputError(f"text.net_{name} holds numbers that no fit gives")
            net = Net(**found)
            if (net.A.shape[1], len(net.c)) != (n_bits, dims):
                raise InputError("the net of the table does not fit its codes")
            return cls.decoded_by(net, codes, scales)
        decoder = array_of("decoder", tensors, np.int8, (n_bits, dims))
        units, offset = (array_of(x, tensors, np.float32, (dims,)) for x in ("units", "offset"))
        return cls(codes, n_bits, scales, decoder, units, offset)

    @classmethod
    def encoded_by(cls, coder: Coder, vectors: Floats) -> Table:
        """The table of vectors, (n, dims), in the codes of a coder."""
        codes, lengths = coder.encode(vectors), np.linalg.norm(vectors, axis=1)
        if isinstance(coder, Neural):
            return cls.decoded_by(coder.net, codes, Lengths.of(lengths))
        return cls.of(codes, coder.n_bits_, vectors, lengths)

    @classmethod
    def decoded_by(cls, net: Net, codes: NDArray[np.uint8], scales: Lengths) -> Table:
        """A table whose rows are the directions that a net decodes, times their scales."""
        n_bits, dims = net.A.shape[1], len(net.c)
        decoder, zeros = np.zeros((n_bits, dims), np.int8), np.zeros(dims, np.float32)
        return cls(codes, n_bits, scales, decoder, zeros, zeros, net)

    def decoding(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file that say how bits are decoded."""
        if self.net is not None:
            return {f"net_{name}": getattr(self.net, name) for name in NET}
        return {name: getattr(self, name) for name in ("decoder", "units", "offset")}


def array_of(name: str, tensors: Tensors, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of a file; InputError unless it has this type and shape and is finite."""
    array = tensors.get(name)
    if array is None or array.dtype != dtype or array.shape != shape:
        found = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(f"text.{name} is {found}, expected {np.dtype(dtype)} of shape {shape}")
    if array.dtype.kind == "f" and not is_usual(array):
        raise InputError(f"text.{name} holds NaN or numbers beyond 1e18")
    return array


def byte_scale(name: str, tensors: Tensors, n: int, settings: Mapping[str, Any]) -> Lengths | None:
    """Numbers of a file on the scale of `Lengths`, if it has any; InputError if they do not fit."""
    if name not in tensors:
        return None
    steps = array_of(name, tensors, np.uint8, (n,))
    base = f"{name}_base"
    return Lengths(steps, whole(base, settings.get(base), -_MAX_BASE, _MAX_BASE))
