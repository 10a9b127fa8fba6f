"""What the fuzzer calls: the file of bits, and each reader of floats.

A target takes bytes and returns; whatever it raises is a finding.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.support import damage, reader_corpus

import embits
import embits.readers.fasttext_binary
import embits.readers.json_file
import embits.readers.numpy_arrays
import embits.readers.parquet
import embits.readers.safetensors_file
import embits.readers.text
import embits.readers.word2vec_binary
from embits.coders import METHODS

REFUSED = (embits.ReadError, embits.InputError, embits.MissingExtraError)
_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
_PATH = Path(_FOLDER.name) / "input"


def fuzz_file(data: bytes) -> None:
    """Open, verified or not, and ask every question: FormatError or an answer."""
    _PATH.write_bytes(data)
    for verify in (True, False):
        with contextlib.suppress(embits.FormatError):
            damage.answers(embits.load(_PATH, verify=verify), _PATH)


def fuzz_reader(data: bytes) -> None:
    """Read, leaving bad rows out or not: vectors, or a refusal."""
    _PATH.write_bytes(data)
    for on_bad in ("raise", "skip"):
        with warnings.catch_warnings(), contextlib.suppress(*REFUSED):
            warnings.simplefilter("ignore", embits.ReadWarning)
            assert len(embits.read_vectors(_PATH, on_bad=on_bad)) > 0  # type: ignore[arg-type]


def _reader(magic: bytes) -> Callable[[bytes], None]:
    """The reader of one format: with its first bytes in place, none is spent on finding them."""
    return lambda data: fuzz_reader(magic + data[len(magic) :])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "file": fuzz_file,
    "text": fuzz_reader,
    "word2vec": fuzz_reader,
    "fasttext": _reader(reader_corpus.fasttext()[:4]),
    "npy": _reader(b"\x93NUMPY"),
    "npz": _reader(b"PK\x03\x04"),
    "safetensors": fuzz_reader,
    "json": _reader(b"{"),
    "parquet": _reader(b"PAR1"),
    "archives": fuzz_reader,
}


def corpus(name: str) -> list[bytes]:
    """Good inputs to start from, made by the project itself."""
    if name != "file":
        return reader_corpus.FORMATS[name]
    found = []
    for method in METHODS:
        for words in (True, False):
            damage.small(method, words=words, subwords=words).save(_PATH)
            found.append(_PATH.read_bytes())
    return found


def mutated(name: str, data: bytes, rng: random.Random) -> bytes:
    """Damage that knows the format: for a file of bits, with checksums that fit."""
    if name == "file":
        with contextlib.suppress(Exception):  # what is no file any more gets blind damage
            return damage.hostile(data, rng)
    return rng.choice((damage.blind, damage.numbers))(data or b"0", rng)
