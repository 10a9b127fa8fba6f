"""Collection: a folder of codes that rows are added to and removed from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from embits import errors
from embits.arrays import LazyRows, Progress, as_float32, to_numpy
from embits.binary_vectors import BinaryRows, BinaryVectors, check_same_coder
from embits.checks import check_dims, check_finite, matrix_of_numbers
from embits.coders import Coder
from embits.collection import changes
from embits.collection.manifest import Manifest
from embits.collection.pieces import State, open_coder, open_state
from embits.columns import ColumnTable, cast_columns, given_columns
from embits.errors import InputError, TrainingWarning, warn_caller
from embits.ids.keys import Ids, RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.search.cells import wanted_cells
from embits.search.results import ScoreResult
from embits.segment import FLOATS, LENGTHS, Floats, Lengths, Segment
from embits.snapshot import Snapshot
from embits.vectors import WordVectors, is_id, normalize_ids, refuse_empty_ids

_MAX_NAMED = 3  # unknown ids that an error names


_alive: WeakSet[Collection] = WeakSet()


def _unlock() -> None:
    """In a forked child, a lock that another thread held would never be free."""
    for collection in _alive:
        collection._changing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


class Collection(BinaryRows):
    """A folder of codes that share a coder; `embits.open_collection` makes and opens it.

    It is searched as one file is. An object shows the collection as it was when it was opened, or
    at its last change or `refresh`. Rows are numbered from 0 without gaps, in the order in which
    they were added; a change may give a row another number, but never another id.

    One writer at a time changes a collection, in any process; any number of readers search it at
    the same time. Changes are atomic.

    Attributes:
        path: The folder, as an absolute path.
        timeout: Seconds that a change waits for another process that writes.
    """

    def __init__(self, path: Path, state: State, timeout: float = 0) -> None:
        self.path = path.absolute()  # fixed now: the working folder may change
        self.timeout = timeout
        self._changing = RLock()
        self._encoder: Any = None  # of texts, once it is used
        self._whole_coder: str | None = None  # the identity of the coder that was verified
        self._state = state  # replaced as a whole: a method reads it once
        _alive.add(self)

    @property
    def current(self) -> Snapshot:
        """The rows as they are now."""
        return self._state.snapshot

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("codes", "words", "coder", "columns", "subwords"):
            how = "add, update and refit change them"
            raise InputError(f"the {name} of a collection cannot be assigned: {how}")
        super().__setattr__(name, value)

    @property
    def manifest(self) -> Manifest:
        """What the collection consists of: its pieces, in row order."""
        return self._state.manifest

    def snapshot(self) -> BinaryVectors:
        """The collection as it is now: later changes and refreshes of this object do not alter it.

        Every method answers from one such state; threads that call several of them take one.
        """
        return self._state.bits

    def refresh(self) -> bool:
        """Show the latest state of the collection, and return whether it has changed.

        Raises:
            FormatError: It is damaged.
            InputError: Another collection, with another coder, was put in its place.
        """
        with self._changing:
            before = self._state
            self._state = open_state(self.path, before=before)
            return self._state.manifest != before.manifest

    def add(
        self,
        vectors: Any,
        ids: Iterable[str | int] | None = None,
        *,
        columns: Any = None,
        lengths: bool = False,
    ) -> None:
        """Add rows at the end.

        Args:
            vectors: Floats of shape (n, dims), which are encoded; packed codes, uint8 of shape
                (n, width); WordVectors; or BinaryVectors with the same coder, whose codes and
                lengths are copied.
            ids: Their ids, strings or whole numbers, which no row has yet. None takes the ids of
                WordVectors and BinaryVectors. If they have none, rows are numbered as they are
                added, and a number is never used twice. A collection has either ids or numbers.
            columns: What else the rows have, such as texts and years: a mapping of names to
                lists or arrays, or a table of pandas, polars or Arrow. Values are strings, whole
                numbers, floats, booleans, dates, times or lists of one of these; None and NaN are
                missing, and so are the values of older rows in a new column. The names `id`,
                `lengths`, `floats` and `cells` are reserved. None takes the columns of
                BinaryVectors. Needs pyarrow.
            lengths: Store the lengths of the vectors, if these are the first rows: later rows
                follow the first.

        Raises:
            InputError: An id exists already or is given twice, the shape or the coder differs, or
                a value does not fit its column. The collection is unchanged, as by all errors but
                the last.
            LockedError: Another process is writing.
            FormatError: A piece to merge is damaged.
            OSError: A file could not be written.
            UnconfirmedError: The change was made, but the disk did not confirm it.

        Example:
            >>> import tempfile, numpy as np, embits
            >>> folder = tempfile.TemporaryDirectory()
            >>> coder = embits.RandomHyperplanes(n_bits=64).fit(np.eye(8))
            >>> collection = embits.open_collection(folder.name, coder)
            >>> collection.add(np.eye(8)[:3], ids=["a", "b", "c"])
            >>> collection.remove(["b"])
            1
            >>> list(collection.words), collection.search(np.eye(8)[2], k=1).ids
            (['a', 'c'], array(['c'], dtype=object))
            >>> folder.cleanup()
        """
        self._put("add", vectors, ids, columns, lengths)

    def update(
        self, vectors: Any, ids: Iterable[str | int] | None = None, *, columns: Any = None
    ) -> None:
        """Replace the codes of rows that are there, which move to the end: as `add` otherwise.

        With `columns`, all columns of these rows are replaced: one that is not given has missing
        values. Without, they keep their columns. UnknownWordError: some of the ids are not there.
        """
        self._put("update", vectors, ids, columns)

    def upsert(
        self,
        vectors: Any,
        ids: Iterable[str | int] | None = None,
        *,
        columns: Any = None,
        lengths: bool = False,
    ) -> None:
        """Add rows, and `update` those whose ids already exist, in one change."""
        self._put("upsert", vectors, ids, columns, lengths)

    def _put(
        self,
        change: str,
        vectors: Any,
        ids: Any,
        columns: Any,
        lengths: bool = False,
        stale: Sequence[str] = (),
    ) -> None:
        """Add or replace rows, and remove those with `stale` ids, in one change."""
        coder, ids = self._state.coder, None if ids is None else normalize_ids(ids)
        given = _new_rows(coder, vectors, ids, columns)
        if change != "add" and given.ids is None:
            raise InputError(f"{change} needs the ids of the rows")
        if change != "update" and ids is not None and given.ids is not None:
            refuse_empty_ids(given.ids)
        if not len(given.codes):
            return
        with self._change() as latest:
            if not latest.manifest.dims:
                latest = _with_coder(latest, given)
            if latest.manifest.coder != self.manifest.coder:  # it was fitted, or fitted again
                given = _new_rows(latest.coder, vectors, ids, given.columns, encoded_by=coder)
            manifest, words, found = _assign_ids(change, latest, given)
            kinds, arrays = cast_columns(manifest.columns, _arrow_columns(latest, given, found))
            table = ColumnTable.of(arrays, len(given.codes))
            beside = _lengths_and_floats(latest, given, lengths)
            rows = Segment(words, given.codes, beside, table=table)
            gone = np.union1d(found, latest.snapshot.ids.find_many(stale))
            changes.append(latest, replace(manifest, columns=kinds), rows, gone[gone >= 0])
        if (due := self.manifest.refit_at) is not None and len(self) >= due:
            try:
                with warnings.catch_warnings(action="ignore", category=TrainingWarning):
                    self._fit_again(due=due)
            except (errors.EmbitsError, OSError) as error:
                failed = f"the rows were added, but the coder could not be fitted again: {error}"
                warn_caller(f"{failed}; refit() tries once more", TrainingWarning)

    def refit(
        self,
        vectors: Any = None,
        ids: Iterable[str | int] | None = None,
        *,
        coder: Coder | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Fit a new coder and encode all rows with it, in one change.

        Ids, their order and columns stay. Objects that are open go on with the old codes until
        they refresh.

        Args:
            vectors: The vectors of all rows, of shape (n, dims), such as those of another model;
                they are kept if vectors are. None takes those that are kept.
            ids: The ids of `vectors` in any order; None takes those of WordVectors, or else the
                order of the rows.
            coder: A coder to fit, or one that is fitted already; None is one of the same kind and
                parameters as before.
            progress: Called with (done, total) during the fit.

        Raises:
            InputError: The collection keeps no vectors and none were given, or a row has none.
            UnknownWordError: There are no rows with some of the ids.
            FormatError, LockedError, OSError: As for `add`.

        Example:
            >>> import tempfile, numpy as np, embits
            >>> folder = tempfile.TemporaryDirectory()
            >>> X = np.random.default_rng(0).normal(size=(100, 8))
            >>> coder = embits.RandomHyperplanes(n_bits=64).fit(X)
            >>> collection = embits.open_collection(folder.name, coder, keep="float16")
            >>> collection.add(X)
            >>> collection.refit(coder=embits.ITQ(n_bits=128))
            >>> collection.n_bits, collection.search(X[7], k=1).ids.tolist()
            (128, ['7'])
            >>> folder.cleanup()
        """
        if not isinstance(coder, Coder | None):
            raise InputError(f"coder is {coder!r:.80}, expected one such as embits.ITQ(n_bits=256)")
        self._fit_again(vectors, ids, coder, progress)

    def _fit_again(
        self,
        vectors: Any = None,
        ids: Any = None,
        coder: Coder | None = None,
        progress: Progress | None = None,
        due: int | None = None,
    ) -> None:
        with self._change() as latest:
            if due is not None and latest.manifest.refit_at != due:
                return  # another process has done it
            X = _vectors_of_rows(latest, vectors, ids)
            new = coder or type(latest.coder)(**latest.coder.get_params())
            if not new.__sklearn_is_fitted__():
                new = type(new)(**new.get_params()).fit(X, progress=progress)
            check_dims(X, new.n_features_in_)
            at = _next_refit(latest.manifest, len(X))
            changes.recode(latest, new, X, at, are_new=vectors is not None)

    def remove(
        self, ids: str | int | Iterable[str | int] | None = None, *, where: Any = None
    ) -> int:
        """Remove rows by their ids or a filter. Their codes stay in the files until `compact`.

        Args:
            ids: One or several ids.
            where: A filter as in `search`, instead of ids, such as `{"label": "spam"}`.

        Returns how many rows were removed.

        Raises:
            UnknownWordError: There are no rows with some of the ids.
            InputError: Ids and a filter are given, or neither; or there is no such column.
            LockedError, OSError: As for `add`.
        """
        if (ids is None) == (where is None):
            raise InputError("remove needs ids or where=, one of them")
        if isinstance(where, Mapping) and not len(where):  # it may have been meant to have some
            raise InputError("where has no condition: to remove all rows, give all ids")
        wanted = [ids] if is_id(ids) else ids
        with self._change() as latest:
            if wanted is None:
                rows = latest.snapshot.select(where).rows
            else:
                words = normalize_ids(wanted)
                rows = np.unique(_require_known(words, latest.snapshot.ids.find_many(words)))
            if len(rows):
                changes.remove(latest, rows)
            return len(rows)

    def compact(self, *, cells: int | str | None = None) -> None:
        """Merge all pieces into one file, without the removed rows. Answers stay the same.

        Args:
            cells: Store the codes in so many cells (see `with_cells`), or "auto"; None trains them
                anew if there are some: as many, or as many as "auto" chooses now. Rows that are
                added later go to cells with the same centers; small additions are read whole until
                they are compacted.

        Raises:
            InputError, FormatError, LockedError, OSError: As for `add`.
        """
        if cells is not None:
            wanted_cells(cells, 1, 1)
        with self._change() as latest:
            changes.compact(latest, cells)

    def calibrate(self, queries: Any, *, threads: int | None = None) -> NDArray[np.float32]:
        """As of a file. The collection keeps what was measured until its cells are made anew."""
        with self._change() as latest:
            bits = BinaryVectors.of(latest.snapshot)
            curve = bits.calibrate(queries, threads=threads)
            if (centers := bits.current.centers) is not None:
                changes.recalibrate(latest, centers)
        return curve

    @contextmanager
    def _change(self) -> Iterator[State]:
        """One change: gives the latest state, and shows the one after it."""
        with self._changing:
            before = self._state
            try:
                with changes.locked(self.path, before, self.timeout) as before:
                    if self._whole_coder != before.manifest.coder:
                        # What a damaged one encodes would be wrong.
                        open_coder(self.path, before.manifest, verify=True)
                        self._whole_coder = before.manifest.coder
                    yield before
            except errors.UnconfirmedError:
                self._state = open_state(self.path, before=before)
                raise
            self._state = open_state(self.path, before=before)

    def __reduce__(self) -> Any:
        """Another process opens the folder, and shows its latest state."""
        return _opened, (self.path, self.timeout)

    def search_texts(
        self, texts: str | list[str], k: int = 10, *, hybrid: bool = False, where: Any = None
    ) -> ScoreResult:
        """The passages nearest to texts, in a collection that `embits index` made.

        Args:
            texts: One text, or several.
            k: Passages for each text.
            hybrid: Search for the words of texts too: standardized scores of codes and of BM25 are
                added. Needs the extra `text`.
            where: As in `search`.

        Returns:
            Scores, estimates of the cosine unless `hybrid`, and rows; `column("text")` has the
            passages. A text with no known word scores 0 everywhere.

        Raises:
            InputError: The collection has no text encoder.
        """
        from embits.text.answers import search_texts

        bits, encoder = self._state.bits, self.text_encoder
        return search_texts(bits, encoder, texts, k, hybrid=hybrid, where=where)

    @property
    def text_encoder(self) -> Any:
        """What encodes its texts, if `embits index` made it."""
        from embits.text.answers import kept_encoder

        if self._encoder is None:
            self._encoder = kept_encoder(self.path)
        return self._encoder

    def __repr__(self) -> str:
        name = f"{type(self).__name__} {os.fspath(self.path)!r}"
        return repr(self.snapshot()).replace(BinaryVectors.__name__, name, 1)


