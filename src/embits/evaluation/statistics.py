"""Correlations, bootstrap replicates, paired tests, and means over several fits.

The draws of the bootstrap depend only on the data set and the number of its items: differences of
the replicates of two methods are those of a paired bootstrap.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits.errors import InputError

Values: TypeAlias = NDArray[np.float64]
Entry: TypeAlias = dict[str, Any]
"""The scores of one file, in the shape of `evaluate --json`."""
Replicates: TypeAlias = dict[str, Values]
"""Bootstrap replicates of scores, by path such as "similarity.MEN.spearman"."""

N_RESAMPLES = 1000
MAX_ITEMS = 10_000  # more items are pooled into groups of equal size, which are drawn instead
_DRAWS_AT_ONCE = 1 << 20


def ranks(values: ArrayLike) -> Values:
    """Ranks from 1; equal values share the mean of their ranks.

    Example:
        >>> ranks([10, 30, 10, 20]).tolist()
        [1.5, 4.0, 1.5, 3.0]
    """
    values = np.asarray(values)
    mean_ranks: Values = _ranks(values, np.ones((1, len(values))))[0]
    return mean_ranks


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    """Pearson's correlation; NaN for fewer than two values or constant values."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"shapes {x.shape} and {y.shape}, expected two vectors of one length")
    if len(x) < 2:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    return max(-1.0, min(1.0, float(x @ y) / scale)) if scale > 0 else math.nan


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation with mean ranks for ties, as scipy's `spearmanr`.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 3]), 4)
        0.6325
    """
    return pearson(ranks(a), ranks(b))


def fisher_mean(correlations: Iterable[float], weights: Iterable[float] | None = None) -> float:
    """The mean of correlations by Fisher's transformation: tanh of the mean of artanh.

    A correlation of exactly 1 would make the mean 1, so it counts as 1 - 1e-12. NaN is skipped.
    `weights` are one for each, such as its number of pairs; None weighs them equally.

    Example:
        >>> round(fisher_mean([0.8, 0.2]), 4), round(fisher_mean([0.8, 0.2], [3, 1]), 4)
        (0.5721, 0.7037)
    """
    values, limit = list(correlations), 1 - 1e-12
    all_weights = [1.0] * len(values) if weights is None else list(weights)
    pairs = zip(values, all_weights, strict=True)
    known = [(r, w) for r, w in pairs if not math.isnan(r) and w > 0]
    if not known:
        return math.nan
    total = sum(w * math.atanh(max(-limit, min(limit, r))) for r, w in known)
    return math.tanh(total / sum(w for _, w in known))


class PairedTest(NamedTuple):
    """The first score minus the second, its 95 % interval, and its two-sided p-value."""

    difference: float
    low: float
    high: float
    p: float
    is_bound: bool  # so many replicates can show no smaller p-value


class Samples:
    """The replicates of the scores of one entry; `n_resamples` of each, 0 keeps none."""

    def __init__(self, n_resamples: int = N_RESAMPLES) -> None:
        self.n_resamples = n_resamples
        self.replicates: Replicates = {}
        self._prefix = ""

    def under(self, name: str) -> Samples:
        """The same collection, with `name` before every path."""
        samples = copy(self)
        samples._prefix += f"{name}."
        return samples

    def add_mean(self, path: str, values: ArrayLike, key: str) -> None:
        """Resample the mean of one value for each item; items of the same key are drawn alike."""
        items = pooled(np.asarray(values, dtype=np.float64))
        if self.n_resamples and len(items):
            sums = [counts @ items for counts in self._draws(key, len(items))]
            self.replicates[self._prefix + path] = np.concatenate(sums) / len(items)

    def add_spearman(self, path: str, a: Values, b: Values, key: str) -> None:
        if self.n_resamples and len(a) > 1:
            scores = [spearman_of_counts(a, b, counts) for counts in self._draws(key, len(a))]
            self.replicates[self._prefix + path] = np.concatenate(scores)

    def add_combined(
        self, path: str, paths: list[str], combine: Callable[[list[float]], float]
    ) -> None:
        """Combine the replicates of other scores, such as to their mean."""
        full = [self._prefix + name for name in paths]
        if full and all(name in self.replicates for name in full):
            rows = np.stack([self.replicates[name] for name in full], axis=1).tolist()
            self.replicates[self._prefix + path] = np.array([combine(row) for row in rows])

    def _draws(self, key: str, n: int) -> Iterator[Values]:
        """How often each of n items is drawn, in blocks of shape (replicates, n)."""
        rng = np.random.default_rng([zlib.crc32(key.encode()), n])
        size = max(1, _DRAWS_AT_ONCE // n)
        for start in range(0, self.n_resamples, size):
            lines = min(size, self.n_resamples - start)
            items = rng.integers(0, n, (lines, n)) + n * np.arange(lines)[:, np.newaxis]
            counts = np.bincount(items.ravel(), minlength=lines * n)
            yield counts.reshape(lines, n).astype(np.float64)


NO_SAMPLES = Samples(0)
"""Keeps nothing."""


def intervals(replicates: Replicates) -> dict[str, list[float]]:
    """The 95 % percentile interval [low, high] of each score."""
    return {path: list(_interval(values)) for path, values in replicates.items()}


def paired_test(a: float, b: float, replicates_a: Values, replicates_b: Values) -> PairedTest:
    """Test whether two scores of the same items differ, by replicates that were drawn together."""
    differences = replicates_a - replicates_b
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * float(tail + 1) / (len(differences) + 1))
    return PairedTest(a - b, *_interval(differences), p, bool(tail == 0))


def pooled(values: Values) -> Values:
    """At most `MAX_ITEMS` means of groups of equal size, spread over the items."""
    size = max(-(-len(values) // MAX_ITEMS), 1)
    groups = len(values) // size
    means: Values = values[: groups * size].reshape(size, groups).mean(axis=0)
    return means


def spearman_of_counts(a: Values, b: Values, counts: Values) -> Values:
    """Spearman's correlation of pairs that occur `counts` times; NaN for a constant variable."""
    x, y = (_ranks(values, counts) - (counts.sum(axis=1)[0] + 1) / 2 for values in (a, b))
    weighted = counts * x
    product, squares = (weighted * y).sum(axis=1), (weighted * x).sum(axis=1)
    scale = np.sqrt(squares * (counts * y * y).sum(axis=1))
    result: Values = np.full(len(scale), np.nan)
    np.divide(product, scale, out=result, where=scale > 0)
    return result


