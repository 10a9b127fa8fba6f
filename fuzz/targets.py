"""What the fuzzer calls: files and collections of codes, and each reader of floats.

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

from tests.golden.make_v3 import TEXTS
from tests.support import damage, damaged_collections, reader_corpus
from tests.support.answers import answers

import embits
import embits.readers.arrays
import embits.readers.fasttext_binary
import embits.readers.json_file
import embits.readers.parquet
import embits.readers.text
from embits.coders import METHODS

REFUSED = (embits.ReadError, embits.InputError, embits.errors.MissingExtraError)
_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
_PATH = Path(_FOLDER.name) / "input"


def fuzz_file(data: bytes) -> None:
    """Open, verified or not, and ask every question: FormatError or an answer."""
    _PATH.write_bytes(data)
    for verify in (True, False):
        with contextlib.suppress(embits.FormatError):
            answers(embits.load(_PATH, verify=verify), _PATH)


def fuzz_encoder(data: bytes) -> None:
    """Open the file of a text encoder and encode texts: vectors, or one of our errors."""
    _PATH.write_bytes(data)
    for verify in (True, False):
        with contextlib.suppress(
            embits.FormatError, embits.InputError, embits.errors.NotFittedError
        ):
            embits.TextEncoder.load(_PATH, verify=verify).encode(TEXTS)


def fuzz_collection(data: bytes) -> None:
    """Open, search and change a collection: FormatError or an answer."""
    files = damaged_collections.unpack(data)
    for verify in (True, False):
        damaged_collections.write(files, _PATH.with_name("collection"))
        damaged_collections.use(_PATH.with_name("collection"), verify=verify)


def fuzz_reader(data: bytes) -> None:
    """Read, leaving bad rows out or not: vectors, or a refusal."""
    _PATH.write_bytes(data)
    for on_bad in ("raise", "skip"):
        with warnings.catch_warnings(), contextlib.suppress(*REFUSED):
            warnings.simplefilter("ignore", embits.errors.ReadWarning)
            assert len(embits.read_vectors(_PATH, on_bad=on_bad)) > 0  # type: ignore[arg-type]


def _reader(magic: bytes) -> Callable[[bytes], None]:
    """The reader of one format: with its first bytes in place, none is spent on finding them."""
    return lambda data: fuzz_reader(magic + data[len(magic) :])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "file": fuzz_file,
    "blocks": fuzz_file,
    "version1": fuzz_file,
    "version3": fuzz_file,
    "encoder": fuzz_encoder,
    "collection": fuzz_collection,
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
    match name:
        case "file":
            return [_saved(method, words) for method in METHODS for words in (True, False)]
        case "blocks":
            return [damage.golden(each) for each in damage.SEVERAL_BLOCKS]
        case "version1":
            return [damage.golden(f"v1-{method}") for method in ("lsh-100", "paper-64", "sign-12")]
        case "version3":
            return [damage.golden(each) for each in damage.OF_0_3]
        case "encoder":
            return [damage.golden(f"v3-encoder-{kind}") for kind in ("tokens", "net", "words")]
        case "collection":
            good = damaged_collections.good(Path(_FOLDER.name, "good"))
            return [damaged_collections.pack(files) for files in good]
    return reader_corpus.FORMATS[name]


def _saved(method: str, words: bool) -> bytes:
    damage.small(method, words=words, subwords=words).save(_PATH, overwrite=True)
    return _PATH.read_bytes()


def mutated(name: str, data: bytes, rng: random.Random) -> bytes:
    """Damage that knows the format: in files of codes, with checksums that fit."""
    if name == "collection":
        change = rng.choice((damaged_collections.damaged, damaged_collections.hostile))
        return damaged_collections.pack(change(damaged_collections.unpack(data), rng))
    if TARGETS[name] in (fuzz_file, fuzz_encoder):
        with contextlib.suppress(Exception):  # what is no file any more gets blind damage
            return damage.hostile(data, rng)
    return rng.choice((damage.blind, damage.numbers))(data or b"0", rng)