def _opened(path: Path, timeout: float) -> Collection:
    return Collection(path, open_state(path), timeout)


class _NewRows(NamedTuple):
    """Rows as they were given: ids if there are any, codes, lengths, floats and columns."""

    ids: Sequence[str] | None
    codes: NDArray[np.uint8]
    lengths: Lengths | None
    floats: NDArray[Any] | None
    columns: Mapping[str, Any] | None  # Arrow arrays


def _new_rows(
    coder: Coder, vectors: Any, ids: Any, columns: Any, encoded_by: Coder | None = None
) -> _NewRows:
    """The rows; codes must be of the coder that was known when they were given."""
    if isinstance(vectors, str | os.PathLike):
        raise InputError(f"vectors is a path: add it with embits.encode_to_collection: {vectors}")
    own: Any = None
    lengths, floats, dims = None, None, coder.n_features_in_
    if isinstance(vectors, BinaryRows):
        rows = vectors.current  # of a collection, those of one state
        check_same_coder(coder, rows.coder)
        own, codes, lengths = rows.ids, rows.codes.in_row_order(), rows.values.get(LENGTHS)
        if columns is None and rows.columns.kinds:
            columns = {name: rows.columns.array(name) for name in rows.columns.kinds}
    else:
        if isinstance(vectors, WordVectors):
            own, vectors = vectors.words, vectors.matrix
        array = to_numpy(vectors)
        if array.ndim != 2:
            raise InputError(f"vectors of shape {array.shape}, expected (n, {dims})")
        if array.dtype == np.uint8:
            if not dims:
                raise InputError("the first rows of a collection without a coder must be floats")
            if encoded_by not in (None, coder):
                raise InputError("the coder was fitted again: encode the vectors once more")
            codes = coder.check_codes(array)  # padding bits are refused when the piece is written
        elif not dims:  # the coder is fitted on these
            floats, codes = array, np.empty((len(array), 0), np.uint8)
        else:
            check_dims(array, dims)
            floats, codes = array, coder.encode(array)
    own = None if isinstance(own, RowNumbers) else own
    words = own if ids is None else ids
    if words is not None and len(words) != len(codes):
        raise InputError(f"{len(words)} ids for {len(codes)} rows")
    arrow = None if columns is None else given_columns(columns, len(codes))
    return _NewRows(words, codes, lengths, floats, arrow)


