"""Checks of queries and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

METRICS = ("hamming", "asymmetric", "decoded")


def check_metric(metric: str, known: tuple[str, ...]) -> None:
    """Raise InputError for a metric that is not known."""
    if metric not in known:
        expected = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise InputError(f"metric is {metric!r}, expected {expected}")


def float_vectors(queries: NDArray[Any]) -> NDArray[Any]:
    """The queries, or an InputError where they are codes."""
    if queries.dtype == np.uint8:
        raise InputError(
            "the queries are codes or ids; this search needs the float vectors, or "
            'metric="decoded" without floats'
        )
    return queries


def are_strings(array: NDArray[Any]) -> bool:
    """Whether an array of objects holds strings, and at least one."""
    return array.size > 0 and all(isinstance(each, str) for each in array.flat)


def are_numbers(texts: NDArray[Any]) -> bool:
    """Whether all strings of an array can be read as numbers."""
    try:
        texts.astype(np.float64)
    except ValueError:
        return False
    return True
