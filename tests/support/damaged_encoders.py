"""Text encoders whose tokenizers lie, in files whose checksums fit."""

from __future__ import annotations

import json
import random
import zlib

from tests.support import damage
from tests.support.damaged_collections import _lie_in_manifest

ENCODERS = ("tokens", "net", "words")


def golden(kind: str) -> bytes:
    return damage.golden(f"v3-encoder-{kind}")


def lie_in_tokenizer(whole: bytes, rng: random.Random) -> bytes:
    """The file with one or two other values in its tokenizer; with other lies if it has none."""
    header, data = damage.parts(whole)
    if "text.tokenizer" not in header:
        return damage.hostile(whole, rng)
    start, stop = header["text.tokenizer"]["data_offsets"]
    about = json.loads(zlib.decompress(data[start:stop]))
    _lie_in_manifest(about, rng)
    return with_tokenizer(whole, about)


def with_tokenizer(whole: bytes, about: object) -> bytes:
    """The file with another tokenizer, as it is packed; checksums fit."""
    header, data = damage.parts(whole)
    start, stop = header["text.tokenizer"]["data_offsets"]
    packed = zlib.compress(about if isinstance(about, bytes) else json.dumps(about).encode())
    for name, entry in header.items():
        if name != "__metadata__" and entry["data_offsets"][0] >= stop:
            moved = len(packed) - (stop - start)
            entry["data_offsets"] = [at + moved for at in entry["data_offsets"]]
    header["text.tokenizer"].update(shape=[len(packed)], data_offsets=[start, start + len(packed)])
    return damage.signed(header, data[:start] + packed + data[stop:])
