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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits._lazy import LazyProperty
from embits.arrays import packed_width, unpack
from embits.checks import wanted_threads, whole
from embits.errors import FormatError, InputError
from embits.search.filters import Selection, are_few, copied_cost

if TYPE_CHECKING:
    from embits.search.stored import StoredCodes

KS = 1, 10, 100, 1000  # neighbors that the curves are measured with
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
_FAR_K = 40  # the k-th row of more is farther away than a curve of 10 alone says
_MEASURED = 1000  # rows that the curves are measured with
_UNLIKE_QUERIES = 100  # of each kind
_LIKE, _UNLIKE = 1, 1 + len(KS)  # the first of the curves of queries like the rows, and unlike them
_SERIES = 1 + 2 * len(KS)
_FAR_QUANTILE = 0.9
_STANDARD_ERRORS = 1.5  # that what few queries find is taken for less than its mean
_CELL_COST = 2  # of a row that is read in a cell, where all that pass could be scanned instead
_MOST_READ = 0.6  # of the rows: to find more, all are read
_LEVELS = len(RECALLS) + 1  # of a curve: its last one reads all
_FEWEST = np.float32(-1e30)  # a margin that no cell is below
# Of fewer rows than one in so many, those that pass a filter are copied and scanned alone.
_ROWS_PER_PASSED = 50

Array: TypeAlias = NDArray[Any]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.int64]
Curve: TypeAlias = Floats
"""For each recall: the margin of queries that are codes, that of float queries, and the share of
the rows that queries of codes read; (levels, 4). 2 is added to the recalls of each further curve:
docs/file-format.md."""


class Levels(NamedTuple):
    """The margin of queries whose nearest cell is as close as `near`, and of those at `far`."""

    margin: float
    far_margin: float
    near: float
    far: float
    read: float  # the share of the rows that is read, at about the most


def _careful(recall: float, is_far: bool) -> float:
    """A margin for rows that are farther away than those of a curve, in sqrt(bits) (measured)."""
    return 2 * math.log10(1 - recall) - 2.4 - 2 * is_far


