"""From texts to the numbers of tokens: by a tokenizer, or by the words of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.errors import FormatError, InputError, first_line, from_extra
from embits.file import store
from embits.ids.packed import open_words, pack
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.text.table import Tensors
from embits.text.tokenizer import unpack_tokenizer

_WORD = re.compile(r"[^\W_]+(?:['’\-_.][^\W_]+)*|[^\w\s]", re.UNICODE)
_PARTS = re.compile(r"[^\W_]+|['’][^\W_]+|[^\w\s]", re.UNICODE)
_MAX_PHRASE = 4  # words
_UNUSED = "truncation", "padding", "post_processor", "decoder"  # parts of tokenizers
_MAX_KNOWN = 1 << 20  # words whose rows are remembered
_TOKENIZER, _SUBWORDS = f"{store.TEXT}tokenizer", "subwords."


class Batch(NamedTuple):
    """The tokens of several texts."""

    tokens: NDArray[np.uint32]  # one text after the other
    ends: NDArray[np.int64]  # where each text ends
    unseen: Iterable[tuple[int, NDArray[np.float32]]] = ()  # texts, and vectors of other words

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Batch:
        """The tokens of each text."""
        ends = np.cumsum([len(each) for each in lists], dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(lists), np.uint32, int(ends[-1]) if lists else 0)
        return cls(flat, ends)


class Tokens(Protocol):
    """What cuts texts into tokens, each of which is a number below that of the table's tokens.

    Attributes:
        kind: What the tokens are, in the plural.
        usual_weights: How they are weighed if nothing else is chosen.
        unknown: The token that stands for what is unknown, if there is one.
    """

    kind: str
    usual_weights: str
    unknown: int | None

    def of(self, texts: Sequence[str]) -> Batch:
        """The tokens of texts."""

    def check(self) -> None:
        """Raise an error unless they are undamaged and fit the table."""

    def to_tensors(self) -> Tensors:
        """The arrays of a file, which `open_tokens` opens."""


def open_tokens(
    tensors: Tensors, n_tokens: int, n_rows: int, dims: int, unknown: int | None
) -> Tokens:
    """The tokens of a file; InputError if there are none, or they do not fit its table."""
    if _TOKENIZER in tensors:
        packed = tensors[_TOKENIZER]
        if packed.dtype != np.uint8 or packed.ndim != 1:
            raise InputError(f"the tokenizer is {packed.dtype} of shape {packed.shape}")
        return TokenizerTokens(packed.tobytes(), n_tokens, unknown)
    words, parts = open_words(tensors, n_rows), store.with_prefix(_SUBWORDS, tensors)
    if words is None or not len(words) == n_rows == n_tokens:
        raise InputError("it has neither a tokenizer nor words")
    return WordTokens(words, Subwords.from_tensors(parts, dims) if parts else None)


def checked_texts(texts: object) -> Sequence[str]:
    """Texts as a list of strings that UTF-8 can hold."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"texts are {type(texts).__name__}, expected a list of strings")
    checked = list(texts)
    for place, text in enumerate(checked):
        if not isinstance(text, str):
            raise InputError(f"text {place} is {text!r:.40}, expected a string")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                hint = "decode its bytes with errors='replace'"
                raise InputError(f"text {place} holds half of a surrogate pair: {hint}") from None
    return checked


@contextmanager
def _damage_refused() -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # panics of the package `tokenizers` are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        raise FormatError(f"the tokenizer is damaged: {first_line(error)}") from None


