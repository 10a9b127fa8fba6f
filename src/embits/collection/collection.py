"""Collection: a folder of codes that rows are added to and removed from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import wraps
from inspect import getattr_static, isfunction
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, cast
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from embits import errors
from embits.arrays import LazyRows, Progress, as_float32, to_numpy
from embits.binary_vectors import BinaryVectors, check_same_coder
from embits.checks import check_dims, check_finite, matrix_of_numbers
from embits.coders import Coder
from embits.collection import changes
from embits.collection.manifest import Manifest
from embits.collection.pieces import Snapshot, open_coder, open_snapshot
from embits.columns import PieceColumns, StoredColumns, fitted, given_columns
from embits.errors import InputError, TrainingWarning, warn_caller
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import PieceIds, Vocabulary
from embits.rows import FLOATS, LENGTHS, Floats, Lengths, Rows
from embits.search.cells import wanted_cells
from embits.search.results import ScoreResult
from embits.vectors import WordVectors, as_words, check_named, is_id

_MAX_NAMED = 3  # unknown ids that an error names


def _of_one_state(cls: type[Collection]) -> type[Collection]:
    """Let every method and property of BinaryVectors answer from the state at the call."""

    def on_state(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Collection, *args: Any, **options: Any) -> Any:
            return method(self._snapshot.bits, *args, **options)

        return call

    for name in set(dir(BinaryVectors)) - vars(cls).keys():
        own = getattr_static(BinaryVectors, name)
        if isfunction(own):
            setattr(cls, name, on_state(own))
        elif isinstance(own, property) and own.fget is not None:
            setattr(cls, name, property(on_state(own.fget)))
    return cls


_alive: WeakSet[Collection] = WeakSet()


def _unlock() -> None:
    """In a forked child, a lock that another thread held would never be free."""
    for collection in _alive:
        collection._changing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


@_of_one_state
class Collection(BinaryVectors):
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

    def __init__(self, path: Path, snapshot: Snapshot, timeout: float = 0) -> None:
        self.path = path.absolute()  # fixed now: the working folder may change
        self.timeout = timeout
        self._changing = RLock()
        self._encoder: Any = None  # of texts, once it is used
        self._whole_coder: str | None = None  # the identity of the coder that was verified
        self._snapshot = snapshot  # replaced as a whole: a method reads it once
        _alive.add(self)

    def __getattr__(self, name: str) -> Any:
        if name == "_snapshot":  # while the object is made
            raise AttributeError(name)
        return getattr(self._snapshot.bits, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("codes", "words", "coder", "columns", "subwords"):
            how = "add, update and refit change them"
            raise InputError(f"the {name} of a collection cannot be assigned: {how}")
        super().__setattr__(name, value)

    @property
    def manifest(self) -> Manifest:
        """What the collection consists of: its pieces, in row order."""
        return self._snapshot.manifest

    def snapshot(self) -> BinaryVectors:
        """The collection as it is now: later changes and refreshes of this object do not alter it.

        Every method answers from one such state; threads that call several of them take one.
        """
        return self._snapshot.bits

    def refresh(self) -> bool:
        """Show the latest state of the collection, and return whether it has changed.

        Raises:
            FormatError: It is damaged.
            InputError: Another collection, with another coder, was put in its place.
        """
        with self._changing:
            before = self._snapshot
            self._snapshot = open_snapshot(self.path, before=before)
            return self._snapshot.manifest != before.manifest

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
        coder, ids = self._snapshot.coder, None if ids is None else as_words(ids)
        given = _given(coder, vectors, ids, columns)
        if change != "add" and given.ids is None:
            raise InputError(f"{change} needs the ids of the rows")
        if change != "update" and ids is not None and given.ids is not None:
            check_named(given.ids)
        if not len(given.codes):
            return
        with self._change() as latest:
            if not latest.manifest.dims:
                latest = _with_coder(latest, given)
            if latest.manifest.coder != self.manifest.coder:  # it was fitted, or fitted again
                given = _given(latest.coder, vectors, ids, given.columns, encoded_by=coder)
            manifest, words, found = _placed(change, latest, given)
            rows = Rows(words, given.codes, _beside(latest, given, lengths))
            kinds, arrays = fitted(manifest.columns, _arrow_columns(latest, given, found))
            after = replace(manifest, columns=kinds)
            gone = np.union1d(found, latest.rows.ids.find_many(stale))
            table = PieceColumns.of(arrays, len(rows))
            changes.append(latest, after, rows, gone[gone >= 0], table)
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
                rows = latest.bits.select(where).rows
            else:
                words = as_words(wanted)
                rows = np.unique(_known(words, latest.rows.ids.find_many(words)))
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
            bits = copy(latest.bits)
            curve = bits.calibrate(queries, threads=threads)
            changes.measured(latest, cast("Any", bits.rows.centers))
        return curve

    @contextmanager
    def _change(self) -> Iterator[Snapshot]:
        """One change: gives the latest state, and shows the one after it."""
        with self._changing:
            before = self._snapshot
            try:
                with changes.locked(self.path, before, self.timeout) as before:
                    if self._whole_coder != before.manifest.coder:
                        # What a damaged one encodes would be wrong.
                        open_coder(self.path, before.manifest, verify=True)
                        self._whole_coder = before.manifest.coder
                    yield before
            except errors.UnconfirmedError:
                self._snapshot = open_snapshot(self.path, before=before)
                raise
            self._snapshot = open_snapshot(self.path, before=before)

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

        bits, encoder = self._snapshot.bits, self.text_encoder
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
    return Collection(path, open_snapshot(path), timeout)


class _Given(NamedTuple):
    """Rows as they were given: ids if there are any, codes, lengths, floats and columns."""

    ids: Sequence[str] | None
    codes: NDArray[np.uint8]
    lengths: Lengths | None
    floats: NDArray[Any] | None
    columns: Mapping[str, Any] | None  # Arrow arrays


def _given(
    coder: Coder, vectors: Any, ids: Any, columns: Any, encoded_by: Coder | None = None
) -> _Given:
    """The rows; codes must be of the coder that was known when they were given."""
    if isinstance(vectors, str | os.PathLike):
        raise InputError(f"vectors is a path: add it with embits.encode_to_collection: {vectors}")
    own: Any = None
    lengths, floats, dims = None, None, coder.n_features_in_
    if isinstance(vectors, BinaryVectors):
        rows = vectors.rows  # of a collection, those of one state
        check_same_coder(coder, vectors.coder)
        own, codes, lengths = rows.ids, np.asarray(rows.codes), rows.columns.get(LENGTHS)
        if columns is None and set(rows.columns) - {LENGTHS}:
            stored = StoredColumns.of(rows.columns, len(rows))
            columns = {name: stored[name] for name in stored.kinds}
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
    return _Given(words, codes, lengths, floats, arrow)


def _placed(
    change: str, latest: Snapshot, given: _Given
) -> tuple[Manifest, PieceIds, NDArray[np.int64]]:
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
    rows = latest.rows.ids.find_many(ids)
    there = np.flatnonzero(rows >= 0)
    if manifest.ids == "numbers" and change != "update" and (change == "add" or len(there) < n):
        raise InputError("the rows of this collection are numbered: add rows without ids")
    if change == "add" and len(there):
        more = f", and {len(there) - 1:,} more" if len(there) > 1 else ""
        hint = "`upsert` replaces it, and so does `embits add --update`"
        raise InputError(f"the id {ids[int(there[0])]!r} already exists{more}: {hint}")
    if change == "update":
        _known(ids, rows)
    if len(there) < n:
        manifest = replace(manifest, ids="given")
    return manifest, words, rows


def _arrow_columns(latest: Snapshot, given: _Given, found: NDArray[np.int64]) -> Mapping[str, Any]:
    stored = latest.rows.columns
    if given.columns is not None or not isinstance(stored, StoredColumns) or (found < 0).all():
        return given.columns or {}
    return {name: stored.take(name, found) for name in stored.kinds}


# Rows at which a coder of few rows is fitted again: few rows more would change it little.
REFITS = 500, 5_000, 50_000


def _next_refit(manifest: Manifest, n_rows: int) -> int | None:
    """The next number of rows at which the coder is fitted without being asked to, if it is."""
    return next((n for n in REFITS if n > n_rows), None) if manifest.refit_at else None


def _with_coder(latest: Snapshot, given: _Given) -> Snapshot:
    """The state of a collection without a coder with one that is fitted on the first rows."""
    if given.floats is None:
        raise InputError("the first rows of a collection without a coder must be floats")
    with warnings.catch_warnings(action="ignore", category=TrainingWarning):  # of few rows
        coder = type(latest.coder)(**latest.coder.get_params()).fit(given.floats)
    n = len(given.floats)
    return changes.adopt(latest, coder, n, _next_refit(latest.manifest, n))


def _vectors_of_rows(latest: Snapshot, vectors: Any, ids: Any) -> Any:
    """Vectors of all rows in row order, as a matrix that may be read when it is used."""
    n = len(latest.rows)
    if not n:
        raise InputError("there are no rows yet to fit a coder on")
    if vectors is None:
        if not latest.manifest.keep:
            hint = "give them: refit(vectors); or make the collection with keep="
            raise InputError(f"the collection keeps no vectors to fit a coder on: {hint}")
        return latest.rows.columns[FLOATS].lazy
    if isinstance(vectors, WordVectors):
        ids, vectors = vectors.words if ids is None else ids, vectors.matrix
    X = matrix_of_numbers(vectors)
    check_finite(X)
    if ids is None:
        if len(X) != n:
            raise InputError(f"{len(X):,} vectors for {n:,} rows: give all of them, or their ids")
        return X
    words = as_words(ids)
    if len(words) != len(X):
        raise InputError(f"{len(words)} ids for {len(X)} rows")
    places = np.full(n, -1)
    places[_known(words, latest.rows.ids.find_many(words))] = np.arange(len(words))
    if len(words) > n or (places < 0).any():
        row = int(places.argmin())
        missing = f"the row {latest.bits.ids([row])[0]!r} has no vector"
        raise InputError(missing if places[row] < 0 else "ids has an id twice")
    return LazyRows(lambda rows: as_float32(X[places[rows]]), n, X.shape[1])


def _beside(latest: Snapshot, given: _Given, lengths: bool) -> Mapping[str, Any]:
    """What new rows have beside their codes, other than columns: lengths, and kept vectors."""
    keep, found = latest.manifest.keep, dict[str, Any]()
    are_given = are_wanted = lengths or given.lengths is not None
    if latest.pieces:
        are_wanted = LENGTHS in latest.pieces[0].rows.columns
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


def _known(ids: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of ids; some that are unknown are counted, and the first ones named."""
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        named = ", ".join(repr(ids[each]) for each in missing[:_MAX_NAMED].tolist())
        more = ", …" if len(missing) > _MAX_NAMED else ""
        unknown = f"{len(missing):,} of {len(ids):,} ids are unknown ({named}{more}), and "
        many = unknown if len(ids) > 1 else ""
        raise errors.UnknownWordError(ids[int(missing[0])], [], f"{many}nothing was changed")
    return rows