def _assign_ids(
    change: str, latest: State, given: _NewRows
) -> tuple[Manifest, Ids, NDArray[np.int64]]:
    """The manifest with the kind of ids, the ids of the new rows, and the rows they replace: -1
    for those that replace none."""
    manifest, ids, n = latest.manifest, given.ids, len(given.codes)
    if ids is None:
        if manifest.ids == "given":
            raise InputError("rows here have ids: give one for each new row (ids=, --words FILE)")
        first = manifest.next_number
        numbered = replace(manifest, ids="numbers", next_number=first + n)
        return numbered, RowNumbers(n, first), np.full(n, -1)
    words = ids if isinstance(ids, Vocabulary) else Vocabulary.from_words(ids)
    rows = latest.snapshot.ids.find_many(ids)
    there = np.flatnonzero(rows >= 0)
    if manifest.ids == "numbers" and change != "update" and (change == "add" or len(there) < n):
        raise InputError("the rows of this collection are numbered: add rows without ids")
    if change == "add" and len(there):
        more = f", and {len(there) - 1:,} more" if len(there) > 1 else ""
        hint = "`upsert` replaces it, and so does `embits add --update`"
        raise InputError(f"the id {ids[int(there[0])]!r} already exists{more}: {hint}")
    if change == "update":
        _require_known(ids, rows)
    if len(there) < n:
        manifest = replace(manifest, ids="given")
    return manifest, words, rows


