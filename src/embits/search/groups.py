"""Groups of near duplicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.search.arguments import packed_codes, wanted_distance, wanted_threads
from embits.search.identical import DistinctCodes
from embits.search.pairs import near_pairs
from embits.search.ragged import parts
from embits.search.results import GroupsResult

_BLOCK_BYTES = 1 << 24


def duplicates(
    codes: NDArray[np.uint8],
    distance: int,
    threads: int | None = None,
    *,
    progress: Progress | None = None,
) -> GroupsResult:
    """Groups of rows that are within a Hamming distance of each other, directly or through others.

    The groups are the connected components of the graph whose edges are the pairs of
    `pairs_within`. No list of pairs is made, so rows with the same code may be many.

    Args:
        codes: Packed codes, uint8 of shape (n, width).
        distance: The largest number of bits in which two neighbors differ.
        threads: As in `top_k`.
        progress: Called with what is done and the total.

    Returns:
        A named tuple `offsets` (groups + 1,), `rows` and `distances`. Group i has
        `rows[offsets[i] : offsets[i + 1]]`, at least two, in row order; groups are in the order of
        their first rows. The distances are to the first row of the group, and may be more than
        `distance`.

    Raises:
        InputError: A wrong dtype, number of dimensions, distance or threads.

    Example:
        >>> import numpy as np
        >>> codes = np.array([[0b0001], [0b1111_0000], [0b0011], [0b0111]], dtype=np.uint8)
        >>> groups = duplicates(codes, 1)
        >>> groups.offsets.tolist(), groups.rows.tolist(), groups.distances.tolist()
        ([0, 3], [0, 2, 3], [0, 1, 2])
    """
    codes = packed_codes(codes)
    distance = wanted_distance(distance, 8 * codes.shape[1])
    wanted_threads(threads)
    leaders = _leaders(codes, distance, threads, progress)
    sizes = np.bincount(leaders, minlength=len(codes))
    members = np.flatnonzero(sizes[leaders] > 1)
    rows = members[np.argsort(leaders[members], kind="stable")]
    offsets = np.append(0, np.cumsum(sizes[sizes > 1]))
    return GroupsResult(offsets, rows, _distances(codes, rows, leaders[rows]))


def _leaders(
    codes: NDArray[np.uint8], distance: int, threads: int | None, progress: Progress | None
) -> NDArray[np.int64]:
    """The first row of each row's group."""
    distinct = DistinctCodes(codes)
    roots = np.arange(len(distinct.codes))
    pending: list[NDArray[np.int64]] = []
    for firsts, seconds, _ in near_pairs(distinct.codes, distance, threads, progress):
        apart = roots[firsts] != roots[seconds]
        pending.append(np.array([firsts[apart], seconds[apart]]))
        # To join sets reads all roots: it is done for many pairs at a time.
        if sum(pairs.size for pairs in pending) > len(roots):
            roots, pending = _united(roots, *np.hstack(pending)), []
    if pending:
        roots = _united(roots, *np.hstack(pending))
    groups = np.empty(len(codes), np.int64)
    groups[distinct.rows] = np.repeat(roots, distinct.sizes)
    first_rows = np.empty(len(roots), np.int64)
    first_rows[groups[::-1]] = np.arange(len(codes))[::-1]  # the last write is of the first row
    return first_rows[groups]


def _united(
    roots: NDArray[np.int64], firsts: NDArray[np.int64], seconds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The root of each member after the sets of all pairs are joined.

    In each turn the larger of two roots gets the smaller as its parent. A root that is larger than
    several others gets one of them, and the next turn finds the others.
    """
    while True:
        a, b = roots[firsts], roots[seconds]
        apart = a != b
        if not apart.any():
            return roots
        firsts, seconds, a, b = firsts[apart], seconds[apart], a[apart], b[apart]
        roots[np.maximum(a, b)] = np.minimum(a, b)
        while (roots[roots] != roots).any():
            roots = roots[roots]


def _distances(
    codes: NDArray[np.uint8], rows: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The distances of the codes of rows, pair by pair."""
    distances = np.empty(len(rows), np.int32)
    for part in parts(np.full(len(rows), codes.shape[1]), _BLOCK_BYTES):
        differing = codes[rows[part]] ^ codes[others[part]]
        distances[part] = np.bitwise_count(differing).sum(axis=1, dtype=np.int32)
    return distances
