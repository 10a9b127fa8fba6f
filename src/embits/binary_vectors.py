"""BinaryVectors: the ids of rows, their codes, and the coder that made them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import is_not
from pathlib import Path
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embits import search
from embits._lazy import LazyProperty
from embits.arrays import Progress, check_padding, single, to_numpy, unit_rows
from embits.checks import check_dims, wanted_distance, wanted_rows
from embits.coders import Coder, coder_checksum
from embits.columns import StoredColumns, column_values, is_filter
from embits.errors import InputError, SizeWarning, warn_caller
from embits.file import store
from embits.file.contents import ByteCounts, byte_counts, stored_codes, to_contents
from embits.file.overwrite import check_target
from embits.ids.keys import Keys, RowNumbers, WordRows
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import PieceWords, Vocabulary
from embits.originals import Originals, rescored
from embits.pretrained import Pretrained
from embits.rows import FLOATS, LENGTHS, Lengths, Rows, check_parts, joined, slim_rows, taken
from embits.search import filters, results
from embits.search.cells import RECALLS, arranged, measured, train, wanted_cells
from embits.search.metrics import METRICS, Prepared, float_vectors, metric_of
from embits.search.pieces import CodePieces
from embits.search.rescoring import looked, rescore_bits, wanted_look, wanted_shortlist
from embits.search.results import NO_ROW, CosineResult, DistanceResult, Found, ScoreResult, ids_of
from embits.search.scan import prepared_top_k, prepared_within, wanted_bound
from embits.vectors import WordVectors, as_words, is_id
from embits.word_methods import Key, WordMethods, is_single

if TYPE_CHECKING:
    from embits.search.gpu import DeviceIndex

AnyResult = TypeVar("AnyResult", bound=Found)
MetricName: TypeAlias = Literal["hamming", "asymmetric", "decoded", "dot"]

_ROWS_AT_ONCE = 65_536  # of an iteration: pieces of a collection are joined a part at a time


class BinaryVectors(WordMethods, Pretrained):
    """Packed codes, the ids of their rows, and the coder that made them.

    Made by `embits.binarize` or `embits.load`. Any number of threads may search one object. The
    attributes are the arguments; the lengths are among the columns.

    Args:
        words: The ids of the rows, each once: strings or whole numbers, which are kept as their
            digits; for word vectors, the words. None uses row numbers.
        codes: Packed codes, uint8 (n, ceil(n_bits / 8)), first bit highest. Those of a file are
            mapped, and read-only: `bits.codes.copy()` is writable.
        coder: The fitted coder.
        subwords: What makes codes of unknown words, if the fastText model had it.
        lengths: The lengths of the vectors, of shape (n,), rounded to a byte each; or None.
        columns: Other values of the rows by name: NumPy or Arrow arrays of n values. `subset` and
            `concat` carry them; files hold those of NumPy's unsigned integers and floats. Assign
            other arrays to change them: searches remember those that they have seen.

    Raises:
        InputError: The ids are not as many as the codes, one appears twice, or the coder differs.

    Example:
        >>> import numpy as np, embits
        >>> X = np.eye(3)
        >>> coder = embits.RandomHyperplanes(n_bits=32).fit(X)
        >>> bits = embits.BinaryVectors(["doc-1", "doc-2", "doc-3"], coder.encode(X), coder)
        >>> bits.search("doc-2", k=1).ids.tolist()
        ['doc-2']
    """

    _state: object = None  # what a collection shows: a selection of it fits this state only
    _verify: Callable[[], None] | None = None  # of a mapped file, until every byte was checked

    def __init__(
        self,
        words: Keys | Sequence[str] | Sequence[int] | NDArray[Any] | None,
        codes: NDArray[np.uint8] | CodePieces,
        coder: Coder,
        subwords: Subwords | None = None,
        *,
        lengths: Lengths | Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coder, Coder):
            raise InputError(f"coder is {shortened(coder)}, expected a fitted coder")
        if not isinstance(codes, CodePieces):
            codes = coder.check_codes(codes)
        # CodePieces and PieceWords stand in for one array and one vocabulary: they are used alike.
        self.codes = cast("NDArray[np.uint8]", codes)
        self.words = _as_ids(words, len(codes))
        self.coder = coder
        self.subwords = subwords
        if lengths is not None:
            lengths = lengths if isinstance(lengths, Lengths) else Lengths.of(lengths)
            columns = {**(columns or {}), LENGTHS: lengths}
        self.columns = {} if columns is None else columns

    @classmethod
    def encoded(cls, vectors: WordVectors, coder: Coder, *, lengths: bool = False) -> Self:
        """The codes that a fitted coder gives these vectors, with their lengths if asked for."""
        codes = coder.encode(vectors.matrix)
        found = Lengths.of_vectors(vectors.matrix) if lengths else None
        return cls(vectors.words, codes, coder, vectors.subwords, lengths=found)

    @classmethod
    def of_rows(cls, rows: Rows, coder: Coder, subwords: Subwords | None = None) -> Self:
        """Rows with the coder that made their codes."""
        return cls(rows.ids, rows.codes, coder, subwords, columns=rows.columns)

    @property
    def columns(self) -> Mapping[str, Any]:
        """Other values of the rows by name, among them their lengths."""
        return self._columns

    @columns.setter
    def columns(self, columns: Mapping[str, Any]) -> None:
        are_stored = isinstance(columns, StoredColumns)
        for name, column in () if are_stored else columns.items():
            if len(column) != len(self):
                raise InputError(f"{len(column)} {name} for {len(self)} codes")
        self._columns = columns if are_stored else dict(columns)
        self._made: dict[str, Any] = {}

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """What was made of these columns before, or made now."""
        columns = tuple(self._columns.values())
        key, made = self._made.get(name, (None, None))
        if key is None or len(key) != len(columns) or any(map(is_not, key, columns)):
            made = make()
            self._made[name] = columns, made
        return made

    @property
    def _arrow_columns(self) -> StoredColumns:
        made: StoredColumns = self._once("arrow", lambda: StoredColumns.of(self.columns, len(self)))
        return made

    @property
    def rows(self) -> Rows:
        """Ids, codes and columns together."""
        return Rows(self.words, self.codes, self.columns)

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.coder.n_bits_

    @property
    def dims(self) -> int:
        """Dimensions of the float vectors behind the codes."""
        return self.coder.n_features_in_

    @property
    def lengths(self) -> NDArray[np.float32] | None:
        """The lengths of the vectors, float32 of shape (n,), if they are stored.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(4 * np.eye(3), n_bits=64, method="lsh", lengths=True)
            >>> bits.lengths.tolist()
            [4.0, 4.0, 4.0]
        """
        return self.columns[LENGTHS].floats if LENGTHS in self.columns else None

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """Id -> row, as in gensim; no dictionary is built for it."""
        return WordRows(self.words)

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
        rows = np.arange(len(self)) if rows is None else self._numbered(rows, least=NO_ROW)
        names = ids_of(rows, self.words)
        if dtype is None:
            return names
        if np.dtype(dtype).kind == "i":
            names[rows == NO_ROW] = str(NO_ROW)
        try:
            return names.astype(dtype)
        except ValueError as error:
            raise InputError(f"the ids cannot be converted to {np.dtype(dtype)}: {error}") from None

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} × {self.n_bits} bits, {self.coder!r}>"

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
        if isinstance(key, slice):
            try:
                return self.codes[key]
            except (TypeError, ValueError):
                raise InputError(f"the key is {key}, expected a slice of row numbers") from None
        if is_single(key):
            return self._code(key)
        if not isinstance(key, Sequence | np.ndarray) or getattr(key, "ndim", 1) == 0:
            raise _wrong_key(key)
        return np.stack([self._code(each) for each in key]) if len(key) else self.codes[:0]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        """The packed code of each row, in order."""
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self.codes[start : start + _ROWS_AT_ONCE]

    def _code(self, key: Any) -> NDArray[np.uint8]:
        if isinstance(key, np.ndarray) and key.dtype == np.uint8:
            codes = self.coder.check_codes(key[np.newaxis])
            check_padding(codes, self.n_bits)
            return single(codes)
        if not is_id(key):
            raise _wrong_key(key)
        row, word = self._row(key), str(key)
        if row is not None:
            return single(self.codes[row : row + 1])
        if self.subwords is not None and self.subwords.rows(word):
            return self.encode(self.subwords.vector(word))
        raise self.words.unknown(key)

    def _row(self, key: Any) -> int | None:
        return self.words.find(str(key)) if is_id(key) else None

    def encode(self, vectors: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """Codes of new vectors: (width,) for one vector, (n, width) for several.

        `device` may be a GPU such as "cuda" (the extra `gpu`); the codes are the same.
        """
        if not getattr(vectors, "is_cuda", False):  # what is on a GPU is encoded there
            vectors = to_numpy(vectors)
        check_dims(vectors, self.dims)
        if vectors.ndim == 1:
            return single(self.coder.encode(vectors[np.newaxis], device=device))
        return self.coder.encode(vectors, device=device)

    def decode(
        self, keys: Key | Sequence[Key] | slice | None = None, *, rows: Any = None
    ) -> NDArray[np.float32]:
        """Floats rebuilt from codes, of their true lengths if these are stored.

        Args:
            keys: An id or code gives shape (dims,); several, or codes of shape (n, width), give
                (n, dims); None decodes everything. Codes have no lengths of their own.
            rows: Row numbers, instead of `keys`.
        """
        if rows is not None:
            found = self._chosen(keys, rows)
            return self._of_length(self.coder.inverse_transform(self.codes[found]), found)
        if keys is None or isinstance(keys, slice):
            codes = self.codes if keys is None else self[keys]
            return self._of_length(self.coder.inverse_transform(codes), keys or slice(None))
        if isinstance(keys, np.ndarray) and keys.ndim == 2:
            return self.coder.inverse_transform(keys)
        vectors = self.coder.inverse_transform(np.atleast_2d(self[keys]))
        listed: Any = [keys] if is_single(keys) else keys
        for place, key in enumerate(listed if LENGTHS in self.columns else ()):
            row = self._row(key)  # codes and unknown words have none
            if row is not None:
                vectors[[place]] = self._of_length(vectors[[place]], [row])
        return single(vectors) if listed is not keys else vectors

    def _of_length(self, vectors: NDArray[np.float32], rows: Any) -> NDArray[np.float32]:
        """Decoded vectors with the lengths of their rows, if these are stored."""
        if (lengths := self.lengths) is None:
            return vectors
        scaled: NDArray[np.float32] = unit_rows(vectors) * lengths[rows][:, None]
        return scaled

    # -- search ----------------------------------------------------------------------------------

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        metric: MetricName = "hamming",
        rescore: int | None = None,
        oversample: float | None = None,
        floats: Originals | None = None,
        threads: int | None = None,
        device: str = "cpu",
        where: Any = None,
        exclude: Any = None,
        rows: Any = None,
        second_look: int | None = None,
        recall: float | None = None,
        probes: int | None = None,
    ) -> results.SearchResult:
        """The k nearest rows of each query.

        Args:
            queries: Floats of shape (dims,) or (q, dims), which are encoded first; packed codes
                (uint8) of shape (width,) or (q, width); or an id, or several strings, of rows whose
                codes are searched for.
            k: Number of rows to return; all, if there are fewer.
            metric: "hamming" counts the bits that differ. "asymmetric" weighs the bits by a float
                query and finds more true neighbors. "decoded" weighs them by the vector rebuilt
                from the query's code, so queries may be codes or ids. The scores of these two
                estimate the cosine, and may be slightly above 1; a query of zeros scores 0. "dot"
                estimates the inner product, for rows with lengths.
            rescore: Find this many rows of each query by the cheaper score, and order them by the
                finer one: by `floats` if they are given (4 times k by default), by the vectors of
                a collection that keeps them, else by the score of `metric` after a search by
                Hamming distance.
            oversample: Deprecated: `rescore` as a multiple of k.
            floats: The original vectors: a matrix row by row, the path of its `.npy` (mapped), or
                `WordVectors`, which are looked up by id and stay right when a collection changes.
                The shortlist is ordered by their cosine to the query, or with "dot" by their inner
                product, and no other row is read.
            threads: None uses every core.
            device: A GPU such as "cuda" (the extra `gpu`) searches by Hamming distance there and
                gives the same rows; the first search copies the codes to it, where they stay.
            where: The rows that may be found: a boolean mask of shape (n,), ids, a selection that
                `select` made, or a filter on columns; or a filter for each query: a mask of shape
                (q, n), or a list of q filters, where None is all rows. Rows without ids have their
                numbers as ids. A filter on columns is an expression of `pyarrow.compute`, or a
                mapping such as `{"label": "news", "year": (2020, None)}`, all of which must hold:
                a value is equal, a list has the values that may be, (low, high) is a range with
                both ends, where None is open, and None finds missing values. Of a column of lists,
                one of the values must be equal.
            exclude: The rows that may not be found, in the same forms; unknown ids are ignored.
            rows: The numbers of the rows that may be found, instead of `where`.
            second_look: Score this many of the best rows again, by the cosine of the query and the
                decoded row, for a metric of scores. None: as the coder was fitted (`Neural` takes a
                second look, others do not), and more rows if k is more than 10. 0: none.
            recall: Read only as many cells (`cells=` of `binarize`, or `with_cells`) as find this
                share of the rows that a search of all rows finds, from 0 to 1. Each query stops on
                its own. Without cells, all rows are read.
            probes: Read this many cells for each query instead; more if a filter lets few rows
                pass, or if they hold fewer than k rows. It needs cells.

        Returns:
            A named pair of arrays of shape (q, k), or (k,) for a single query, best first, ties in
            row order. It unpacks as `values, rows`. `rows` are row numbers and `ids` their ids; the
            field of the values says what they are: `distances` (int32, the smallest is the best),
            `scores`, or `cosines` for `floats` (float32, the largest is the best). If fewer than k
            rows pass the filter, there are fewer columns. If queries have their own filters, the
            shorter ones end with row -1 and the worst value (2^31 - 1, or -inf). `rows_read` counts
            the rows that were scored for all queries together, before any rescoring.

        Raises:
            InputError: Shapes or types do not fit, the search needs float queries, lengths or
                cells, or `floats` are not the vectors of the codes.
            UnknownWordError: There is no such id.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh")
            >>> cosines, rows = bits.search(X[7], k=3, rescore=30, floats=X)
            >>> int(rows[0]), round(float(cosines[0]), 3)
            (7, 1.0)
        """
        chosen = metric_of(metric)
        if not self.dims:  # a collection without rows, so that it has no coder yet
            wanted_rows(k, 0)
            rows = np.empty((*np.shape(queries)[:-1], 0), np.int64)
            if floats is None and rescore is None and chosen.is_distance:
                return self._named(DistanceResult(rows.astype(np.int32), rows))
            is_cosine = floats is not None and not chosen.needs_lengths
            kind = CosineResult if is_cosine else ScoreResult
            return self._named(kind(rows.astype(np.float32), rows))
        queries = self._queries(queries)
        allowed = self._filters(queries.shape[:-1], where, exclude, rows)
        how: Any = {"threads": threads, "recall": recall, "probes": probes}
        look = wanted_look(self.coder, chosen, second_look, wanted_rows(k, len(self)))
        size = wanted_shortlist(k, len(self), rescore, oversample, floats is not None)
        size = size if len(self) else None
        originals: Any = floats
        if floats is None and queries.dtype != np.uint8:
            originals = self.columns.get(FLOATS)
        if device != "cpu" and not chosen.is_distance and (size is None or originals is not None):
            how = "metric='asymmetric' or 'decoded' with rescore and without floats"
            how = how if originals is None else "leave metric out"
            raise InputError(f"a GPU searches by Hamming distance, not {metric!r}: {how}")
        if size is not None and originals is not None:
            queries = float_vectors(queries)
            how |= {"metric": metric, "device": device, "where": allowed, "second_look": look}
            found = self.search(queries, size, **how)
            dot = chosen.needs_lengths
            finer = rescored(self, originals, queries, found.rows, k, dot=dot)
            return self._named(finer, found.rows_read)
        if size is None:
            prepared = chosen.prepare(self.coder, queries)
            how["lengths"] = self._stored_lengths if chosen.needs_lengths else None
            result = self._top_k(prepared, look or k, device, allowed, **how)
            rows_read = result.rows_read
        else:
            if not chosen.is_cosine:
                finer_score = "float queries and metric='asymmetric', floats=, or keep="
                raise InputError(f"rescore needs a finer score: {finer_score}")
            weights, offsets = chosen.prepare(self.coder, queries)
            coarse = METRICS["hamming"].prepare(self.coder, queries)
            result = self._top_k(coarse, min(max(size, look), len(self)), device, allowed, **how)
            rows_read = result.rows_read
            best = rescore_bits(self.codes, weights, result.rows, look or k)
            result = ScoreResult(best.scores + offsets, best.rows)
        if look:
            result = looked(self.coder, self.codes, chosen, queries, result.rows, k)
        return self._named(result, rows_read)

    def _named(self, found: AnyResult, rows_read: int | None = None) -> AnyResult:
        """A result that knows the ids of these rows, whatever changes later."""
        found.names, found.rows_read = self.words, rows_read
        found.columns = partial(column_values, self.columns, len(self))
        return found

    def _top_k(
        self, prepared: Prepared, k: int, device: str, where: filters.Filters, **how: Any
    ) -> DistanceResult | ScoreResult:
        """`how` is threads, recall, probes and lengths."""
        if device == "cpu":
            return prepared_top_k(self.codes, prepared, k, where=where, **how)
        if how["recall"] is not None or how["probes"] is not None:
            raise InputError("a GPU reads all rows: leave recall and probes out")
        if device not in self._on_device:
            # Imported here: a search on the processor needs no GPU code.
            from embits.search.gpu import DeviceIndex

            self._on_device[device] = DeviceIndex(self.codes, device)
        return self._on_device[device].top_k(prepared.queries, k, where=where)

    @LazyProperty
    def _on_device(self) -> dict[str, DeviceIndex]:
        return {}

    @property
    def _stored_lengths(self) -> NDArray[np.float32]:
        """The length of each code that is stored; rows that are removed have length 0."""
        if LENGTHS not in self.columns:
            needed = 'metric="dot" needs the lengths of the vectors'
            raise InputError(f"{needed}: binarize with lengths=True (--lengths)")

        def in_order() -> NDArray[np.float32]:
            codes: Any = self.codes
            live: NDArray[np.float32] = self.columns[LENGTHS].floats
            if not isinstance(codes, CodePieces) or codes.is_plain:
                return live
            stored = np.zeros(codes.rows.n_stored, np.float32)
            stored[codes.places(codes.rows.stored(np.arange(len(self))))] = live
            return stored

        lengths: NDArray[np.float32] = self._once("lengths", in_order)
        return lengths

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
        where, exclude = self._checked(where, exclude, rows)
        selection = filters.select(len(self), where, exclude, self._rows_of_ids)
        if self._state is not None:
            selection = copy(selection)
            selection.state = self._state
        return selection

    def _filters(
        self, shape: tuple[int, ...], where: Any, exclude: Any, rows: Any
    ) -> filters.Filters:
        where, exclude = self._checked(where, exclude, rows)
        return filters.parse_filters(len(self), shape, where, exclude, self._rows_of_ids)

    def _checked(self, where: Any, exclude: Any, rows: Any) -> tuple[Any, Any]:
        where = self._of_columns(filters.one_of(where, rows, len(self)))
        exclude = self._of_columns(exclude)
        filters.check_state(self._state, where=where, exclude=exclude)
        return where, exclude

    def _of_columns(self, where: Any) -> Any:
        """A filter with its conditions on columns as selections; an empty one is none."""
        if isinstance(where, Mapping) and not where:
            return None
        if is_filter(where):
            return self._arrow_columns.selection(where)
        if isinstance(where, list | tuple) and any(map(is_filter, where)):
            return [self._of_columns(each) for each in where]
        return where

    def _rows_of_ids(self, name: str, ids: NDArray[Any]) -> NDArray[np.int64]:
        words = self.words
        if ids.dtype.kind in "iu" and isinstance(words, RowNumbers):  # the ids are the rows
            return ids
        are_own = not (isinstance(words, PieceWords) and words.numbered)
        return filters.found_rows(name, ids, words.find_many(as_words(ids)), numbers=are_own)

    def _queries(self, queries: Any) -> NDArray[Any]:
        """Queries as an array: of floats or packed codes as they are, of ids their codes."""
        if is_id(queries):
            return self[queries]
        array = to_numpy(queries)
        if array.ndim == 0:
            expected = "a float vector, a packed code or an id"
            raise InputError(f"the query is {shortened(queries)}, expected {expected}")
        are_strings = array.dtype.kind in "UT"
        if array.dtype.kind == "O" and array.size:
            are_strings = all(isinstance(each, str) for each in array.flat)
        if are_strings:
            return self[array.ravel().tolist()]
        if array.dtype == np.uint8:
            if array.shape[-1] == self.coder.n_bytes_:
                check_padding(array, self.n_bits)
            return array
        if array.dtype.kind in "iu" and array.shape[-1] != self.dims:
            found = f"the queries are whole numbers of shape {array.shape}"
            what = f"neither ids (strings) nor vectors of {self.dims} dimensions"
            raise InputError(f"{found}: {what}; bits.codes[rows] are the codes of rows")
        check_dims(array, self.dims)
        return array

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
        chosen = metric_of(metric)
        bound = wanted_bound(chosen, distance, similarity, self.n_bits)
        if not self.dims:  # a collection without rows, as in `search`
            starts = np.zeros(len(np.atleast_2d(queries)) + 1, np.int64)
            if chosen.is_distance:
                return self._named(results.WithinResult(starts, starts[:0], np.empty(0, np.int32)))
            scores = np.empty(0, np.float32)
            return self._named(results.WithinScoreResult(starts, starts[:0], scores))
        queries = self._queries(queries)
        allowed = self._filters(queries.shape[:-1], where, exclude, rows)
        prepared = chosen.prepare(self.coder, np.atleast_2d(queries))
        lengths = self._stored_lengths if chosen.needs_lengths else None
        found = prepared_within(
            self.codes, prepared, bound, threads,
            where=allowed, max_results=max_results, lengths=lengths,
        )  # fmt: skip
        return self._named(found)

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
        distance = wanted_distance(distance, self.n_bits)
        return search.pairs_within(self.codes, distance, threads, max_results=max_results)

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
        distance = wanted_distance(distance, self.n_bits)
        groups = search.duplicates(self.codes, distance, threads, progress=progress)
        return self._named(groups)

    # -- rows and files --------------------------------------------------------------------------

    def get(
        self, ids: Any = None, columns: Iterable[str] | None = None, *, rows: Any = None
    ) -> dict[str, list[Any]]:
        """The values of columns for some rows: a list by the name of each column.

        Args:
            ids: Ids in any order, or a mask of n flags; `rows` are row numbers instead.
            columns: The names of columns; None is all of them. Missing values are None.

        Raises:
            UnknownWordError: There is no such id.
            InputError: There is no such column.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> bits.columns = {"year": np.array([2020, 2021, 2022])}
            >>> bits.get(["c", "a"], columns=["year"])
            {'year': [2022, 2020]}
        """
        listed = [ids] if is_id(ids) else ids
        chosen, held = self._chosen(listed, rows, "get"), self._arrow_columns
        if isinstance(columns, str):
            raise InputError(f"columns is the single string {columns!r}, expected a list of names")
        names = held.kinds if columns is None else columns
        return {name: column_values(held, len(self), name, chosen).tolist() for name in names}

    def to_arrow(self) -> Any:
        """The ids and columns of all rows as an Arrow table; needs pyarrow.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(2), n_bits=64, method="lsh", ids=["a", "b"])
            >>> bits.columns = {"year": np.array([2020, 2021])}
            >>> bits.to_arrow().to_pylist()
            [{'id': 'a', 'year': 2020}, {'id': 'b', 'year': 2021}]
        """
        return self._arrow_columns.table(self.ids())

    def check_undamaged(self) -> None:
        """Check a mapped file before its rows are copied: FormatError if it is damaged."""
        verify = self._verify  # another thread may end its check meanwhile
        if verify is not None:
            verify()
            self._verify = None

    @property
    def nbytes(self) -> int:
        """Bytes of a file of these rows, without its header of about 2 KB."""
        return self.byte_counts().total

    def byte_counts(self) -> ByteCounts:
        """Bytes of the codes, ids, order of the ids, coder, subwords and columns in a file.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(100), n_bits=64, method="lsh")
            >>> bits.byte_counts().codes, bits.byte_counts().words
            (800, 0)
        """
        return byte_counts(self.rows, self.coder, self.subwords)

    def merged(self) -> BinaryVectors:
        """The same rows with all codes in one array in row order, and all ids in one vocabulary.

        Only the rows of a file without cells are not copied. FormatError: Something is damaged.
        """
        self.check_undamaged()
        words: Any = self.words
        words = words.merged() if isinstance(words, PieceWords) else words
        if words is self.words and isinstance(self.codes, np.ndarray):
            return self
        if isinstance(words, RowNumbers) and words.first:  # a file numbers its rows from 0
            words = Vocabulary.from_words(words)
        rows = Rows(words, np.asarray(self.codes), self.columns)
        return BinaryVectors.of_rows(rows, self.coder, self.subwords)

    def subset(self, which: Any = None, *, rows: Any = None) -> BinaryVectors:
        """Some of the rows, copied into memory.

        Args:
            which: Ids, each once, in the order to be kept; or a mask of n flags. Rows without ids
                keep their numbers as ids.
            rows: Row numbers, instead of `which`.

        Raises:
            UnknownWordError: There is no such id.
            InputError: There is no such row, a row is given twice, or the mask is not of n flags.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> list(bits.subset(["c", "a"]).words), list(bits.subset(rows=[1]).words)
            (['c', 'a'], ['b'])
        """
        self.check_undamaged()
        chosen = self._chosen(which, rows)
        ids = _as_ids(as_words(self.words.names(chosen)), len(chosen))
        some = Rows(ids, self.codes[chosen], taken(self.columns, chosen))
        return BinaryVectors.of_rows(some, self.coder, self.subwords)

    def _numbered(self, rows: Any, least: int = 0) -> NDArray[np.int64]:
        """Row numbers from `least` on, checked: of one dimension, or of any if -1 is allowed."""
        array, n = to_numpy(rows), len(self)
        if (array.ndim != 1 and not least) or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"rows are {array.dtype} of shape {array.shape}, expected row numbers")
        if array.size and not least <= array.min() <= array.max() < n:
            row = array.min() if array.min() < least else array.max()
            hint = f"; -1 is no row in results, and the last row is {n - 1:,}"
            hint = hint if -n <= row < 0 else ""
            raise InputError(f"there is no row {row}: there are {n:,} rows{hint}")
        return array.astype(np.int64)

    def _chosen(self, which: Any, rows: Any, name: str = "subset") -> NDArray[np.int64]:
        """Row numbers of rows that are given as ids or a mask, or by number, in their order."""
        if (which is None) == (rows is None):
            raise InputError("expected ids or rows=, one of them")
        if rows is not None:
            return self._numbered(rows)
        array = to_numpy(which)
        if array.ndim != 1:
            raise InputError(f"shape {array.shape}, expected a list of ids, or a mask")
        if array.dtype == bool:
            return filters.parsed(name, array, len(self)).rows
        if array.size and array.dtype.kind not in "UTOiu":
            raise InputError(f"rows are {array.dtype}, expected ids or a mask; or rows=")
        found = self._rows_of_ids(name, array) if array.size else array
        return self._numbered(found.astype(np.int64))

    def slim(
        self, without: Iterable[str] = ("coder", "subwords"), *, half_decoder: bool = False
    ) -> BinaryVectors:
        """Leave out what a device does not need, for a smaller file.

        Asking for what was left out raises InputError or UnknownWordError.

        Args:
            without: "coder": no encoding, decoding, float queries and metric="decoded".
                "subwords": no codes of unknown words. "lengths": no inner products. "columns": no
                other values. "floats": no vectors that a collection keeps. "order": the rows are
                sorted by their words, and get other numbers.
            half_decoder: Keep the decoder in 16 bits.

        Raises:
            InputError: There is no such part, or no decoder to keep.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> slim = bits.slim(without=["coder", "order"])
            >>> slim.byte_counts().coder, slim.similarity("king", "king")
            (0, 1.0)
        """
        parts = check_parts(without)
        bits = self.merged()
        rows, coder = slim_rows(bits.rows, bits.coder, parts, half_decoder)
        if bits.subwords is None or "subwords" not in parts:
            return BinaryVectors.of_rows(rows, coder, bits.subwords)
        rows = replace(rows, ids=copy(rows.ids))
        rows.ids.lacks_subwords = True
        return BinaryVectors.of_rows(rows, coder)

    def with_cells(self, cells: int | str = "auto", *, threads: int | None = None) -> BinaryVectors:
        """The same rows with cells, in memory, for searches with `recall` or `probes`.

        Rows keep their numbers. A thousand of them measure what searches read: see `calibrate`.

        Args:
            cells: How many; "auto" is 4 for each square root of the rows, but at most 5 % of the
                bytes of the codes.
            threads: None uses every core.

        Raises:
            InputError: There are more than 2^32 - 1 rows, or codes of more than 16,384 bits.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> bits = bits.with_cells(20)
            >>> found = bits.search("music", k=5, recall=0.9)
            >>> found.ids[0], found.rows_read < len(bits)
            ('music', True)
        """
        bits = self.merged()
        n_cells = wanted_cells(cells, len(bits), self.n_bits)
        centers, held = train(bits.codes, n_cells, self.n_bits, threads)
        stored, made = arranged(bits.codes, centers, threads)
        pieces = CodePieces([stored], cells=[made])
        queries = bits.codes[held]
        centers = measured(pieces, queries, self._weights(queries), held, threads)
        rows = replace(bits.rows, codes=cast("NDArray[np.uint8]", pieces.with_centers(centers)))
        return BinaryVectors.of_rows(rows, self.coder, self.subwords)

    def _weights(self, queries: NDArray[Any]) -> NDArray[np.float32] | None:
        """Vectors, or codes if there is a coder that decodes them, as weights of the bits."""
        are_codes = queries.dtype == np.uint8
        if are_codes and (self.coder.is_left_out or not len(queries)):
            return None
        metric = METRICS["decoded" if are_codes else "asymmetric"]
        return np.ascontiguousarray(metric.prepare(self.coder, queries).queries)

    def calibrate(self, queries: Any, *, threads: int | None = None) -> NDArray[np.float32]:
        """Measure with your own queries, which may be harder than rows, what `recall` reads.

        `save` keeps what was measured.

        Args:
            queries: As in `search`; a few hundred. Vectors measure all metrics; codes and ids
                those that take codes.
            threads: None uses every core.

        Returns:
            For each recall the share of the rows that queries of codes read, float32 (17, 2).

        Raises:
            InputError: There are no cells, no queries, or the queries do not fit.
        """
        pieces = CodePieces.of(self.codes)
        array = np.atleast_2d(self._queries(queries))
        if not len(array):
            raise InputError("there are no queries to calibrate with: give a few hundred")
        codes = METRICS["hamming"].prepare(self.coder, array).queries
        centers = measured(pieces, codes, self._weights(array), threads=threads)
        self.codes = cast("NDArray[np.uint8]", pieces.with_centers(centers))
        return centers.curve[: len(RECALLS), [0, 3]]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically.

        Args:
            path: The file. A file of codes is replaced.
            overwrite: Replace any other existing file as well.

        Raises:
            InputError: There is another file at `path`; or the coder is not registered.
            OSError: The file could not be written; a file that was there is unchanged.

        Warns:
            SizeWarning: Subwords are more than half of the file.
        """
        check_target(path, overwrite=overwrite, codes=True)
        bits = self.merged()
        if isinstance(self.codes, CodePieces) and stored_codes(self.codes)[1] is not None:
            rows = replace(bits.rows, codes=self.codes)  # in the order of their cells
            bits = BinaryVectors.of_rows(rows, bits.coder, bits.subwords)
        store.write(Path(path), to_contents(bits.rows, bits.coder, bits.subwords))
        if self.subwords is not None and 2 * (counts := self.byte_counts()).subwords > counts.total:
            share = f"{path}: subwords take {counts.subwords / counts.total:.0%} of the file"
            how = "bits.subwords = None, or --no-subwords on the command line"
            warn_caller(f"{share}; without them ({how}), unknown words have no codes", SizeWarning)


