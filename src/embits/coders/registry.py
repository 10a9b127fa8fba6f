"""Coders by the name of their method: those of embits, and those that users register."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from reprlib import repr as shortened
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.checks import check_n_bits, random_generator, whole
from embits.coders.base import SYMBOLS, Coder
from embits.coders.itq import ITQ
from embits.coders.lsh import RandomHyperplanes
from embits.coders.near_lossless import NearLossless
from embits.coders.neural import Neural
from embits.coders.paper import PaperAutoencoder
from embits.coders.sign import SignBits
from embits.coders.sparse import SparseBits
from embits.errors import InputError

BUILT_IN = (NearLossless, Neural, PaperAutoencoder, RandomHyperplanes, SignBits, ITQ, SparseBits)
METHODS: dict[str, type[Coder]] = {coder.method: coder for coder in BUILT_IN}
DEFAULT_METHOD = NearLossless.method
MAX_AXES = 2  # of a learned array in a file

CoderClass = TypeVar("CoderClass", bound=type[Coder])


def register_coder(coder: CoderClass) -> CoderClass:
    """Make a coder of your own known by its method's name. A class decorator, or a function.

    From then on `binarize` and `compare` take the name, and files with such a coder can be saved
    and loaded. A program that loads one registers the class first: files hold no code.

    Args:
        coder: A subclass of `embits.Coder` with a `method` name that is free, its learned arrays in
            `state_shapes`, and every abstract method in place. It is returned.

    Raises:
        InputError: The class is incomplete, or its name belongs to another coder.
    """
    if not (isinstance(coder, type) and issubclass(coder, Coder)):
        raise InputError(f"{coder!r} cannot be registered: expected a subclass of embits.Coder")
    if problem := _problem(coder):
        raise InputError(f"{coder.__name__} cannot be registered: {problem}")
    check_fit(coder)
    name = coder.method
    existing = METHODS.get(name, coder)
    # A notebook cell that is run again defines the same class again.
    if (existing.__module__, existing.__qualname__) != (coder.__module__, coder.__qualname__):
        raise InputError(f"the method {name!r} belongs to {existing.__name__}: choose another name")
    METHODS[name] = coder
    return coder


def check_fit(coder: type[Coder]) -> None:
    """Refuse a coder whose `fit` does not take the keyword `progress`, by InputError."""
    parameters = inspect.signature(coder.fit).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if "progress" not in parameters and not takes_all:
        hint = "define it as fit(self, X, y=None, *, progress=None)"
        raise InputError(f"{coder.__name__}.fit has no argument `progress`: {hint}")


def _problem(coder: type[Coder]) -> str | None:
    """What a class lacks to be a coder."""
    if inspect.isabstract(coder):
        return f"it does not define {', '.join(sorted(coder.__abstractmethods__))}"
    method, shapes = (getattr(coder, name, None) for name in ("method", "state_shapes"))
    if not isinstance(method, str) or not re.fullmatch(r"\w[\w.-]*", method):
        return f"its `method` is {shortened(method)}, expected letters, digits, '-', '_' and '.'"
    if not isinstance(shapes, Mapping):
        example = '{"mean": ("dims",)}'
        return f"its `state_shapes` is {shortened(shapes)}, expected a dict such as {example}"
    for name, shape in shapes.items():
        if not isinstance(name, str) or not name.isidentifier():
            return f"`state_shapes` has the name {shortened(name)}, expected an attribute's name"
        if not isinstance(shape, tuple) or len(shape) > MAX_AXES or not all(map(_is_size, shape)):
            kinds = f"{MAX_AXES} of {', '.join(map(repr, SYMBOLS))} or positive numbers"
            wrong = f"`state_shapes` has {shortened(shape)} for {name!r}"
            return f"{wrong}, expected a tuple of at most {kinds}"
    if unknown := sorted(set(coder.state_defaults) - set(shapes)):
        return f"`state_defaults` has {unknown[0]!r}, which is not in `state_shapes`"
    return None


def _is_size(size: Any) -> bool:
    return size in SYMBOLS if isinstance(size, str) else type(size) is int and size > 0


def is_registered(coder: Coder) -> bool:
    """Whether files that hold this coder can be loaded."""
    return METHODS.get(getattr(coder, "method", "")) is type(coder)


def coder_class(method: str) -> type[Coder]:
    """The coder that `--method` names, or InputError.

    >>> coder_class("lsh")
    <class 'embits.coders.lsh.RandomHyperplanes'>
    """
    try:
        return METHODS[method]
    except (KeyError, TypeError):
        raise InputError(f"there is no method {method!r}; there are {', '.join(METHODS)}") from None


def new_coder(method: str, n_bits: int | None, params: Mapping[str, Any]) -> Coder:
    """A coder of the method, not fitted; InputError if it has no such parameter."""
    maker = coder_class(method)
    settings = dict(params) if n_bits is None else {**params, "n_bits": check_n_bits(n_bits)}
    try:
        return maker(**settings)
    except TypeError as error:
        known = maker.param_names()
        if not (unknown := sorted(set(settings) - set(known))):
            raise InputError(f"method {method!r}: {error}") from None
        names = f"{', '.join(map(repr, unknown))} (it has {', '.join(known) or 'none'})"
        raise InputError(f"method {method!r} has no parameter {names}") from None


def draw_rows(n: int, sample: int | None, coder: Coder) -> NDArray[np.int64] | None:
    """Numbers of `sample` rows out of n, ascending, drawn by the coder's seed; None for all."""
    if sample is None or whole("sample", sample, 1) >= n:
        return None
    rng = random_generator(getattr(coder, "random_state", 0))
    return np.sort(rng.choice(n, sample, replace=False, shuffle=False))
