"""The arguments of changes: rows to add, and ids of rows that are there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.binary_vectors import BinaryVectors
from embits.binary_vectors.concat import check_same_coder
from embits.coders import Coder
from embits.coders.checks import check_dims
from embits.collection.snapshot import Snapshot
from embits.errors import InputError, UnknownWordError
from embits.ids.keys import RowNumbers
from embits.ids.pieces import PieceIds
from embits.ids.vocabulary import Vocabulary
from embits.vectors import WordVectors, as_words

_MAX_NAMED = 3  # unknown ids that an error names


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
    rows = latest.words().find_many(ids)
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
    there = np.flatnonzero(latest.words().find_many(ids) >= 0)
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
    rows = latest.words().find_many(wanted)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        named = ", ".join(repr(wanted[each]) for each in missing[:_MAX_NAMED].tolist())
        more = ", …" if len(missing) > _MAX_NAMED else ""
        unknown = f"{len(missing):,} of {len(wanted):,} ids are unknown ({named}{more}), and "
        many = unknown if len(wanted) > 1 else ""
        raise UnknownWordError(wanted[int(missing[0])], [], f"{many}nothing was changed")
    return rows