def _arrow_columns(latest: State, given: _NewRows, found: NDArray[np.int64]) -> Mapping[str, Any]:
    if given.columns is not None or not latest.manifest.columns or (found < 0).all():
        return given.columns or {}
    columns = latest.snapshot.columns
    return {name: columns.take(name, found) for name in columns.kinds}


# Rows at which a coder of few rows is fitted again: few rows more would change it little.
REFITS = 500, 5_000, 50_000


def _next_refit(manifest: Manifest, n_rows: int) -> int | None:
    """The next number of rows at which the coder is fitted without being asked to, if it is."""
    return next((n for n in REFITS if n > n_rows), None) if manifest.refit_at else None


def _with_coder(latest: State, given: _NewRows) -> State:
    """The state of a collection without a coder with one that is fitted on the first rows."""
    if given.floats is None:
        raise InputError("the first rows of a collection without a coder must be floats")
    with warnings.catch_warnings(action="ignore", category=TrainingWarning):  # of few rows
        coder = type(latest.coder)(**latest.coder.get_params()).fit(given.floats)
    n = len(given.floats)
    return changes.adopt(latest, coder, n, _next_refit(latest.manifest, n))


def _vectors_of_rows(latest: State, vectors: Any, ids: Any) -> Any:
    """Vectors of all rows in row order, as a matrix that may be read when it is used."""
    n = len(latest.snapshot)
    if not n:
        raise InputError("there are no rows yet to fit a coder on")
    if vectors is None:
        if not latest.manifest.keep:
            hint = "give them: refit(vectors); or make the collection with keep="
            raise InputError(f"the collection keeps no vectors to fit a coder on: {hint}")
        return latest.snapshot.values[FLOATS].lazy
    if isinstance(vectors, WordVectors):
        ids, vectors = vectors.words if ids is None else ids, vectors.matrix
    X = matrix_of_numbers(vectors)
    check_finite(X)
    if ids is None:
        if len(X) != n:
            raise InputError(f"{len(X):,} vectors for {n:,} rows: give all of them, or their ids")
        return X
    words = normalize_ids(ids)
    if len(words) != len(X):
        raise InputError(f"{len(words)} ids for {len(X)} rows")
    places = np.full(n, -1)
    places[_require_known(words, latest.snapshot.ids.find_many(words))] = np.arange(len(words))
    if len(words) > n or (places < 0).any():
        row = int(places.argmin())
        missing = f"the row {latest.snapshot.ids[row]!r} has no vector"
        raise InputError(missing if places[row] < 0 else "ids has an id twice")
    return LazyRows(lambda rows: as_float32(X[places[rows]]), n, X.shape[1])


