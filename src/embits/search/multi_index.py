"""An index for exact top-k that does not read all the codes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.checks import packed_codes, packed_queries, wanted_rows, wanted_threads, whole
from embits.errors import InputError
from embits.search.filters import Selection, mask_filter, parse_filters
from embits.search.results import DistanceResult
from embits.search.scan import simd_errors, top_k

_MIN_BYTES = 16_000_000  # fewer lie in the processor's cache, and a scan is as fast (measured)
_MAX_WIDTH = 16  # wider codes need tables of more than ten times their own size, and gain little
_MAX_CHUNK_BITS = 24
_MAX_ROWS_PER_PASSED = 100  # if fewer than one row in so many passes a filter, those are scanned


class MultiIndex:
    """Multi-index hashing (Norouzi, Punjani and Fleet, 2012) for large sets of short codes.

    The results are those of `top_k`, ties included. Every chunk of a code has a table of the codes
    by its value. A query visits the buckets near its own and stops when no nearer code can be left.
    Where a scan is faster (few or wide codes, a large k, a query far from all codes), codes are
    scanned. Any number of threads may search one index.

    Args:
        codes: Packed codes, uint8 of shape (n, width). They are not copied: do not change them.
        n_chunks: How many tables; each copies the codes. None chooses: 0 if a scan is as fast.

    Attributes:
        n_chunks: How many tables there are; 0 when every query is a scan.

    Example:
        >>> import numpy as np
        >>> codes = np.random.default_rng(0).integers(0, 256, (5000, 8), dtype=np.uint8)
        >>> index = MultiIndex(codes, n_chunks=6)
        >>> distances, rows = index.top_k(codes[42], k=3)
        >>> int(distances[0]), int(rows[0])
        (0, 42)
    """

    def __init__(self, codes: NDArray[np.uint8], n_chunks: int | None = None) -> None:
        self._codes = packed_codes(codes)
        n, width = self._codes.shape
        if n_chunks is not None:
            least = math.ceil(8 * width / _MAX_CHUNK_BITS)
            self.n_chunks = whole("n_chunks", n_chunks, least, 8 * width)
        elif n * width < _MIN_BYTES or width > _MAX_WIDTH or n >= 2**32:
            self.n_chunks = 0
        else:  # chunks of about log2(n) - 7 bits, so that a bucket holds about a hundred codes
            chunk_bits = min(max(math.log2(n) - 7, 8), 21)
            self.n_chunks = math.ceil(8 * width / chunk_bits - 0.5)
        if self.n_chunks and n >= 2**32:
            raise InputError(f"{n} codes, but the tables of an index hold less than 2^32")
        self._tables = _core.MultiIndex(self._codes, self.n_chunks) if self.n_chunks else None

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the tables take, the codes themselves not counted."""
        return self._tables.bytes if self._tables else 0

    def top_k(
        self,
        queries: NDArray[np.uint8],
        k: int,
        threads: int | None = None,
        *,
        where: Any = None,
        exclude: Any = None,
    ) -> DistanceResult:
        """As `embits.search.top_k`, which is called if filters differ or few rows pass."""
        queries = packed_queries(queries, self._codes.shape[1])
        filters = parse_filters(len(self), queries.shape[:-1], where, exclude)
        few = isinstance(filters, Selection) and len(filters) * _MAX_ROWS_PER_PASSED < len(self)
        if self._tables is None or few or isinstance(filters, list):
            return top_k(self._codes, queries, k, threads, where=filters)
        n_rows = wanted_rows(k, len(self) if filters is None else len(filters))
        shape = (*queries.shape[:-1], n_rows)
        found = DistanceResult(np.empty(shape, np.int32), np.empty(shape, np.int64))
        mask = None if filters is None else mask_filter(filters)
        with simd_errors:
            self._tables.top_k(queries, n_rows, wanted_threads(threads), *found, mask)
        return found
