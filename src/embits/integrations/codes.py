"""Codes that come back from another tool, as BinaryVectors."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.bits import has_padding_bits
from embits.coders import Coder
from embits.errors import InputError


def from_codes(codes: NDArray[Any], coder: Coder, ids: Any = None) -> BinaryVectors:
    """Return packed codes with the coder that made them as BinaryVectors.

    Args:
        codes: Packed codes, uint8 of shape (n, ceil(n_bits / 8)), first bit highest.
        coder: The fitted coder that made them.
        ids: Ids of the rows, strings or whole numbers; None numbers the rows.

    Raises:
        InputError: The codes do not have the coder's width, or there are not as many ids.
    """
    checked = coder.check_codes(codes)
    if has_padding_bits(checked, coder.n_bits_):
        raise InputError(f"codes have bits set past the coder's {coder.n_bits_} bits")
    return BinaryVectors(ids, checked, coder)
