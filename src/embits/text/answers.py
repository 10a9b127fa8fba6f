"""Answers: searches of texts among rows that have texts, by codes and by BM25."""

from __future__ import annotations

import hashlib
import json
import random
import re
import string
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embits.binary_vectors import BinaryRows
from embits.bounded_json import parse_json
from embits.checks import read_small
from embits.errors import InputError, ReadError, first_line, from_extra
from embits.file.atomic import atomic_write
from embits.search.results import ScoreResult
from embits.searchable import with_ids
from embits.text.encoder import TextEncoder
from embits.text.sources import cache_folder
from embits.text.tokens import checked_texts

ENCODER = "_encoder.safetensors"  # of a collection, beside its manifest
MODEL = "_encoder.json"  # in its place: the name of a model of sentence-transformers
_QUESTIONS = "about|does|from|have|should|that|this|what|when|where|which|will|with|would|your"
_LONG = re.compile(rf"\b(?!(?:{_QUESTIONS})\b)\w{{4,}}")
_NONSENSE = 200  # texts of random letters, whose best scores say what means nothing
_SHOWN = "title", "text"  # columns, in the order of `Answer`
_RARE = 0.01  # of the rows have a rare word
SHARING = 0.7
"""Of the threshold: what an answer needs that has a word of the question."""


# -- encoders --------------------------------------------------------------------------------------


class Encoder(Protocol):
    """What turns texts into vectors."""

    def encode(self, texts: Sequence[str], /) -> ArrayLike:
        """Vectors of shape (n, dims)."""


def sentence_transformer(name: str) -> Encoder:
    """A model of the package sentence-transformers."""
    what, line = f"{name!r}, which is no file or folder", "pip install sentence-transformers"
    with from_extra(f"the encoder {what}", "text", f"its package: {line}"):
        package = import_module("sentence_transformers")
    try:
        model: Encoder = package.SentenceTransformer(name)
    except (OSError, ValueError) as error:
        raise InputError(f"the encoder {name!r} cannot be opened: {first_line(error)}") from None
    return model


def holds_encoder(folder: Path) -> bool:
    """Whether a collection is one of texts."""
    return (folder / ENCODER).is_file() or (folder / MODEL).is_file()


def keep_encoder(folder: Path, encoder: TextEncoder | str) -> None:
    """Put the encoder of a collection, or the name of its model, into the folder."""
    if isinstance(encoder, TextEncoder):
        encoder.write(folder / ENCODER)
        return
    with atomic_write(folder / MODEL) as file:
        file.write(json.dumps({"sentence-transformers": encoder}).encode())


def kept_encoder(folder: Path) -> Encoder:
    """The encoder of a collection; InputError if it has none."""
    if (folder / ENCODER).is_file():
        return TextEncoder.load(folder / ENCODER, verify=True)
    try:
        name = parse_json(read_small(folder / MODEL, 1 << 16))["sentence-transformers"]
    except FileNotFoundError:
        raise InputError(f"{folder} has no text encoder: `embits index` writes {ENCODER}") from None
    except (ValueError, KeyError, TypeError):
        raise ReadError("damaged: restore it from a copy", path=folder / MODEL) from None
    return sentence_transformer(name)


