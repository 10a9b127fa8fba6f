"""Questions about rows: codes, floats, neighbors, near pairs; of files and of collections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embits import search
from embits.arrays import Progress, single
from embits.checks import wanted_distance, wanted_rows
from embits.coders import Coder
from embits.errors import InputError
from embits.ids.keys import Ids, WordRows
from embits.ids.subwords import Subwords
from embits.originals import original_vectors
from embits.search import filters, results
from embits.search.cells import Probes
from embits.search.metrics import float_vectors
from embits.search.plan import (
    ONE_MACHINE,
    Machine,
    Plan,
    Rescore,
    forwards_old_keywords,
    metric_for,
    plan_stages,
    run,
    run_within,
    wanted_recall,
)
from embits.search.results import NO_ROW, ResultBase, ids_of, no_rows, nothing_within
from embits.search.scan import parse_bound
from embits.snapshot import Snapshot, wrong_key
from embits.word_methods import Key, WordMethods, is_single

AnyResult = TypeVar("AnyResult", bound=ResultBase)
MetricName: TypeAlias = Literal["hamming", "asymmetric", "decoded", "dot"]

_ROWS_AT_ONCE = 65_536  # of an iteration


class Searchable(WordMethods, ABC):
    """Rows that are asked about. Every method answers from one snapshot."""

    machine: Machine = ONE_MACHINE

    @property
    @abstractmethod
    def current(self) -> Snapshot:
        """The rows as they are now: never changed."""

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.coder.n_bits_

    @property
    def dims(self) -> int:
        """Dimensions of the float vectors behind the codes."""
        return self.coder.n_features_in_

    @property
    def coder(self) -> Coder:
        """The coder that made the codes."""
        return self.current.coder

    @property
    def words(self) -> Ids:
        """The ids of the rows; of word vectors, the words."""
        return self.current.ids

    @property
    def codes(self) -> NDArray[np.uint8]:
        """Packed codes, uint8 (n, width), in row order: those of a file without cells are mapped.

        Others are copied: `bits[...]` takes the codes of ids or of a slice.
        """
        return self.current.codes.in_row_order()

    @property
    def subwords(self) -> Subwords | None:
        """What makes codes of unknown words, if the fastText model had it."""
        return self.current.subwords

    @property
    def columns(self) -> Mapping[str, Any]:
        """Other values of the rows by name, among them their lengths."""
        return self.current.all_columns

    @property
    def lengths(self) -> NDArray[np.float32] | None:
        """The lengths of the vectors, float32 of shape (n,), if they are stored.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(4 * np.eye(3), n_bits=64, method="lsh", lengths=True)
            >>> bits.lengths.tolist()
            [4.0, 4.0, 4.0]
        """
        return self.current.lengths

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """Id -> row, as in gensim; no dictionary is built for it."""
        return WordRows(self.current.ids)

    def ids(self, rows: Any = None, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The ids of rows, in the same shape.

        Args:
            rows: Row numbers of any shape; None is all rows. Row -1, as in the results of queries
                with filters of their own, has the id "", or -1 as a signed integer.
            dtype: The type to convert the ids to, such as `int` for ids that are whole numbers;
                None gives `str` objects. Rows without ids have their numbers as ids.

        Raises:
            InputError: Rows that do not exist, or ids that cannot be converted to `dtype`.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> bits.ids([[2, 0], [1, 1]]).tolist()
            [['c', 'a'], ['b', 'b']]
        """
        now = self.current
        rows = np.arange(len(now)) if rows is None else now.numbered_rows(rows, least=NO_ROW)
        names = ids_of(rows, now.ids)
        if dtype is None:
            return names
        if np.dtype(dtype).kind == "i":
            names[rows == NO_ROW] = str(NO_ROW)
        try:
            return names.astype(dtype)
        except ValueError as error:
            raise InputError(f"the ids cannot be converted to {np.dtype(dtype)}: {error}") from None

    def __len__(self) -> int:
        return len(self.current)

    def __contains__(self, word: object) -> bool:
        return word in self.current.ids

    def __repr__(self) -> str:
        now = self.current
        name = type(self).__name__
        return f"<{name}: {len(now):,} × {now.coder.n_bits_} bits, {now.coder!r}>"

    # -- codes and floats ------------------------------------------------------------------------

    def __getitem__(self, key: Key | Sequence[Key] | slice) -> NDArray[np.uint8]:
        """Packed codes.

        Args:
            key: An id or a packed code gives shape (width,); several of them, or a slice of rows,
                give (n, width). `bits.codes[rows]` are the codes of row numbers.

        Raises:
            UnknownWordError: There is no such id, and no subwords to make it from.
            InputError: The key is something else.
        """
        now = self.current
        if isinstance(key, slice):
            try:
                return now.codes.take(key)
            except (TypeError, ValueError):
                raise InputError(f"the key is {key}, expected a slice of row numbers") from None
        if is_single(key):
            return now.code(key)
        if not isinstance(key, Sequence | np.ndarray) or getattr(key, "ndim", 1) == 0:
            raise wrong_key(key)
        return now.codes_of(list(key))

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """The packed code of each row, in order."""
        now = self.current
        for start in range(0, len(now), _ROWS_AT_ONCE):
            yield from now.codes.take(slice(start, start + _ROWS_AT_ONCE))

    def encode(self, vectors: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """Codes of new vectors: (width,) for one vector, (n, width) for several.

        `device` may be a GPU such as "cuda" (the extra `gpu`); the codes are the same.
        """
        return self.current.encode(vectors, device)

    def decode(
        self, keys: Key | Sequence[Key] | slice | None = None, *, rows: Any = None
    ) -> NDArray[np.float32]:
        """Floats rebuilt from codes, of their true lengths if these are stored.

        Args:
            keys: An id or code gives shape (dims,); several, or codes of shape (n, width), give
                (n, dims); None decodes everything. Codes have no lengths of their own.
            rows: Row numbers, instead of `keys`.
        """
        now = self.current
        if rows is not None:
            return now.decode(now.rows_of(keys, rows))
        if keys is None or isinstance(keys, slice):
            return now.decode(slice(None) if keys is None else keys)
        if isinstance(keys, np.ndarray) and keys.ndim == 2:
            return now.coder.inverse_transform(keys)
        if is_single(keys):
            return single(now.decode_keys([keys]))
        listed: Any = keys
        return now.decode_keys(list(listed))

    # -- search ----------------------------------------------------------------------------------

    @forwards_old_keywords
    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        metric: MetricName | None = None,
        where: Any = None,
        recall: float | Probes | None = None,
        rescore: int | Rescore | Sequence[Rescore] | None = None,
    ) -> results.SearchResult:
        """The k nearest rows of each query.

        `on` searches with another number of threads, or on a GPU.

        Args:
            queries: Floats of shape (dims,) or (q, dims); packed codes (uint8) of shape (width,) or
                (q, width); or an id, or several strings, of rows whose codes are searched for.
            k: Number of rows to return; all, if there are fewer.
            metric: None compares floats as "asymmetric", and codes and ids by "hamming".
                "asymmetric" weighs the bits by a float query. "hamming" counts the bits that
                differ; floats are encoded first. "decoded" weighs the bits by the vector rebuilt
                from the query's code, so queries may be codes or ids. The scores of "asymmetric"
                and "decoded" estimate the cosine, and may be slightly above 1; a query of zeros
                scores 0. "dot" estimates the inner product, for rows with lengths.
            where: The rows that may be found: a boolean mask of shape (n,), ids, a selection that
                `select` made, or a filter on columns; or a filter for each query: a mask of shape
                (q, n), or a list of q filters, where None is all rows. Rows without ids have their
                numbers as ids. A filter on columns is an expression of `pyarrow.compute`, or a
                mapping such as `{"label": "news", "year": (2020, None)}`, all of which must hold:
                a value is equal, a list has the values that may be, (low, high) is a range with
                both ends, where None is open, and None finds missing values. Of a column of lists,
                one of the values must be equal.
            recall: Read only as many cells (`cells=` of `binarize`, or `with_cells`) as find this
                share of the rows that a search of all rows finds, from 0 to 1. Each query stops on
                its own. Without cells, all rows are read. `Probes(n)` reads n cells instead, and
                needs cells.
            rescore: Order this many of the best rows again: by the vectors that are kept beside the
                codes, if there are some and the queries are floats; else by the score of `metric`
                after a search by Hamming distance. `Rescore(n, by=...)` takes other vectors, or
                several of them follow each other. None: as the coder was fitted (`Neural` orders
                some rows by their decoded vectors, others do not). 0: nothing is ordered again.

        Returns:
            A named pair of arrays of shape (q, k), or (k,) for a single query, best first, ties in
            row order. It unpacks as `values, rows`. `rows` are row numbers, `ids` their ids, and
            `scores` float32, the larger the better: by Hamming distance the share of equal bits.
            The first field says what the values are: `distances` (int32, the smallest is the best),
            `scores`, or `cosines` after rescoring by vectors. If fewer than k rows pass the filter,
            there are fewer columns. If queries have their own filters, the shorter ones end with
            row -1 and the worst value (2^31 - 1, or -inf). `rows_read` counts the rows that were
            scored for all queries together, before any rescoring.

        Raises:
            InputError: Shapes or types do not fit, the search needs float queries, lengths or
                cells, or the vectors to rescore by are not those of the codes.
            UnknownWordError: There is no such id.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh", ids=range(100, 200))
            >>> found = bits.search(X[7], k=3)
            >>> found.ids[0], found.scores.shape
            ('107', (3,))
        """
        now = self.current
        queries = now.queries(queries)
        chosen, k = metric_for(metric, queries), wanted_rows(k, len(now))
        if not now.coder.n_features_in_:  # a collection without rows, so that it has no coder yet
            by_vectors = isinstance(rescore, Rescore) and not isinstance(rescore.by, str | None)
            return with_ids(now, no_rows(chosen, queries.shape[:-1], by_vectors=by_vectors))
        kept = partial(_vectors_by, now, queries)
        on_gpu = self.machine.device != "cpu"
        stages = plan_stages(now.coder, chosen, k, len(now), rescore, kept, on_gpu=on_gpu)
        selection = now.filters(queries.shape[:-1], where)
        plan = Plan(chosen, k, selection, wanted_recall(recall), stages)
        return with_ids(now, run(now, plan, queries, self.machine))

    def select(
        self, where: Any = None, exclude: Any = None, *, rows: Any = None
    ) -> filters.Selection:
        """Parse a filter once, for many searches: it is then passed as `where` or `exclude`.

        The arguments are as in `search`. It is refused once its collection has changed.

        Raises InputError and UnknownWordError as `search` does.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> bits.select(exclude=["queen", "king"])
            <Selection: 1,998 of 2,000 rows>
        """
        return self.current.select(where, exclude, rows)

    def selections(self, queries: Any, where: Any, exclude: Any, rows: Any) -> filters.Filters:
        """The filters of a search as selections: one for all queries, or one for each."""
        now = self.current
        return now.filters(now.queries(queries).shape[:-1], where, exclude, rows)

    # -- all rows up to a bound ------------------------------------------------------------------

    def within(
        self,
        queries: Any,
        distance: int | None = None,
        *,
        similarity: float | None = None,
        metric: MetricName = "hamming",
        where: Any = None,
        exclude: Any = None,
        rows: Any = None,
        max_results: int | None = None,
        threads: int | None = None,
    ) -> results.WithinResult | results.WithinScoreResult:
        """All rows within a distance of each query, or of at least a similarity.

        Other arguments are as in `search`; all metrics but "hamming" need `similarity`.

        Args:
            distance: The largest Hamming distance, from 0 to `n_bits`.
            similarity: The lowest similarity, instead of `distance`: with "hamming" the share of
                bits that are equal, from 0 to 1; with other metrics the lowest score.
            max_results: Rows of all queries together at which the search stops with an error; None
                means 100 million. A row that is found takes about 50 bytes of memory.

        Returns:
            A named tuple `offsets` (q + 1,), `rows`, and `distances` (int32) or `scores` (float32).
            The rows of query i are `rows[offsets[i] : offsets[i + 1]]`, best first, ties in row
            order; `ids` are their ids. A single query is query 0, and an id finds its own row too.

        Raises:
            InputError: As for `search`; or not one of `distance` and `similarity` is given.
            TooManyResultsError: There are more rows than `max_results`.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh")
            >>> found = bits.within(X[:2], distance=14)
            >>> found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()
            ([0, 3, 4], [0, 29, 55, 1], [0, 14, 14, 0])
        """
        now = self.current
        queries, several = now.queries(queries), np.atleast_2d
        chosen = metric_for(metric, queries)
        bound = parse_bound(chosen, distance, similarity, now.coder.n_bits_)
        if not now.coder.n_features_in_:  # a collection without rows, as in `search`
            return with_ids(now, nothing_within(chosen, len(several(queries))))
        selection = now.filters(queries.shape[:-1], where, exclude, rows)
        plan = Plan(chosen, selection=selection, bound=bound, max_results=max_results)
        return with_ids(now, run_within(now, plan, several(queries), Machine(threads=threads)))

    def pairs_within(
        self, distance: int, *, max_results: int | None = None, threads: int | None = None
    ) -> results.PairsResult:
        """All pairs of rows within a Hamming distance: `embits.search.pairs_within` of the codes.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(9)[[0, 1, 0]], n_bits=64, method="lsh")
            >>> pairs = bits.pairs_within(3)
            >>> pairs.first.tolist(), pairs.second.tolist()
            ([0], [2])
        """
        codes = self.codes
        distance = wanted_distance(distance, self.n_bits)
        return search.pairs_within(codes, distance, threads, max_results=max_results)

    def iter_pairs_within(
        self, distance: int, *, threads: int | None = None
    ) -> Iterator[results.PairsResult]:
        """The pairs of `pairs_within` in blocks of about a million, for results of any size."""
        return search.iter_pairs_within(self.codes, wanted_distance(distance, self.n_bits), threads)

    def duplicates(
        self, distance: int, *, threads: int | None = None, progress: Progress | None = None
    ) -> results.GroupsResult:
        """Groups of rows within a Hamming distance: `embits.search.duplicates` of the codes.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(9)[[0, 1, 0]], n_bits=64, method="lsh")
            >>> bits.duplicates(3).ids.tolist()
            ['0', '2']
        """
        now = self.current
        distance = wanted_distance(distance, now.coder.n_bits_)
        codes = now.codes.in_row_order()
        return with_ids(now, search.duplicates(codes, distance, threads, progress=progress))


def with_ids(snapshot: Snapshot, result: AnyResult) -> AnyResult:
    """A result that knows the ids and columns of its rows, whatever changes later."""
    result.names, result.n_bits = snapshot.ids, snapshot.coder.n_bits_
    result.columns = snapshot.column_values
    return result


def _vectors_by(snapshot: Snapshot, queries: NDArray[Any], by: Any) -> Any:
    """The vectors of `Rescore.by`, for queries that are floats; None if none are kept."""
    if isinstance(by, str) and by == "kept":
        are_floats = queries.dtype != np.uint8
        return snapshot.floats.lazy if are_floats and snapshot.floats is not None else None
    float_vectors(queries)
    return original_vectors(snapshot, by)
