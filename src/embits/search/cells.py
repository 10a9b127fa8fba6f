"""Cells: groups of codes that lie close together, so that a search reads few of them.

A cell has a center, the mean of its codes as vectors of -1 and 1. A query reads the cells whose
centers are nearest to it: so many (`probes`), or until the next one is too far, compared with its
k-th row (`recall`). How far that is was measured with rows that the cells were not trained on.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.arrays import blocks, packed_width, unpack
from embits.checks import wanted_threads, whole
from embits.errors import FormatError, InputError
from embits.search.filters import Selection, are_few

if TYPE_CHECKING:
    from embits.search.pieces import CodePieces

CURVE_K = 10  # neighbors that the curve is measured with
RECALLS = (
    0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995,
    0.999,
)  # fmt: skip
CHECK_BYTES = 16  # of the SHA-256 of a cell
MAX_ROWS = 2**32 - 1
_MAX_BITS = 16384  # of a code: what the sums of the native code hold
_MAX_SHARE = 0.05  # of the bytes of the codes: what "auto" spends on cells
_CELLS_PER_ROOT = 4  # cells for each sqrt(rows): the fewest rows are then read in all (measured)
_TRAINED_ROWS = 64  # rows for each cell that centers are trained on
_LEAST_TRAINED = 1_000_000
_FAR_K = 4 * CURVE_K  # the k-th row of more is farther away than the curve says
_MEASURED = 1000  # rows that the curve is measured with
_FEWEST = np.float32(-1e30)  # a margin that no cell is below
# Of fewer rows than one in so many, those that pass a filter are copied and scanned alone.
_ROWS_PER_PASSED = 50

Array: TypeAlias = NDArray[Any]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Curve: TypeAlias = Floats
"""For each recall: the margin of queries that are codes, that of float queries, and the share of
the rows that queries of codes read; (len(RECALLS), 4)."""


@dataclass(frozen=True, eq=False)
class Centers:
    """The centers of cells, and what was measured with them.

    `packed`, uint8 (cells, ceil(n_bits / 2)), has half a byte for each bit, the first in the upper
    half: 8 more than the mean of the bits in sevenths.
    """

    packed: Bytes
    n_bits: int
    curve: Curve

    def __len__(self) -> int:
        return len(self.packed)

    @LazyProperty
    def native(self) -> _core.CellCenters:
        """The centers as the native search reads them."""
        numbers = np.empty((len(self), 2 * self.packed.shape[1]), np.int8)
        numbers[:, ::2], numbers[:, 1::2] = self.packed >> 4, self.packed & 15
        return _core.CellCenters(np.ascontiguousarray(numbers[:, : self.n_bits]) - np.int8(8))

    @LazyProperty
    def digest(self) -> bytes:
        """The same for the same centers."""
        return hashlib.sha256(self.packed.tobytes()).digest()

    def margin(self, recall: float, *, floats: bool) -> float | None:
        """The margin at which this share of the neighbors is found; None to read all cells."""
        recalls = self.curve[:, 0].astype(np.float64)
        if recall > recalls[-1]:
            return None
        margins = self.curve[:, 2 if floats else 1].astype(np.float64)
        return float(np.interp(recall, recalls, margins))


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of an array of codes that are stored cell by cell."""

    centers: Centers
    starts: NDArray[np.uint32]  # where each starts among the codes, and the end of the last one
    order: NDArray[np.uint32]  # the row of each stored code
    checks: Bytes  # first bytes of the SHA-256 of each: of its codes, then its `order`

    def __len__(self) -> int:
        return len(self.centers)

    @LazyProperty
    def places(self) -> NDArray[np.uint32]:
        """Where the code of each row is stored."""
        n = len(self.order)
        places = np.full(n, n, np.uint32)
        places[self.order] = np.arange(n, dtype=np.uint32)
        if (places == n).any():
            raise FormatError("damaged: the order of the rows")
        return places

    @property
    def tensors(self) -> dict[str, Array]:
        """The arrays by the names that they have in a file."""
        return {
            "cells.centers": self.centers.packed, "cells.curve": self.centers.curve,
            "cells.starts": self.starts, "cells.order": self.order, "cells.sha256": self.checks,
        }  # fmt: skip

    @classmethod
    def opened(cls, tensors: dict[str, Array], n: int, n_bits: int) -> Cells:
        """The cells of a file of n rows. FormatError if they are damaged, as far as is quick."""
        names = ("centers", "curve", "starts", "order", "sha256")
        if set(tensors) != set(names):
            raise FormatError("damaged: a tensor of the cells is missing, or there is one too many")
        centers, curve, starts, order, checks = (tensors[name] for name in names)
        n_cells, n_levels = (len(each) if each.ndim else 0 for each in (centers, curve))
        wanted = {
            "centers": (np.uint8, (n_cells, packed_half(n_bits))),
            "curve": (np.float32, (n_levels, 4)), "starts": (np.uint32, (n_cells + 1,)),
            "order": (np.uint32, (n,)), "sha256": (np.uint8, (n_cells, CHECK_BYTES)),
        }  # fmt: skip
        for name, (dtype, shape) in wanted.items():
            found = tensors[name]
            if found.dtype != dtype or found.shape != shape:
                raise FormatError(f"damaged: cells.{name} is {found.dtype} of shape {found.shape}")
        is_rising = n_levels and (np.diff(curve[:, 0]) > 0).all()
        if not (np.isfinite(curve).all() and is_rising and n_bits <= _MAX_BITS):
            raise FormatError("damaged: the curve of the cells")
        ascends = (starts[1:] >= starts[:-1]).all()
        if not n_cells or starts[0] or starts[-1] != n or not ascends:
            raise FormatError("damaged: the starts of the cells")
        # The native search uses the order as row numbers: one pass makes that safe.
        if n and int(order.max()) >= n:
            raise FormatError("damaged: the order of the rows")
        return cls(Centers(centers, n_bits, curve), starts, order, checks)

    def verify(self, codes: Bytes) -> None:
        """Check what `opened` leaves out, or raise FormatError."""
        packed = self.centers.packed
        halves_are_wrong = (packed >> 4 == 0).any() or (packed & 15 == 0).any()
        if halves_are_wrong or (np.bincount(self.order, minlength=len(codes)) != 1).any():
            raise FormatError("damaged: the centers of the cells or the order of the rows")
        if (_checks(codes, self.order, self.starts) != self.checks).any():
            raise FormatError("damaged: the bytes of a cell do not match its checksum")


