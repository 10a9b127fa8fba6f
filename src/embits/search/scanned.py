"""What a native search reads: codes in one array, or in several without removed rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.search.arguments import packed_codes
from embits.search.filters import Filters, parse_filters
from embits.search.pieces import CodePieces


class Scanned(NamedTuple):
    """Codes as the native searches read them.

    Attributes:
        native: What is scanned.
        n: Stored rows, with those that are removed.
        width: Bytes of a code.
        pieces: The pieces, if there are several or rows are removed.
    """

    native: NDArray[np.uint8] | _core.CodePieces
    n: int
    width: int
    pieces: CodePieces | None

    @classmethod
    def of(cls, codes: Any) -> Scanned:
        """Codes of any kind.

        Raises:
            InputError: They are not packed bits of shape (n, width).
        """
        if isinstance(codes, CodePieces):
            return cls(codes.native, codes.rows.n_stored, codes.shape[1], codes)
        array = packed_codes(codes)
        return cls(array, len(array), array.shape[1], None)

    @property
    def shape(self) -> tuple[int, int]:
        """Stored rows, and bytes of a code."""
        return self.n, self.width

    def filters(self, shape: tuple[int, ...], where: Any, exclude: Any) -> Filters:
        """`where` and `exclude` as filters of the stored rows. Raises as `parse_filters` does."""
        if self.pieces is None:
            return parse_filters(self.n, shape, where, exclude)
        return self.pieces.stored_filters(parse_filters(len(self.pieces), shape, where, exclude))

    def rows(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Stored rows that were found, as rows of the codes; -1 stays."""
        return found if self.pieces is None else self.pieces.rows.live(found)

    def codes_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes of rows, in one array."""
        codes = self.native if self.pieces is None else self.pieces
        return codes[rows]  # type: ignore[index]
