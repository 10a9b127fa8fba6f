"""TextEncoder: texts to vectors, by a table of token codes of about a megabyte."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from embits.arrays import LazyRows, Progress, as_float32, blocks, unit_rows
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.checks import check_n_bits, choice, number, whole
from embits.coders import ITQ, Coder, Neural, coder_class, new_coder
from embits.coders.base import Estimator
from embits.errors import EmbitsError, FormatError, InputError, MissingExtraError, NotFittedError
from embits.file import store
from embits.file.contents import open_parts
from embits.file.overwrite import check_target
from embits.ids.packed import open_words, pack
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.segment import LENGTHS, Lengths
from embits.text.sources import StaticModel, cached_file, read_static
from embits.text.table import Table, array_of, byte_scale
from embits.text.tokenizer import pack_tokenizer
from embits.text.tokens import Batch, TokenizerTokens, WordTokens
from embits.vectors import WordVectors

Floats = NDArray[np.float32]
WEIGHTS = ("uniform", "sif", "idf")
_SIF = 1e-3  # a of a / (a + p): Arora, Liang and Ma 2017
_ZIPF = 2.7  # Mandelbrot's shift: the frequency of the word of rank r is about 1 / (r + 2.7)
_BATCH = 2048  # texts at a time
_TOKENS_ABREAST = 16  # of the random texts that a coder is fitted on before there are texts
_SAMPLE = 20_000
_SHRINK = 0.1  # of the mean variance, added to each: few texts do not show the small ones


class TextEncoder(Estimator):
    """Vectors of texts: a tokenizer, a table of token codes, and a weighted mean.

    A text with no known token has the vector of zeros. Made by `from_static`, `from_words` or
    `load`, or by its constructor and `fit`, as scikit-learn does. Any number of threads may use
    one object.

    Args:
        source: "wordllama" for the table in that package; the folder of a static model of
            model2vec; a file of words that embits wrote; or the file of a text encoder.
        n_bits: Bits of a token, and of the codes of texts.
        method: The coder of the tokens of a static model.
        weights: What tokens weigh in the mean: "uniform", "sif" (a / (a + p) for a token of
            frequency p) or "idf" (the logarithm of how rare it is). None is "uniform" for static
            models and "sif" for words.
        whiten: How far `fit` whitens the vectors of texts: 0 leaves them, 0.5 gives all directions
            the same variance.
        random_state: Seed of the coders.

    Attributes:
        table_: The codes of tokens and their decoder.
        n_features_out_: Dimensions of the vectors.
        coder_: The coder of `encode_codes`, once it is fitted.

    Example:
        >>> import embits
        >>> words = embits.binarize(embits.sample_vectors(), n_bits=128, method="itq")
        >>> encoder = embits.TextEncoder.from_words(words)
        >>> music, songs, rivers = encoder.encode(["A music album", "her songs", "the river"])
        >>> bool(music @ songs > music @ rivers)
        True
    """

    table_: Table
    coder_: Coder | None
    _tokens: TokenizerTokens | WordTokens
    _rows: NDArray[np.uint32] | None  # of tokens, if they share rows
    _model_weights: Lengths | None  # of tokens
    _frequencies: Lengths | None  # texts that have a token, or estimated
    _texts: int  # that were counted
    _mean: Floats | None
    _whitening: Floats | None
    _normalize: bool

    def __init__(
        self,
        source: Any = "wordllama",
        n_bits: int = 256,
        *,
        method: str = "near-lossless",
        weights: str | None = None,
        whiten: float = 0.25,
        random_state: int | None = 0,
    ) -> None:
        self.source, self.n_bits, self.method = source, n_bits, method
        self.weights, self.whiten, self.random_state = weights, whiten, random_state

    # -- where it comes from ---------------------------------------------------------------------

    @classmethod
    def from_static(
        cls,
        source: str | os.PathLike[str] = "wordllama",
        n_bits: int = 256,
        *,
        cache: bool = True,
        progress: Progress | None = None,
        **params: Any,
    ) -> Self:
        """The encoder of a static model: its table of tokens in bits.

        Fitting the codes takes about a minute. With `cache`, the result is kept in
        `$XDG_CACHE_HOME/embits` (`~/.cache/embits`), and the next call opens it.

        Args:
            source: "wordllama", for the table in that package, or the folder of a model of
                model2vec: `model.safetensors`, `tokenizer.json` and `config.json`.
            progress: Called with (done, total) during the fit.
            params: Arguments of the constructor, as `n_bits`.

        Raises:
            InputError: There is no such folder, or its tokenizer does not fit its table.
            ReadError, FormatError: A file of the model is damaged.
        """
        encoder = cls(source, n_bits, **params)
        return encoder._open_static(read_static(source), cache, progress)

    @classmethod
    def from_words(
        cls, source: str | os.PathLike[str] | BinaryVectors | WordVectors, **params: Any
    ) -> Self:
        """The encoder of a file of words: the mean of the words of a text.

        A word is looked up as it is written, then in lower case, then in parts; phrases that the
        vocabulary has (new_york) count as one word. Words that are not in the file have the vector
        of their subwords if it has them. Frequencies are estimated from ranks, because files of
        word vectors have frequent words first; `fit` counts them.

        Args:
            source: A file of codes with words, BinaryVectors, or WordVectors, which are binarized.
            params: Other arguments of the constructor.

        Raises:
            InputError: The rows have no words, or no coder.
            FormatError: The file is damaged.
        """
        return cls(source, **params)._open_words(source)

    def opened(self, progress: Progress | None = None) -> Self:
        """Itself, with its source opened, whatever that is."""
        source = self.source
        if isinstance(source, str | os.PathLike) and Path(source).is_file():
            is_encoder = store.open_file(Path(source)).text is not None
            return self._take(Path(source)) if is_encoder else self._open_words(source)
        if isinstance(source, BinaryRows | WordVectors):
            return self._open_words(source)
        if not isinstance(source, str | os.PathLike):
            raise InputError(f"source is {source!r:.80}, expected a folder, a file or a name")
        return self._open_static(read_static(source), True, progress)

    def _open_static(self, model: StaticModel, cache: bool, progress: Progress | None) -> Self:
        check_n_bits(self.n_bits)
        coder_class(self.method)
        self._chosen_weights("uniform")
        settings = {name: getattr(self, name) for name in ("n_bits", "method", "random_state")}
        packed = pack_tokenizer(model.tokenizer)
        TokenizerTokens(packed, model.n_tokens, model.unknown).check()
        file = cached_file(model, settings) if cache else None
        if file is not None and file.is_file():
            with suppress(EmbitsError, OSError):  # it is damaged or gone: made again
                return self._take(file, verify=True)
        params = {"random_state": self.random_state, "prefer": "float"}  # codes are only decoded
        names = set(coder_class(self.method).param_names()).intersection(params)
        coder = new_coder(self.method, self.n_bits, {name: params[name] for name in names})
        coder.fit(model.vectors, progress=progress)
        codes = coder.encode(model.vectors)
        lengths = np.linalg.norm(model.vectors, axis=1)
        if isinstance(coder, Neural):
            self.table_ = Table.decoded_by(coder.net, codes, Lengths.of(lengths))
        else:
            self.table_ = Table.of(codes, coder.n_bits_, model.vectors, lengths)
        self._tokens = TokenizerTokens(packed, model.n_tokens, model.unknown)
        self._rows = model.rows
        self._model_weights = None if model.weights is None else Lengths.of(model.weights)
        self._begin(model.normalize)
        if file is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                self._write(file)
        return self

    def _open_words(self, source: Any) -> Self:
        self._chosen_weights("sif")
        bits = source
        if isinstance(source, str | os.PathLike):
            bits = BinaryVectors.of_segment(*open_parts(Path(source), verify=True))
        elif isinstance(source, WordVectors):
            coder = new_coder(self.method, self.n_bits, {}).fit(source.matrix)
            bits = BinaryVectors.encoded(source, coder, lengths=True)
        if not isinstance(bits, BinaryRows):
            raise InputError(f"source is {source!r:.80}, expected a file of words")
        bits = bits.merged()
        if not isinstance(bits.words, Vocabulary):
            raise InputError("the rows have no words: expected a file of word vectors in bits")
        codes, decode, stored = bits.codes, bits.coder.inverse_transform, bits.columns.get(LENGTHS)
        # Decoded in blocks: floats of all words would take a gigabyte.
        directions = LazyRows(lambda rows: decode(np.asarray(codes[rows])), len(bits), bits.dims)
        lengths = None if stored is None else stored.floats
        self.table_ = Table.of(np.asarray(bits.codes), bits.n_bits, directions, lengths)
        self._tokens = WordTokens(bits.words, bits.subwords)
        self._rows = self._model_weights = None
        self._begin(normalize=True)
        if not _is_sorted(bits.words):
            ranks = 1 / (np.arange(len(bits), dtype=np.float64) + _ZIPF)
            self._frequencies = Lengths.of(ranks)
        return self

    def _begin(self, normalize: bool) -> None:
        self._normalize, self._frequencies, self._texts = normalize, None, 0
        self._mean = self._whitening = self.coder_ = None
        self._finish()

    def _finish(self) -> None:
        self.n_bits_, self.n_features_out_ = self.table_.n_bits, self.table_.dims
        self.n_features_in_ = 1  # texts

    def _chosen_weights(self, usual: str) -> str:
        return usual if self.weights is None else choice("weights", self.weights, WEIGHTS)

    @property
    def _n_tokens(self) -> int:
        return len(self.table_ if self._rows is None else self._rows)

    # -- texts -----------------------------------------------------------------------------------

    def fit(self, X: Iterable[str], y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn from texts how frequent tokens are, how to whiten, and the coder of texts.

        Nothing is changed in the table. An encoder that is not opened yet opens its source first,
        and calls `progress` with (done, total) if the table of a static model is fitted.
        """
        number("whiten", self.whiten, 0, 0.5)
        if not hasattr(self, "table_"):
            self.opened(progress)
        texts = checked_texts(X)
        seen = np.zeros(self._n_tokens, np.int64)
        for rows in blocks(len(texts), _BATCH):
            batch = self._tokens.of(texts[rows])
            of_text = np.repeat(np.arange(len(batch.ends)), np.diff(batch.ends, prepend=0))
            pairs = np.unique(of_text * self._n_tokens + batch.tokens)
            seen += np.bincount(pairs % self._n_tokens, minlength=self._n_tokens)
        if seen.any():
            self._frequencies, self._texts = Lengths.of(seen), len(texts)
        self._mean = self._whitening = self.coder_ = None
        vectors = self.encode(texts[:: max(1, -(-len(texts) // _SAMPLE))])
        vectors = as_float32(unit_rows(vectors[vectors.any(axis=1)]))
        if len(vectors) > 1 and self.whiten:
            self._mean, self._whitening = _whitening(vectors, self.whiten)
            vectors = self._whitened(vectors)
        if len(vectors) > 2 * self.n_bits_:
            self.coder_ = ITQ(self.n_bits_, random_state=self.random_state).fit(vectors)
        return self

    def encode(self, texts: Any) -> Floats:
        """Vectors of texts, of length 1 unless the model's settings say otherwise.

        float32 of shape (dims,) for one text, (n, dims) for several. A text with no known token has
        the vector of zeros.

        Raises:
            InputError: Something is not a text, or holds half of a surrogate pair.
        """
        self.check_fitted()
        if isinstance(texts, str):
            vector: Floats = self.encode([texts])[0]
            return vector
        texts = checked_texts(texts)
        vectors = np.empty((len(texts), self.n_features_out_), np.float32)
        for rows in blocks(len(texts), _BATCH):
            vectors[rows] = self._whitened(self._pooled(self._tokens.of(texts[rows])))
        return vectors

    def _pooled(self, batch: Batch) -> Floats:
        """The weighted means of the tokens of texts."""
        tokens, ends, of_model = batch.tokens, batch.ends, self._model_weights
        weights = self._weights[tokens]
        own = weights if of_model is None else weights * of_model.floats[tokens]
        rows = tokens if self._rows is None else self._rows[tokens]
        sums = self.table_.pool(rows, own, ends)
        totals = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
        shares = np.diff(totals[np.concatenate([[0], ends])])
        subwords = self._tokens.subwords if isinstance(self._tokens, WordTokens) else None
        for text, word in batch.unseen if subwords is not None else ():
            vector = subwords.vector(word)[None]  # type: ignore[union-attr]
            sums[text] += unit_rows(vector)[0]
            shares[text] += 1
        sums /= np.where(shares > 0, shares, 1).astype(np.float32)[:, None]
        return as_float32(unit_rows(sums)) if self._normalize else sums

    def _whitened(self, vectors: Floats) -> Floats:
        if self._whitening is None:
            return vectors
        are_zero = ~vectors.any(axis=1)
        white: Floats = unit_rows((unit_rows(vectors) - self._mean) @ self._whitening)
        white[are_zero] = 0
        return white

    @property
    def _weights(self) -> Floats:
        """What tokens weigh by their frequencies, (tokens,)."""
        kind = self._chosen_weights("sif" if isinstance(self._tokens, WordTokens) else "uniform")
        key = kind, id(self._frequencies)
        if vars(self).get("_weighed", (None,))[0] != key:
            self._weighed = key, self._new_weights(kind)
        return self._weighed[1]

    def _new_weights(self, kind: str) -> Floats:
        if self._frequencies is None or (kind == "idf" and not self._texts):
            if kind == self.weights != "uniform":
                raise NotFittedError(f"weights={kind!r} need frequencies: call fit(texts) first")
            return np.ones(self._n_tokens, np.float32)
        seen = self._frequencies.floats.astype(np.float64)
        if kind == "uniform":
            weights = np.ones_like(seen)
        elif kind == "sif":
            weights = _SIF / (_SIF + seen / seen.sum())
        else:  # counts are rounded on their scale: no weight may be 0 or less
            weights = np.log((self._texts + 1) / (np.minimum(seen, self._texts) + 1)) + 1e-3
        return as_float32(weights)

    def encode_codes(self, texts: Any) -> NDArray[np.uint8]:
        """Packed codes of texts, of `n_bits` bits: (width,) for one text, (n, width) for several.

        The coder is that of the last `fit` on texts. Without one it is fitted, once, on random
        groups of tokens, and keeps somewhat fewer neighbors.

        Raises:
            InputError: A text has no known token, so no code.
        """
        if isinstance(texts, str):
            code: NDArray[np.uint8] = self.encode_codes([texts])[0]
            return code
        vectors = self.encode(texts)
        empty = np.flatnonzero(~vectors.any(axis=1))
        if len(empty):
            raise InputError(f"text {empty[0]} has no known token, so no code")
        if self.coder_ is None:
            vectors_of_tokens = self.pseudo_vectors(min(_SAMPLE, 40 * self.n_bits_))
            self.coder_ = ITQ(self.n_bits_, random_state=self.random_state).fit(vectors_of_tokens)
        codes: NDArray[np.uint8] = self.coder_.encode(vectors)
        return codes

    def pseudo_vectors(self, n: int) -> Floats:
        """Vectors of random groups of tokens, (n, dims), in place of texts."""
        rng = np.random.default_rng(self.random_state)
        seen = np.zeros(0) if self._frequencies is None else self._frequencies.floats
        share = seen / seen.sum(dtype=np.float64) if seen.any() else None
        tokens = rng.choice(self._n_tokens, n * _TOKENS_ABREAST, p=share).astype(np.uint32)
        ends = np.arange(1, n + 1, dtype=np.int64) * _TOKENS_ABREAST
        return self._whitened(self._pooled(Batch(tokens, ends)))

    def transform(self, X: Any) -> Any:
        """`encode` under scikit-learn's name."""
        return self.encode([X] if isinstance(X, str) else X)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit(X)`, then `transform(X)`."""
        return self.fit(X, y).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "table_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = tags.requires_fit = False
        return tags

    def __repr__(self) -> str:
        if not hasattr(self, "table_"):
            return super().__repr__()
        kind = "words" if isinstance(self._tokens, WordTokens) else "tokens"
        return f"<TextEncoder: {self._n_tokens:,} {kind} × {self.n_bits_} bits>"

    # -- the file --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically; one that embits wrote is replaced.

        Raises:
            InputError: There is another file at `path`, and not `overwrite`.
            OSError: The file could not be written; a file that was there is unchanged.
        """
        self.check_fitted()
        check_target(path, overwrite=overwrite, codes=True)
        self._write(Path(path))

    def _write(self, path: Path) -> None:
        table, tokens, coder = self.table_, self._tokens, self.coder_
        own = {"weights": self._model_weights, "frequencies": self._frequencies}
        scales = {k: each for k, each in own.items() if each is not None} | {"scales": table.scales}
        arrays: dict[str, NDArray[Any] | None] = {
            **{name: scale.steps for name, scale in scales.items()}, **table.decoding(),
            "rows": self._rows, "mean": self._mean, "whitening": self._whitening,
        }  # fmt: skip
        settings: dict[str, Any] = {
            **{f"{name}_base": scale.base for name, scale in scales.items()},
            "weights": self.weights, "whiten": self.whiten, "normalize": self._normalize,
            "texts": self._texts, "unknown": getattr(tokens, "unknown", None),
        }  # fmt: skip
        words: dict[str, NDArray[Any]] = {}
        if isinstance(tokens, WordTokens):
            words = pack(cast("Vocabulary", tokens.words))
            if tokens.subwords is not None:
                parts = tokens.subwords.to_tensors()
                words |= {f"{_SUBWORDS}{name}": each for name, each in parts.items()}
        else:
            arrays["tokenizer"] = np.frombuffer(tokens.packed, np.uint8)
        if coder is not None:
            arrays |= {f"{_CODER}{name}": each for name, each in coder.state().items()}
            settings["coder"] = {"method": coder.method, "params": coder.get_params()}
        named = {store.TEXT + name: each for name, each in arrays.items() if each is not None}
        about = table.n_bits, table.dims, self.method, {"n_bits": table.n_bits}, words | named
        codes = np.asarray(table.codes)
        version = store.VERSION_WITH_MORE
        contents = store.Contents(
            codes, *about, version=version, left_out=("coder",), text=settings
        )
        store.write(path, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Open a file that `save` wrote: mapped, not read; with `verify`, every byte is checked.

        Raises:
            FormatError: It is not a text encoder, or it is damaged.
        """
        return cls(os.fspath(path))._take(Path(path), verify=verify)

    def _take(self, path: Path, *, verify: bool = False) -> Self:
        contents = store.open_file(path, verify=verify)
        if contents.text is None:
            hint = "embits.load opens files of codes; TextEncoder.from_words uses their words"
            raise FormatError(f"{path}: not a text encoder: {hint}")
        try:
            self._from_contents(contents)
            if verify:
                with suppress(MissingExtraError):  # the tokenizer was unpacked at least
                    self._tokens.check()
                if self.coder_ is not None:
                    self.coder_.check_learned()
        except (InputError, KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, EmbitsError) else "its settings do not fit"
            raise FormatError(f"{path}: damaged: {reason:.300}") from None
        return self

    def _from_contents(self, contents: store.Contents) -> None:
        settings, n, dims = dict(contents.text or {}), len(contents.codes), contents.dims
        text = store.with_prefix(store.TEXT, contents.tensors)
        self.table_ = Table.from_tensors(contents.codes, contents.n_bits, dims, text, settings)
        self._rows = None
        if "rows" in text:
            self._rows = array_of("rows", text, np.uint32, (text["rows"].size,))
            if self._rows.max(initial=0) >= max(n, 1):
                raise InputError(f"a token has no row among {n:,}")
        unknown, self._texts = settings.get("unknown"), settings.get("texts", 0)
        for name, value in (("unknown", 0 if unknown is None else unknown), ("texts", self._texts)):
            whole(name, value, most=store.MAX_SIZE)
        if "tokenizer" in text:
            packed = array_of("tokenizer", text, np.uint8, (text["tokenizer"].size,))
            self._tokens = TokenizerTokens(packed.tobytes(), self._n_tokens, unknown)
        else:
            words = open_words(contents.tensors, n)
            parts = store.with_prefix(_SUBWORDS, contents.tensors)
            if words is None or len(words) != n or self._rows is not None:
                raise InputError("it has neither a tokenizer nor words")
            self._tokens = WordTokens(words, Subwords.from_tensors(parts, dims) if parts else None)
        self._model_weights, self._frequencies = (
            byte_scale(name, text, self._n_tokens, settings) for name in ("weights", "frequencies")
        )
        if self._frequencies and len(self._frequencies) and not self._frequencies.steps.any():
            raise InputError("no token was ever seen by its frequencies")
        self._mean = self._whitening = self.coder_ = None
        if "whitening" in text:
            self._mean = array_of("mean", text, np.float32, (dims,))
            self._whitening = array_of("whitening", text, np.float32, (dims, dims))
        if "coder" in settings:
            about, state = settings["coder"], store.with_prefix(_CODER, text)
            kind = coder_class(about["method"])
            self.coder_ = kind.from_state(about["params"], state, dims, contents.n_bits)
        self.weights = self.weights or settings.get("weights")
        self._chosen_weights("uniform")
        self.whiten = number("whiten", settings.get("whiten", 0), 0, 0.5)
        self.n_bits, self.method = contents.n_bits, contents.method
        self._normalize = settings.get("normalize", False)
        if not isinstance(self._normalize, bool):
            raise InputError(f"normalize is {self._normalize!r:.80}, expected true or false")
        self._finish()


_SUBWORDS, _CODER = "subwords.", "coder."


def _is_sorted(words: Any) -> bool:
    """Whether words are in alphabetical order, so that their ranks say nothing."""
    first = [word for word, _ in zip(words, range(1000), strict=False)]
    return len(first) > 2 and first == sorted(first)


def _whitening(vectors: Floats, power: float) -> tuple[Floats, Floats]:
    """The mean, and the matrix whose directions have variances to the power of 1 - 2 `power`."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
    variances = np.maximum(variances, 0)
    variances += _SHRINK * max(float(variances.mean()), 1e-12)
    variances /= variances.mean()
    matrix = (axes * variances**-power) @ axes.T
    return as_float32(mean), as_float32(matrix)


def checked_texts(texts: Any) -> Sequence[str]:
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
