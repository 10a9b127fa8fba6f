"""Encoding on a GPU, with the projection that the CPU uses.

The codes are those of the CPU, to the bit. The GPU sums in float64 and the CPU in float32, so
their scores differ slightly: rows with a doubtful bit (`rounding`), a few in a thousand, are
encoded again on the CPU.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits.coders.backend import Backend, backend
from embits.coders.rounding import device_errors, doubtful_rows

if TYPE_CHECKING:
    from embits.coders.base import Coder

BLOCK_ELEMENTS = 1 << 26  # scores at a time: half a gigabyte of float64


def encode_on(coder: Coder, X: Any, device: str) -> NDArray[np.uint8]:
    """The codes that `coder.encode(X)` gives, made on `device`.

    Args:
        coder: A fitted coder.
        X: Vectors of shape (n, dims): what `encode` takes, or a PyTorch tensor on any device.
        device: A PyTorch device.
    """
    on = backend(device, "encoding")
    if not coder.is_threshold:  # a search in integers, which only the CPU has
        return coder.encode(_host(X))
    weights_there = _moved(coder, on)
    if not is_tensor(X):
        X = np.asarray(X)
    coder.check_vectors(_host(X[:0]))  # its shape and type; its numbers are looked at there
    codes = np.empty((len(X), coder.n_bytes_), dtype=np.uint8)
    size = max(1, BLOCK_ELEMENTS // max(coder.n_bits_, X.shape[1]))
    for start in range(0, len(X), size):
        block = X[start : start + size]
        vectors = block if is_tensor(X) else np.ascontiguousarray(block, dtype=np.float32)
        # Through float32, which is what the CPU sees of any number.
        there = on.xp.astype(on.put(vectors), on.xp.float32)
        scores = weights_there.project(on.xp.astype(there, on.xp.float64))
        if not on.xp.all(on.xp.isfinite(there)):
            coder.check_vectors(_host(X))  # names the row
        codes[start : start + size] = on.get(_packed(on.xp, scores))
        again = np.flatnonzero(on.get(doubtful_rows(scores, device_errors(scores))))
        codes[start + again] = coder.encode(_host(block[again]))
    return codes


def is_tensor(X: Any) -> bool:
    """Whether it is PyTorch's, told without importing it."""
    return type(X).__module__.partition(".")[0] == "torch"


def _host(X: Any) -> NDArray[Any]:
    """Rows in host memory, as NumPy has them."""
    return np.asarray(X.detach().float().cpu() if is_tensor(X) else X)


def _moved(coder: Coder, on: Backend) -> Coder:
    """A copy of the coder whose learned arrays are float64 on the device."""
    moved = copy.copy(coder)
    for name in coder.state_shapes:
        array = np.asarray(getattr(coder, name + "_"), dtype=np.float64)
        setattr(moved, name + "_", on.put(array))
    return moved


def _packed(xp: Any, scores: Any) -> Any:
    """Bits of scores, eight to a byte, the first highest."""
    bits = xp.astype(scores >= 0, xp.uint8)
    padding = [xp.zeros_like(bits[:, :1])] * (-bits.shape[1] % 8)
    by_byte = xp.reshape(xp.concat([bits, *padding], axis=1), (bits.shape[0], -1, 8))
    packed = xp.zeros_like(by_byte[:, :, 0])
    for place in range(8):
        packed = packed | (by_byte[:, :, place] << (7 - place))
    return packed