def vectors_of(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of texts, (n, dims)."""
    return np.asarray(encoder.encode(texts), np.float32)


# -- searches --------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """A passage that answers a question."""

    id: str
    score: float  # the cosine, estimated; with BM25, the sum of standardized scores
    title: str | None
    text: str | None


def answer(
    bits: BinaryRows,
    encoder: Encoder,
    question: str,
    k: int = 5,
    *,
    hybrid: bool = False,
    where: Any = None,
    threshold: float | None = None,
) -> list[Answer]:
    """The passages that answer a question, best first; none if nothing is similar enough.

    Args:
        bits: The rows of a collection of texts.
        encoder: Its encoder.
        k: The most answers.
        hybrid: Search for the words too: a rare word of the question makes a passage an answer.
        where: As in `BinaryVectors.search`.
        threshold: The score that an answer needs. None is `noise_threshold`, and `SHARING` of it
            for passages that have a word of the question.
    """
    queries = checked_texts([question])
    vector = vectors_of(encoder, queries)[0]
    found = _search(bits, queries, vector, k, hybrid, where)
    scores: NDArray[Any] = found[0]
    by_words = np.zeros(len(scores), bool)
    if hybrid and len(bits):
        index, meant = Bm25Index.of(bits), bits.search(vector, len(bits))
        scores = meant[0][np.argsort(meant.rows)][found.rows]
        if threshold is None:
            by_words = index.have_rare_words(question)[found.rows]
        if not vector.any():  # then words alone can answer
            by_words |= index.scores(question)[found.rows] > 0
    least = noise_threshold(bits, encoder) if threshold is None else threshold
    columns = (
        found.column(c) if c in bits.current.columns.kinds else [None] * len(scores) for c in _SHOWN
    )
    results = zip(found.ids.tolist(), found[0].tolist(), *columns, strict=True)
    answers = []
    for each, score, has_words in zip(map(Answer._make, results), scores, by_words, strict=True):
        shares = threshold is None and share_words(
            question, f"{each.title or ''} {each.text or ''}"
        )
        if has_words or (vector.any() and score >= least * (SHARING if shares else 1)):
            answers.append(each)
    return answers


def search_texts(
    bits: BinaryRows,
    encoder: Encoder,
    texts: str | list[str],
    k: int,
    *,
    hybrid: bool = False,
    where: Any = None,
) -> ScoreResult:
    """The rows whose texts are nearest in meaning, or in meaning and words (`hybrid`)."""
    queries = checked_texts([texts] if isinstance(texts, str) else texts)
    vectors = vectors_of(encoder, queries)
    return _search(
        bits, queries, vectors[0] if isinstance(texts, str) else vectors, k, hybrid, where
    )


def _search(
    bits: BinaryRows,
    queries: Sequence[str],
    vectors: NDArray[np.float32],
    k: int,
    hybrid: bool,
    where: Any,
) -> ScoreResult:
    """The rows nearest to texts whose vectors are (dims,) for one, or (q, dims) for several."""
    if not hybrid or not len(bits):
        return cast("ScoreResult", bits.search(vectors, k, where=where))
    passing = bits.current.filters(vectors.shape[:-1], where)
    each = passing if isinstance(passing, list) else [passing] * len(queries)
    chosen = [np.arange(len(bits)) if one is None else one.rows for one in each]
    k, index = min([k, *map(len, chosen)]), Bm25Index.of(bits)
    scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    matrix = np.atleast_2d(vectors)
    for place, (text, vector, allowed) in enumerate(zip(queries, matrix, chosen, strict=True)):
        both = (_standardized(index.scores(text)) + _meanings(bits, vector))[allowed]
        best = np.argsort(-both, kind="stable")[:k]
        scores[place], rows[place] = both[best], allowed[best]
    shape = (*vectors.shape[:-1], k)
    result = ScoreResult(scores.reshape(shape), rows.reshape(shape))
    return with_ids(bits.current, result)


def _meanings(bits: BinaryRows, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Standardized scores of all rows by their codes."""
    scores = np.zeros(len(bits), np.float32)
    if vector.any():
        found = bits.search(vector, len(bits), rescore=0)
        scores[found.rows] = found[0]
    return _standardized(scores)


def _standardized(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores with the mean 0 and the standard deviation 1; 0 if all are equal."""
    deviation = scores.std() if len(scores) else 0
    standard: NDArray[np.float32] = (scores - scores.mean()) / (deviation or 1)
    return standard


class Bm25Index:
    """BM25 of the column `text` and of titles, by the package bm25s.

    The index is kept in the cache folder, by the digest of the texts: an index of 100,000 texts
    takes seconds to make.
    """

    def __init__(self, bits: BinaryRows) -> None:
        with from_extra("hybrid searches", "text"):
            self._bm25s = import_module("bm25s")
        texts = indexed_texts(bits)
        digest = hashlib.sha256(json.dumps([self._bm25s.__version__, texts]).encode()).hexdigest()
        kept = cache_folder() / f"bm25-{digest[:32]}"
        with suppress(OSError, ValueError, KeyError):
            self._index = self._bm25s.BM25.load(str(kept))
            return
        self._index = self._bm25s.BM25()
        self._index.index(self._tokenized(texts), show_progress=False)
        with suppress(OSError):
            kept.parent.mkdir(0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                self._index.save(f"{folder}/index")
                Path(folder, "index").replace(kept)

    @classmethod
    def of(cls, bits: BinaryRows) -> Bm25Index:
        """The index of rows, made once for as long as they are in use."""
        if (index := _indexes.get(bits)) is None:
            index = _indexes[bits] = cls(bits)
        return index

    def _tokenized(self, texts: list[str], **options: Any) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", show_progress=False, **options)

    def scores(self, text: str) -> NDArray[np.float32]:
        return self._scores(self._known(text))

    def have_rare_words(self, text: str) -> NDArray[np.bool_]:
        """Whether each row has all rare words of a text, if there are any: names and numbers."""
        matches = [self._scores([word]) > 0 for word in self._known(text)]
        rare = [rows for rows in matches if rows.mean() < _RARE] or [self._scores([]) > 0]
        have_all: NDArray[np.bool_] = np.all(rare, axis=0)
        return have_all

    def _known(self, text: str) -> list[str]:
        words = self._tokenized([text], return_ids=False)[0]
        return [each for each in words if each in self._index.vocab_dict]

    def _scores(self, words: list[str]) -> NDArray[np.float32]:
        if not words:
            return np.zeros(int(self._index.scores["num_docs"]), np.float32)
        return np.asarray(self._index.get_scores(words), np.float32)


_indexes: WeakKeyDictionary[BinaryRows, Bm25Index] = WeakKeyDictionary()


def noise_threshold(bits: BinaryRows, encoder: Encoder) -> float:
    """The score that texts of random letters seldom reach: no answer scores less."""
    rng, abc = random.Random(0), string.ascii_lowercase
    words = ["".join(rng.choices(abc, k=rng.randint(4, 9))) for _ in range(600)]
    vectors = vectors_of(encoder, [" ".join(rng.choices(words, k=4)) for _ in range(_NONSENSE)])
    vectors = vectors[vectors.any(axis=1)]
    if not len(vectors) or not len(bits):
        return 0.0
    found = bits.search(vectors, 1)
    return float(np.quantile(found[0][:, 0], 0.98))


def share_words(a: str, b: str) -> bool:
    """Whether texts share a word of four or more letters, other than those of questions."""
    return not set(_LONG.findall(a.lower())).isdisjoint(_LONG.findall(b.lower()))


def indexed_texts(bits: BinaryRows) -> list[str]:
    """What is searched of rows: their titles, where they have some, and their texts."""
    columns, none = bits.get(rows=np.arange(len(bits))), [None] * len(bits)
    parts = zip(columns.get("title", none), columns.get("text", none), strict=True)
    return [" ".join(each for each in part if isinstance(each, str) and each) for part in parts]
