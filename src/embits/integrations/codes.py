"""Codes that come back from another tool, as BinaryVectors."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.bits import check_padding
from embits.coders import Coder
from embits.coders.identity import coder_checksum
from embits.errors import InputError
from embits.ids.vocabulary import LazyVocabulary


def to_export(bits: Any) -> BinaryVectors:
    """Return what is to be exported, with all codes in one array and fast slices of its words.

    A collection is merged.

    Raises:
        InputError: It is not BinaryVectors.
    """
    if not isinstance(bits, BinaryVectors):
        raise InputError(
            f"bits is {type(bits).__name__}, expected BinaryVectors; embits.binarize makes them"
        )
    merged = bits.merged()
    if isinstance(merged.words, LazyVocabulary):
        merged.words.unpack()
    return merged


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
    check_padding(checked, coder.n_bits_)
    return BinaryVectors(ids, checked, coder)


def check_coder(coder: Coder, n_bits: int, checksum: Any, place: str) -> None:
    """Check that a coder is the one that made the codes of another tool.

    Args:
        coder: The fitted coder.
        n_bits: The width of the codes.
        checksum: What `coder_checksum` gave when they were exported; None if that is not known,
            as in exports of earlier versions.
        place: Where the codes are, for the message.

    Raises:
        InputError: It makes codes of another width, or is another coder.
    """
    if coder.n_bits_ != n_bits:
        raise InputError(f"the coder makes {coder.n_bits_} bits, {place} holds {n_bits}")
    if checksum is not None and checksum != coder_checksum(coder):
        raise InputError(
            f"the coder (method {coder.method!r}) did not make the codes in {place}; "
            "pass the coder of the file that was exported"
        )
