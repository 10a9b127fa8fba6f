"""WordVectors: words and their float matrix, as a reader hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.errors import InputError

if TYPE_CHECKING:
    from embits.words.subwords import Subwords


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and one float32 row for each.

    Args:
        words: The words, or other ids, row by row; whole numbers are kept as their digits. None
            when rows have no names and go by their number.
        matrix: Floats of shape (n, dims); kept as it is when it is float32, maybe mapped. Tensors,
            nested lists and columns of a data frame are taken too.
        subwords: What fastText needs to make vectors of words it has never seen, or None.

    Example:
        >>> import numpy as np
        >>> vectors = WordVectors(["up", "down"], np.array([[1.0, 0.5], [-1.0, 0.5]]))
        >>> len(vectors), vectors.dims, vectors.matrix.dtype
        (2, 2, dtype('float32'))
    """

    words: Sequence[str] | None  # once made; what is given may be any ids
    matrix: NDArray[np.float32]
    subwords: Subwords | None = None

    def __post_init__(self) -> None:
        matrix: Any = to_numpy(self.matrix)
        if matrix.ndim != 2:
            raise InputError(
                f"the matrix has {matrix.ndim} dimension(s), expected 2: (words, dims)"
            )
        if matrix.dtype.kind not in "fiu":
            raise InputError(f"the matrix is {matrix.dtype}, expected numbers")
        if self.words is not None:
            object.__setattr__(self, "words", as_words(self.words))
            if len(self.words) != len(matrix):
                raise InputError(f"{len(self.words)} words for {len(matrix)} rows of vectors")
        object.__setattr__(self, "matrix", matrix.astype(np.float32, copy=False))

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def dims(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])


def as_words(ids: Any) -> Sequence[str]:
    """Ids as words: strings as they are, whole numbers as their digits.

    Args:
        ids: A sequence, or an array or column of another library.

    Example:
        >>> as_words(np.array([7, 11]))
        ['7', '11']
    """
    words: Sequence[Any] = ids.tolist() if hasattr(ids, "tolist") else ids
    if len(words) and isinstance(words[0], int | np.integer):
        return [str(int(each)) if _is_whole(each) else each for each in words]
    return words


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
