"""All rows within a distance of queries, by codes, ids or float vectors."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors.search import METRICS, SearchableCodes, check_metric, float_vectors
from embits.errors import InputError
from embits.search import WithinResult, WithinScoreResult, asymmetric_top_k, within
from embits.search.radius import distance_of, scores_from, wanted_distance, wanted_similarity


class RadiusQueries(SearchableCodes):
    """Codes with searches that return all rows up to a bound."""

    def within(
        self,
        queries: Any,
        distance: int | None = None,
        *,
        similarity: float | None = None,
        metric: Literal["hamming", "asymmetric", "decoded"] = "hamming",
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
        if metric != "hamming":
            return self._scores_within(queries, metric, similarity, max_results, threads)
        if distance is None:
            bound = distance_of(wanted_similarity(similarity, 0), self.n_bits)
        else:
            bound = wanted_distance(distance, self.n_bits)
        return within(self.codes, self._codes_of(queries), bound, threads, max_results=max_results)

    def _scores_within(
        self,
        queries: NDArray[Any],
        metric: str,
        similarity: float | None,
        max_results: int | None,
        threads: int | None,
    ) -> WithinScoreResult:
        if similarity is None:
            raise InputError(f"metric={metric!r} has no distance: pass similarity")
        lowest = wanted_similarity(similarity, -1)
        batch = np.atleast_2d(queries)
        if metric == "decoded":
            weights, offsets = self._decoded_weights(batch)
        else:
            weights, offsets = self._query_weights(float_vectors(batch))

        def best(of: NDArray[np.intp], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            scores, rows = asymmetric_top_k(self.codes, weights[of], k, threads)
            return scores + offsets[of], rows

        return scores_from(best, len(batch), len(self), lowest, max_results)
