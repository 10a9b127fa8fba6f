"""The search for bits under a net on a GPU: the codes of cpp/coders/net.cpp, to the bit.

Sums are of whole numbers, which floats hold exactly. All else is computed in the order of the C++,
one rounding an operation. PyTorch divides by plain numbers inexactly: divisors here are arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.coders.backend import Backend, packed
from embits.coders.neural.net import TOP, Net

LANES = 8  # partial sums of squares
LEAST_GAIN = 1e-6  # of a flip
BLOCK = 1 << 25  # activations of candidates at a time
EXACT = 1 << 24  # the largest sums that float32 holds


class Rows(NamedTuple):
    """Rows under search: vectors, pulls and bits, and what the net makes of these."""

    x: Any
    pulls: Any
    b: Any  # (n, bits) of 0 and 1
    first: Any  # A s
    base: Any  # 63 Mb b
    p: Any
    r: Any
    y: Any
    squared: Any  # y · y
    along: Any  # y · x


def search(
    on: Backend,
    net: Net,
    unit: NDArray[np.float32],
    pulls: NDArray[np.float32],
    codes: NDArray[np.uint8],
    rounds: int,
    tries: int,
) -> NDArray[np.uint8]:
    """`net.search` on the device of a backend."""
    (hidden, bits), xp = net.A.shape, on.xp
    if xp is np or hidden == 0:
        return net.search(unit, pulls, codes, rounds, tries)
    there, codes = _Net(on, net, min(tries, bits)), codes.copy()
    for block in blocks(len(unit), max(1, BLOCK // (there.tries * max(hidden, len(net.c))))):
        numbers = np.arange(block.start, block.stop)
        rows = there.start(*(on.put(each[block]) for each in (unit, pulls, codes)))
        for _ in range(rounds):
            live, rows = there.flip(rows)
            numbers = numbers[on.get(live)]
            if len(numbers) == 0:
                break
            codes[numbers] = on.get(packed(xp, rows.b - 1))
    return codes


class _Net:
    """The net on a device, in floats that hold its sums."""

    def __init__(self, on: Backend, net: Net, tries: int) -> None:
        weights = [each.astype(np.int64) for each in (net.A, net.G, net.M)]
        largest = max(int(abs(w).sum(axis=axis).max()) for w in weights for axis in (0, 1))
        A, G, M = (w.astype("f4" if TOP * largest < EXACT else "f8") for w in weights)
        self.on, self.xp, self.tries = on, on.xp, tries
        self.hidden, self.bits = A.shape
        self.At, self.G, self.Mt = map(on.put, (A.T, G, M.T))
        zero, top = np.zeros(1), np.full(1, TOP)
        floats = net.alpha, net.a, net.beta, net.g, net.c, net.o, 2 * net.squares, zero, top
        put = (on.put(np.asarray(each, np.float32)) for each in floats)
        self.alpha, self.a, self.beta, self.g, self.c, self.o, *others = put
        self.squares, self.zero, self.top = others

    def start(self, x: Any, pulls: Any, codes: Any) -> Rows:
        """Rows of vectors x and packed codes."""
        places = self.on.put(np.arange(7, -1, -1, dtype=np.uint8))
        b = self.xp.reshape(codes[:, :, None] >> places & 1, (pulls.shape[0], -1))
        b = self.xp.astype(b[:, : self.bits], self.G.dtype)
        first, base = (2 * b - 1) @ self.At, TOP * (b @ self.Mt[: self.bits, :])
        p, r, y = self._decoded(first, base)
        squared, along = (part[:, 0] for part in self._measured(y[:, None, :], x))
        return Rows(x, pulls, b, first, base, p, r, y, squared, along)

    def flip(self, rows: Rows) -> tuple[Any, Rows]:
        """The places of the rows that gain by a flip, and these with it."""
        xp, (n, tries) = self.xp, (rows.b.shape[0], self.tries)
        chosen = xp.argsort(self._changes(rows), axis=1, stable=True)[:, :tries]
        step, pull = 1 - 2 * self._at(rows.b, chosen), self._at(rows.pulls, chosen)
        of_A, of_M = (
            xp.reshape(xp.take(part, xp.reshape(chosen, (-1,)), axis=0), (n, tries, -1))
            for part in (self.At, self.Mt)
        )
        first = rows.first[:, None, :] + 2 * step[:, :, None] * of_A
        base = rows.base[:, None, :] + TOP * step[:, :, None] * of_M
        p, r, y = self._decoded(first, base)
        squared, along = self._measured(y, rows.x)
        cosine = (rows.along / xp.sqrt(rows.squared))[:, None]
        change = 2 * (cosine - along / xp.sqrt(squared))
        change = change - xp.astype(2 * step, xp.float64) * xp.astype(pull, xp.float64)
        live = xp.nonzero(xp.min(change, axis=1) < -LEAST_GAIN)[0]
        places = live * tries + xp.take(xp.argmin(change, axis=1), live, axis=0)

        def best(part: Any) -> Any:
            flat = xp.reshape(part, (n * tries, *part.shape[2:]))
            return xp.take(flat, places, axis=0)

        x, pulls, b = (xp.take(part, live, axis=0) for part in rows[:3])
        bits = xp.arange(self.bits, device=self.on.device)
        b = xp.where(best(chosen)[:, None] == bits, 1 - b, b)
        return live, Rows(x, pulls, b, *map(best, (first, base, p, r, y, squared, along)))

    def _changes(self, rows: Rows) -> Any:
        """What the slopes promise of each bit's flip."""
        xp, kind, middle = self.xp, self.c.dtype, self.bits + self.hidden
        norm, share = xp.sqrt(rows.squared), rows.along / rows.squared
        norm, share = (xp.astype(part, kind)[:, None] for part in (norm, share))
        by_input = self._product(-2 * (rows.x - share * rows.y) / norm * self.c, self.Mt.T)
        by_r = by_input[:, middle:] * self.beta
        by_p = self._product(xp.where(rows.r > 0, by_r, self.zero), self.G)
        by_p = (by_input[:, self.bits : middle] + by_p) * self.alpha
        by_b = self._product(xp.where(rows.p > 0, by_p, self.zero), self.At.T)
        slopes = by_input[:, : self.bits] * (TOP / 2) + by_b - rows.pulls
        squared = xp.astype(rows.squared, kind)[:, None]
        return slopes * xp.astype(2 - 4 * rows.b, kind) + self.squares / squared

    def _product(self, slopes: Any, weights: Any) -> Any:
        """Slopes, rounded to -63 .. 63 of the largest, times weights."""
        xp = self.xp
        largest = xp.max(xp.abs(slopes), axis=1, keepdims=True)
        values = slopes * (self.top / xp.where(largest > 0, largest, self.top))
        values = xp.where(xp.abs(values) < TOP + 1, values, self.zero)
        whole = xp.trunc(values + (xp.astype(values >= 0, values.dtype) - 0.5))
        sums = xp.astype(whole, weights.dtype) @ weights
        return xp.astype(sums, values.dtype) * (largest / self.top)

    def _decoded(self, first: Any, base: Any) -> tuple[Any, Any, Any]:
        """p, r and y, of A s and 63 Mb b."""
        p, middle = self._activations(first, self.alpha, self.a), self.bits + self.hidden
        r = self._activations(p @ self.G.T, self.beta, self.g)
        sums = base + p @ self.Mt[self.bits : middle, :] + r @ self.Mt[middle:, :]
        return p, r, self.xp.astype(sums, self.c.dtype) * self.c + self.o

    def _activations(self, sums: Any, scale: Any, bias: Any) -> Any:
        values = self.xp.astype(sums, scale.dtype) * scale + bias
        inside = self.xp.minimum(self.xp.maximum(values, self.zero), self.top)
        return self.xp.astype(self.xp.floor(inside + 0.5), sums.dtype)

    def _measured(self, y: Any, x: Any) -> tuple[Any, Any]:
        """y · y and y · x of some vectors y, (n, some, dims), for each x."""
        xp = self.xp
        y, x = xp.astype(y, xp.float64), xp.astype(x, xp.float64)[:, None, :]
        parts = xp.stack([y * y, y * x])
        rest = [xp.zeros_like(parts[:, :, :, :1])] * (-parts.shape[3] % LANES)
        parts = xp.concat([parts, *rest], axis=3) if rest else parts
        parts = xp.reshape(parts, (*parts.shape[:3], -1, LANES))
        sums = parts[:, :, :, 0, :]
        for part in range(1, parts.shape[3]):
            sums = sums + parts[:, :, :, part, :]
        while sums.shape[3] > 1:
            sums = sums[:, :, :, ::2] + sums[:, :, :, 1::2]
        squared = sums[0, :, :, 0]
        return xp.maximum(squared, xp.full_like(squared, 1e-18)), sums[1, :, :, 0]

    def _at(self, matrix: Any, columns: Any) -> Any:
        """Some columns of each row."""
        xp, (n, width) = self.xp, matrix.shape
        places = width * xp.arange(n, device=self.on.device)[:, None] + columns
        flat = xp.take(xp.reshape(matrix, (-1,)), xp.reshape(places, (-1,)), axis=0)
        return xp.reshape(flat, columns.shape)
