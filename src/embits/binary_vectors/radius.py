"""All rows within a distance of queries, by codes, ids or float vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from embits import search
from embits.arrays import Progress
from embits.binary_vectors.queries import METRICS, check_metric, float_vectors
from embits.binary_vectors.search import SearchableCodes
from embits.errors import InputError
from embits.search import (
    GroupsResult,
    PairsResult,
    WithinResult,
    WithinScoreResult,
    asymmetric_top_k,
    within,
)
from embits.search.arguments import distance_of, wanted_distance, wanted_similarity
from embits.search.filters import Filters
from embits.search.radius_scores import scores_from


class RadiusQueries(SearchableCodes):
    """Codes with searches that return all rows up to a bound."""

    def within(
        self,
        queries: Any,
        distance: int | None = None,
        *,
        similarity: float | None = None,
        metric: Literal["hamming", "asymmetric", "decoded"] = "hamming",
        where: Any = None,
        exclude: Any = None,
        max_results: int | None = None,
        threads: int | None = None,
    ) -> WithinResult | WithinScoreResult:
        """All rows within a distance of each query, or of at least a similarity.

        Args:
            queries: As in `search`: floats, packed codes, or ids.
            distance: The largest Hamming distance, from 0 to `n_bits`.
            similarity: The lowest similarity, in place of `distance`. With "hamming" it is the
                share of bits that are equal, from 0 to 1, as `similarity` and `most_similar` return
                it. With "asymmetric" and "decoded" it is the lowest score, an estimate of the
                cosine from -1 to 1.
            metric: As in `search`. "asymmetric" and "decoded" need `similarity`.
            where: The rows that may be found, as in `search`.
            exclude: The rows that may not be found, as in `search`.
            max_results: Rows of all queries together at which the search stops with an error; None
                means 100 million. Memory is needed only for the rows that are found, about 50
                bytes each. Search large batches in blocks of queries.
            threads: None uses every core.

        Returns:
            A named tuple `offsets` (q + 1,), `rows`, and `distances` (int32) or, with "asymmetric"
            and "decoded", `scores` (float32). The rows of query i are
            `rows[offsets[i] : offsets[i + 1]]`, best first, ties in row order. A single query is
            query 0. A row that is searched for by its id is among its own results.

        Raises:
            InputError: Shapes or types do not fit; not exactly one of `distance` and `similarity`
                is given, or it is out of range.
            TooManyResultsError: There are more rows than `max_results`.
            UnknownWordError: There is no such id.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh")
            >>> found = bits.within(X[:2], distance=14)
            >>> found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()
            ([0, 3, 4], [0, 29, 55, 1], [0, 14, 14, 0])
        """
        check_metric(metric, METRICS)
        if (distance is None) == (similarity is None):
            raise InputError("within needs a distance or a similarity, one of them")
        queries = self._queries(queries)
        filters = self._filters(queries.shape[:-1], where, exclude)
        if metric != "hamming":
            lowest = self._lowest_score(metric, similarity)
            return self._scores_within(queries, metric, lowest, filters, max_results, threads)
        if distance is None:
            bound = distance_of(wanted_similarity(similarity, 0), self.n_bits)
        else:
            bound = wanted_distance(distance, self.n_bits)
        codes = self._codes_of(queries)
        return within(self.codes, codes, bound, threads, where=filters, max_results=max_results)

    def pairs_within(
        self, distance: int, *, max_results: int | None = None, threads: int | None = None
    ) -> PairsResult:
        """All pairs of rows within a Hamming distance of each other.

        The search is exact and does not compare all pairs if that can be avoided. Rows with the
        same code are searched once.

        Args:
            distance: The largest number of bits that may differ, from 0 to `n_bits`.
            max_results: Pairs at which the search stops with an error; None means 100 million,
                which need 3 GB of memory.
            threads: None uses every core.

        Returns:
            A named tuple `first`, `second` (row numbers, first < second) and `distances`, in the
            order of `first`, then `second`.

        Raises:
            InputError: The distance is out of range.
            TooManyResultsError: There are more pairs than `max_results`. `iter_pairs_within`
                and `duplicates` have no such limit.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(np.vstack([X, X[:2] + 0.01]), n_bits=64, method="lsh")
            >>> pairs = bits.pairs_within(3)
            >>> pairs.first.tolist(), pairs.second.tolist()
            ([0, 1], [100, 101])
        """
        distance = wanted_distance(distance, self.n_bits)
        return search.pairs_within(self.codes, distance, threads, max_results=max_results)

    def iter_pairs_within(
        self, distance: int, *, threads: int | None = None
    ) -> Iterator[PairsResult]:
        """The pairs of `pairs_within` in blocks of about a million, for results of any size.

        Each pair is in one block. Pairs are sorted within a block, but blocks come in no order.

        Raises:
            InputError: The distance is out of range.
        """
        return search.iter_pairs_within(self.codes, wanted_distance(distance, self.n_bits), threads)

    def duplicates(
        self, distance: int, *, threads: int | None = None, progress: Progress | None = None
    ) -> GroupsResult:
        """Groups of rows within a Hamming distance of each other, directly or through others.

        The groups are the connected components of the pairs of `pairs_within`. No list of pairs is
        made, so any number of rows may have the same code.

        Args:
            distance: The largest number of bits in which two neighbors differ, from 0 to `n_bits`.
            threads: None uses every core.
            progress: Called with what is done and the total.

        Returns:
            A named tuple `offsets` (groups + 1,), `rows` and `distances`. Group i has
            `rows[offsets[i] : offsets[i + 1]]`, at least two, in row order; groups are in the order
            of their first rows. The distances are to the first row of the group, and may be more
            than `distance`.

        Raises:
            InputError: The distance is out of range.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(np.vstack([X, X[:2] + 0.01]), n_bits=64, method="lsh")
            >>> bits.duplicates(3).rows.tolist()
            [0, 100, 1, 101]
        """
        distance = wanted_distance(distance, self.n_bits)
        return search.duplicates(self.codes, distance, threads, progress=progress)

    @staticmethod
    def _lowest_score(metric: str, similarity: float | None) -> float:
        if similarity is None:
            raise InputError(f"metric={metric!r} has no distance: pass similarity")
        return wanted_similarity(similarity, -1)

    def _scores_within(
        self,
        queries: NDArray[Any],
        metric: str,
        lowest: float,
        filters: Filters,
        max_results: int | None,
        threads: int | None,
    ) -> WithinScoreResult:
        batch = np.atleast_2d(queries)
        if metric == "decoded":
            weights, offsets = self._decoded_weights(batch)
        else:
            weights, offsets = self._query_weights(float_vectors(batch))

        def best(of: NDArray[np.intp], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            where = [filters[q] for q in of] if isinstance(filters, list) else filters
            scores, rows = asymmetric_top_k(self.codes, weights[of], k, threads, where=where)
            return scores + offsets[of], rows

        return scores_from(best, len(batch), len(self), lowest, max_results)