def cells_bytes(centers: Centers) -> int:
    """Bytes of cells with these centers in a file, without the row of each code."""
    return centers.packed.nbytes + len(centers) * (CHECK_BYTES + np.uint32().nbytes)


def packed_half(n_bits: int) -> int:
    """Bytes of a packed center."""
    return packed_width(4 * n_bits)


def wanted_cells(cells: Any, n: int, n_bits: int) -> int:
    """How many cells n codes get when `cells` are asked for: "auto" or a number."""
    if n > MAX_ROWS or n_bits > _MAX_BITS:
        most = f"at most {MAX_ROWS:,} rows of at most {_MAX_BITS:,} bits"
        raise InputError(f"{n:,} rows of {n_bits:,} bits, but cells are for {most}")
    if not isinstance(cells, str):
        return min(whole("cells", cells, 1), max(n, 1))
    if cells != "auto":
        raise InputError(f"cells is {cells!r}, expected a number, or 'auto'")
    of_a_cell = packed_half(n_bits) + CHECK_BYTES + np.uint32().nbytes
    affordable = int(_MAX_SHARE * n * packed_width(n_bits)) // of_a_cell
    return max(1, min(int(_CELLS_PER_ROOT * n**0.5), affordable))


def train(
    codes: Any, n_cells: int, n_bits: int, threads: int | None = None
) -> tuple[Centers, Rows]:
    """Centers for codes that are indexed by rows, and some rows to measure their curve with.

    The centers were not trained on these rows, and have no curve yet. They do not depend on the
    number of threads.
    """
    n = len(codes)
    wanted = min(n, max(_TRAINED_ROWS * n_cells, _LEAST_TRAINED) + _MEASURED)
    rng = np.random.default_rng(0)
    sample = rng.permutation(n) if wanted == n else rng.choice(n, wanted, replace=False)
    held, sample = np.split(sample, [min(_MEASURED, n // 10)])
    numbers = np.zeros((n_cells, n_bits), np.int8)
    if n:
        rows = np.empty((len(sample), packed_width(n_bits)), np.uint8)
        in_order = np.argsort(sample)
        rows[in_order] = codes[sample[in_order]]  # read in the order in which they are stored
        _core.train_cells(rows, 0, wanted_threads(threads), numbers)
    halves = np.full((n_cells, 2 * packed_half(n_bits)), 8, np.uint8)
    halves[:, :n_bits] += numbers.view(np.uint8)
    packed = (halves[:, ::2] << 4 | halves[:, 1::2]).astype(np.uint8)
    return Centers(packed, n_bits, unmeasured()), np.sort(held)


def unmeasured() -> Curve:
    """The curve of which all recalls read all cells."""
    curve = np.full((len(RECALLS), 4), _FEWEST, np.float32)
    curve[:, 0], curve[:, 3] = RECALLS, 1
    return curve


def arranged(codes: Bytes, centers: Centers, threads: int | None = None) -> tuple[Bytes, Cells]:
    """Codes cell by cell, in row order within a cell, and their cells."""
    assigned = np.empty(len(codes), np.uint32)
    codes = np.ascontiguousarray(codes)
    centers.native.assign(codes, wanted_threads(threads), assigned)
    order = np.argsort(assigned, kind="stable").astype(np.uint32)
    stored = codes[order]
    counts = np.bincount(assigned, minlength=len(centers))
    starts = np.append(0, np.cumsum(counts)).astype(np.uint32)
    return stored, Cells(centers, starts, order, _checks(stored, order, starts))


def _checks(codes: Bytes, order: NDArray[np.uint32], starts: NDArray[np.uint32]) -> Bytes:
    checks = np.empty((len(starts) - 1, CHECK_BYTES), np.uint8)
    order = order.astype("<u4", copy=False)
    for cell, (start, end) in enumerate(pairwise(starts.tolist())):
        digest = hashlib.sha256(codes[start:end].tobytes())
        digest.update(order[start:end].tobytes())
        checks[cell] = np.frombuffer(digest.digest(), np.uint8, CHECK_BYTES)
    return checks


class Reading:
    """Which cells a search reads, and how many rows it has read.

    Queries are packed codes, (q, width), or weights of bits, float32 (q, n_bits). With `lengths` of
    the stored codes, scores are inner products. Pieces without cells are all read.
    """

    def __init__(
        self,
        pieces: CodePieces,
        queries: Array,
        recall: float | None,
        probes: int | None,
        lengths: Floats | None = None,
    ) -> None:
        self.rows_read = 0
        self._pieces, self._probes, self._recall = pieces, probes, recall or 0.0
        centers = pieces.centers
        is_codes = queries.dtype == np.uint8
        margin = None
        if centers is not None and recall is not None:
            margin = centers.margin(recall, floats=not is_codes)
        self._centers = None if margin is None and probes is None else centers
        self._margin = 0.0 if margin is None else margin
        # For rows farther away than those of the curve. With filters and up to 500 rows, it found
        # the shares of 0.9 to 0.99 that were asked for, by inner products 0.02 less (measured).
        self._careful = 0.0
        if centers is not None and recall is not None and recall < 1:
            self._careful = (2 * math.log10(1 - recall) - 2.4) * centers.n_bits**0.5
        if self._centers is None:
            return
        weights = np.atleast_2d(queries)
        self._weights = 2 * unpack(weights, self._centers.n_bits) - 1 if is_codes else weights
        self._longest = _NONE if lengths is None else pieces.longest(lengths)

    def native(self, part: Any, passed: Rows | None, n: int, k: int) -> _core.CellQueries | None:
        """What the native search reads for some of the queries; None to read all rows.

        `passed` are the rows that pass the filter of each query, of n rows in all; None is all.
        """
        if self._centers is None:
            return None
        weights = self._weights if part is ... else self._weights[part]
        probes = _NO_PROBES
        if self._probes is not None:
            shares = 1.0 if passed is None else passed / n
            wanted = np.minimum(np.ceil(self._probes / shares), len(self._centers))
            probes = np.broadcast_to(wanted, len(weights)).astype(np.uint32)
        margin = self._margin
        if passed is not None or k > _FAR_K or len(self._longest):
            # Rows that pass a filter may be far from the query: more cells are read (measured).
            more = 0 if passed is None else 2 * self._centers.n_bits**0.5
            margin = min(margin, self._careful - more)
        return _core.CellQueries(
            self._centers.native, np.ascontiguousarray(weights), probes, margin, self._longest
        )

    def are_few(self, passed: Selection, n_queries: float, width: int) -> bool:
        """Whether to scan copies of the rows that pass a filter, instead of cells or all rows."""
        if self._centers is None:
            return are_few(passed, n_queries, width)
        if self._probes is None:
            read = float(np.interp(self._recall, RECALLS, self._centers.curve[:, 3]))
        else:
            read = self._probes / len(self._centers)
        read = min(1.0, read * passed.n / max(len(passed), 1))  # with a filter (measured)
        return len(passed) * _ROWS_PER_PASSED <= passed.n or are_few(passed, n_queries, width, read)


_NONE, _NO_PROBES = np.empty(0, np.float32), np.empty(0, np.uint32)


def measured(
    pieces: CodePieces,
    codes: Bytes,
    weights: Floats | None = None,
    own: Rows | None = None,
    threads: int | None = None,
) -> Centers:
    """The centers with a new curve, measured with queries: packed codes, (q, width).

    `weights`, (q, n_bits), are the same or other queries for the margin of float queries. `own` are
    the rows that the queries are, which do not count as neighbors.
    """
    centers = pieces.centers
    if centers is None:
        raise InputError("these codes have no cells: make them with `embits cells`, or cells=")
    curve = unmeasured()
    if len(codes) and len(pieces):
        curve[:, 1], curve[:, 3] = _margins(pieces, centers, codes, own, threads)
        curve[:, 2] = curve[:, 1]
    if weights is not None and len(weights) and len(pieces):
        curve[:, 2] = _margins(pieces, centers, weights, own, threads)[0]
    return replace(centers, curve=curve)


def _margins(
    pieces: CodePieces, centers: Centers, queries: Array, own: Rows | None, threads: int | None
) -> tuple[Floats, Floats]:
    """The margin for each of RECALLS, and the share of the rows that are then read."""
    several: list[Floats] = []
    sampled: list[Floats] = []  # of all cells of some queries, with their sizes
    sizes = pieces.cell_sizes()
    for some in blocks(len(queries), 128):
        mine = None if own is None else own[some]
        reached, cells = _reached(pieces, centers, queries[some], mine, threads)
        several.append(reached)
        sampled.append(cells[:8])
    reached, per_cell = np.sort(np.concatenate(several)), np.concatenate(sampled)
    if not len(reached):
        return (curve := unmeasured())[:, 1], curve[:, 3]
    places = [int((1 - recall) * len(reached)) for recall in RECALLS]
    found = np.clip(reached[places], _FEWEST, -_FEWEST)  # infinite ones cannot be stored
    total = max(int(sizes.sum()), 1)
    read = [(np.where(per_cell >= each, sizes, 0).sum(axis=1) / total).mean() for each in found]
    return found.astype(np.float32), np.array(read, np.float32)


def _reached(
    pieces: CodePieces, centers: Centers, queries: Array, own: Rows | None, threads: int | None
) -> tuple[Floats, Floats]:
    """The margins at which neighbors of queries are read, and those at which each cell is read.

    As `CellScan` in cpp/search/cell_scan.h: after 4, 8, 16, ... cells a query compares the cells
    that follow with its k-th row.
    """
    from embits.search.scan import asymmetric_top_k, top_k

    search: Any = top_k if queries.dtype == np.uint8 else asymmetric_top_k
    k, n_bits, n_cells = CURVE_K, centers.n_bits, len(centers)
    weights = 2 * unpack(queries, n_bits) - 1 if queries.dtype == np.uint8 else queries

    def kth_scores(**asked: Any) -> tuple[NDArray[np.float64], Rows]:
        """The score of the k-th row of each query, and its rows, -1 for its own."""
        values, rows = search(pieces, queries, k + (own is not None), threads, **asked)
        scores = n_bits - 2.0 * values if queries.dtype == np.uint8 else values.astype(np.float64)
        is_own = np.zeros(rows.shape, bool) if own is None else rows == own[:, None]
        is_own[:, -1] |= (own is not None) & ~is_own.any(axis=1)
        rows, scores = np.where(is_own, -1, rows), np.where(is_own, np.inf, scores)
        if rows.shape[1] < k + (own is not None):  # there are not so many rows
            return np.full(len(rows), -np.inf), rows
        return scores.min(axis=1), rows

    products = np.empty((len(weights), n_cells), np.float32)
    centers.native.products(np.ascontiguousarray(weights), products)
    scale = np.sqrt((weights.astype(np.float64) ** 2).sum(axis=1) / n_bits)
    scale = np.where(scale > 0, scale, 1)[:, None].astype(np.float32)
    closeness = products / scale - centers.native.squares() / 4
    order = np.argsort(-closeness, axis=1, kind="stable")
    in_order = np.take_along_axis(closeness, order, 1) - centers.native.place_costs()
    margins = np.full((len(weights), n_cells), np.inf, np.float32)
    before = np.full(len(weights), np.inf, np.float32)  # the margin at which one came so far
    final, rows = kth_scores()
    read, end = 4, 8
    while read < n_cells:
        scores = final if 4 * read > n_cells else kth_scores(probes=read)[0]
        with np.errstate(invalid="ignore"):
            level = in_order[:, read:end] - (scores[:, None] / scale)
        margins[:, read:end] = np.minimum(level, before[:, None])
        before = margins[:, min(end, n_cells) - 1]
        read, end = end, 2 * end
    by_cell = np.empty_like(margins)
    np.put_along_axis(by_cell, order, margins, 1)
    cell_of = pieces.cell_of(rows[rows >= 0])
    neighbors = np.repeat(np.arange(len(rows)), (rows >= 0).sum(axis=1))
    return by_cell[neighbors[cell_of >= 0], cell_of[cell_of >= 0]], by_cell
