"""Bootstrap replicates of scores: 95 % intervals, and paired tests between methods.

A replicate is a score on as many queries, pairs, questions or rows, drawn with replacement. The
draws depend only on the data set and the number of its items, so replicates of two methods belong
together, and their differences are those of a paired bootstrap.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

N_RESAMPLES = 1000
MAX_ITEMS = 10_000  # more items are pooled into groups of equal size, which are drawn instead
_DRAWS_AT_ONCE = 1 << 20


class PairedTest(NamedTuple):
    """A paired test of two scores.

    Attributes:
        difference: The first score minus the second.
        low, high: The 95 % interval of the difference.
        p: Two-sided p-value of the bootstrap, not corrected for the number of tests.
    """

    difference: float
    low: float
    high: float
    p: float


class Samples:
    """The replicates of the scores of one entry, by path such as "similarity.MEN.spearman".

    Args:
        n_resamples: Replicates of each score; 0 keeps none.
        prefix: Comes before every path.
        replicates: Where they are kept; None makes a dictionary.
    """

    def __init__(
        self,
        n_resamples: int = N_RESAMPLES,
        prefix: str = "",
        replicates: dict[str, NDArray[np.float64]] | None = None,
    ) -> None:
        self.n_resamples = n_resamples
        self.replicates = {} if replicates is None else replicates
        self._prefix = prefix

    def under(self, name: str) -> Samples:
        """The same collection, with `name` before every path."""
        return Samples(self.n_resamples, f"{self._prefix}{name}.", self.replicates)

    def add_mean(self, path: str, values: NDArray[Any], key: str) -> None:
        """Resample a mean.

        Args:
            path: The score.
            values: One value for each item.
            key: The data set: items of the same key are drawn together.
        """
        values = pooled(np.asarray(values, dtype=np.float64))
        if self.n_resamples and len(values):
            drawn = [counts @ values for counts in self._draws(key, len(values))]
            self.replicates[self._prefix + path] = np.concatenate(drawn) / len(values)

    def add_spearman(
        self, path: str, a: NDArray[np.float64], b: NDArray[np.float64], key: str
    ) -> None:
        """Resample Spearman's correlation of pairs."""
        if self.n_resamples and len(a) > 1:
            drawn = [spearman_of_counts(a, b, counts) for counts in self._draws(key, len(a))]
            self.replicates[self._prefix + path] = np.concatenate(drawn)

    def add_combined(
        self, path: str, paths: list[str], combine: Callable[[list[float]], float]
    ) -> None:
        """Combine the replicates of other scores, such as to their mean."""
        found = [self.replicates.get(self._prefix + name) for name in paths]
        known = [values for values in found if values is not None]
        if known and len(known) == len(paths):
            rows = np.stack(known, axis=1).tolist()
            self.replicates[self._prefix + path] = np.array([combine(row) for row in rows])

    def _draws(self, key: str, n: int) -> Iterator[NDArray[np.float64]]:
        """How often each of n items is drawn, in blocks of shape (replicates, n)."""
        rng = np.random.default_rng([zlib.crc32(key.encode()), n])
        size = max(1, _DRAWS_AT_ONCE // n)
        for start in range(0, self.n_resamples, size):
            lines = min(size, self.n_resamples - start)
            items = rng.integers(0, n, (lines, n)) + n * np.arange(lines)[:, np.newaxis]
            counts = np.bincount(items.ravel(), minlength=lines * n)
            yield counts.reshape(lines, n).astype(np.float64)


def intervals(replicates: dict[str, NDArray[np.float64]]) -> dict[str, list[float]]:
    """The 95 % percentile interval [low, high] of each score."""
    return {path: list(_interval(values)) for path, values in replicates.items()}


def paired_test(
    a: float, b: float, replicates_a: NDArray[np.float64], replicates_b: NDArray[np.float64]
) -> PairedTest:
    """Test whether two scores of the same items differ.

    Args:
        a, b: The scores.
        replicates_a, replicates_b: Their replicates, drawn together.

    Example:
        >>> drawn = np.linspace(0.4, 0.6, 999)
        >>> test = paired_test(0.6, 0.5, drawn + 0.1, drawn)
        >>> round(test.difference, 3), round(test.low, 3), round(test.p, 3)
        (0.1, 0.1, 0.002)
    """
    differences = replicates_a - replicates_b
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * float(tail + 1) / (len(differences) + 1))
    return PairedTest(a - b, *_interval(differences), p)


def pooled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most `MAX_ITEMS` means of groups of equal size, spread over the items."""
    size = -(-len(values) // MAX_ITEMS)
    if size <= 1:
        return values
    groups = len(values) // size
    means: NDArray[np.float64] = values[: groups * size].reshape(size, groups).mean(axis=0)
    return means


def spearman_of_counts(
    a: NDArray[np.float64], b: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Spearman's correlation of pairs that occur `counts` times, for each row of counts.

    NaN where a variable is constant.
    """
    x, y = (_ranks(values, counts) - (counts.sum(axis=1)[0] + 1) / 2 for values in (a, b))
    weighted = counts * x
    product, squares = (weighted * y).sum(axis=1), (weighted * x).sum(axis=1)
    scale = np.sqrt(squares * (counts * y * y).sum(axis=1))
    result: NDArray[np.float64] = np.full(len(scale), np.nan)
    np.divide(product, scale, out=result, where=scale > 0)
    return result


def _ranks(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean ranks of values that occur `counts` times, shape of `counts`."""
    _, first, place = np.unique(np.sort(values), return_index=True, return_inverse=True)
    order = np.argsort(values, kind="stable")
    totals = np.add.reduceat(counts[:, order], first, axis=1)
    ranks = np.cumsum(totals, axis=1) - (totals - 1) / 2
    spread = np.empty_like(counts)
    spread[:, order] = ranks[:, place]
    return spread


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
