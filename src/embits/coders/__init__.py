"""Coders: a file per method, one contract in base.py."""

from __future__ import annotations

from embits.coders.base import Coder, coder_checksum
from embits.coders.itq import ITQ
from embits.coders.linear import LinearlyDecoded, LinearlyEncoded
from embits.coders.lsh import RandomHyperplanes
from embits.coders.near_lossless import NearLossless
from embits.coders.neural import Neural
from embits.coders.paper import PaperAutoencoder, search_lambda
from embits.coders.registry import (
    DEFAULT_METHOD,
    METHODS,
    coder_class,
    draw_rows,
    is_registered,
    new_coder,
    register_coder,
)
from embits.coders.sign import SignBits
from embits.coders.sparse import SparseBits

__all__ = [
    "DEFAULT_METHOD", "ITQ", "METHODS", "Coder", "LinearlyDecoded", "LinearlyEncoded",
    "NearLossless", "Neural", "PaperAutoencoder", "RandomHyperplanes", "SignBits", "SparseBits",
    "coder_checksum", "coder_class", "draw_rows", "is_registered", "new_coder",
    "register_coder", "search_lambda",
]  # fmt: skip
