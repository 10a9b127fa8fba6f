"""Rescoring by the original vectors: row by row, or by id."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from embits.arrays import LazyRows, to_numpy
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.search.results import ids_of
from embits.vectors import WordVectors

if TYPE_CHECKING:
    from embits.snapshot import Snapshot

Originals: TypeAlias = NDArray[Any] | WordVectors | str | os.PathLike[str]

# The words of vectors that were rescored with: an index takes a second for a million of them.
_INDEXES: WeakKeyDictionary[WordVectors, Vocabulary] = WeakKeyDictionary()
_MAX_CHECKED = 64  # rows that are encoded again, once for an array or file
_MAX_SHARE = 0.4  # of the bits of a code. Those of unrelated rows differ in about half
_MAX_BITS = 4  # of a short code, in which rounding may change as large a share


def original_vectors(snapshot: Snapshot, floats: Originals) -> LazyRows:
    """The vectors of rows, to be read by row. InputError if they are not those of the codes."""
    dims = snapshot.coder.n_features_in_
    if isinstance(floats, WordVectors) and floats.words is not None:
        matrix, places = floats.matrix, partial(_places, snapshot, floats)
    else:
        matrix, places = _matrix(floats), None
        if matrix.shape != (len(snapshot), dims):
            expected = f"the originals: {len(snapshot), dims}"
            raise InputError(f"floats of shape {matrix.shape}, expected {expected}")

    def take(rows: NDArray[np.int64]) -> NDArray[Any]:
        vectors = np.asarray(matrix[rows if places is None else places(rows)])
        _check(snapshot, vectors, rows, floats)
        return vectors

    return LazyRows(take, len(snapshot), matrix.shape[1])


def _matrix(floats: Originals) -> NDArray[Any]:
    if isinstance(floats, str | os.PathLike):
        # Imported here: a search without floats needs no readers.
        from embits.readers.arrays import map_npy
        from embits.readers.source import Source

        others = f"a .npy; give other files as by=embits.read_vectors({str(floats)!r})"
        return map_npy(Source(Path(floats)), others)
    return floats.matrix if isinstance(floats, WordVectors) else to_numpy(floats)


def _places(snapshot: Snapshot, floats: WordVectors, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of `floats` that have the ids of the rows of the codes."""
    index = _INDEXES.get(floats)
    if index is None:
        words: Any = floats.words
        index = words if isinstance(words, Vocabulary) else Vocabulary.from_words(words)
        _INDEXES[floats] = index
    ids = ids_of(rows, snapshot.ids).tolist()
    places = index.find_many(ids)
    if (places < 0).any():
        missing = ids[int((places < 0).argmax())]
        raise InputError(f"floats has no vector for the id {missing!r}")
    return places


def _identity(floats: Originals) -> object:
    """What tells vectors from others: a reference, or a path with the state of its file."""
    if isinstance(floats, str | os.PathLike):
        found = Path(floats).stat()
        return os.fspath(floats), found.st_ino, found.st_size, found.st_mtime_ns
    return ref(floats) if isinstance(floats, np.ndarray | WordVectors) else object()


def _is_same(known: object, floats: Originals, identity: object) -> bool:
    if isinstance(known, ref):  # references are equal if what they refer to is equal
        return known() is floats
    return isinstance(known, tuple) and known == identity


def _check(
    snapshot: Snapshot, vectors: NDArray[Any], rows: NDArray[np.int64], floats: Originals
) -> None:
    """Refuse vectors of other rows; rounded or normalized originals pass."""
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        wrong = int(rows[~is_finite][0])
        name = f"the vector of the id {snapshot.ids[wrong]!r}"
        name = name if isinstance(floats, WordVectors) and floats.words else f"row {wrong}"
        raise InputError(f"{name} of floats contains NaN or infinity")
    identity = _identity(floats)
    known = snapshot.checked_originals
    if known and _is_same(known[0], floats, identity):
        return
    n_bits = snapshot.coder.n_bits_
    step = max(1, -(-len(rows) // _MAX_CHECKED))
    codes = snapshot.coder.encode(vectors[::step])
    differing = np.bitwise_count(codes ^ snapshot.codes.take(rows[::step])).sum(
        axis=1, dtype=np.int64
    )
    if (differing > max(_MAX_SHARE * n_bits, _MAX_BITS)).any():
        place = int(differing.argmax())
        found = f"{differing[place]} of {n_bits} bits of row {rows[::step][place]} differ"
        hint = "(embits.WordVectors; on the command line, x.words beside x.npy)"
        hint = f"give them in the order of the rows, or with their ids {hint}"
        raise InputError(f"floats are not the vectors of the codes: {found}; {hint}")
    known[:] = [identity]
