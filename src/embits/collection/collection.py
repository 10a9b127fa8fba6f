"""Collection: a folder of codes that rows are added to and removed from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.collection import changes
from embits.collection.manifest import Manifest
from embits.collection.pieces import Rows, open_coder
from embits.collection.rows import encoded_rows, known_rows, new_ids, unique_ids, upserted_ids
from embits.collection.snapshot import Snapshot, open_snapshot
from embits.errors import InputError


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
        self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        super().__init__(snapshot.words(), snapshot.codes(), snapshot.coder)
        self._state = snapshot.manifest
        self.__dict__.pop("_on_device", None)  # copies of the codes before the change

    @property
    def manifest(self) -> Manifest:
        """What the collection consists of: its pieces, in row order."""
        return self._snapshot.manifest

    def snapshot(self) -> BinaryVectors:
        """The collection as it is now: later changes and refreshes of this object do not alter it.

        Threads that search while another thread changes or refreshes the object take one.
        """
        shown = self._snapshot
        bits = BinaryVectors(shown.words(), shown.codes(), shown.coder)
        bits._state = shown.manifest
        return bits

    def check_undamaged(self) -> None:
        """Check the pieces and the coder before they are copied.

        Raises:
            FormatError: One is damaged.
        """
        changes.check_pieces(self.path, self._snapshot)
        self._check_coder(self.manifest)

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
            self._show(latest)
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
            >>> list(collection.words), collection.ids(collection.search(np.eye(8)[2], k=1).rows)
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
            self._show(open_snapshot(self.path, before=latest))

    def __reduce__(self) -> Any:
        """Another process opens the folder, and shows its latest state."""
        return _opened, (self.path, self.timeout)

    def __repr__(self) -> str:
        return super().__repr__().replace(": ", f" {os.fspath(self.path)!r}: ", 1)


def _opened(path: Path, timeout: float) -> Collection:
    return Collection(path, open_snapshot(path), timeout)
