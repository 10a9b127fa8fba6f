"""The tokenizer of a text encoder as the bytes of its file.

A tokenizer is given as the text of a `tokenizer.json`, as the package `tokenizers` writes it.
"""

from __future__ import annotations

import json
from reprlib import repr as shortened

from embits.errors import FormatError, InputError

MAX_TOKENIZER = 1 << 28
"""Bytes of a tokenizer as JSON: more is damage or an attack."""


def pack_tokenizer(json_text: str) -> bytes:
    """The bytes of a tokenizer in a file.

    Args:
        json_text: The text of a `tokenizer.json`.

    Raises:
        InputError: It is not JSON, or not that of a tokenizer.
    """
    try:
        settings = json.loads(json_text)
        kind = settings["model"]["type"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"the tokenizer is {shortened(json_text)}, expected the text of a tokenizer.json"
        ) from None
    if not isinstance(kind, str):
        raise InputError(f"the tokenizer's model is of the type {shortened(kind)}")
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":")).encode()


def unpack_tokenizer(packed: bytes) -> str:
    """The text of a `tokenizer.json` that gives the same tokens as the one that was packed.

    Raises:
        FormatError: The bytes are damaged.
    """
    try:
        if len(packed) > MAX_TOKENIZER:
            raise ValueError("too long")
        return packed.decode()
    except ValueError:
        raise FormatError("damaged: the tokenizer is not one that embits wrote") from None