def concat(files: Iterable[BinaryVectors]) -> BinaryVectors:
    """The rows of several BinaryVectors, one after the other, in memory.

    Args:
        files: At least one, of the same coder. Rows without ids get new numbers. Subwords are those
            of the first.

    Raises:
        InputError: A coder differs, an id repeats, or only some files have ids or a column.

    Example:
        >>> import numpy as np, embits
        >>> bits = embits.binarize(np.eye(4), n_bits=64, method="lsh", ids=["a", "b", "c", "d"])
        >>> list(embits.concat([bits.subset(["d"]), bits.subset(["a", "b"])]).words)
        ['d', 'a', 'b']
    """
    parts = list(files)
    if not parts or not all(isinstance(part, BinaryVectors) for part in parts):
        raise InputError("concat needs a list of at least one BinaryVectors")
    first = parts[0]
    for part in parts:
        part.check_undamaged()
        check_same_coder(first.coder, part.coder)
    have_ids = {not isinstance(part.words, RowNumbers) for part in parts}
    if len(have_ids) > 1:
        some = "some of the files have ids and others have none"
        raise InputError(f"{some}: all must have them, or none")
    codes = np.concatenate([np.asarray(part.codes) for part in parts])
    words = list(chain.from_iterable(part.words for part in parts)) if True in have_ids else None
    rows = Rows(_as_ids(words, len(codes)), codes, joined([part.columns for part in parts]))
    return BinaryVectors.of_rows(rows, first.coder, first.subwords)


def check_same_coder(ours: Coder, theirs: Coder) -> None:
    """Refuse a coder that gives other codes, by InputError."""
    if ours is theirs:
        return
    a, b = (
        f"{c.method}, {c.n_bits_} bits from {c.n_features_in_} dimensions" for c in (ours, theirs)
    )
    if a != b:
        raise InputError(f"the coders differ: {b}, expected {a}")
    if coder_checksum(ours) != coder_checksum(theirs):
        raise InputError(f"the coders differ: both are {a}, but they were fitted differently")


def _as_ids(ids: Any, n: int) -> Vocabulary | RowNumbers:
    if ids is None:
        return RowNumbers(n)
    index: Keys = ids if isinstance(ids, Keys) else Vocabulary.from_words(as_words(ids))
    if len(index) != n:
        raise InputError(f"{len(index)} ids for {n} codes")
    return cast("Vocabulary | RowNumbers", index)  # PieceWords stand in for them


def _wrong_key(key: Any) -> InputError:
    expected = "an id, a packed code (uint8), or several of them"
    return InputError(f"the key is {shortened(key)}, expected {expected}")
