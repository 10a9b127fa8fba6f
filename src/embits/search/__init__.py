"""Exact top-k over packed codes: by Hamming distance, or by a float query's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits import _core
from embits._lazy import lazy_names
from embits.bits import packed_width
from embits.errors import InputError
from embits.search.arguments import (
    float_queries,
    packed_queries,
    wanted_threads,
)
from embits.search.filters import run_filtered
from embits.search.kernels import Kernel, kernel, simd
from embits.search.pieces import CodePieces
from embits.search.radius import within
from embits.search.results import (
    NO_DISTANCE,
    NO_SCORE,
    CosineResult,
    DistanceResult,
    GroupsResult,
    PairsResult,
    ScoreResult,
    SearchResult,
    WithinResult,
    WithinScoreResult,
)
from embits.search.scanned import Scanned
from embits.search.selection import Selection, select

if TYPE_CHECKING:
    from embits.search.gpu import DeviceIndex
    from embits.search.groups import duplicates
    from embits.search.multi_index import MultiIndex
    from embits.search.pairs import iter_pairs_within, pairs_within

__all__ = [
    "CodePieces",
    "CosineResult",
    "DeviceIndex",
    "DistanceResult",
    "GroupsResult",
    "Kernel",
    "MultiIndex",
    "PairsResult",
    "ScoreResult",
    "SearchResult",
    "Selection",
    "WithinResult",
    "WithinScoreResult",
    "asymmetric_top_k",
    "duplicates",
    "iter_pairs_within",
    "kernel",
    "pairs_within",
    "select",
    "simd",
    "top_k",
    "within",
]

# Most programs use none of these: their modules are imported at the first use of a name.
__getattr__ = lazy_names(
    __name__,
    {
        "DeviceIndex": "embits.search.gpu",
        "MultiIndex": "embits.search.multi_index",
        "duplicates": "embits.search.groups",
        "iter_pairs_within": "embits.search.pairs",
        "pairs_within": "embits.search.pairs",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)


def top_k(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.uint8],
    k: int,
    threads: int | None = None,
    *,
    where: Any = None,
    exclude: Any = None,
) -> DistanceResult:
    """The k rows of `codes` nearest to each query by Hamming distance.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `CodePieces`.
        queries: One packed code of shape (width,), or several, (q, width).
        k: How many rows to return; more than n returns n.
        threads: The most threads to use; None takes every core this process may run on. Small
            searches run on the caller's thread whatever is asked for.
        where: The rows that may be found: a boolean mask of shape (n,), row numbers in any order,
            or a `Selection`; or a filter for each query: a mask of shape (q, n), or a list of q
            filters, where None is all rows.
        exclude: The rows that may not be found, in the same forms.

    Returns:
        A named pair that unpacks: `distances` (q, k) int32 and `rows` (q, k) int64, nearest
        first, ties in row order; both of shape (k,) for a single query. The smallest distance is
        the best. The result does not depend on the number of threads. If fewer than k rows pass the
        filter, there are fewer columns; if the queries have their own filters, there are as many as
        the query with the most rows needs, and the others end with row -1 at distance 2^31 - 1.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, k or threads; a filter that does not
            fit; or EMBITS_SIMD names instructions that this processor does not have.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0000_0000], [0b1111_0000], [0b1000_0000]], dtype=np.uint8)
        >>> distances, rows = top_k(codes, np.array([0b1100_0000], dtype=np.uint8), k=2)
        >>> distances.tolist(), rows.tolist()
        ([1, 2], [2, 0])
    """
    scanned = Scanned.of(codes)
    queries = packed_queries(queries, scanned.width)
    filters = scanned.filters(queries.shape[:-1], where, exclude)
    most = wanted_threads(threads)

    def search(queries: Any, distances: Any, rows: Any, native: _core.Filter | None) -> None:
        _core.top_k(scanned.native, queries, rows.shape[-1], most, distances, rows, native)

    try:
        found = run_filtered(search, queries, k, scanned.shape, filters, NO_DISTANCE)
        return DistanceResult(found[0], scanned.rows(found[1]))
    except ValueError as error:  # EMBITS_SIMD or EMBITS_PATH is wrong
        raise InputError(str(error)) from None


def asymmetric_top_k(
    codes: NDArray[np.uint8] | CodePieces,
    projections: ArrayLike,
    k: int,
    threads: int | None = None,
    *,
    where: Any = None,
    exclude: Any = None,
) -> ScoreResult:
    """The k rows of `codes` that score highest against float queries.

    The score of bits b is <z, 2b - 1>, where z = Wx is the query before it is cut to bits. A float
    query carries more information than its code, and finds more true neighbors.
    Projections are taken as float32 and scores are added up in float64, always in the same
    order, so the rows are exactly the k best by that sum, on every processor.

    Args:
        codes: Packed codes, uint8 of shape (n, width), or `CodePieces`.
        projections: Floats of shape (n_bits,) or (q, n_bits), with ceil(n_bits / 8) == width.
        k: How many rows to return; more than n returns n.
        threads: As in `top_k`.
        where: As in `top_k`.
        exclude: As in `top_k`.

    Returns:
        A named pair that unpacks: `scores` (q, k) float32 and `rows` (q, k) int64, best first,
        ties in row order; both of shape (k,) for a single query. The largest score is the best.
        Filters change the shape as in `top_k`; the score beside row -1 is -inf.

    Raises:
        InputError: A wrong dtype, width, number of dimensions, k or threads; a filter that does not
            fit; or a projection is not finite.

    Example:
        >>> import numpy as np
        >>> codes = np.packbits([[1, 1, 0], [1, 0, 1], [0, 0, 1]], axis=1)
        >>> scores, rows = asymmetric_top_k(codes, [2.0, -1.0, 0.5], k=2)
        >>> scores.tolist(), rows.tolist()
        ([3.5, 0.5], [1, 0])
    """
    scanned = Scanned.of(codes)
    queries = float_queries("projections", projections)
    n_bits, width = queries.shape[-1], scanned.width
    if packed_width(n_bits) != width:
        raise InputError(f"projections have {n_bits} bits, the codes hold {width} bytes")
    filters = scanned.filters(queries.shape[:-1], where, exclude)
    most = wanted_threads(threads)

    def search(queries: Any, scores: Any, rows: Any, native: _core.Filter | None) -> None:
        _core.asymmetric_top_k(scanned.native, queries, rows.shape[-1], most, scores, rows, native)

    try:
        found = run_filtered(search, queries, k, scanned.shape, filters, NO_SCORE)
        return ScoreResult(found[0], scanned.rows(found[1]))
    except ValueError as error:  # EMBITS_SIMD or EMBITS_PATH is wrong
        raise InputError(str(error)) from None
