"""Search by codes, ids or float vectors."""

from __future__ import annotations

from functools import cached_property
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from embits.arrays import as_float32, to_numpy
from embits.binary_vectors.codes import Codes, single
from embits.binary_vectors.originals import Originals, rescored
from embits.binary_vectors.queries import (
    METRICS,
    are_numbers,
    are_strings,
    check_metric,
    float_vectors,
)
from embits.bits import check_padding, unpack
from embits.coders.checks import check_dims
from embits.errors import InputError, UnknownWordError
from embits.search import (
    DistanceResult,
    ScoreResult,
    SearchResult,
    Selection,
    asymmetric_top_k,
    top_k,
)
from embits.search.filters import Filters, check_state, parse_filters
from embits.search.rescoring import rescore_bits, shortlist_size
from embits.search.selection import found_rows, select

if TYPE_CHECKING:
    from embits.search.gpu import DeviceIndex


class SearchableCodes(Codes):
    """Codes with exact search over them."""

    _state: object = None  # what a collection shows: a selection of it fits this state only

    @cached_property
    def _on_device(self) -> dict[str, DeviceIndex]:
        """The copies of the codes on GPUs, by device."""
        return {}

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        metric: Literal["hamming", "asymmetric", "decoded"] = "hamming",
        oversample: float | None = None,
        floats: Originals | None = None,
        threads: int | None = None,
        device: str = "cpu",
        where: Any = None,
        exclude: Any = None,
    ) -> SearchResult:
        """The k nearest rows of each query.

        Args:
            queries: Floats of shape (dims,) or (q, dims), which are encoded first; packed codes
                (uint8) of shape (width,) or (q, width); or an id, or several, of rows whose codes
                are searched for.
            k: Number of rows to return; if it exceeds the number of rows, all are returned.
            metric: "hamming" counts the bits that differ. "asymmetric" weighs the bits by a float
                query and finds more true neighbors. "decoded" weighs them by the vector rebuilt
                from the query's code, so queries may be codes or ids. The scores of the last two
                estimate the cosine and may be slightly above 1. Against its own code, a float
                query scores about the cosine of the vector and its rebuilt version; with searched
                codes of NearLossless, a decoded query scores 1. A query of zeros scores 0.
            oversample: Find this many times k rows by the cheaper score, and order those by the
                finer one: by `floats` if they are given (4 by default), else by the score of
                "asymmetric" or "decoded" after a search by Hamming distance.
            floats: The original vectors: a matrix row by row, the path of its `.npy` (mapped), or
                `WordVectors`, which are looked up by id. The shortlist is ordered by their cosine
                to the query, and no other row is read. Rows of a collection move when it changes:
                give `WordVectors`.
            threads: None uses every core.
            device: A GPU such as "cuda" (the extra `gpu`) searches by Hamming distance there and
                gives the same rows; the first search copies the codes to it, where they stay.
            where: The rows that may be found: a boolean mask of shape (n,), ids (strings), row
                numbers, or a selection that `select` made; or a filter for each query: a mask of
                shape (q, n), or a list of q filters, where None is all rows. Whole numbers are
                row numbers, even if the ids are digits.
            exclude: The rows that may not be found, in the same forms. Ids that are not there are
                ignored.

        Returns:
            A named pair of arrays of shape (q, k), or (k,) for a single query, best first, ties in
            row order. It unpacks as `values, rows`. `rows` are row numbers; the field of the values
            says what they are: `distances` (int32, the smallest is the best), `scores` for
            "asymmetric" and "decoded" or `cosines` for `floats` (float32, the largest is the best).
            If fewer than k rows pass the filter, there are fewer columns. If queries have their own
            filters, there are as many columns as the query with the most rows needs; the others end
            with row -1 and the worst value (2^31 - 1, or -inf).

        Raises:
            InputError: Shapes or types do not fit, the search needs float queries, or `floats` are
                not the vectors of the codes.
            UnknownWordError: There is no such id.
            ReadError: The `.npy` of `floats` is damaged.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh")
            >>> cosines, rows = bits.search(X[7], k=3, oversample=10, floats=X)
            >>> int(rows[0]), round(float(cosines[0]), 3)
            (7, 1.0)
        """
        queries = self._queries(queries)
        where = self._filters(queries.shape[:-1], where, exclude)
        check_metric(metric, METRICS)
        if floats is None and (metric == "hamming") and oversample is not None:
            raise InputError("oversample needs a finer score: metric='asymmetric', or floats")
        if floats is not None:
            oversample = 4 if oversample is None else oversample
            size = shortlist_size(k, oversample, len(self))
            _, shortlist = self.search(
                float_vectors(queries),
                size,
                metric=metric,
                threads=threads,
                device=device,
                where=where,
            )
            return rescored(self, floats, queries, shortlist, k, padded=isinstance(where, list))
        if metric == "hamming":
            return self._top_k(self._codes_of(queries), k, threads, device, where)
        if metric == "decoded":
            weights, offsets = self._decoded_weights(queries)
        else:
            weights, offsets = self._query_weights(float_vectors(queries))
        if oversample is None:
            if device != "cpu":
                raise InputError(f"metric={metric!r} on a GPU needs a shortlist: give oversample")
            return self._score(weights, offsets, k, threads, where)
        size = shortlist_size(k, oversample, len(self))
        _, shortlist = self._top_k(self._codes_of(queries), size, threads, device, where)
        padded = isinstance(where, list)
        scores, rows = rescore_bits(self.codes, weights, shortlist, k, padded=padded)
        return ScoreResult(scores + offsets, rows)

    def select(self, where: Any = None, exclude: Any = None) -> Selection:
        """Parse a filter once, for many searches: it is then passed as `where` or `exclude`.

        A selection of a collection is refused once the collection has changed.

        Args:
            where: The rows that may be found: a boolean mask, ids or row numbers. None is all rows.
            exclude: The rows that may not be found, in the same forms. Ids that are not there are
                ignored.

        Raises:
            InputError: A mask of another length, a row that does not exist, or another type.
            UnknownWordError: `where` has an id that is not there.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> bits.select(exclude=["queen", "king"])
            <Selection: 1,998 of 2,000 rows>
        """
        check_state(self._state, where=where, exclude=exclude)
        selection = select(len(self), where, exclude, self._rows_of_ids)
        return selection if self._state is None else selection.of_state(self._state)

    def _filters(self, shape: tuple[int, ...], where: Any, exclude: Any) -> Filters:
        check_state(self._state, where=where, exclude=exclude)
        return parse_filters(len(self), shape, where, exclude, self._rows_of_ids)

    def _rows_of_ids(self, name: str, ids: list[str]) -> NDArray[np.int64]:
        return found_rows(name, ids, self.words.find_many(ids))

    def _score(
        self,
        weights: NDArray[np.float32],
        offsets: NDArray[np.float32],
        k: int,
        threads: int | None,
        where: Filters,
    ) -> ScoreResult:
        """The k rows with the highest score for each query."""
        scores, rows = asymmetric_top_k(self.codes, weights, k, threads, where=where)
        return ScoreResult(scores + offsets, rows)

    def _queries(self, queries: Any) -> NDArray[Any]:
        """Queries as an array: of floats or packed codes as they are, of ids their codes."""
        if isinstance(queries, str):
            return self[queries]
        array = to_numpy(queries)
        if array.ndim == 0:
            raise InputError(
                f"the query is {shortened(queries)}, expected a float vector, a packed code or an "
                "id; bits[row] is the code of a row"
            )
        if array.dtype.kind in "UT" or (array.dtype.kind == "O" and are_strings(array)):
            return self._codes_of_ids(array)
        if array.dtype.kind in "iu" and array.dtype != np.uint8 and array.shape[-1] != self.dims:
            raise InputError(
                f"the queries are whole numbers of shape {array.shape}: neither ids (strings) nor "
                f"vectors of {self.dims} dimensions; bits[rows] are the codes of rows"
            )
        if array.dtype == np.uint8 and array.shape[-1] == self.coder.n_bytes_:
            check_padding(array, self.n_bits)
        if array.dtype.kind == "f":
            check_dims(array, self.dims)
        return array

    def _codes_of_ids(self, ids: NDArray[Any]) -> NDArray[np.uint8]:
        try:
            return self[ids.ravel().tolist()]
        except UnknownWordError:
            if ids.shape[-1] == self.dims and are_numbers(ids):
                raise InputError(
                    "the queries are numbers as text: convert them by queries.astype(np.float32)"
                ) from None
            raise

    def _top_k(
        self,
        codes: NDArray[np.uint8],
        k: int,
        threads: int | None,
        device: str,
        where: Filters,
    ) -> DistanceResult:
        if device == "cpu":
            return top_k(self.codes, codes, k, threads, where=where)
        if device not in self._on_device:
            # Imported here: a search on the processor needs no GPU code.
            from embits.search.gpu import DeviceIndex

            self._on_device[device] = DeviceIndex(self.codes, device)
        return self._on_device[device].top_k(codes, k, where=where)

    def _codes_of(self, queries: NDArray[Any]) -> NDArray[np.uint8]:
        return queries if queries.dtype == np.uint8 else self.encode(queries)

    def _decoded_weights(
        self, queries: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights and offsets of the vectors that the codes of queries decode to."""
        codes = self._codes_of(queries)
        rebuilt = self.decode(codes)
        if queries.dtype != np.uint8:
            rebuilt[~as_float32(queries).any(axis=-1)] = 0
        weights, offsets = self._query_weights(rebuilt, rebuilt=True)
        if self.coder.is_threshold:  # its scores are cosines, of 1 at most
            return weights, offsets
        signs = 2 * unpack(np.atleast_2d(codes), self.n_bits) - 1
        own = (weights * signs).sum(axis=1) + offsets.ravel()  # scores of codes against themselves
        own = np.where(own > 0, own, np.float32(1)).astype(np.float32)
        scaled = weights / own[:, None]
        return scaled.reshape(weights.shape), offsets / own.reshape(offsets.shape)

    def _query_weights(
        self, queries: NDArray[Any], *, rebuilt: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights of the bits, and what is added to the scores, for one query or several."""
        vectors = as_float32(self.coder.check_vectors(np.atleast_2d(queries)))
        weights, offsets = self.coder.query_weights(vectors, rebuilt=rebuilt)
        is_zero = ~vectors.any(axis=1)  # the cosine with a vector of zeros is 0
        weights[is_zero], offsets[is_zero] = 0, 0
        return (single(weights), offsets) if queries.ndim == 1 else (weights, offsets[:, None])
