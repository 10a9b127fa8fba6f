"""Rescoring: rows found by Hamming distance are ordered by a finer score.

Only the rows of the shortlist are read, so the floats may stay on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits.arrays import LazyRows, as_float32, unpack
from embits.checks import float_queries, wanted_rows
from embits.errors import InputError
from embits.search.filters import Selection
from embits.search.metrics import Metric, codes_of
from embits.search.results import NO_ROW, NO_SCORE, CosineResult, ScoreResult
from embits.search.scan import Codes, asymmetric_top_k
from embits.search.stored import StoredCodes

if TYPE_CHECKING:
    from embits.coders import Coder

_ROWS_AT_ONCE = 1 << 14


def rescore_bits(
    codes: Codes, projections: ArrayLike, shortlist: NDArray[np.int64], k: int
) -> ScoreResult:
    """The k rows of each shortlist that score highest as in `asymmetric_top_k`.

    A shortlist, (m,) or (q, m), has a row at most once, and may end with row -1, as the results of
    filters for each query do. InputError if shapes do not fit, or a row is not one of the codes.

    Example:
        >>> codes = np.packbits([[1, 1, 0], [1, 0, 1], [0, 0, 1]], axis=1)
        >>> rescore_bits(codes, [2.0, -1.0, 0.5], np.array([2, 0]), k=1)
        ScoreResult(scores=array([0.5], dtype=float32), rows=array([0]))
    """
    queries, n = float_queries("projections", projections), len(codes)
    lists = _row_lists(shortlist, queries.shape[:-1], n)
    own = [Selection(n, rows=listed[listed != NO_ROW]) for listed in lists]
    where = own[0] if queries.ndim == 1 else own or None
    return asymmetric_top_k(codes, queries, k, threads=1, where=where)


def rescore_floats(
    floats: NDArray[Any] | LazyRows,
    queries: ArrayLike,
    shortlist: NDArray[np.int64],
    k: int,
    *,
    dot: bool = False,
) -> CosineResult | ScoreResult:
    """The k rows of each shortlist with the highest cosine to the query.

    The floats are the original vectors, (n, dims), in memory or mapped. The cosine with a vector of
    zeros is 0. With `dot`, rows are ordered by inner products, which are returned as scores. Other
    arguments, results and errors are as in `rescore_bits`; NaN or infinity is an error too.

    Example:
        >>> floats = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0]])
        >>> rescore_floats(floats, [0.0, 1.0], np.array([0, 1, 2]), k=2)
        CosineResult(cosines=array([1. , 0.8], dtype=float32), rows=array([2, 1]))
    """
    queries = float_queries("queries", queries)
    if floats.ndim != 2 or floats.shape[1] != queries.shape[-1]:
        dims = queries.shape[-1]
        raise InputError(f"floats of shape {floats.shape}, queries of {dims} dimensions")
    lists = _row_lists(shortlist, queries.shape[:-1], len(floats))
    shape = (len(lists), wanted_rows(k, lists.shape[1]))
    best, found = np.full(shape, NO_SCORE), np.full(shape, NO_ROW, np.int64)
    for q, query in enumerate(np.atleast_2d(queries).astype(np.float64)):
        rows = lists[q][lists[q] != NO_ROW]
        vectors = np.asarray(floats[rows], dtype=np.float64)
        if not np.isfinite(vectors).all():
            wrong = rows[~np.isfinite(vectors).all(axis=1)][0]
            raise InputError(f"row {wrong} of floats contains NaN or infinity")
        values = np.einsum("ij,j->i", vectors, query)  # equal rows have equal values
        if not dot:
            norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
            values = np.divide(values, norms, out=np.zeros(len(rows)), where=norms > 0)
        places = np.argsort(-values, kind="stable")[: shape[1]]
        best[q, : len(places)], found[q, : len(places)] = values[places], rows[places]
    shape = (*queries.shape[:-1], shape[1])
    kind = ScoreResult if dot else CosineResult
    return kind(best.reshape(shape), found.reshape(shape))


def rescore_decoded(
    coder: Coder, codes: Codes, metric: Metric, queries: NDArray[Any], shortlist: Any, k: int
) -> ScoreResult:
    """The k rows of each shortlist whose rebuilt vectors have the highest cosine to the query.

    Queries are vectors or codes, (q, ...) or one; those of a metric of codes are rebuilt first.
    """
    several = np.atleast_2d(queries)
    if metric.needs == "codes":
        vectors = coder.rebuilt(codes_of(coder, several))
        if queries.dtype != np.uint8:  # the cosine with a vector of zeros is 0
            vectors[~several.any(axis=1)] = 0
    else:
        vectors = coder.directions(as_float32(coder.check_vectors(several)))
    vectors = vectors[0] if queries.ndim == 1 else vectors
    stored = StoredCodes.of(codes)
    rebuilt = LazyRows(
        lambda rows: coder.rebuilt(stored.take(rows)), len(stored), coder.n_features_in_
    )
    return ScoreResult(*rescore_floats(rebuilt, vectors, shortlist, k))


def _row_lists(shortlist: Any, shape: tuple[int, ...], n: int) -> NDArray[np.int64]:
    """Shortlists of n rows as (q, m), each in row order, so that ties are in row order."""
    shortlist = np.asarray(shortlist)
    if shortlist.dtype.kind not in "iu" or shortlist.shape[:-1] != shape or shortlist.ndim == 0:
        found = f"the shortlist is {shortlist.dtype} of shape {shortlist.shape}"
        expected = ", ".join(map(str, (*shape, "m")))
        raise InputError(f"{found}, expected row numbers of shape ({expected})")
    lists = np.sort(np.atleast_2d(shortlist).astype(np.int64), axis=1)
    least = NO_ROW if shape else 0
    if lists.size and (lists[:, 0].min() < least or lists[:, -1].max() >= n):
        raise InputError(f"the shortlist holds rows outside 0 to {n - 1}")
    return lists


def exact_scores(codes: NDArray[np.uint8], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """The score of each packed code by its own weights of bits, (n, n_bits).

    Sums of four bits, added up from first to last, as the tables of the native search are.

    >>> exact_scores(np.packbits([[1, 1, 0], [1, 0, 1]], axis=1),
    ...              np.array([[2.0, -1.0, 0.5], [2.0, -1.0, 0.5]])).tolist()
    [0.5, 3.5]
    """
    scores, n_bits = np.zeros(len(codes)), weights.shape[1]
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        some, part = codes[start : start + _ROWS_AT_ONCE], weights[start : start + _ROWS_AT_ONCE]
        signed = np.zeros((len(some), 8 * codes.shape[1]))
        signed[:, :n_bits] = np.where(unpack(some, n_bits), part, -part)
        a, b, c, d = np.moveaxis(signed.reshape(len(some), -1, 4), 2, 0)
        for four in (((a + b) + c) + d).T:
            scores[start : start + len(some)] += four
    return scores
