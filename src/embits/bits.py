"""Packed bits: eight to a byte, the first bit highest, the padding bits of the last byte zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError


def packed_width(n_bits: int) -> int:
    """Bytes of a packed code of `n_bits` bits.

    Example:
        >>> packed_width(8), packed_width(9)
        (1, 2)
    """
    return -(-n_bits // 8)


def padding_mask(n_bits: int) -> int:
    """The bits of a code's last byte that lie past its `n_bits`, as a number from 0 to 127.

    Example:
        >>> f"{padding_mask(5):08b}", padding_mask(16)
        ('00000111', 0)
    """
    return (1 << (-n_bits % 8)) - 1


def has_padding_bits(codes: NDArray[np.uint8], n_bits: int) -> bool:
    """Whether a padding bit is set in packed codes of shape (width,) or (n, width)."""
    mask = padding_mask(n_bits)
    return bool(mask and (codes[..., -1] & mask).any())


def check_padding(codes: NDArray[np.uint8], n_bits: int) -> None:
    """Raise InputError if packed codes have bits set past the coder's `n_bits`."""
    if has_padding_bits(codes, n_bits):
        raise InputError(f"codes have bits set past the coder's {n_bits} bits")


def invert(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.uint8]:
    """Packed codes with each of their `n_bits` inverted; padding bits stay zero.

    Example:
        >>> invert(np.array([0b1100_0000], np.uint8), 4).tolist() == [0b0011_0000]
        True
    """
    inverted = ~codes
    inverted[..., -1] &= 0xFF ^ padding_mask(n_bits)
    return inverted


def unpack(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.float32]:
    """Packed codes of shape (n, width) as a matrix of 0.0 and 1.0, shape (n, n_bits)."""
    return np.unpackbits(codes, axis=1, count=n_bits).astype(np.float32)
