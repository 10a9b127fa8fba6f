"""TextEncoder: texts to vectors, by a table of token codes of about a megabyte."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, as_float32, unit_rows
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.checks import check_n_bits, choice, number
from embits.coders import ITQ, Coder, coder_class, new_coder
from embits.coders.base import Estimator
from embits.errors import EmbitsError, FormatError, InputError, MissingExtraError
from embits.file import store
from embits.file.contents import open_parts
from embits.file.overwrite import check_target
from embits.segment import Lengths
from embits.text.model import WEIGHTS, Floats, TextModel
from embits.text.sources import StaticModel, cached_file, read_static
from embits.text.table import Table
from embits.text.tokenizer import pack_tokenizer
from embits.text.tokens import TokenizerTokens, checked_texts
from embits.vectors import WordVectors

Source: TypeAlias = str | os.PathLike[str] | BinaryRows | WordVectors
_SAMPLE = 20_000
_CODER = f"{store.TEXT}coder."


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
        model_: The table, its tokens, and their frequencies.
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

    model_: TextModel
    coder_: Coder | None

    def __init__(
        self,
        source: Source = "wordllama",
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
        return cls(source, n_bits, **params)._open_static(read_static(source), cache, progress)

    @classmethod
    def from_words(cls, source: Source, **params: Any) -> Self:
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
            return self._open_file(Path(source)) if is_encoder else self._open_words(source)
        if isinstance(source, BinaryRows | WordVectors):
            return self._open_words(source)
        if not isinstance(source, str | os.PathLike):
            raise InputError(f"source is {source!r:.80}, expected a folder, a file or a name")
        return self._open_static(read_static(source), True, progress)

    def _open_static(self, model: StaticModel, cache: bool, progress: Progress | None) -> Self:
        check_n_bits(self.n_bits)
        self._check_weights()
        names = coder_class(self.method).param_names()
        settings = {name: getattr(self, name) for name in ("n_bits", "method", "random_state")}
        tokens = TokenizerTokens(pack_tokenizer(model.tokenizer), model.n_tokens, model.unknown)
        tokens.check()
        file = cached_file(model, settings) if cache else None
        if file is not None and file.is_file():
            with suppress(EmbitsError, OSError):  # it is damaged or gone: made again
                return self._open_file(file, verify=True)
        params = {"random_state": self.random_state, "prefer": "float"}  # codes are only decoded
        usable = {name: value for name, value in params.items() if name in names}
        coder = new_coder(self.method, self.n_bits, usable).fit(model.vectors, progress=progress)
        table, weights = Table.encoded_by(coder, model.vectors), model.weights
        own = None if weights is None else Lengths.of(weights)
        self._use(TextModel(tokens, table, model.normalize, model.rows, own))
        if file is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                self.write(file)
        return self

    def _open_words(self, source: Source) -> Self:
        self._check_weights()
        bits = source
        if isinstance(source, str | os.PathLike):
            bits = BinaryVectors.of_segment(*open_parts(Path(source), verify=True))
        elif isinstance(source, WordVectors):
            coder = new_coder(self.method, self.n_bits, {}).fit(source.matrix)
            bits = BinaryVectors.encoded(source, coder, lengths=True)
        if not isinstance(bits, BinaryRows):
            raise InputError(f"source is {source!r:.80}, expected a file of words")
        return self._use(TextModel.of_words(bits))

    def _check_weights(self) -> None:
        if self.weights is not None:
            choice("weights", self.weights, WEIGHTS)

    def _use(self, model: TextModel, coder: Coder | None = None) -> Self:
        self.model_, self.coder_ = model, coder
        self.n_bits_, self.n_features_out_ = model.table.n_bits, model.table.dims
        self.n_features_in_ = 1  # texts
        return self

    @property
    def table_(self) -> Table:
        return self.model_.table

    # -- texts -----------------------------------------------------------------------------------

    def fit(self, X: Iterable[str], y: object = None, *, progress: Progress | None = None) -> Self:
        """Learn from texts how frequent tokens are, how to whiten, and the coder of texts.

        Nothing is changed in the table. An encoder that is not opened yet opens its source first,
        and calls `progress` with (done, total) if the table of a static model is fitted.
        """
        number("whiten", self.whiten, 0, 0.5)
        if not self.__sklearn_is_fitted__():
            self.opened(progress)
        texts, coder = checked_texts(X), None
        model = self.model_.with_frequencies(texts)
        vectors = model.encode(texts[:: max(1, -(-len(texts) // _SAMPLE))], self.weights)
        vectors = as_float32(unit_rows(vectors[vectors.any(axis=1)]))
        if len(vectors) > 1 and self.whiten:
            model = model.with_whitening(vectors, self.whiten)
            vectors = model.whitened(vectors)
        if len(vectors) > 2 * self.n_bits_:
            coder = ITQ(self.n_bits_, random_state=self.random_state).fit(vectors)
        return self._use(model, coder)

    def encode(self, texts: str | Iterable[str]) -> Floats:
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
        return self.model_.encode(checked_texts(texts), self.weights)

    def encode_codes(self, texts: str | Iterable[str]) -> NDArray[np.uint8]:
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
        return self.coder_.encode(vectors)

    def pseudo_vectors(self, n: int) -> Floats:
        """Vectors of random groups of tokens, (n, dims), in place of texts."""
        return self.model_.pseudo_vectors(n, self.weights, self.random_state)

    def transform(self, X: str | Iterable[str]) -> Floats:
        """`encode` under scikit-learn's name."""
        return self.encode([X] if isinstance(X, str) else X)

    def fit_transform(self, X: Iterable[str], y: object = None) -> Floats:
        """`fit(X)`, then `transform(X)`."""
        return self.fit(X, y).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = tags.requires_fit = False
        return tags

    def __repr__(self) -> str:
        if not self.__sklearn_is_fitted__():
            return super().__repr__()
        return (
            f"<TextEncoder: {len(self.model_):,} {self.model_.tokens.kind} × {self.n_bits_} bits>"
        )

    # -- the file --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically; one that embits wrote is replaced.

        Raises:
            InputError: There is another file at `path`, and not `overwrite`.
            OSError: The file could not be written; a file that was there is unchanged.
        """
        self.check_fitted()
        check_target(path, overwrite=overwrite, codes=True)
        self.write(Path(path))

    def write(self, path: Path) -> None:
        """Write the file in place of what is there, as caches and collections do."""
        table, coder = self.model_.table, self.coder_
        tensors, settings = self.model_.to_tensors()
        settings |= {"weights": self.weights, "whiten": self.whiten}
        if coder is not None:
            state = {f"{_CODER}{name}": each for name, each in coder.state().items()}
            tensors = {**tensors, **state}
            settings["coder"] = {"method": coder.method, "params": coder.get_params()}
        about = table.n_bits, table.dims, self.method, {"n_bits": table.n_bits}, tensors
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
        return cls(os.fspath(path))._open_file(Path(path), verify=verify)

    def _open_file(self, path: Path, *, verify: bool = False) -> Self:
        contents = store.open_file(path, verify=verify)
        if contents.text is None:
            hint = "embits.load opens files of codes; TextEncoder.from_words uses their words"
            raise FormatError(f"not a text encoder: {hint}", path=path)
        try:
            self._use_contents(contents, contents.text)
            if verify:
                with suppress(MissingExtraError):  # the tokenizer was unpacked at least
                    self.model_.tokens.check()
                if self.coder_ is not None:
                    self.coder_.check_learned()
        except (InputError, KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, EmbitsError) else "its settings do not fit"
            raise FormatError(f"damaged: {reason:.300}", path=path) from None
        return self

    def _use_contents(self, contents: store.Contents, settings: Mapping[str, Any]) -> None:
        model, coder = TextModel.from_contents(contents, settings), None
        if "coder" in settings:
            about, state = settings["coder"], store.with_prefix(_CODER, contents.tensors)
            kind = coder_class(about["method"])
            coder = kind.from_state(about["params"], state, model.table.dims, contents.n_bits)
        self.weights = self.weights or settings.get("weights")
        self._check_weights()
        self.whiten = number("whiten", settings.get("whiten", 0), 0, 0.5)
        self.n_bits, self.method = contents.n_bits, contents.method
        self._use(model, coder)