class TokenizerTokens:
    """The tokens of a packed `tokenizer.json`, by the package `tokenizers`; n of them have rows.

    The token `unknown`, if there is one, stands for what is unknown, and is left out.
    """

    kind, usual_weights = "tokens", "uniform"

    def __init__(self, packed: bytes, n: int, unknown: int | None) -> None:
        self.packed, self.n, self.unknown = packed, n, unknown

    @LazyProperty
    def _tokenizer(self) -> Any:
        text = unpack_tokenizer(self.packed, self.n, without=_UNUSED)
        with from_extra("text encoders", "text"):
            tokenizers = import_module("tokenizers")
        with _damage_refused():
            tokenizer = tokenizers.Tokenizer.from_str(text)
        most = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        if most >= self.n:
            found = f"it has the token {most:,}, and the table has {self.n:,} tokens"
            raise InputError(f"the tokenizer does not fit its table: {found}")
        return tokenizer

    def check(self) -> None:
        """Raise an error unless the tokenizer can be read and fits the table."""
        self._tokenizer  # noqa: B018 - it is made here

    def to_tensors(self) -> Tensors:
        """The packed tokenizer."""
        return {_TOKENIZER: np.frombuffer(self.packed, np.uint8)}

    def of(self, texts: Sequence[str]) -> Batch:
        """The tokens of texts, without special and unknown ones."""
        tokenizer = self._tokenizer
        with _damage_refused():
            found = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        batch = Batch.of([each.ids for each in found])
        known = batch.tokens != (self.n if self.unknown is None else self.unknown)
        counts = np.concatenate([[0], np.cumsum(known)])
        return Batch(batch.tokens[known], counts[batch.ends])


class WordTokens:
    """Words of a file: as they are written, in lower case, in parts, and phrases.

    `subwords`, if the file has them, make vectors of other words.
    """

    kind, usual_weights = "words", "sif"
    unknown: int | None = None

    def __init__(self, words: Vocabulary, subwords: Subwords | None = None) -> None:
        self.words, self.subwords = words, subwords
        self._rows: dict[str, int] = {}

    def check(self) -> None:
        """Raise an error unless the words are those of an undamaged file."""
        self.words.verify()

    def to_tensors(self) -> Tensors:
        """The packed words and the subwords."""
        parts = {} if self.subwords is None else self.subwords.to_tensors()
        own = {f"{_SUBWORDS}{name}": each for name, each in parts.items()}
        return {**pack(self.words), **own}

    @LazyProperty
    def _longest(self) -> int:
        """Words of the longest phrase in the vocabulary, such as new_york."""
        counts = (word.count("_") for word in self.words if "_" in word.strip("_"))
        return min(max(counts, default=0) + 1, _MAX_PHRASE)

    def _row(self, word: str) -> int:
        """The row of a word as it is written or in lower case; -1 if there is none."""
        row = self._rows.get(word)
        if row is None:
            found = self.words.find(word)
            if found is None and word != (lower := word.lower()):
                found = self.words.find(lower)
            row = self._rows[word] = -1 if found is None else int(found)
            if len(self._rows) > _MAX_KNOWN:
                self._rows = {}
        return row

    def of(self, texts: Sequence[str]) -> Batch:
        """The rows of the words of texts; words that have only subwords have vectors."""
        lists: list[list[int]] = []
        unseen: list[tuple[int, NDArray[np.float32]]] = []
        for number, text in enumerate(texts):
            rows, others = self._rows_of(_WORD.findall(text))
            lists.append(rows)
            if self.subwords is not None:
                known = filter(self.subwords.rows, others)
                unseen += ((number, self.subwords.vector(word)) for word in known)
        return Batch.of(lists)._replace(unseen=unseen)

    def _rows_of(self, words: list[str]) -> tuple[list[int], list[str]]:
        """The rows of words, and the other words in lower case."""
        rows: list[int] = []
        others: list[str] = []
        at = 0
        while at < len(words):
            row, used = self._phrase(words, at)
            word, at = words[at], at + used
            if row >= 0:
                rows.append(row)
                continue
            parts = _PARTS.findall(word)
            known = [row for row in map(self._row, parts) if row >= 0] if len(parts) > 1 else []
            rows.extend(known)
            if not known:
                others.append(word.lower())
        return rows, others

    def _phrase(self, words: list[str], at: int) -> tuple[int, int]:
        """The row of the longest phrase that starts at a word, and the number of its words."""
        for n in range(min(self._longest, len(words) - at), 1, -1):
            row = self._row("_".join(words[at : at + n]))
            if row >= 0:
                return row, n
        return self._row(words[at]), 1
