"""What the fuzzer calls: files and collections of codes, and each reader of floats and texts.

A target takes bytes and returns; whatever it raises is a finding.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.make_v3 import TEXTS
from tests.support import damage, damaged_collections, damaged_encoders, reader_corpus
from tests.support.answers import answers
from tests.support.static_models import write_model

import embits
import embits.readers.arrays
import embits.readers.fasttext_binary
import embits.readers.json_file
import embits.readers.parquet
import embits.readers.text
from embits.coders import METHODS
from embits.evaluation import data as evaluation
from embits.text.passages import read_passages

REFUSED = (embits.ReadError, embits.InputError, embits.errors.MissingExtraError)
_FOLDER = tempfile.TemporaryDirectory(dir=os.environ.get("FUZZ_FOLDER"))
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


def fuzz_static(data: bytes) -> None:
    """Make a text encoder of the folder of a static model: it encodes texts, or is refused."""
    folder = _PATH.with_name("static")
    damaged_collections.write(damaged_collections.unpack(data), folder)
    with contextlib.suppress(*REFUSED, embits.FormatError):
        made = embits.TextEncoder.from_static(folder, 16, method="lsh", cache=False)
        assert made.encode(TEXTS).shape == (len(TEXTS), made.n_features_out_)


def fuzz_passages(data: bytes) -> None:
    """Read texts as JSON lines, CSV, packed JSON lines and plain text."""
    for name in ("a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.md"):
        path = _PATH.with_name(name)
        path.write_bytes(data)
        with contextlib.suppress(*REFUSED):
            assert all(isinstance(each.indexed, str) for each in read_passages([path]))


def fuzz_words(data: bytes) -> None:
    """Read a matrix with a file of words beside it, of every name that they may have."""
    folder = _PATH.with_name("matrix")
    folder.mkdir(exist_ok=True)
    (folder / "m.npy").write_bytes(reader_corpus.npy())
    for name in ("m.vocab", "m.tsv", "m.txt", "m.json", "m.words"):
        (folder / name).write_bytes(data)
        with warnings.catch_warnings(), contextlib.suppress(*REFUSED):
            warnings.simplefilter("ignore", embits.errors.ReadWarning)
            assert len(embits.read_vectors(folder / "m.npy")) == len(reader_corpus.WORDS)
        (folder / name).unlink()


def fuzz_evaluation(data: bytes) -> None:
    """Read what evaluations are made of: pairs, questions, classes, judgements."""
    _PATH.write_bytes(data)
    for read in (evaluation.read_pairs, evaluation.read_questions, evaluation.read_labelled,
                 evaluation.read_qrels):  # fmt: skip
        with contextlib.suppress(*REFUSED):
            assert len(read(_PATH)) > 0


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
    "static": fuzz_static,
    "passages": fuzz_passages,
    "words": fuzz_words,
    "evaluation": fuzz_evaluation,
}

_JSONL = """{"id": "a", "title": "Music", "text": "a song", "year": 2020, "tags": ["x", null]}
{"_id": 7, "text": "Z\\u00fcrich, 日本", "share": 0.5, "more": {"a": [1]}, "is": true}
"""
_CSV = 'id,title,text,year,share\na,M,"a ""song""\nof",2020,0.5\nb,,Zürich,,-1e+3\n'
_EVALUATED = ["tiger\tcat\t7.35\nbook,paper,7\n", "word1;word2;score\na;b;1.5\n",
              ": family\nboy girl brother sister\n", '"1","A title","The text"\n"2","B","C"\n',
              "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "q1 0 d1 2\n"]  # fmt: skip


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
        case "static":
            folders = [Path(_FOLDER.name, f"static{i}") for i in range(2)]
            for i, folder in enumerate(folders):
                write_model(folder, shared=i > 0, weights=i > 0, dims=4)
            return [damaged_collections.pack(damaged_collections.read(each)) for each in folders]
        case "passages":
            texts = [_JSONL.encode(), _CSV.encode(), _CSV.replace(",", "\t").encode()]
            return [*texts, gzip.compress(texts[0], mtime=0)]
        case "words":
            lines = [f"{word}\t{9 - i}" for i, word in enumerate(reader_corpus.WORDS)]
            rows = {word: row for row, word in enumerate(reader_corpus.WORDS)}
            given = [reader_corpus.WORDS, rows, {"model": {"vocab": rows}}]
            return [
                "\n".join(reader_corpus.WORDS).encode(),
                "\n".join(lines).encode(),
                reader_corpus.text(header=False),
                *(json.dumps(each).encode() for each in given),
            ]
        case "evaluation":
            return [text.encode() for text in _EVALUATED]
    return reader_corpus.FORMATS[name]


def _saved(method: str, words: bool) -> bytes:
    damage.small(method, words=words, subwords=words).save(_PATH, overwrite=True)
    return _PATH.read_bytes()


def _damaged_model(files: damaged_collections.Files, rng: random.Random) -> Any:
    """A static model with a value of its tokenizer or of its table's header that lies."""
    name = rng.choice(list(files))
    with contextlib.suppress(Exception):  # what is no file any more gets blind damage
        if name.endswith(".json"):
            body = json.loads(files[name])
            damaged_collections._lie_in_manifest(body, rng)
            return {**files, name: json.dumps(body).encode()}
        if rng.random() < 0.7:
            header, rest = damage.parts(files[name])
            damaged_collections._lie_in_manifest(header, rng)
            text = json.dumps(header).encode()
            return {**files, name: len(text).to_bytes(8, "little") + text + rest}
    return damaged_collections.damaged(files, rng)


def mutated(name: str, data: bytes, rng: random.Random) -> bytes:
    """Damage that knows the format: in files of codes, with checksums that fit."""
    if name == "collection":
        change = rng.choice((damaged_collections.damaged, damaged_collections.hostile))
        return damaged_collections.pack(change(damaged_collections.unpack(data), rng))
    if name == "static":
        return damaged_collections.pack(_damaged_model(damaged_collections.unpack(data), rng))
    if name == "encoder" and rng.random() < 0.5:
        with contextlib.suppress(Exception):  # as below
            return damaged_encoders.lie_in_tokenizer(data, rng)
    if TARGETS[name] in (fuzz_file, fuzz_encoder):
        with contextlib.suppress(Exception):  # what is no file any more gets blind damage
            return damage.hostile(data, rng)
    return rng.choice((damage.blind, damage.numbers))(data or b"0", rng)
