"""Checks of arguments: whole numbers, numbers and choices, each with one message."""

from __future__ import annotations

import math
from collections.abc import Iterable
from reprlib import repr as shortened
from typing import Any

import numpy as np

from embits.errors import InputError


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` to `most`.

    Raises:
        InputError: It is something else; the message calls it `name`.

    Example:
        >>> whole("k", np.int64(3)), whole("threads", 2, least=1, most=8)
        (3, 2)
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise InputError(f"{name} is {shortened(value)}, expected a whole number {bounds}")
    return int(value)


def number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A number from `least` to `most`.

    Raises:
        InputError: It is something else; the message calls it `name`.

    Example:
        >>> number("similarity", 1, least=-1, most=1)
        1.0
    """
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or math.isnan(value):
        raise InputError(f"{name} is {shortened(value)}, expected a number")
    if not least <= value <= most:
        bounds = f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"
        raise InputError(f"{name} is {value:g}, expected {bounds}")
    return float(value)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """One of several names.

    Raises:
        InputError: It is none of them; the message calls it `name`.

    Example:
        >>> choice("metric", "hamming", ["hamming", "decoded"])
        'hamming'
    """
    known = list(options)
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        expected = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{name} is {shortened(value)}, expected {expected}")
    return value