def _lengths_and_floats(latest: State, given: _NewRows, lengths: bool) -> Mapping[str, Any]:
    """What new rows have beside their codes, other than columns: lengths, and kept vectors."""
    keep, found = latest.manifest.keep, dict[str, Any]()
    are_given = are_wanted = lengths or given.lengths is not None
    if latest.pieces:
        are_wanted = LENGTHS in latest.pieces[0].segment.columns
    if are_given and not are_wanted:
        hint = "only a new collection can store them"
        if not lengths:
            hint = 'leave them out of the new ones (bits.slim(without=["lengths"]))'
        raise InputError(f"the rows of this collection have no lengths: {hint}")
    if are_wanted and given.lengths is None and given.floats is None:
        raise InputError("the rows of this collection have lengths: add floats, not codes")
    if are_wanted:
        found[LENGTHS] = given.lengths or Lengths.of_vectors(given.floats)
    if keep and given.floats is None:
        raise InputError(f"the collection keeps vectors ({keep}): add floats, not codes")
    return {**found, FLOATS: Floats.of(given.floats, keep)} if keep else found


def _require_known(ids: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of ids; some that are unknown are counted, and the first ones named."""
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        named = ", ".join(repr(ids[each]) for each in missing[:_MAX_NAMED].tolist())
        more = ", …" if len(missing) > _MAX_NAMED else ""
        unknown = f"{len(missing):,} of {len(ids):,} ids are unknown ({named}{more}), and "
        many = unknown if len(ids) > 1 else ""
        raise errors.UnknownWordError(ids[int(missing[0])], [], f"{many}nothing was changed")
    return rows