def _ranks(values: Values, counts: Values) -> Values:
    """Mean ranks of values that occur `counts` times, shape of `counts`."""
    _, first, place = np.unique(np.sort(values), return_index=True, return_inverse=True)
    order = np.argsort(values, kind="stable")
    totals = np.add.reduceat(counts[:, order], first, axis=1)
    ranks = np.cumsum(totals, axis=1) - (totals - 1) / 2
    spread = np.empty_like(counts)
    spread[:, order] = ranks[:, place]
    return spread


def _interval(values: Values) -> tuple[float, float]:
    if np.isnan(values).all():
        return math.nan, math.nan
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def mean_fits(
    fits: Sequence[tuple[Entry, Replicates]], seeds: Sequence[int]
) -> tuple[Entry, Replicates]:
    """The entry of the first fit with the mean of every float, and the mean replicates.

    With several, it has "seeds", the "intervals" of the means, and under "spread" the standard
    deviation of each score by path.
    """
    if len(fits) == 1:
        return fits[0]
    entries, replicates = zip(*fits, strict=True)
    scores = [{name: x for name, x in entry.items() if name != "params"} for entry in entries]
    spread: dict[str, float] = {}
    result: Entry = entries[0] | _mean_dict(scores, "", spread)
    shared = [path for path in replicates[0] if all(path in each for each in replicates)]
    means = {path: np.mean([each[path] for each in replicates], axis=0) for path in shared}
    result |= {"seeds": list(seeds), "spread": spread}
    return result | ({"intervals": intervals(means)} if means else {}), means


def _mean_dict(entries: Sequence[Entry], prefix: str, spread: dict[str, float]) -> Entry:
    """The mean of each float, also of those in dictionaries; other values are the first."""
    means: Entry = {}
    for name, first in entries[0].items():
        path = prefix + name
        values = [entry[name] for entry in entries if type(entry.get(name)) is type(first)]
        means[name] = first
        if isinstance(first, dict):
            means[name] = _mean_dict(values, f"{path}.", spread)
        elif isinstance(first, float) and len(values) == len(entries):
            spread[path] = float(np.std(values, ddof=1))
            means[name] = float(np.mean(values))
    return means
