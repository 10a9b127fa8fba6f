"""The mean of several fits of one method, and their spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NOT_SCORES = ("file", "method", "bits", "words", "params", "intervals", "seconds")


def mean_entry(entries: Sequence[dict[str, Any]], seeds: Sequence[int]) -> dict[str, Any]:
    """One entry for several fits: the means of all scores.

    Args:
        entries: The entries of the fits, of the same method and width.
        seeds: Their seeds.

    Returns:
        The first entry with the mean of every float, "seeds", and under "spread" the standard
        deviation of each score over the fits, by path; a single entry as it is.

    Example:
        >>> fits = [{"method": "lsh", "speed": {"ms": value}} for value in (1.0, 3.0)]
        >>> mean_entry(fits, [0, 1])["speed"], mean_entry(fits, [0, 1])["spread"]
        ({'ms': 2.0}, {'speed.ms': 1.4142135623730951})
    """
    if len(entries) == 1:
        return entries[0]
    spread: dict[str, float] = {}
    result = _mean(entries, "", spread)
    kept = {path: value for path, value in spread.items() if path.split(".")[0] not in _NOT_SCORES}
    return dict(result) | {"seeds": list(seeds), "spread": kept}


def mean_replicates(
    fits: Sequence[Mapping[str, NDArray[np.float64]]],
) -> dict[str, NDArray[np.float64]]:
    """The mean replicates of the scores that all fits have."""
    shared = [path for path in fits[0] if all(path in fit for fit in fits)]
    return {path: np.mean([fit[path] for fit in fits], axis=0) for path in shared}


def _mean(values: Sequence[Any], path: str, spread: dict[str, float]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        return {
            name: _mean([value.get(name) for value in values], f"{path}.{name}".lstrip("."), spread)
            for name in first
        }
    if isinstance(first, float) and all(isinstance(value, float) for value in values):
        numbers = np.array(values)
        spread[path] = float(numbers.std(ddof=1))
        mean = float(numbers.mean())
        return mean if math.isfinite(mean) else None
    return first
