"""Collection: a folder of codes that rows are added to and removed from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from inspect import getattr_static, isfunction
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.binary_vectors import BinaryVectors, check_same_coder
from embits.coders import Coder
from embits.coders.checks import check_dims
from embits.collection import changes
from embits.collection.manifest import Manifest
from embits.collection.pieces import Snapshot, open_coder, open_snapshot
from embits.errors import InputError, UnknownWordError
from embits.ids.keys import RowNumbers
from embits.ids.pieces import PieceIds
from embits.ids.vocabulary import Vocabulary
from embits.rows import Rows
from embits.vectors import WordVectors, as_words

_MAX_NAMED = 3  # unknown ids that an error names


def _of_one_state(cls: type[Collection]) -> type[Collection]:
    """Let every method and property of BinaryVectors answer from the state at the call."""

    def on_state(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Collection, *args: Any, **options: Any) -> Any:
            return method(self._snapshot.bits, *args, **options)

        return call

    for name in dir(BinaryVectors):
        own = getattr_static(BinaryVectors, name)
        if name in vars(cls):
            continue
        if isfunction(own):
            setattr(cls, name, on_state(own))
        elif isinstance(own, property) and own.fget is not None:
            setattr(cls, name, property(on_state(own.fget)))
    return cls


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
        self._coder_is_whole = False
        self._snapshot = snapshot  # replaced as a whole: a method reads it once

    def __getattr__(self, name: str) -> Any:
        if name == "_snapshot":  # while the object is made
            raise AttributeError(name)
        return getattr(self._snapshot.bits, name)

    @property
    def manifest(self) -> Manifest:
        """What the collection consists of: its pieces, in row order."""
        return self._snapshot.manifest

    def snapshot(self) -> BinaryVectors:
        """The collection as it is now: later changes and refreshes of this object do not alter it.

        Every method answers from one such state. Threads that call several methods while another
        thread changes or refreshes the object take one.
        """
        return self._snapshot.bits

    def _check_coder(self, manifest: Manifest) -> None:
        """Check the coder once: rows that a damaged one encodes would have wrong codes."""
        if not self._coder_is_whole:
            open_coder(self.path, manifest, verify=True)
            self._coder_is_whole = True

    def refresh(self) -> bool:
        """Show the latest state of the collection.

        Returns:
            Whether it has changed.

        Raises:
            FormatError: It is damaged.
            InputError: Another collection, with another coder, was put in its place.
        """
        with self._changing:
            before = self._snapshot
            latest = open_snapshot(self.path, before=before)
            self._snapshot = latest
            return latest.manifest != before.manifest

    def add(self, vectors: Any, ids: Iterable[str | int] | None = None) -> None:
        """Add rows at the end.

        Args:
            vectors: Floats of shape (n, dims), which are encoded; packed codes, uint8 of shape
                (n, width); WordVectors; or BinaryVectors with the same coder, whose codes are
                copied.
            ids: Their ids, strings or whole numbers, which no row has yet. None takes the ids of
                WordVectors and BinaryVectors. If they have none, rows are numbered as they are
                added, and a number is never used twice. A collection has either ids or numbers.

        Raises:
            InputError: An id is there already or given twice, or the shape or the coder differs.
                The collection is unchanged.
            LockedError: Another process is writing.
            FormatError: A piece to merge is damaged. The collection is unchanged.
            OSError: A file could not be written. The collection is unchanged.

        Example:
            >>> import tempfile, numpy as np, embits
            >>> folder = tempfile.TemporaryDirectory()
            >>> coder = embits.RandomHyperplanes(n_bits=64).fit(np.eye(8))
            >>> collection = embits.open_collection(folder.name, coder)
            >>> collection.add(np.eye(8)[:3], ids=["a", "b", "c"])
            >>> collection.remove(["b"])
            >>> list(collection.words), collection.search(np.eye(8)[2], k=1).ids
            (['a', 'c'], array(['c'], dtype=object))
            >>> folder.cleanup()
        """
        given, codes = encoded_rows(self.coder, vectors, ids)
        if not len(codes):
            return
        with self._change() as latest:
            changed, words = new_ids(latest, given, len(codes))
            changes.append(self.path, changed, Rows(words, codes))

    def update(self, vectors: Any, ids: Iterable[str | int] | None = None) -> None:
        """Replace the codes of rows. The rows move to the end.

        Args:
            vectors: As for `add`.
            ids: The ids of rows that are there.

        Raises:
            UnknownWordError: There are no rows with some of the ids. The collection is unchanged.
            InputError, LockedError, FormatError: As for `add`.
            OSError: A file could not be written. The collection is unchanged.
        """
        given, codes = encoded_rows(self.coder, vectors, ids, are_new=False)
        if given is None:
            raise InputError("update needs the ids of the rows to replace")
        if not len(codes):
            return
        with self._change() as latest:
            words = unique_ids(given)
            pieces = changes.without(latest, known_rows(latest, given))
            changes.append(self.path, latest, Rows(words, codes), pieces)

    def upsert(self, vectors: Any, ids: Iterable[str | int] | None = None) -> None:
        """Add rows, and replace those whose ids are there already, in one change.

        Args:
            vectors: As for `add`.
            ids: Their ids. The rows that they replace move to the end.

        Raises:
            InputError, LockedError, FormatError: As for `add`.
            OSError: A file could not be written. The collection is unchanged.
        """
        given, codes = encoded_rows(self.coder, vectors, ids)
        if given is None:
            raise InputError("upsert needs the ids of the rows")
        if not len(codes):
            return
        with self._change() as latest:
            changed, words, known = upserted_ids(latest, given)
            pieces = changes.without(latest, known) if len(known) else None
            changes.append(self.path, changed, Rows(words, codes), pieces)

    def remove(self, ids: str | int | Iterable[str | int]) -> None:
        """Remove rows. Their codes stay in the files until `compact`.

        Args:
            ids: The ids of rows that are there; of one or of several.

        Raises:
            UnknownWordError: There are no rows with some of the ids. The collection is unchanged.
            LockedError: Another process is writing.
            OSError: A file could not be written. The collection is unchanged.
        """
        wanted = [ids] if isinstance(ids, str | int | np.integer) else ids
        with self._change() as latest:
            rows = np.unique(known_rows(latest, wanted))
            if len(rows):
                changes.replace_pieces(self.path, latest, changes.without(latest, rows))

    def compact(self) -> None:
        """Merge all pieces into one file, without the removed rows. Answers stay the same.

        Raises:
            FormatError: A piece is damaged. The collection is unchanged.
            LockedError: Another process is writing.
            OSError: The file could not be written. The collection is unchanged.
        """
        with self._change() as latest:
            changes.compact(self.path, latest)

    @contextmanager
    def _change(self) -> Iterator[Snapshot]:
        """One change: gives the latest state, and shows the one after it."""
        with self._changing:
            with changes.locked(self.path, self._snapshot, self.timeout) as latest:
                self._check_coder(latest.manifest)
                yield latest
            self._snapshot = open_snapshot(self.path, before=latest)

    def __reduce__(self) -> Any:
        """Another process opens the folder, and shows its latest state."""
        return _opened, (self.path, self.timeout)

    def __repr__(self) -> str:
        name = f"{type(self).__name__} {os.fspath(self.path)!r}"
        return repr(self.snapshot()).replace(BinaryVectors.__name__, name, 1)


def _opened(path: Path, timeout: float) -> Collection:
    return Collection(path, open_snapshot(path), timeout)


# -- arguments -------------------------------------------------------------------------------------


def encoded_rows(
    coder: Coder, vectors: Any, ids: Iterable[str | int] | None, *, are_new: bool = True
) -> tuple[Sequence[str] | None, NDArray[np.uint8]]:
    """The ids and the codes of rows to add; the ids are None if there are none.

    Raises:
        InputError: The vectors are not of the coder, the ids are not as many, or a new one is
            empty.
    """
    own: Any = None
    if isinstance(vectors, str | os.PathLike):
        raise InputError(
            f"vectors is a path: add the file with embits.encode_to_collection: {vectors}"
        )
    if isinstance(vectors, Collection):
        vectors = vectors.snapshot()
    if isinstance(vectors, BinaryVectors):
        own, codes = vectors.words, _codes_of(coder, vectors)
    elif isinstance(vectors, WordVectors):
        check_dims(vectors.matrix, coder.n_features_in_)
        own, codes = vectors.words, coder.encode(vectors.matrix)
    else:
        codes = _codes(coder, to_numpy(vectors))
    if ids is None:
        words = None if own is None or isinstance(own, RowNumbers) else own
    else:
        words = as_words(ids)
        if are_new and "" in words:
            raise InputError(f"ids[{list(words).index('')}] is empty, expected a name for each row")
    if words is not None and len(words) != len(codes):
        raise InputError(f"{len(words)} ids for {len(codes)} rows")
    return words, codes


def _codes(coder: Coder, array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.ndim != 2:
        raise InputError(f"vectors of shape {array.shape}, expected (n, {coder.n_features_in_})")
    if array.dtype != np.uint8:
        check_dims(array, coder.n_features_in_)
        return coder.encode(array)
    return coder.check_codes(array)  # padding bits are refused when the piece is written


def _codes_of(coder: Coder, bits: BinaryVectors) -> NDArray[np.uint8]:
    check_same_coder(coder, bits.coder)
    return np.asarray(bits.codes)


def new_ids(latest: Snapshot, ids: Sequence[str] | None, n: int) -> tuple[Snapshot, PieceIds]:
    """The ids of n new rows, and the snapshot with what they change in the manifest.

    Raises:
        InputError: An id is there already or given twice, or the collection has ids and the rows
            have none, or the other way round.
    """
    manifest = latest.manifest
    if ids is None:
        if manifest.ids == "given":
            raise InputError(
                "the rows of this collection have ids: give one for each new row (ids=, --words "
                "FILE)"
            )
        first = manifest.next_number
        numbered = replace(manifest, ids="numbers", next_number=first + n)
        return replace(latest, manifest=numbered), RowNumbers(n, first)
    changed = _with_ids(latest)
    _check_new(latest, ids)
    return changed, unique_ids(ids)


def upserted_ids(
    latest: Snapshot, ids: Sequence[str]
) -> tuple[Snapshot, Vocabulary, NDArray[np.int64]]:
    """The ids of rows to add or replace, the snapshot as they change it, and the rows replaced.

    Raises:
        InputError: An id is given twice, or is new in a collection that numbers its rows.
    """
    words = unique_ids(ids)
    rows = latest.words.find_many(ids)
    is_known = rows >= 0
    return latest if is_known.all() else _with_ids(latest), words, rows[is_known]


def _with_ids(latest: Snapshot) -> Snapshot:
    if latest.manifest.ids == "numbers":
        raise InputError("the rows of this collection are numbered: add rows without ids")
    return replace(latest, manifest=replace(latest.manifest, ids="given"))


def unique_ids(ids: Sequence[str]) -> Vocabulary:
    """Ids as an index.

    Raises:
        InputError: One appears twice.
    """
    return ids if isinstance(ids, Vocabulary) else Vocabulary.from_words(ids)


def _check_new(latest: Snapshot, ids: Sequence[str]) -> None:
    there = np.flatnonzero(latest.words.find_many(ids) >= 0)
    if len(there):
        more = f", and {len(there) - 1:,} more" if len(there) > 1 else ""
        first = ids[int(there[0])]
        raise InputError(
            f"the id {first!r} is there already{more}: `update` replaces rows, and so "
            "does `embits add --update`"
        )


def known_rows(latest: Snapshot, ids: Iterable[str | int]) -> NDArray[np.int64]:
    """The rows of ids.

    Raises:
        UnknownWordError: Some are not there; counts them and names the first.
    """
    wanted = as_words(ids)
    rows = latest.words.find_many(wanted)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        named = ", ".join(repr(wanted[each]) for each in missing[:_MAX_NAMED].tolist())
        more = ", …" if len(missing) > _MAX_NAMED else ""
        unknown = f"{len(missing):,} of {len(wanted):,} ids are unknown ({named}{more}), and "
        many = unknown if len(wanted) > 1 else ""
        raise UnknownWordError(wanted[int(missing[0])], [], f"{many}nothing was changed")
    return rows
