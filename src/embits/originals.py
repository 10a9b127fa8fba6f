"""Rescoring by the original vectors: row by row, or by id."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.rows import Floats
from embits.search.rescoring import rescore_floats
from embits.search.results import NO_ROW, CosineResult, ScoreResult
from embits.vectors import WordVectors

if TYPE_CHECKING:
    from embits.binary_vectors import BinaryVectors

Originals: TypeAlias = NDArray[Any] | WordVectors | str | os.PathLike[str]

# The words of vectors that were rescored with: an index takes a second for a million of them.
_INDEXES: WeakKeyDictionary[WordVectors, Vocabulary] = WeakKeyDictionary()
# The vectors that rows were last rescored with, and how many of them were compared with the codes.
_CHECKED: WeakKeyDictionary[BinaryVectors, tuple[Any, int]] = WeakKeyDictionary()
_ENOUGH = 4096  # rows: then searches with the same array compare no more, which takes half of one
_MAX_CHECKED = 512  # rows of a search whose codes are compared: all of about ten queries
_MAX_SHARE = 0.4  # of the bits of a code. Those of unrelated rows differ in about half
_MAX_BITS = 4  # of a short code, in which rounding may change as large a share


def rescored(
    bits: BinaryVectors,
    floats: Originals | Floats,
    queries: NDArray[Any],
    shortlist: NDArray[np.int64],
    k: int,
    *,
    dot: bool,
) -> CosineResult | ScoreResult:
    """The k rows of each shortlist whose originals have the highest cosine, or `dot` product."""
    if isinstance(floats, Floats):  # kept beside the codes: they are those of the rows
        return rescore_floats(floats.lazy, queries, shortlist, k, dot=dot)
    rows = np.unique(shortlist[shortlist != NO_ROW])
    if isinstance(floats, WordVectors) and floats.words is not None:
        vectors = floats.matrix[_places(bits, floats, rows)]
        is_finite = np.isfinite(vectors).all(axis=1)
        if not is_finite.all():
            wrong = bits.ids(rows[~is_finite])[0]
            raise InputError(f"the vector of the id {wrong!r} in floats contains NaN or infinity")
        _check(bits, vectors, rows, np.arange(len(rows)), floats)
        places = np.where(shortlist == NO_ROW, NO_ROW, np.searchsorted(rows, shortlist))
        best = rescore_floats(vectors, queries, places, k, dot=dot)
        return type(best)(best[0], np.where(best.rows == NO_ROW, NO_ROW, rows[best.rows]))
    matrix = _matrix(floats)
    if matrix.shape != (len(bits), bits.dims):
        expected = f"the originals: {len(bits), bits.dims}"
        raise InputError(f"floats of shape {matrix.shape}, expected {expected}")
    _check(bits, matrix, rows, rows, floats)
    return rescore_floats(matrix, queries, shortlist, k, dot=dot)


def _matrix(floats: Originals) -> NDArray[Any]:
    if isinstance(floats, str | os.PathLike):
        # Imported here: a search without floats needs no readers.
        from embits.readers.arrays import map_npy
        from embits.readers.source import Source

        others = f"a .npy; give other files as floats=embits.read_vectors({str(floats)!r})"
        return map_npy(Source(Path(floats)), others)
    return floats.matrix if isinstance(floats, WordVectors) else to_numpy(floats)


def _places(bits: BinaryVectors, floats: WordVectors, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of `floats` that have the ids of the rows of the codes."""
    index = _INDEXES.get(floats)
    if index is None:
        words: Any = floats.words
        index = words if isinstance(words, Vocabulary) else Vocabulary.from_words(words)
        _INDEXES[floats] = index
    ids = bits.ids(rows).tolist()
    places = index.find_many(ids)
    if (places < 0).any():
        missing = ids[int((places < 0).argmax())]
        raise InputError(f"floats has no vector for the id {missing!r}")
    return places


def _check(
    bits: BinaryVectors,
    matrix: NDArray[Any],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    floats: Originals,
) -> None:
    """Refuse vectors (`matrix[places]`) of other `rows`; rounded or normalized originals pass."""
    known, checked = _CHECKED.get(bits, (None, 0))
    is_known = known is not None and known() is floats
    if is_known and checked >= _ENOUGH:
        return
    step = max(1, -(-len(rows) // _MAX_CHECKED))
    rows, vectors = rows[::step], np.asarray(matrix[places[::step]])
    if not np.isfinite(vectors).all():
        return  # rescoring refuses them
    codes = bits.coder.encode(vectors)
    differing = np.bitwise_count(codes ^ bits.codes[rows]).sum(axis=1, dtype=np.int64)
    if (differing > max(_MAX_SHARE * bits.n_bits, _MAX_BITS)).any():
        place = int(differing.argmax())
        found = f"{differing[place]} of {bits.n_bits} bits of row {rows[place]} differ"
        hint = "(embits.WordVectors; on the command line, x.words beside x.npy)"
        hint = f"give them in the order of the rows, or with their ids {hint}"
        raise InputError(f"floats are not the vectors of the codes: {found}; {hint}")
    if isinstance(floats, np.ndarray | WordVectors):
        _CHECKED[bits] = ref(floats), len(rows) + (checked if is_known else 0)
