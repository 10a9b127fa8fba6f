"""Metrics: how a search compares queries with codes. Each is one object of `METRICS`.

What searches, names, lists or documents metrics iterates over `METRICS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import as_float32, unpack
from embits.checks import choice
from embits.errors import InputError

if TYPE_CHECKING:
    from embits.coders import Coder


class Prepared(NamedTuple):
    """Queries, or one, as the kernels read them.

    They are packed codes, uint8 (q, width), or weights, float32 (q, n_bits): what a bit adds to a
    score if it is 1, and takes away if it is 0.
    """

    queries: NDArray[Any]
    offsets: Any = None  # what is added to scores, float32 (1,) or (q, 1); None for codes

    def take(self, which: NDArray[np.intp]) -> Prepared:
        offsets = None if self.offsets is None else self.offsets[which]
        return Prepared(self.queries[which], offsets)


@dataclass(frozen=True)
class Metric:
    """A way to compare a query with codes.

    Attributes:
        values: The field of the values in results: distances or scores.
        meaning: What a value is, in a few words.
        needs: "codes" takes queries that are vectors, codes or ids; "floats" takes vectors alone.
        needs_lengths: Whether rows must have lengths.
        prepare: Makes queries, (dims,) or (q, dims) or codes, ready, with a fitted coder.
    """

    name: str
    values: str
    meaning: str
    needs: str
    prepare: Callable[[Coder, NDArray[Any]], Prepared]
    needs_lengths: bool = False

    @property
    def is_distance(self) -> bool:
        """Whether the smallest value is the best; otherwise it is the largest."""
        return self.values == "distances"

    @property
    def is_cosine(self) -> bool:
        """Whether a value estimates a cosine, which a second look estimates better."""
        return not (self.is_distance or self.needs_lengths)


def metric_of(name: Any, needs: str | None = None) -> Metric:
    """The metric of a name, or InputError; `needs` limits the choice to those of such queries.

    >>> metric_of("hamming").values, metric_of("dot").needs_lengths
    ('distances', True)
    """
    metric = METRICS.get(name) if isinstance(name, str) else None
    if metric is None or needs not in (None, metric.needs):
        known = [each.name for each in METRICS.values() if needs in (None, each.needs)]
        return METRICS[choice("metric", name, known)]  # which refuses it
    return metric


def codes_of(coder: Coder, queries: NDArray[Any]) -> NDArray[np.uint8]:
    """Queries as packed codes: codes as they are, vectors encoded."""
    if queries.dtype == np.uint8:
        return coder.check_codes(queries) if queries.ndim == 2 else queries
    codes = coder.encode(np.atleast_2d(queries))
    return codes[0] if queries.ndim == 1 else codes


def float_vectors(queries: NDArray[Any]) -> NDArray[Any]:
    """The queries; InputError if they are codes."""
    if queries.dtype == np.uint8:
        needed = 'this search needs the float vectors, or metric="decoded" without floats'
        raise InputError(f"the queries are codes or ids; {needed}")
    return queries


def bit_weights(
    coder: Coder, queries: NDArray[Any], *, rebuilt: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """`Coder.query_weights` of vectors, (dims,) or (q, dims), where zeros score 0."""
    vectors = as_float32(coder.check_vectors(np.atleast_2d(queries)))
    weights, offsets = coder.query_weights(vectors, rebuilt=rebuilt)
    is_zero = ~vectors.any(axis=1)  # the cosine with a vector of zeros is 0
    weights[is_zero], offsets[is_zero] = 0, 0
    return (weights[0], offsets) if queries.ndim == 1 else (weights, offsets[:, None])


def _hamming(coder: Coder, queries: NDArray[Any]) -> Prepared:
    return Prepared(codes_of(coder, queries))


def _asymmetric(coder: Coder, queries: NDArray[Any]) -> Prepared:
    return Prepared(*bit_weights(coder, float_vectors(queries)))


def _decoded(coder: Coder, queries: NDArray[Any]) -> Prepared:
    codes = np.atleast_2d(codes_of(coder, queries))
    rebuilt = coder.inverse_transform(codes)
    if queries.dtype != np.uint8:
        rebuilt[~np.atleast_2d(as_float32(queries)).any(axis=1)] = 0
    weights, offsets = bit_weights(coder, rebuilt, rebuilt=True)
    if not coder.is_threshold:  # the score of a code against itself becomes 1, as a cosine is
        own = (weights * (2 * unpack(codes, coder.n_bits_) - 1)).sum(axis=1, keepdims=True)
        own = np.where(own + offsets > 0, own + offsets, np.float32(1)).astype(np.float32)
        weights, offsets = weights / own, offsets / own
    return Prepared(weights[0], offsets[0]) if queries.ndim == 1 else Prepared(weights, offsets)


def _dot(coder: Coder, queries: NDArray[Any]) -> Prepared:
    weights, offsets = bit_weights(coder, float_vectors(queries))
    lengths = np.linalg.norm(queries.astype(np.float64), axis=-1, keepdims=True).astype(np.float32)
    return Prepared(weights * lengths, offsets * lengths)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("hamming", "distances", "bits that differ", "codes", _hamming),
        Metric("asymmetric", "scores", "estimated cosine to the query", "floats", _asymmetric),
        Metric("decoded", "scores", "estimated cosine to the rebuilt query", "codes", _decoded),
        Metric("dot", "scores", "estimated inner product", "floats", _dot, needs_lengths=True),
    )
}
"""All metrics by name."""
