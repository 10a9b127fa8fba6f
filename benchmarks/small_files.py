"""The smallest files of word vectors that people make without embits, written and read back.

A file is a compressed `.npz` archive: the words in row order, one a line in UTF-8, and one array of
numbers with what is needed to decode it. Rows are compared by cosine, so no file stores lengths,
and none stores the directions of a PCA, which only new vectors need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Arrays = dict[str, NDArray[Any]]

LIMITS = {2: 1.6, 4: 2.7, 8: 4.5}  # largest level in standard deviations, by bits of a number
PQ_ROWS, PQ_TURNS = 10_000, 5  # the turns of compress-fasttext


class Method(NamedTuple):
    """A way to store the rows of a vocabulary.

    Attributes:
        name: The family, such as "int8, PCA".
        size: Dimensions, or bytes of a product-quantized row.
        encode: The arrays of the first n rows.
    """

    name: str
    size: int
    encode: Callable[[int], Arrays]


def methods(X: Floats) -> Iterator[Method]:
    """All ways to store unit rows of shape (n, dims); what they learn is learned from all rows."""
    dims = X.shape[1]
    yield Method("float16", dims, lambda n: {"floats": X[:n].astype(np.float16)})
    yield Method("int8", dims, lambda n: {"floats": row_levels(X[:n])})
    axes = principal_axes(X)
    for size in (size for size in (32, 64, 100, 150, 300) if size <= dims):
        plain = (X - X.mean(axis=0)) @ axes[:, :size]
        white = plain / plain.std(axis=0)
        yield Method("float16, PCA", size, lambda n, P=plain: {"floats": P[:n].astype(np.float16)})
        yield Method("int8, PCA", size, lambda n, P=plain: scalar(P, n, 8))
        yield Method("4 bits, PCA", size, lambda n, P=plain: scalar(P, n, 4))
        for bits in (2, 4):
            name = f"{bits} bits, whitened PCA"
            yield Method(name, size, lambda n, P=white, b=bits: scalar(P, n, b))
    for size in (10, 20, 50, 100):
        if dims % size == 0 and size < dims:
            coded = product_quantized(X, size)
            yield Method("PQ", size, lambda n, c=coded: {**c, "codes": c["codes"][:n]})


def decode(arrays: Arrays) -> Floats:
    """The rows of a file's arrays, up to their length."""
    if "floats" in arrays:
        return arrays["floats"].astype(np.float32)
    if "levels" in arrays:
        return scalar_rows(arrays)
    codes, centroids = arrays["codes"], arrays["centroids"].astype(np.float32)
    return centroids[np.arange(codes.shape[1]), codes].reshape(len(codes), -1)


def write(path: Path, words: list[str], arrays: Arrays) -> int:
    """Write the file; returns its bytes on the disk."""
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    np.savez_compressed(path, allow_pickle=False, words=text, **arrays)
    return path.stat().st_size


def read(path: Path) -> tuple[list[str], Floats]:
    """The words of a file and its rows."""
    with np.load(path) as archive:
        arrays = dict(archive)
    words = arrays.pop("words").tobytes().decode().split("\n")
    return words, decode(arrays)


# -- numbers of a few bits -------------------------------------------------------------------------


def principal_axes(X: Floats) -> Floats:
    """The directions of a PCA as columns, largest variance first."""
    _, axes = np.linalg.eigh(np.cov(X, rowvar=False))
    return axes[:, ::-1].astype(np.float32)


def row_levels(X: Floats) -> NDArray[np.int8]:
    """Rows as whole numbers up to 127; each has its own scale, which a cosine does not need."""
    return np.rint(127 * X / np.abs(X).max(axis=1, keepdims=True)).astype(np.int8)


def scalar(P: Floats, n: int, bits: int) -> Arrays:
    """The first n rows as numbers of a few bits, each dimension with the scale of all rows."""
    spread = P.std(axis=0)
    limit = LIMITS[bits]
    levels = np.floor((P[:n] / spread + limit) * (2**bits / (2 * limit)))
    levels = np.clip(levels, 0, 2**bits - 1).astype(np.uint8)
    return {"levels": pack(levels, bits), "spread": spread, "bits": np.uint8(bits)}


def scalar_rows(arrays: Arrays) -> Floats:
    bits, spread = int(arrays["bits"]), arrays["spread"]
    levels = unpack(arrays["levels"], bits, len(spread)).astype(np.float32)
    limit = np.float32(LIMITS[bits])
    rows: Floats = ((levels + 0.5) * (2 * limit / 2**bits) - limit) * spread
    return rows


def pack(levels: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Numbers of 2, 4 or 8 bits, as many in a byte as fit; rows start at whole bytes."""
    each = np.unpackbits(levels[:, :, None], axis=2)[:, :, 8 - bits :]
    return np.packbits(each.reshape(len(levels), -1), axis=1)


def unpack(packed: NDArray[np.uint8], bits: int, dims: int) -> NDArray[np.uint8]:
    """The inverse of `pack`."""
    each = np.unpackbits(packed, axis=1, count=dims * bits).reshape(len(packed), dims, bits)
    return np.packbits(each, axis=2, bitorder="big")[:, :, 0] >> (8 - bits)


# -- product quantization --------------------------------------------------------------------------


def product_quantized(X: Floats, size: int) -> Arrays:
    """FAISS's product quantizer with one byte a part, and centroids in 16 bits."""
    import faiss

    quantizer = faiss.ProductQuantizer(X.shape[1], size, 8)
    quantizer.cp.niter = PQ_TURNS
    sample = np.random.default_rng(0).permutation(len(X))[:PQ_ROWS]
    quantizer.train(X[sample])
    centroids = faiss.vector_to_array(quantizer.centroids).reshape(size, 256, -1)
    return {"codes": quantizer.compute_codes(X), "centroids": centroids.astype(np.float16)}
