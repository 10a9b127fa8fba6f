"""Subwords: vectors of words that a fastText model does not have, from their n-grams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits import _core
from embits.errors import FormatError, InputError, UnknownWordError

MAX_NGRAM = 256  # more than any model has; the default of fastText is 6


@dataclass(frozen=True, eq=False)
class Subwords:
    """The hashed n-grams of a fastText model.

    Args:
        buckets: One row for each hash bucket, float32 or float16 of shape (n_buckets, dims),
            may be mapped.
        minn: Shortest n-gram in characters, including the marks `<` and `>` around a word.
        maxn: Longest n-gram in characters.
    """

    buckets: NDArray[np.floating[Any]]
    minn: int
    maxn: int

    def __post_init__(self) -> None:
        if self.buckets.ndim != 2 or len(self.buckets) == 0:
            raise InputError(f"buckets have shape {self.buckets.shape}, expected (n_buckets, dims)")
        if len(self.buckets) >= 2**32:
            raise InputError(f"{len(self.buckets)} buckets, expected fewer than 2^32")
        if not 0 <= self.minn <= self.maxn <= MAX_NGRAM or self.maxn < 1:
            raise InputError(f"n-grams of {self.minn} to {self.maxn}, expected 1 to {MAX_NGRAM}")

    @property
    def nbytes(self) -> int:
        """Bytes of the buckets in a file: half precision."""
        return 2 * self.buckets.size

    def to_tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file, in float16, which changes a cosine by less than 1e-6."""
        lengths = np.array([self.minn, self.maxn], dtype=np.uint32)
        return {"buckets": self.buckets.astype(np.float16, copy=False), "lengths": lengths}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]], dims: int) -> Subwords:
        """The subwords of the arrays of `to_tensors`; InputError if they do not fit."""
        buckets, lengths = tensors.get("buckets"), tensors.get("lengths")
        if buckets is None or lengths is None or lengths.shape != (2,) or lengths.dtype.kind != "u":
            raise InputError("subwords need buckets and two lengths")
        if lengths.dtype != np.uint32:
            raise InputError(f"the lengths of subwords are {lengths.dtype}, expected uint32")
        if buckets.dtype != np.float16 or buckets.ndim != 2 or buckets.shape[1] != dims:
            raise InputError(f"subword buckets are {buckets.dtype} {buckets.shape} for {dims} dims")
        return cls(buckets, minn=int(lengths[0]), maxn=int(lengths[1]))

    def rows(self, word: str) -> list[int]:
        """The bucket of each n-gram of `<word>`, as fastText hashes them; [] if it has none."""
        encoded = word.encode(errors="surrogatepass")
        return _core.ngram_buckets(encoded, self.minn, self.maxn, len(self.buckets))

    def vector(self, word: str) -> NDArray[np.float32]:
        """The mean of its n-grams' rows, (dims,); UnknownWordError if it is too short for one."""
        rows = self.rows(word)
        if not rows:
            raise UnknownWordError(word, [])
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            total = self.buckets[rows].astype(np.float32).sum(axis=0, dtype=np.float32)
            mean: NDArray[np.float32] = total * np.float32(1.0 / len(rows))
        if not np.isfinite(mean).all():  # here, not at open: the buckets may be a gigabyte
            raise FormatError(f"damaged: the subwords of {word!r} are not finite")
        return mean
