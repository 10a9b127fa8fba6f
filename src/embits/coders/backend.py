"""The arrays that coders compute with: NumPy on the CPU, PyTorch on a GPU, by the array API.

Only functions with one name in NumPy, `array_api_compat.torch` and `array_api_strict` are used.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.arrays import as_float32, blocks, to_numpy, torch_device
from embits.errors import from_extra

if TYPE_CHECKING:
    from embits.coders.base import Coder

BLOCK_ELEMENTS = 1 << 26  # scores at a time on a GPU: half a gigabyte of float64
# The possible error of a score on a GPU, of its row's root mean square. Errors at 1,000 dimensions
# are a tenth of it; the proven bound would send one row in ten back to the CPU.
DEVICE_ERROR = 2e-5


@dataclass(frozen=True)
class Backend:
    """A namespace of the array API, and the device its arrays live on (None: the default one)."""

    xp: Any
    device: Any = None

    def put(self, array: Any) -> Any:
        """The array, NumPy's or of the namespace, on the device."""
        if self.xp is np:
            return np.ascontiguousarray(array)
        return self.xp.asarray(array, device=self.device)

    def uniform(self, rng: np.random.Generator) -> Callable[[tuple[int, int]], Any]:
        """Makes random arrays from 0 to 1 on the device; a GPU draws them, and rng is its seed."""
        if self.device is None:
            return lambda shape: self.put(rng.random(shape, dtype=np.float32))
        torch = import_module("torch")
        generator = torch.Generator(self.device)
        generator.manual_seed(int(rng.integers(1 << 63)))
        return partial(torch.rand, generator=generator, device=self.device)

    def get(self, array: Any) -> NDArray[Any]:
        """The array back in host memory."""
        return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def backend(device: str, purpose: str = "training") -> Backend:
    """The backend of `device`: "cpu", or a PyTorch device such as "cuda" or "cuda:1"."""
    if device == "cpu":
        return Backend(np)
    _, place = torch_device(device, purpose)
    with from_extra(f"{purpose} on device={device!r}", "gpu"):
        return Backend(import_module("array_api_compat.torch"), place)


def product(a: Any, b: Any) -> Any:
    """`a @ b` for matrices; of NumPy's float32 each element is summed in one order.

    A matrix library's order depends on threads and processor: last digits, then bits, would differ.
    """
    if not (isinstance(a, np.ndarray) and a.dtype == b.dtype == np.float32):
        return a @ b
    out = np.empty((a.shape[0], b.shape[1]), dtype=np.float32)
    _core.product(a, b, 0, out)
    return out


def encode_on(coder: Coder, X: Any, device: str) -> NDArray[np.uint8]:
    """The codes that `coder.encode(X)` gives, to the bit, made on `device`.

    Scores on the GPU, summed in float64, differ slightly. Rows with a score that is no further from
    zero than DEVICE_ERROR, a few in a thousand, are encoded again on the CPU.
    """
    on = backend(device, "encoding")
    xp = on.xp
    size = max(1, BLOCK_ELEMENTS // max(coder.n_bits_, coder.n_features_in_))
    if not coder.is_threshold:  # a search in integers, which only the CPU has, or under a net
        X = coder.check_vectors(to_numpy(X))
        if not hasattr(coder, "encode_rows_on"):
            return coder.encode(X)
        parts = [coder.encode_rows_on(on, as_float32(X[rows])) for rows in blocks(len(X), size)]
        return np.concatenate([np.empty((0, coder.n_bytes_), dtype=np.uint8), *parts])
    weights_there = copy.copy(coder)
    for name in coder.state_shapes:
        array = np.asarray(getattr(coder, name + "_"), dtype=np.float64)
        setattr(weights_there, name + "_", on.put(array))
    if not hasattr(X, "is_cuda"):  # all but tensors
        X = to_numpy(X)
    coder.check_vectors(X[:0])  # its shape and type; its numbers are checked there
    codes = np.empty((len(X), coder.n_bytes_), dtype=np.uint8)
    for start in range(0, len(X), size):
        block = X[start : start + size]
        if isinstance(block, np.ndarray):
            block = as_float32(block)
        # Through float32, which is what the CPU sees of any number.
        there = xp.astype(on.put(block), xp.float32)
        scores = weights_there.project(xp.astype(there, xp.float64))
        if not xp.all(xp.isfinite(there)):
            coder.check_vectors(X)  # names the row
        codes[start : start + size] = on.get(packed(xp, scores))
        errors = DEVICE_ERROR * xp.sqrt(xp.mean(scores * scores, axis=1, keepdims=True))
        again = np.flatnonzero(on.get(xp.any(xp.abs(scores) <= errors, axis=1)))
        codes[start + again] = coder.encode(to_numpy(block[again]))
    return codes


def packed(xp: Any, scores: Any) -> Any:
    """Bits of scores, eight to a byte, the first highest."""
    bits = xp.astype(scores >= 0, xp.uint8)
    padding = [xp.zeros_like(bits[:, :1])] * (-bits.shape[1] % 8)
    by_byte = xp.reshape(xp.concat([bits, *padding], axis=1), (bits.shape[0], -1, 8))
    return sum(by_byte[:, :, place] << (7 - place) for place in range(8))
