"""Codes in the layout of sentence-transformers' `quantize_embeddings`, and back.

Its "ubinary" has one bit per dimension, 1 above zero, packed first bit highest as uint8. Its
"binary" is the same minus 128 as int8. With a coder, the same bytes hold learned bits.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import to_numpy
from embits.binary_vectors import BinaryRows
from embits.checks import choice, packed_codes, whole
from embits.coders import Coder, SignBits
from embits.errors import InputError
from embits.integrations.table import from_codes

Precision: TypeAlias = Literal["ubinary", "binary"]


def quantize_embeddings(
    embeddings: Any, precision: Precision = "ubinary", coder: Coder | None = None
) -> NDArray[np.uint8] | NDArray[np.int8]:
    """Pack embeddings as bits of sentence-transformers or of a coder, (width,) or (n, width).

    Args:
        embeddings: Floats of shape (dims,) or (n, dims): an array, possibly memory-mapped, a
            tensor, a list of tensors, or a column of a data frame.
        precision: "ubinary" for uint8, "binary" for the same bytes minus 128 as int8.
        coder: A fitted coder; None takes the signs, exactly as sentence-transformers does.

    Raises:
        InputError: The precision is unknown, or the embeddings are not finite floats.

    Example:
        >>> quantize_embeddings([[0.5, -0.5, 0.0, 0.1, 1, 1, 1, 1]], "binary")
        array([[31]], dtype=int8)
    """
    choice("precision", precision, ["ubinary", "binary"])
    floats = to_numpy(embeddings)
    if floats.dtype in (np.uint8, np.int8):
        raise InputError(f"the embeddings are {floats.dtype}, already quantized; expected floats")
    matrix = np.atleast_2d(floats)
    codes = (coder or sign_coder(matrix.shape[1])).encode(matrix)
    codes = codes[0] if floats.ndim == 1 else codes
    return codes if precision == "ubinary" else _offset(codes).view(np.int8)


def packed(codes: Any) -> NDArray[np.uint8]:
    """Convert codes of either precision to the packing of embits: uint8, first bit highest.

    Example:
        >>> packed(np.array([[31, -128]], dtype=np.int8))
        array([[159,   0]], dtype=uint8)
    """
    array = to_numpy(codes)
    if array.dtype not in (np.uint8, np.int8):
        raise InputError(f"codes are {array.dtype}, expected uint8 ('ubinary') or int8 ('binary')")
    return array if array.dtype == np.uint8 else _offset(array.view(np.uint8))


def from_quantized(
    codes: Any, *, dims: int | None = None, ids: Any = None, coder: Coder | None = None
) -> BinaryRows:
    """Return quantized embeddings as BinaryVectors, to search, save and export.

    Args:
        codes: Of shape (n, width), uint8 ("ubinary") or int8 ("binary").
        dims: Dimensions of the embeddings; None takes 8 per byte, or the coder's.
        ids: Ids of the rows, strings or whole numbers; None numbers the rows.
        coder: The coder that made the codes; None for signs, which decode to unit vectors.

    Raises:
        InputError: The codes have another type or shape, or bits set past the last dimension.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(100, 64))
        >>> bits = from_quantized(quantize_embeddings(X, "binary"))
        >>> bits.search(X[:2], k=1)[1].tolist()
        [[0], [1]]
    """
    array = packed_codes(packed(codes))
    if coder is None:
        coder = sign_coder(8 * array.shape[1] if dims is None else dims)
    elif dims not in (None, coder.n_features_in_):
        raise InputError(f"dims is {dims}, but the coder takes {coder.n_features_in_}")
    return from_codes(array, coder, ids)


def sign_coder(dims: int) -> SignBits:
    """Return the coder behind "ubinary": 1 above zero; it decodes to ±1/√dims.

    Example:
        >>> sign_coder(4).inverse_transform(np.array([[0b10100000]], dtype=np.uint8))
        array([[ 0.5, -0.5,  0.5, -0.5]], dtype=float32)
    """
    dims = whole("dims", dims, 1)
    size = np.float32(1 / math.sqrt(dims))
    state = {"decoder": 2 * size * np.eye(dims, dtype=np.float32), "offset": np.full(dims, -size)}
    return SignBits.from_state({"n_bits": None, "strict": True}, state, dims, dims)


def _offset(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return codes ^ np.uint8(0x80)  # plus or minus 128: in eight bits both flip the first bit
