"""Exact top-k on a GPU, over codes that stay in its memory (the extra `gpu`).

Distances of a batch are a matrix product: with bits c of a code and q of a query,
`hamming = |q| + <c, 1 - 2q>`. Writing all n × q distances would cost more than computing them, so
only the smallest of each tile of 256 rows is written. The k nearest rows, ties in row order, are in
the k tiles with the smallest distances: any other row has k rows before it. Those tiles are then
read row by row.

A filter that few rows pass is a search of copies of their codes; others are a mask for the kernels.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import torch_device
from embits.checks import packed_codes, packed_queries, wanted_rows
from embits.errors import InputError, from_extra
from embits.search.filters import Selection, parse_filters
from embits.search.results import NO_DISTANCE, NO_ROW, DistanceResult

BATCH = 1024  # queries at a time
SCRATCH_BYTES = 1 << 29  # for the tiles' least distances of a batch, and for its candidates
GROUP = 64  # tiles
_UPLOAD_ROWS = 1 << 22
ROWS_PER_COPY = 32  # if fewer than one row in so many passes a filter, their codes are copied
# Codes, how many, a mask of the rows that may be found, and where copies of codes come from.
_Scanned: TypeAlias = tuple[Any, int, Any, NDArray[np.int64] | None]


class DeviceIndex:
    """Codes in a GPU's memory, and exact search over them, with the results of `top_k`.

    The codes are copied once, and may be mapped. A search uses up to 2 GB of scratch memory. A
    `Selection` is copied once as well. Any number of threads may search one object, in turn.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        device: A PyTorch device such as "cuda" or "cuda:1".

    Raises:
        InputError: Codes of a wrong dtype or shape, or no such device here.
        MissingExtraError: The extra `gpu` is not installed.

    Example:
        index = embits.search.DeviceIndex(bits.codes, device="cuda")
        distances, rows = index.top_k(queries, k=10)
    """

    def __init__(self, codes: NDArray[np.uint8], device: str = "cuda") -> None:
        codes = packed_codes(codes)
        self._torch, place = torch_device(device, "searching")
        with from_extra(f"searching on device={device!r}", "gpu"):
            self._kernels = import_module("embits.search._gpu_kernels")
        if place.type != "cuda" and not self._kernels.INTERPRETED:
            raise InputError(f"device is {device!r}: embits.search.top_k searches on the CPU")
        self._n, self._width = map(int, codes.shape)
        width = self._kernels.padded_width(self._width)
        self._tile = self._kernels.TILE
        n_rows = max(1, -(-self._n // self._tile)) * self._tile
        self._codes = self._torch.zeros((n_rows, width), dtype=self._torch.uint8, device=place)
        for start in range(0, self._n, _UPLOAD_ROWS):
            block = np.array(codes[start : start + _UPLOAD_ROWS])  # PyTorch needs writable memory
            there = self._codes[start : start + len(block), : self._width]
            there.copy_(self._torch.from_numpy(block))
        self._searching = Lock()
        self._last: tuple[Selection | None, _Scanned] = (None, (self._codes, self._n, None, None))

    def __len__(self) -> int:
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes of the GPU's memory that the codes take."""
        return int(self._codes.numel())

    def top_k(
        self, queries: NDArray[np.uint8], k: int, *, where: Any = None, exclude: Any = None
    ) -> DistanceResult:
        """As `embits.search.top_k`; queries with filters of their own are searched one by one."""
        queries = packed_queries(queries, self._width)
        filters = parse_filters(self._n, queries.shape[:-1], where, exclude)
        with self._searching:  # a search takes most of the GPU, and its scratch memory
            if isinstance(filters, list):
                return self._each(queries, k, filters)
            return self._top_k(queries, k, filters)

    def _top_k(
        self, queries: NDArray[np.uint8], k: int, filters: Selection | None
    ) -> DistanceResult:
        k = wanted_rows(k, self._n if filters is None else len(filters))
        shape = (*queries.shape[:-1], k)
        if not k:
            return DistanceResult(np.empty(shape, np.int32), np.empty(shape, np.int64))
        scanned = self._scanned(filters)
        n = int(np.prod(queries.shape[:-1]))
        batch = np.zeros((n, self._codes.shape[1]), np.uint8)
        batch[:, : self._width] = queries.reshape(n, self._width)
        keys = np.empty((n, k), np.int64)
        size = max(1, min(BATCH, SCRATCH_BYTES // (8 * self._tile * (k + 1))))
        for start in range(0, n, size):
            part = slice(start, start + size)
            keys[part] = self._nearest(scanned, batch[part], k)
        keys = keys.reshape(shape)
        rows = keys & ((1 << self._kernels.ROW_BITS) - 1)
        distances = (keys >> self._kernels.ROW_BITS).astype(np.int32)
        return DistanceResult(distances, rows if scanned[3] is None else scanned[3][rows])

    def _each(self, queries: NDArray[np.uint8], k: int, filters: list[Selection]) -> DistanceResult:
        shape = (len(filters), wanted_rows(k, max(map(len, filters), default=0)))
        result = DistanceResult(np.full(shape, NO_DISTANCE), np.full(shape, NO_ROW, np.int64))
        for q, selection in enumerate(filters):
            distances, rows = self._top_k(queries[q], k, selection)
            result.distances[q, : len(rows)], result.rows[q, : len(rows)] = distances, rows
        return result

    def _scanned(self, selection: Selection | None) -> _Scanned:
        """What to search: with a mask if many rows pass, copies of their codes if few do."""
        if selection is None:
            return self._codes, self._n, None, None
        if self._last[0] is selection:
            return self._last[1]
        torch, device = self._torch, self._codes.device
        if len(selection) * ROWS_PER_COPY < self._n:
            rows = torch.from_numpy(selection.rows).to(device)
            n_rows = -(-len(rows) // self._tile) * self._tile
            copies = torch.zeros((n_rows, self._codes.shape[1]), dtype=torch.uint8, device=device)
            torch.index_select(self._codes, 0, rows, out=copies[: len(rows)])
            scanned: _Scanned = copies, len(rows), None, selection.rows
        else:
            words = np.zeros(len(self._codes) // 32, np.int32)
            packed = selection.mask.view(np.int32)[: len(words)]
            words[: len(packed)] = packed
            scanned = self._codes, self._n, torch.from_numpy(words).to(device), None
        self._last = selection, scanned
        return scanned

    def _nearest(self, scanned: _Scanned, batch: NDArray[np.uint8], k: int) -> NDArray[np.int64]:
        """Sorted keys, a distance and a row in one number, of the k rows nearest to each query."""
        torch, kernels, (codes, n, mask, _) = self._torch, self._kernels, scanned
        queries = torch.from_numpy(batch).to(self._codes.device)
        n_tiles = len(codes) // self._tile
        # Tiles at a time: their least distances fit the memory, and their keys 31 bits.
        by_memory = SCRATCH_BYTES // (4 * len(batch))
        by_key = ((1 << 31) - 1) // (8 * int(self._codes.shape[1]) + 2)
        chunk = min(n_tiles, max(1, min(by_memory, by_key)))
        least = torch.empty((chunk, len(batch)), dtype=torch.int32, device=queries.device)
        best = torch.empty((len(batch), 0), dtype=torch.int64, device=queries.device)
        for first in range(0, n_tiles, chunk):
            found = least[: n_tiles - first]
            kernels.least_distances(codes, queries, mask, first, chunk, found)
            # One more than k: the zeros that fill the last tile may make it seem nearer than it is.
            tiles = self._smallest(found, k + 1) % chunk + first
            keys = kernels.row_keys(codes, queries, mask, tiles, n)
            best = torch.cat([best, keys], dim=1)
            best, _ = torch.topk(best, min(k, best.shape[1]), dim=1, largest=False, sorted=True)
        return best.cpu().numpy()  # type: ignore[no-any-return]

    def _smallest(self, entries: Any, k: int) -> Any:
        """The k smallest entries of each column, int64 (k, columns), in any order, each once."""
        torch = self._torch
        # By groups first, as rows are by tiles: to read all once is cheap, to order them is not.
        n_groups, rest = divmod(len(entries), GROUP)
        if n_groups > 2 * k:
            grouped = entries[: len(entries) - rest].view(n_groups, GROUP, -1)
            least = torch.topk(grouped.amin(dim=1), k, dim=0, largest=False, sorted=False)[1]
            inside = torch.arange(GROUP, device=entries.device)[:, None, None]
            picked = (least * GROUP + inside).reshape(GROUP * k, -1)
            entries = torch.cat([entries.gather(0, picked), entries[len(entries) - rest :]])
        k = min(k, len(entries))
        smallest = torch.topk(entries, k, dim=0, largest=False, sorted=False)[0]
        return smallest.to(torch.int64)
