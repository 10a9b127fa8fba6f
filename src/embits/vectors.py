"""WordVectors: words, or other ids, and their float vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.checks import check_finite
from embits.errors import InputError

if TYPE_CHECKING:
    from embits.ids.subwords import Subwords


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words, or other ids, and one float32 row for each.

    Args:
        words: The words, or other ids, of the rows: strings or whole numbers, each once. Whole
            numbers become strings. None if rows have no ids: row numbers are used.
        matrix: Floats of shape (n, dims). float32 is not copied, and may be mapped. Tensors, nested
            lists and columns of a data frame are converted.
        subwords: The subwords of a fastText model, for words that it does not have; or None.

    Raises:
        InputError: The matrix has another shape or type, or the ids do not fit it.

    Example:
        >>> import numpy as np
        >>> vectors = WordVectors(["up", "down"], np.array([[1.0, 0.5], [-1.0, 0.5]]))
        >>> len(vectors), vectors.dims, vectors.matrix.dtype
        (2, 2, dtype('float32'))
    """

    words: Sequence[str] | None  # after construction; any ids before it
    matrix: NDArray[np.float32]
    subwords: Subwords | None = None

    def __post_init__(self) -> None:
        if isinstance(self.matrix, Mapping):
            hint = "of {id: vector} make WordVectors(list(vectors), list(vectors.values()))"
            raise InputError(f"the vectors are a dict, expected a matrix; {hint}")
        matrix = to_numpy(self.matrix)
        if matrix.ndim != 2:
            raise InputError(f"matrix of {matrix.ndim} dimension(s), expected 2: (words, dims)")
        if matrix.dtype.kind not in "fiu":
            raise InputError(f"the matrix is {matrix.dtype}, expected numbers")
        if self.words is not None:
            words = normalize_ids(self.words)
            if len(words) != len(matrix):
                raise InputError(f"{len(words)} words for {len(matrix)} rows of vectors")
            check_unique(words)
            object.__setattr__(self, "words", words)
        try:
            with np.errstate(over="raise"):
                matrix = matrix.astype(np.float32, copy=False)
        except FloatingPointError:
            check_finite(matrix)  # names the row
            raise
        object.__setattr__(self, "matrix", matrix)

    def __len__(self) -> int:
        return len(self.matrix)

    def __repr__(self) -> str:
        # The default of a dataclass prints every word.
        return f"<{type(self).__name__}: {len(self):,} × {self.dims} floats>"

    @property
    def dims(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])


def is_id(key: object) -> bool:
    """Whether it may be the id of a row: a string, a whole number, or a UUID.

    >>> is_id("a"), is_id(7), is_id(True), is_id(7.0)
    (True, True, False, False)
    """
    if isinstance(key, str | int | np.integer):
        return not isinstance(key, bool)
    return type(key).__module__ == "uuid"  # recognised without importing it


def normalize_ids(ids: Any) -> Sequence[str]:
    """Ids as words: strings as they are, numbers as their digits, UUIDs (also of 16 bytes) as text.

    >>> normalize_ids(np.array([7, 11]))
    ['7', '11']
    """
    if isinstance(ids, str | bytes | Mapping | Set) or not isinstance(ids, Iterable):
        raise InputError(f"ids is {shortened(ids)}, expected one id for each row")
    listed = getattr(ids, "tolist", None) or getattr(ids, "to_pylist", None)  # the latter of Arrow
    words = ids if listed is None else listed()
    if not isinstance(words, Sequence):
        words = list(words)
    if set(map(type, words)) <= {str}:
        return words
    if all(isinstance(each, bytes) and len(each) == 16 for each in words):
        from uuid import UUID

        return [str(UUID(bytes=each)) for each in words]
    for row, each in enumerate(words):
        if not is_id(each):
            found = f"that of row {row} is {shortened(each)}"
            raise InputError(f"ids must be strings or whole numbers: {found}")
    return list(map(str, words))


def refuse_empty_ids(ids: Sequence[str]) -> None:
    """Refuse an id that is empty: results have it for no row."""
    if "" in ids:
        row = list(ids).index("")
        raise InputError(f"ids[{row}] is empty, expected a name for each row")


def check_unique(words: Sequence[str]) -> None:
    """Refuse ids that repeat."""
    # Sorted hashes take a quarter of the memory of a set; only ids with equal ones are compared.
    hashes = np.sort(np.fromiter(map(hash, words), np.int64, len(words)))
    if not (hashes[1:] == hashes[:-1]).any():
        return
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        if first.setdefault(word, row) != row:
            raise InputError(f"the id {word!r} appears twice: in rows {first[word]} and {row}")
