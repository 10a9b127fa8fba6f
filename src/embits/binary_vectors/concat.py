"""Several files as one, and whether two coders are the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from embits.binary_vectors.vectors import BinaryVectors
from embits.coders import Coder
from embits.coders.identity import coder_checksum
from embits.errors import InputError
from embits.ids.keys import RowNumbers


def concat(files: Iterable[BinaryVectors]) -> BinaryVectors:
    """The rows of several BinaryVectors, one after the other, in memory.

    Args:
        files: At least one. They have the same coder, and either all have ids or none has.

    Returns:
        Rows with their ids; rows without ids are numbered anew. Subwords are those of the first.

    Raises:
        InputError: A coder differs, an id appears twice, or only some of the files have ids.
        FormatError: A file is damaged.

    Example:
        >>> import numpy as np, embits
        >>> bits = embits.binarize(np.eye(4), n_bits=64, method="lsh", ids=["a", "b", "c", "d"])
        >>> list(embits.concat([bits.subset(["d"]), bits.subset(["a", "b"])]).words)
        ['d', 'a', 'b']
    """
    parts = list(files)
    if not parts or not all(isinstance(part, BinaryVectors) for part in parts):
        raise InputError("concat needs a list of at least one BinaryVectors")
    for part in parts:
        part.check_undamaged()
    first = parts[0]
    for part in parts[1:]:
        check_same_coder(first.coder, part.coder)
    numbered = {isinstance(part.words, RowNumbers) for part in parts}
    if len(numbered) > 1:
        raise InputError(
            "some of the files have ids and others have none: all must have them, or none"
        )
    words = None if numbered == {True} else list(chain.from_iterable(p.words for p in parts))
    codes = np.concatenate([np.asarray(part.codes) for part in parts])
    return BinaryVectors(words, codes, first.coder, first.subwords)


def check_same_coder(ours: Coder, theirs: Coder) -> None:
    """Refuse a coder that gives other codes.

    Raises:
        InputError: It has another method, size or other learned values.
    """
    if ours is theirs:
        return
    a, b = _described(ours), _described(theirs)
    if a != b:
        raise InputError(f"the coders differ: {b}, expected {a}")
    if coder_checksum(ours) != coder_checksum(theirs):
        raise InputError(f"the coders differ: both are {a}, but they were fitted differently")


def _described(coder: Coder) -> str:
    return f"{coder.method}, {coder.n_bits_} bits from {coder.n_features_in_} dimensions"
