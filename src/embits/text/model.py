"""TextModel: from texts to vectors, by the weighted means of their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits._lazy import LazyProperty
from embits.arrays import LazyRows, as_float32, blocks, unit_rows
from embits.binary_vectors import BinaryRows
from embits.checks import choice, whole
from embits.errors import InputError, NotFittedError
from embits.file import store
from embits.ids.vocabulary import Vocabulary
from embits.segment import LENGTHS, Lengths
from embits.text.table import Table, Tensors, array_of, byte_scale
from embits.text.tokens import Batch, Tokens, WordTokens, open_tokens

Floats = NDArray[np.float32]
WEIGHTS = ("uniform", "sif", "idf")
_SIF = 1e-3  # a of a / (a + p): Arora, Liang and Ma 2017
_ZIPF = 2.7  # Mandelbrot's shift: the frequency of the word of rank r is about 1 / (r + 2.7)
_BATCH = 2048  # texts at a time
_TOKENS_ABREAST = 16  # of the random texts that a coder is fitted on before there are texts
_SHRINK = 0.1  # of the mean variance, added to each: few texts do not show the small ones


@dataclass(frozen=True, eq=False)
class TextModel:
    """Tokens, the table of their vectors, and what is known of their frequencies.

    Attributes:
        tokens: What cuts texts into tokens.
        table: The vectors of tokens.
        normalize: Whether vectors of texts have the length 1.
        rows: The row of each token in the table, if tokens share rows.
        weights: What the static model multiplies each token by.
        frequencies: How many texts have a token, counted or estimated.
        n_texts: Texts that were counted.
        whitening: The mean of vectors of texts, (dims,), and the matrix that whitens, (dims, dims).
    """

    tokens: Tokens
    table: Table
    normalize: bool = True
    rows: NDArray[np.uint32] | None = None
    weights: Lengths | None = None
    frequencies: Lengths | None = None
    n_texts: int = 0
    whitening: tuple[Floats, Floats] | None = None

    @classmethod
    def of_words(cls, bits: BinaryRows) -> TextModel:
        """The words of a file; InputError if its rows have none."""
        bits = bits.merged()
        if not isinstance(bits.words, Vocabulary):
            raise InputError("the rows have no words: expected a file of word vectors in bits")
        codes, decode, stored = bits.codes, bits.coder.inverse_transform, bits.columns.get(LENGTHS)
        # Decoded in blocks: floats of all words would take a gigabyte.
        directions = LazyRows(lambda rows: decode(np.asarray(codes[rows])), len(bits), bits.dims)
        lengths = None if stored is None else stored.floats
        table = Table.of(np.asarray(codes), bits.n_bits, directions, lengths)
        frequencies = None
        first = bits.words[:1000]
        if len(first) < 3 or first != sorted(first):  # ranks in alphabetical order say nothing
            frequencies = Lengths.of(1 / (np.arange(len(bits), dtype=np.float64) + _ZIPF))
        return cls(WordTokens(bits.words, bits.subwords), table, frequencies=frequencies)

    def __len__(self) -> int:
        """How many tokens there are."""
        return len(self.table if self.rows is None else self.rows)

    # -- vectors ---------------------------------------------------------------------------------

    def encode(self, texts: Sequence[str], weights: str | None) -> Floats:
        """Vectors of texts, (n, dims), whose tokens are weighed so; None is as usual."""
        vectors = np.empty((len(texts), self.table.dims), np.float32)
        for rows in blocks(len(texts), _BATCH):
            vectors[rows] = self.whitened(self.pooled(self.tokens.of(texts[rows]), weights))
        return vectors

    def pooled(self, batch: Batch, weights: str | None) -> Floats:
        """The weighted means of the tokens of texts."""
        tokens, ends = batch.tokens, batch.ends
        of_tokens = self.token_weights(weights)[tokens]
        own = of_tokens if self.weights is None else of_tokens * self.weights.floats[tokens]
        rows = tokens if self.rows is None else self.rows[tokens]
        sums = self.table.pool(rows, own, ends)
        totals = np.concatenate([[0.0], np.cumsum(of_tokens, dtype=np.float64)])
        shares = np.diff(totals[np.concatenate([[0], ends])])
        for text, vector in batch.unseen:
            sums[text] += unit_rows(vector[None])[0]
            shares[text] += 1
        sums /= np.where(shares > 0, shares, 1).astype(np.float32)[:, None]
        return as_float32(unit_rows(sums)) if self.normalize else sums

    def whitened(self, vectors: Floats) -> Floats:
        """Vectors of texts, whitened if `with_whitening` has learned it; those of zeros stay."""
        if self.whitening is None:
            return vectors
        mean, matrix = self.whitening
        white: Floats = unit_rows((unit_rows(vectors) - mean) @ matrix)
        white[~vectors.any(axis=1)] = 0
        return white

    def pseudo_vectors(self, n: int, weights: str | None, seed: int | None) -> Floats:
        """Vectors of random groups of tokens, (n, dims), in place of texts."""
        seen = np.zeros(0) if self.frequencies is None else self.frequencies.floats
        share = seen / seen.sum(dtype=np.float64) if seen.any() else None
        chosen = np.random.default_rng(seed).choice(len(self), n * _TOKENS_ABREAST, p=share)
        ends = np.arange(1, n + 1, dtype=np.int64) * _TOKENS_ABREAST
        return self.whitened(self.pooled(Batch(chosen.astype(np.uint32), ends), weights))

    @LazyProperty
    def _known_weights(self) -> dict[str | None, Floats]:
        return {}

    def token_weights(self, chosen: str | None) -> Floats:
        """What tokens weigh by their frequencies, (tokens,); NotFittedError if none are known."""
        if chosen not in self._known_weights:
            self._known_weights[chosen] = as_float32(self._new_weights(chosen))
        return self._known_weights[chosen]

    def _new_weights(self, chosen: str | None) -> NDArray[np.float64]:
        kind = choice("weights", chosen or self.tokens.usual_weights, WEIGHTS)
        if kind == "uniform":
            return np.ones(len(self))
        if self.frequencies is None or (kind == "idf" and not self.n_texts):
            if chosen is not None:
                raise NotFittedError(f"weights={kind!r} need frequencies: call fit(texts) first")
            return np.ones(len(self))
        seen = self.frequencies.floats.astype(np.float64)
        weights: NDArray[np.float64] = _SIF / (_SIF + seen / seen.sum())
        if kind == "idf":  # counts are rounded on their scale: no weight may be 0 or less
            weights = np.log((self.n_texts + 1) / (np.minimum(seen, self.n_texts) + 1)) + 1e-3
        return weights

    # -- what texts teach ------------------------------------------------------------------------

    def with_frequencies(self, texts: Sequence[str]) -> TextModel:
        """The model with the frequencies of tokens in texts, and without whitening."""
        seen = np.zeros(len(self), np.int64)
        for rows in blocks(len(texts), _BATCH):
            batch = self.tokens.of(texts[rows])
            of_text = np.repeat(np.arange(len(batch.ends)), np.diff(batch.ends, prepend=0))
            pairs = np.unique(of_text * len(self) + batch.tokens)
            seen += np.bincount(pairs % len(self), minlength=len(self))
        plain = replace(self, whitening=None)
        if not seen.any():
            return plain
        return replace(plain, frequencies=Lengths.of(seen), n_texts=len(texts))

    def with_whitening(self, vectors: Floats, power: float) -> TextModel:
        """The model that raises variances of directions to the power of 1 - 2 `power`."""
        mean = vectors.mean(axis=0, dtype=np.float64)
        centred = vectors - mean
        variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
        variances = np.maximum(variances, 0)
        variances += _SHRINK * max(float(variances.mean()), 1e-12)
        variances /= variances.mean()
        matrix = (axes * variances**-power) @ axes.T
        return replace(self, whitening=(as_float32(mean), as_float32(matrix)))

    # -- the file --------------------------------------------------------------------------------

    def to_tensors(self) -> tuple[Tensors, dict[str, Any]]:
        """The arrays of a file, other than the codes of the table, and its settings."""
        own = {"weights": self.weights, "frequencies": self.frequencies}
        scales = {k: each for k, each in own.items() if each is not None}
        scales["scales"] = self.table.scales
        arrays = {name: scale.steps for name, scale in scales.items()} | self.table.decoding()
        if self.rows is not None:
            arrays["rows"] = self.rows
        if self.whitening is not None:
            arrays["mean"], arrays["whitening"] = self.whitening
        settings = {f"{name}_base": scale.base for name, scale in scales.items()}
        settings |= {"normalize": self.normalize, "texts": self.n_texts}
        named = {f"{store.TEXT}{name}": each for name, each in arrays.items()}
        tensors = {**self.tokens.to_tensors(), **named}
        return tensors, settings | {"unknown": self.tokens.unknown}

    @classmethod
    def from_contents(cls, contents: store.Contents, settings: Mapping[str, Any]) -> TextModel:
        """The model of a file; InputError if its arrays and settings do not fit."""
        text, dims = store.with_prefix(store.TEXT, contents.tensors), contents.dims
        table = Table.from_tensors(contents.codes, contents.n_bits, dims, text, settings)
        n, rows = len(table), None
        if "rows" in text:
            rows = array_of("rows", text, np.uint32, (text["rows"].size,))
            if rows.max(initial=0) >= max(n, 1):
                raise InputError(f"a token has no row among {n:,}")
        n_tokens = n if rows is None else len(rows)
        unknown = settings.get("unknown")
        if unknown is not None:
            unknown = whole("unknown", unknown, most=store.MAX_SIZE)
        n_texts = whole("texts", settings.get("texts", 0), most=store.MAX_SIZE)
        tokens = open_tokens(contents.tensors, n_tokens, n, dims, unknown)
        weights = byte_scale("weights", text, n_tokens, settings)
        frequencies = byte_scale("frequencies", text, n_tokens, settings)
        if frequencies and len(frequencies) and not frequencies.steps.any():
            raise InputError("no token was ever seen by its frequencies")
        whitening = None
        if "whitening" in text:
            mean = array_of("mean", text, np.float32, (dims,))
            whitening = mean, array_of("whitening", text, np.float32, (dims, dims))
        normalize = settings.get("normalize", False)
        if not isinstance(normalize, bool):
            raise InputError(f"normalize is {normalize!r:.80}, expected true or false")
        return cls(tokens, table, normalize, rows, weights, frequencies, n_texts, whitening)
