"""Coders: a file per method, one contract in base.py."""

from __future__ import annotations

from embits.coders.base import Coder
from embits.coders.itq import ITQ
from embits.coders.lsh import RandomHyperplanes
from embits.coders.near_lossless import NearLossless
from embits.coders.paper import PaperAutoencoder, search_lambda
from embits.coders.sign import SignBits
from embits.coders.sparse import SparseBits
from embits.errors import InputError

METHODS: dict[str, type[Coder]] = {
    coder.method: coder
    for coder in (NearLossless, PaperAutoencoder, RandomHyperplanes, SignBits, ITQ, SparseBits)
}
DEFAULT_METHOD = PaperAutoencoder.method


def coder_class(method: str) -> type[Coder]:
    """The coder that `--method` names.

    Example:
        >>> coder_class("lsh")
        <class 'embits.coders.lsh.RandomHyperplanes'>
    """
    try:
        return METHODS[method]
    except KeyError:
        raise InputError(f"there is no method {method!r}; there are {', '.join(METHODS)}") from None


__all__ = [
    "DEFAULT_METHOD",
    "ITQ",
    "METHODS",
    "Coder",
    "NearLossless",
    "PaperAutoencoder",
    "RandomHyperplanes",
    "SignBits",
    "SparseBits",
    "coder_class",
    "search_lambda",
]