@dataclass(frozen=True)
class Probes:
    """`recall=Probes(n)`: read n cells for each query.

    More are read if a filter lets few rows pass, or if the cells hold fewer than k rows.
    """

    n: int

    def __post_init__(self) -> None:
        whole("probes", self.n, 1)


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

    def levels(
        self, recall: float, ks: tuple[int, int], are_floats: bool, *, is_far: bool
    ) -> Levels | None:
        """Where to stop to find a share of all of k neighbors, from ks[0] to ks[1]; None: nowhere.

        `is_far` says that neighbors may be as far away as those of queries unlike the rows.
        """
        column = 2 if are_floats else 1
        if self.curve[-1, 0] < 2:
            return self._levels_of_one(recall, ks, column, is_far=is_far)

        def at(first: int, column: int) -> float:
            """The lowest margin, or the largest share, of these ks, interpolated in log k."""
            values = [self._at(recall, first + number, column) for number in range(len(KS))]
            inner = [v for k, v in zip(KS, values, strict=True) if ks[0] < k < ks[1]]
            both = [*np.interp(np.log(np.maximum(ks, 1)), np.log(KS), values), *inner]
            return float(max(both) if column == 3 else min(both))

        margin = at(_LIKE, column)
        far_margin = min(margin, at(_UNLIKE, column))
        margin = far_margin if is_far else margin
        if margin < _FEWEST / 1e6:
            return None
        near, far = self.curve[-2:, column].tolist()
        return Levels(margin, far_margin, near, far, at(_UNLIKE if is_far else _LIKE, 3))

    def _at(self, recall: float, series: int, column: int) -> float:
        own = self.curve[self.curve[:, 0] // 2 == series].astype(np.float64)
        if recall > own[-1, 0] - 2 * series:
            return 1.0 if column == 3 else float(_FEWEST)
        return float(np.interp(recall, own[:, 0] - 2 * series, own[:, column]))

    def _levels_of_one(
        self, recall: float, ks: tuple[int, int], column: int, *, is_far: bool
    ) -> Levels | None:
        """As `levels`, by a curve of 10 neighbors alone, as version 0.3 measured it."""
        margin, read = self._at(recall, 0, column), self._at(recall, 0, 3)
        if recall > self.curve[-1, 0] or recall == 1:
            return None
        unit, factor = self.n_bits**0.5, max(ks[1] / 10, 10 / ks[0])
        if is_far or ks[1] > _FAR_K:
            margin = min(margin, _careful(recall, is_far) * unit)
            read = min(1.0, read * factor)
        margin -= unit * max(0.0, math.log10(10 / ks[0]), math.log10(ks[0] / _FAR_K) / 2)
        return Levels(margin, margin, -math.inf, -math.inf, read)


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
        is_curve = np.isfinite(curve).all() and n_levels and (np.diff(curve[:, 0]) > 0).all()
        series = (curve[:, 0] // 2).tolist() if is_curve else []
        has_all = set(series) == {*range(_SERIES + 1)} and series.count(_SERIES) == 2
        if n_bits > _MAX_BITS or not (has_all or set(series) == {0}):
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
    return Centers(packed, n_bits, default_curve()), np.sort(held)


def default_curve() -> Curve:
    """The curves of which all recalls read all cells."""
    curve = np.full((_SERIES * _LEVELS + 2, 4), _FEWEST, np.float32)
    curve[:-2, 0] = [2 * series + r for series in range(_SERIES) for r in (*RECALLS, 1)]
    curve[-2:, 0] = 2 * _SERIES, 2 * _SERIES + 1
    curve[:-2, 3], curve[-2:, 3] = 1, 0
    return curve


def group_by_cell(
    codes: Bytes, centers: Centers, threads: int | None = None
) -> tuple[Bytes, Cells]:
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


class Margin(float):
    """A margin itself, in place of the recall that is measured with it."""


class CellBudget:
    """Which cells a search reads, and how many rows it has read.

    Queries are packed codes, (q, width), or weights of bits, float32 (q, n_bits). With `lengths` of
    the stored codes, scores are inner products. Pieces without cells are all read.
    """

    def __init__(
        self,
        stored: StoredCodes,
        queries: Array,
        recall: float | Probes | None,
        lengths: Floats | None = None,
    ) -> None:
        self.rows_read = 0
        self._stored, self._probes, self._recall = stored, None, None
        if isinstance(recall, Probes):
            self._probes = recall.n
        else:
            self._recall = recall
        self._are_floats = queries.dtype != np.uint8
        self._centers = None if recall is None else stored.centers
        if self._centers is None:
            return
        weights = np.atleast_2d(queries)
        n_bits = self._centers.n_bits
        self._weights = weights if self._are_floats else 2 * unpack(weights, n_bits) - 1
        self._longest = _NONE if lengths is None else stored.longest(lengths)

    def _levels(self, k: int, passed: int) -> Levels | None:
        """What queries of k of the rows that pass a filter read; None to read all."""
        assert self._centers is not None
        if self._recall is None or isinstance(self._recall, Margin):
            margin = self._recall or 0.0
            return Levels(margin, margin, -np.inf, -np.inf, 0)
        has_lengths = len(self._longest) > 0
        is_far = passed < len(self._stored) or has_lengths
        # Of rows that pass at random, k are among so many of all rows.
        of_all = k * len(self._stored) // max(passed, 1)
        levels = self._centers.levels(self._recall, (k, of_all), self._are_floats, is_far=is_far)
        if levels is None or not has_lengths:
            return levels
        # Measured without lengths: long rows that are best may be farther away.
        least = _careful(self._recall, is_far) * self._centers.n_bits**0.5
        margin, far = min(levels.margin, least), min(levels.far_margin, least)
        return levels._replace(margin=margin, far_margin=far)

    def native(
        self, part: Any, passed: Rows | None, n: int, k: int, width: int
    ) -> _core.CellQueries | None:
        """What the native search reads for some of the queries; None to read all rows.

        `passed` are the rows that pass the filter of each query, of n rows in all; None is all.
        """
        if self._centers is None:
            return None
        weights = self._weights if part is ... else self._weights[part]
        probes, most = _NO_PROBES, _NO_MOST
        levels = self._levels(k, n if passed is None else int(passed.min(initial=n)))
        if levels is None:
            return None
        if self._probes is not None:
            shares = 1.0 if passed is None else passed / n
            wanted = np.minimum(np.ceil(self._probes / shares), len(self._centers))
            probes = np.broadcast_to(wanted, len(weights)).astype(np.uint32)
        elif passed is not None and not isinstance(self._recall, Margin):
            most = (passed * copied_cost(len(weights), width)).astype(np.uint64)
        self.gave_up = np.zeros(len(weights), np.uint8)
        return _core.CellQueries(
            self._centers.native, np.ascontiguousarray(weights), probes, levels[:4],
            self._longest, most, self.gave_up,
        )  # fmt: skip

    def are_few(self, passed: Selection, n_queries: float, width: int, k: int) -> bool:
        """Whether to scan copies of the rows that pass a filter, instead of cells or all rows."""
        if self._centers is None:
            return are_few(passed, n_queries, width)
        read = 1.0
        if self._probes is not None:
            read = min(1.0, self._probes / len(self._centers) * passed.n / max(len(passed), 1))
        elif levels := self._levels(k, len(passed)):
            read = _CELL_COST * levels.read
        return len(passed) * _ROWS_PER_PASSED <= passed.n or are_few(passed, n_queries, width, read)


_NONE, _NO_PROBES = np.empty(0, np.float32), np.empty(0, np.uint32)
_NO_MOST = np.empty(0, np.uint64)


def calibrate(
    stored: StoredCodes,
    codes: Bytes,
    weights: Floats | None = None,
    own: Rows | None = None,
    threads: int | None = None,
) -> Centers:
    """The centers with a new curve, measured with queries: packed codes, (q, width).

    `weights`, (q, n_bits), are the same or other queries for the margin of float queries. `own` are
    the rows that the queries are, which do not count as neighbors.
    """
    centers = stored.centers
    if centers is None:
        raise InputError("these codes have no cells: make them with `embits cells`, or cells=")
    curve = default_curve()
    if not len(codes) or not len(stored):
        return replace(centers, curve=curve)
    for column, queries in ((1, codes), (2, weights)):
        if queries is None or not len(queries):
            curve[:, 2] = curve[:, 1]
            continue
        others = _unlike(queries, centers.n_bits)
        ks = [k for k in KS if 2 * k <= len(stored)]  # of others, all cells are read
        like = [(k, _Sample(stored, k, [queries], own, threads)) for k in ks]
        unlike = [(k, _Sample(stored, k, others, None, threads)) for k in ks]
        samples = {_LIKE + KS.index(k): sample for k, sample in like}
        samples |= {_UNLIKE + KS.index(k): sample for k, sample in unlike}
        for series, sample in samples.items():
            level = slice(series * _LEVELS, (series + 1) * _LEVELS - 1)
            margins, read = sample.margins(centers.n_bits**0.5)
            curve[level, column] = margins
            curve[level, 3] = np.maximum(read, curve[level, 3] if column == 2 else 0)
        of_10 = _LIKE + KS.index(10)
        for to in (column, 3):  # what older versions read
            curve[: _LEVELS - 1, to] = curve[of_10 * _LEVELS : (of_10 + 1) * _LEVELS - 1, to]
        near = float(np.median(_nearest(centers, queries)))
        far = np.quantile([_nearest(centers, each) for each in others], _FAR_QUANTILE)
        curve[-2:, column] = near, min(near, far)
        # Now that the hard ones of the queries read on, the others need not read as much.
        known = stored.with_centers(replace(centers, curve=curve))
        for k, sample in like:
            series = _LIKE + KS.index(k)
            level = slice(series * _LEVELS, (series + 1) * _LEVELS - 1)
            found = [(r, sample.search(known, r)[0]) for r in RECALLS[::2]]
            enough = [min([r, *(asked for asked, share in found if share >= r)]) for r in RECALLS]
            curve[level, column] = np.interp(enough, RECALLS, curve[level, column])
    return replace(centers, curve=curve)


def _unlike(queries: Array, n_bits: int) -> list[Array]:
    """Queries that lie between the given ones, and at random."""
    rng, are_codes = np.random.default_rng(1), queries.dtype == np.uint8
    mixed = rng.normal(size=(_UNLIKE_QUERIES, len(queries)))
    if not are_codes:
        pure = rng.normal(size=(_UNLIKE_QUERIES, n_bits))
        return [(mixed @ queries).astype(np.float32), pure.astype(np.float32)]
    mixed = mixed @ (2.0 * unpack(queries, n_bits) - 1)
    return [np.packbits(each > 0, axis=1) for each in (mixed, rng.normal(size=mixed.shape))]


def _nearest(centers: Centers, queries: Array) -> Floats:
    """How close the nearest cell of each query is, in the unit of margins."""
    weights = queries if queries.dtype != np.uint8 else 2 * unpack(queries, centers.n_bits) - 1
    products = np.empty((len(weights), len(centers)), np.float32)
    centers.native.products(np.ascontiguousarray(weights, np.float32), products)
    scale = np.sqrt((weights.astype(np.float64) ** 2).mean(axis=1, keepdims=True))
    closeness = products / np.where(scale > 0, scale, 1) - centers.native.squares() / 4
    return np.asarray(closeness.max(axis=1), np.float32)


class _Sample:
    """Groups of queries, and their k neighbors. What queries are themselves is no neighbor."""

    def __init__(
        self,
        stored: StoredCodes,
        k: int,
        groups: list[Array],
        own: Rows | None,
        threads: int | None,
    ) -> None:
        most = max(100, min(1000, 4000 // k))
        self._stored, self._k, self._threads = stored, k, threads
        self._groups = [each[:most] for each in groups]
        self._own = None if own is None else own[:most, None]
        self._best = [self._neighbors(stored, each, 1)[0] for each in self._groups]

    def _neighbors(self, stored: StoredCodes, queries: Array, recall: float) -> tuple[Rows, int]:
        from embits.search.scan import asymmetric_top_k, top_k

        search = top_k if queries.dtype == np.uint8 else asymmetric_top_k
        k = self._k + (self._own is not None)
        found = search(stored, queries, k, self._threads, recall=recall)
        own = -1 if self._own is None else self._own
        return np.where(found.rows == own, -1, found.rows), found.rows_read or 0

    def search(self, stored: StoredCodes, recall: float) -> tuple[float, float]:
        """The share of the neighbors that each group finds, and that of the rows that it reads."""
        shares, rows_read = [], 0
        for queries, best in zip(self._groups, self._best, strict=True):
            rows, n_read = self._neighbors(stored, queries, recall)
            both = np.sort(np.concatenate([rows, best], axis=1), axis=1)
            hits = ((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1)
            found = hits / (best >= 0).sum(axis=1)
            shares.append(found.mean() - _STANDARD_ERRORS * found.std() / len(found) ** 0.5)
            rows_read += n_read
        return min(shares), rows_read / len(stored) / sum(map(len, self._groups))

    def margins(self, unit: float) -> tuple[Floats, Floats]:
        """The margin for each of RECALLS, and the share of the rows that are then read."""
        margin, tried = 0.0, [(0.0, 0.0, 0.0)]  # recalls, shares of the rows, margins
        while tried[-1][0] < RECALLS[-1] and tried[-1][1] < _MOST_READ:
            tried.append((*self.search(self._stored, Margin(margin * unit)), margin * unit))
            margin = min(-2, margin - max(0.5, -margin / 12))
        recalls = np.maximum.accumulate([each[0] for each in tried[1:]])
        is_found = recalls[-1] >= np.array(RECALLS)
        margins, read = (
            np.interp(RECALLS, recalls, [each[i] for each in tried[1:]]) for i in (2, 1)
        )
        return np.where(is_found, margins, _FEWEST), np.where(is_found, read, 1)
