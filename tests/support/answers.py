"""Calls every kind of method of an opened file or collection.

The files may be damaged or hostile: see `tests.support.damage`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import embits
from embits.cli.output import describe
from tests.support.damage import WORDS

Bits = embits.BinaryVectors


def answers(bits: Bits, path: Path) -> str:
    """A digest of what an object answers to every kind of question.

    Raises:
        FormatError: The file is damaged. No other exception may be raised.
    """
    digest = hashlib.sha256()
    questions: list[Callable[[Bits], Iterator[Any]]] = [_words, _codes, _columns, _lookups]
    for found in [*_facts(bits, path), *(found for ask in questions for found in ask(bits))]:
        digest.update(found.tobytes() if isinstance(found, np.ndarray) else repr(found).encode())
    return digest.hexdigest()


def _facts(bits: Bits, path: Path) -> Iterator[Any]:
    yield from (len(bits), bits.n_bits, bits.dims, repr(bits), bits.coder.method)
    yield json.dumps(describe(path, bits), ensure_ascii=False)


def _words(bits: Bits) -> Iterator[Any]:
    words = bits.words
    yield list(words)
    yield [word in bits for word in [*WORDS, "absent", "\ud800"]]
    rows = np.arange(len(bits))[:: max(1, len(bits) // 5)]  # of several blocks
    yield bits.ids(rows).tolist()
    own = [words[row] for row in rows.tolist()]
    yield words.find_many([*own, "absent"])
    yield [words.starting_with(prefix, 3) for prefix in ("", "w", "qu", "1", "0000")]
    yield words.suggest("quen")


def _codes(bits: Bits) -> Iterator[Any]:
    if not bits.coder.is_left_out:
        yield from _floats(bits)
    if len(bits):
        queries = _cut(bits, bits.codes[:2])
        yield from bits.search(queries, 4)
        yield from bits.search(queries, 4, rows=np.arange(0, len(bits), 2))
        yield from bits.search(queries[:1], 4, exclude=[bits.words[0]])
        first, last = _first_and_last(bits)
        yield bits.similarity(first, last)
        yield bits.most_similar(first, topn=5, exclude=bits.select(rows=[0]))


def _columns(bits: Bits) -> Iterator[Any]:
    """Columns, lengths and cells, where there are some."""
    with contextlib.suppress(embits.InputError):  # whole numbers from 2⁶³ on are none of Arrow's
        yield bits.get(rows=np.arange(min(len(bits), 3)))
    if len(bits) and bits.byte_counts().cells:
        queries = _cut(bits, bits.codes[:2])
        yield from (*bits.search(queries, 3, probes=2), *bits.search(queries, 3, recall=0.7))
    if "lengths" in bits.columns and not bits.coder.is_left_out:
        yield from bits.search(np.linspace(-1, 1, bits.dims, dtype="f4"), 3, metric="dot")


def _cut(bits: Bits, codes: Any) -> Any:
    """Codes as queries: damaged ones may have bits set past the last one, which queries may not."""
    return np.packbits(np.unpackbits(codes, axis=1, count=bits.n_bits), axis=1)


def _first_and_last(bits: Bits) -> Any:
    return _cut(bits, bits.codes[[0, len(bits) - 1]])


def _floats(bits: Bits) -> Iterator[Any]:
    x = np.linspace(-1, 1, bits.dims, dtype="f4")
    yield from (bits.encode(x), bits.encode(np.stack([x, -x])), bits.decode())
    yield from (*bits.search(x, 3), *bits.search(x, 3, metric="asymmetric"))
    yield from bits.search(np.stack([x, -x]), 3, metric="asymmetric", rescore=6)
    yield bits.coder.state()
    if len(bits):
        asked = bits.select(rows=[0, len(bits) - 1])
        yield bits.most_similar(*_first_and_last(bits), exclude=asked)
        yield bits.doesnt_match([bits.words[0]]) if bits.words[0] in bits else None


def _lookups(bits: Bits) -> Iterator[Any]:
    for word in (*WORDS, "absent", "quen"):
        try:
            yield bits[word]
            yield bits.most_similar(word, topn=3)
            if not bits.coder.is_left_out:
                yield bits.decode(word)
        except embits.UnknownWordError as unknown:
            yield unknown.suggestions
