"""What a class must define to be registered as a coder."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any

from embits.coders.base import Coder
from embits.coders.stored import SYMBOLS
from embits.errors import InputError

MAX_AXES = 2  # of an array in a file
_NAME = re.compile(r"\w[\w.-]*")


def check_class(coder: Any) -> None:
    """Refuse what is not a complete coder class.

    Raises:
        InputError: It is not a subclass of `Coder`, or a part of it is missing or wrong.
    """
    if not (isinstance(coder, type) and issubclass(coder, Coder)):
        raise InputError(f"{coder!r} cannot be registered: expected a subclass of embits.Coder")
    if problem := _problem(coder):
        raise InputError(f"{coder.__name__} cannot be registered: {problem}")
    check_fit(coder)


def check_fit(coder: type[Coder]) -> None:
    """Refuse a coder whose `fit` does not take the keyword `progress`.

    Raises:
        InputError: It does not.
    """
    parameters = inspect.signature(coder.fit).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if "progress" not in parameters and not takes_all:
        raise InputError(
            f"{coder.__name__}.fit has no argument `progress`: define it as "
            "fit(self, X, y=None, *, progress=None)"
        )


def _problem(coder: type[Coder]) -> str | None:
    if inspect.isabstract(coder):
        return f"it does not define {', '.join(sorted(coder.__abstractmethods__))}"
    name = getattr(coder, "method", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f"its `method` is {shortened(name)}, expected a name of letters, digits, '-', '_' "
            "and '.'"
        )
    if not hasattr(coder, "state_shapes"):
        return "it needs the shapes of its learned arrays in `state_shapes`"
    return _shapes_problem(coder.state_shapes, coder.state_defaults)


def _shapes_problem(shapes: Any, defaults: Any) -> str | None:
    if not isinstance(shapes, Mapping):
        return (
            f"its `state_shapes` is {shortened(shapes)}, expected a dict such as "
            '{"mean": ("dims",)}'
        )
    for name, shape in shapes.items():
        if not isinstance(name, str) or not name.isidentifier():
            return f"`state_shapes` has the name {shortened(name)}, expected an attribute's name"
        if not isinstance(shape, tuple) or len(shape) > MAX_AXES or not all(map(_is_size, shape)):
            return (
                f"`state_shapes` has {shortened(shape)} for {name!r}, expected a tuple of at most "
                f"{MAX_AXES} of {', '.join(map(repr, SYMBOLS))} or positive numbers"
            )
    if unknown := sorted(set(defaults) - set(shapes)):
        return f"`state_defaults` has {unknown[0]!r}, which is not in `state_shapes`"
    return None


def _is_size(size: Any) -> bool:
    if isinstance(size, str):
        return size in SYMBOLS
    return isinstance(size, int) and not isinstance(size, bool) and size > 0
