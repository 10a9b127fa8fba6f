"""BinaryVectors: a vocabulary, its codes and the coder that made them. What users hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from embits.arrays import as_float32, to_numpy
from embits.bits import invert
from embits.coders import Coder
from embits.errors import InputError, UnknownWordError
from embits.file import store
from embits.file.contents import open_parts, to_contents
from embits.file.overwrite import check_target
from embits.pretrained import Pretrained
from embits.search import DeviceIndex, DistanceResult, SearchResult, asymmetric_top_k, top_k
from embits.search.rescoring import rescore_bits, rescore_floats, shortlist_size
from embits.vectors import WordVectors
from embits.words.subwords import Subwords
from embits.words.vocabulary import RowNumbers, Vocabulary, WordRows

Scalar = TypeVar("Scalar", bound=np.generic)
Key: TypeAlias = str | int | NDArray[np.uint8]


def load(path: str | os.PathLike[str], verify: bool = False) -> BinaryVectors:
    """Open a file that `BinaryVectors.save` wrote: mapped, ready at once.

    A folder of Parquet files that a Ray job wrote (or its address, such as s3://bucket/codes) is
    read into memory; the ids are those of the column that the job named.

    Args:
        path: The file or folder.
        verify: Read every byte and check it against the checksums first.

    Raises:
        FormatError: It is not such a file or folder, or it is damaged.
        MissingExtraError: It is a folder, and pyarrow is not installed.
        OSError: It cannot be opened.
    """
    if (isinstance(path, str) and "://" in path) or Path(path).is_dir():
        from embits.file.parquet_codes import open_folder  # only here: a file needs no Parquet

        return BinaryVectors(*open_folder(path))
    return BinaryVectors(*open_parts(Path(path), verify=verify))


class BinaryVectors(Pretrained):
    """Packed codes that go by words, or by row numbers when there are none.

    Made by `embits.binarize` or `embits.load`. Any number of threads may search one object.

    Attributes:
        words: The words in row order.
        codes: Packed codes, uint8 (n, ceil(n_bits / 8)), first bit highest; maybe mapped.
        coder: The fitted coder.
        subwords: What makes codes of unknown words, where the fastText model had it.
    """

    def __init__(
        self,
        words: Vocabulary | RowNumbers,
        codes: NDArray[np.uint8],
        coder: Coder,
        subwords: Subwords | None = None,
    ) -> None:
        self.codes = coder.check_codes(codes)
        if len(words) != len(codes):
            raise InputError(f"{len(words)} words for {len(codes)} codes")
        self.words = words
        self.coder = coder
        self.subwords = subwords
        self._on_device: dict[str, DeviceIndex] = {}

    @classmethod
    def encoded(cls, vectors: WordVectors, coder: Coder) -> BinaryVectors:
        """The codes that a fitted coder gives these vectors."""
        words = (
            RowNumbers(len(vectors))
            if vectors.words is None
            else Vocabulary.from_words(vectors.words)
        )
        return cls(words, coder.encode(vectors.matrix), coder, vectors.subwords)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.coder.n_bits_

    @property
    def dims(self) -> int:
        """Dimensions of the float vectors behind the codes."""
        return self.coder.n_features_in_

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """Word -> row, as in gensim; nothing is built for it."""
        return WordRows(self.words)

    def ids(self, rows: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The ids of rows that `search` returned, in the same shape.

        Args:
            rows: Row numbers of any shape.
            dtype: What to make of them, such as `int` for ids that are whole numbers.

        Returns:
            The words as `str` objects; where rows go by their number, the rows themselves.

        Raises:
            InputError: Rows that are not there, or ids that are not of `dtype`.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> bits.ids([[2, 0], [1, 1]])
            array([['c', 'a'],
                   ['b', 'b']], dtype=object)
        """
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu" and rows.size:
            raise InputError(f"rows are {rows.dtype}, expected row numbers")
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise InputError(f"rows {rows.min()} to {rows.max()} of {len(self)} codes")
        names = self.words.names(rows.astype(np.int64))
        if dtype is None:
            return names
        try:
            return names.astype(dtype)
        except ValueError as error:
            raise InputError(f"the ids cannot be made {np.dtype(dtype)}: {error}") from None

    def __len__(self) -> int:
        return len(self.codes)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    def __repr__(self) -> str:
        return f"<BinaryVectors: {len(self):,} × {self.n_bits} bits, {self.coder!r}>"

    # -- codes -----------------------------------------------------------------------------------

    def __getitem__(self, key: Key | Sequence[Key]) -> NDArray[np.uint8]:
        """The packed code of a word (or row, or code), shape (width,); of several, (n, width).

        Raises:
            UnknownWordError: A word that is not there, and no subwords to make it from.
        """
        if isinstance(key, str | int | np.integer) or (
            isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype == np.uint8
        ):
            return self._code(key)
        return np.stack([self._code(each) for each in key]) if len(key) else self.codes[:0]

    def _code(self, key: Any) -> NDArray[np.uint8]:
        if isinstance(key, str):
            found = self.words.find(key)
            if found is None:
                return self._unknown(key)
            row = found
        elif isinstance(key, int | np.integer):
            row = int(key)
            if not 0 <= row < len(self):
                raise InputError(f"row {row} of {len(self)} codes")
        else:
            return _single(self.coder.check_codes(np.asarray(key)[np.newaxis]))
        return _single(self.codes[row : row + 1])

    def _unknown(self, word: str) -> NDArray[np.uint8]:
        if self.subwords is not None and self.subwords.rows(word):
            return self.encode(self.subwords.vector(word))
        raise UnknownWordError(word, self.words.suggest(word))

    def encode(self, vectors: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """Codes of vectors it has never seen: (width,) for one vector, (n, width) for several.

        `device` may be a GPU such as "cuda" (the extra `gpu`); the codes are the same.
        """
        if not getattr(vectors, "is_cuda", False):  # what is on a GPU is encoded there
            vectors = to_numpy(vectors)
        if vectors.ndim == 1:
            return _single(self.coder.encode(vectors[np.newaxis], device=device))
        return self.coder.encode(vectors, device=device)

    def decode(self, keys: Key | Sequence[Key] | None = None) -> NDArray[np.float32]:
        """Floats rebuilt from codes.

        Args:
            keys: A word, row or code gives shape (dims,); several, or codes of shape
                (n, width), give (n, dims); None decodes everything.
        """
        if keys is None:
            return self.coder.inverse_transform(self.codes)
        if isinstance(keys, np.ndarray) and keys.ndim == 2:
            return self.coder.inverse_transform(keys)
        codes = self[keys]
        if codes.ndim == 1:
            return _single(self.coder.inverse_transform(codes[np.newaxis]))
        return self.coder.inverse_transform(codes)

    # -- questions -------------------------------------------------------------------------------

    def similarity(self, a: Key, b: Key) -> float:
        """Sokal-Michener similarity, (n11 + n00) / n: the share of bits that agree.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.array([[1.0, -1, 1], [1, 1, 1]]), method="sign")
            >>> round(bits.similarity(0, 1), 3)
            0.667
        """
        differing = int(np.bitwise_count(self._code(a) ^ self._code(b)).sum())
        return 1 - differing / self.n_bits

    def most_similar(
        self,
        positive: Key | Sequence[Key],
        negative: Key | Sequence[Key] = (),
        topn: int = 10,
        threads: int | None = None,
    ) -> list[tuple[str, float]]:
        """The closest words, with their Sokal-Michener similarity; those asked about left out.

        Several words are combined as the paper combines them for analogies, b - a + c as
        (b AND NOT a) OR c: the first positive, without the bits of the negatives, joined by
        the other positives.

        Raises:
            UnknownWordError: A word that is not there, and no subwords to make it from.
        """
        wanted, unwanted = _as_list(positive), _as_list(negative)
        if not wanted:
            raise InputError("most_similar needs at least one positive word")
        code = self._code(wanted[0]).copy()
        for key in unwanted:
            code &= invert(self._code(key), self.n_bits)
        for key in wanted[1:]:
            code |= self._code(key)
        asked = {row for key in (*wanted, *unwanted) if (row := self._row(key)) is not None}
        distances, rows = top_k(self.codes, code, topn + len(asked), threads)
        neighbors = [
            (self.words[row], 1 - distance / self.n_bits)
            for row, distance in zip(rows.tolist(), distances.tolist(), strict=True)
            if row not in asked
        ]
        return neighbors[:topn]

    def _row(self, key: Key) -> int | None:
        if isinstance(key, str):
            return self.words.find(key)
        return int(key) if isinstance(key, int | np.integer) else None

    def doesnt_match(self, words: Sequence[str]) -> str:
        """The word least like the majority of bits of all the words."""
        if len(words) == 0:
            raise InputError("doesnt_match needs at least one word")
        bits = np.unpackbits(self[list(words)], axis=1, count=self.n_bits)
        majority = 2 * bits.sum(axis=0) >= len(words)
        return words[int((bits != majority).sum(axis=1).argmax())]

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        metric: Literal["hamming", "asymmetric"] = "hamming",
        oversample: float | None = None,
        floats: NDArray[Any] | str | os.PathLike[str] | None = None,
        threads: int | None = None,
        device: str = "cpu",
    ) -> SearchResult:
        """The k nearest rows of each query.

        Args:
            queries: Packed codes (uint8) of shape (width,) or (q, width), or floats of shape
                (dims,) or (q, dims), which are encoded first.
            k: How many; more than there are gives all.
            metric: "hamming" counts the bits that differ; "asymmetric" scores a float query x
                against the bits b as <Wx, 2b - 1> and finds more true neighbors.
            oversample: Look at this many times k by the cheaper score, and order those by the
                finer one: by `floats` where they are given (4 by default), else, with "asymmetric",
                by that score after a search by Hamming distance.
            floats: The original vectors, row by row, or the path of their `.npy` (mapped): the
                shortlist is ordered by their cosine to the query, and no other row is read.
            threads: None takes every core.
            device: A GPU such as "cuda" (the extra `gpu`) searches by Hamming distance there and
                gives the same rows; the first search copies the codes to it, where they stay.

        Returns:
            A named pair of arrays of shape (q, k), or (k,) for a single query, best first, ties in
            row order. It unpacks as `values, rows`. `rows` are row numbers; the field of the values
            says what they are: `distances` (int32, the smallest is the best), `scores` for
            "asymmetric" or `cosines` for `floats` (float32, the largest is the best).

        Raises:
            InputError: Shapes or types do not fit, or codes where only floats will do.
            ReadError: The `.npy` of `floats` is damaged.

        Example:
            >>> import numpy as np, embits
            >>> X = np.random.default_rng(0).normal(size=(100, 16))
            >>> bits = embits.binarize(X, n_bits=64, method="lsh")
            >>> cosines, rows = bits.search(X[7], k=3, oversample=10, floats=X)
            >>> int(rows[0]), round(float(cosines[0]), 3)
            (7, 1.0)
        """
        queries = to_numpy(queries)
        if metric not in ("hamming", "asymmetric"):
            raise InputError(f"metric is {metric!r}, expected 'hamming' or 'asymmetric'")
        if floats is None and (metric == "hamming") and oversample is not None:
            raise InputError("oversample needs a finer score: metric='asymmetric', or floats")
        if floats is not None:
            oversample = 4 if oversample is None else oversample
            size = shortlist_size(k, oversample, len(self))
            _, shortlist = self.search(
                self._floats(queries), size, metric=metric, threads=threads, device=device
            )
            return rescore_floats(self._originals(floats), queries, shortlist, k)
        if metric == "hamming":
            codes = queries if queries.dtype == np.uint8 else self.encode(queries)
            return self._top_k(codes, k, threads, device)
        projections = self._project(self._floats(queries))
        if oversample is None:
            if device != "cpu":
                raise InputError("metric='asymmetric' on a GPU needs a shortlist: give oversample")
            return asymmetric_top_k(self.codes, projections, k, threads)
        size = shortlist_size(k, oversample, len(self))
        _, shortlist = self._top_k(self.encode(queries), size, threads, device)
        return rescore_bits(self.codes, projections, shortlist, k)

    def _top_k(
        self, codes: NDArray[np.uint8], k: int, threads: int | None, device: str
    ) -> DistanceResult:
        if device == "cpu":
            return top_k(self.codes, codes, k, threads)
        if device not in self._on_device:
            self._on_device[device] = DeviceIndex(self.codes, device)
        return self._on_device[device].top_k(codes, k)

    def _floats(self, queries: NDArray[Any]) -> NDArray[Any]:
        if queries.dtype == np.uint8:
            raise InputError("queries are packed codes; this search needs the float vectors")
        return queries

    def _project(self, queries: NDArray[Any]) -> NDArray[np.float32]:
        projected = self.coder.project(as_float32(self.coder.check_vectors(np.atleast_2d(queries))))
        return _single(projected) if queries.ndim == 1 else projected

    def _originals(self, floats: NDArray[Any] | str | os.PathLike[str]) -> NDArray[Any]:
        if isinstance(floats, str | os.PathLike):
            from embits.readers.numpy_arrays import (
                map_npy,  # only here: a search alone needs no readers
            )
            from embits.readers.source import Source

            array = map_npy(Source(Path(floats)))
        else:
            array = to_numpy(floats)
        if array.shape != (len(self), self.dims):
            raise InputError(
                f"floats of shape {array.shape}, expected the originals: {len(self), self.dims}"
            )
        return array

    # -- scores ----------------------------------------------------------------------------------

    def evaluate_word_pairs(
        self, pairs: str | os.PathLike[str], **options: Any
    ) -> tuple[float, float, float]:
        """Pearson and Spearman against people's scores, and the percentage of unknown pairs.

        gensim's verb; `embits.evaluation.evaluate_word_pairs` says what `options` there are.
        """
        from embits.evaluation.tasks.similarity import evaluate_word_pairs

        return evaluate_word_pairs(self, pairs, **options)

    def evaluate_word_analogies(
        self, analogies: str | os.PathLike[str], **options: Any
    ) -> tuple[float, list[dict[str, Any]]]:
        """The accuracy on a file of analogies, and the questions of each section.

        gensim's verb; `embits.evaluation.evaluate_word_analogies` says what `options` there are.
        """
        from embits.evaluation.tasks.analogy import evaluate_word_analogies

        return evaluate_word_analogies(self, analogies, **options)

    # -- the file --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically.

        Args:
            path: The file. One that embits wrote is replaced.
            overwrite: Replace a file that embits did not write as well.

        Raises:
            InputError: There is a file at `path` that embits did not write.
            OSError: The file could not be written; a file that was there is unchanged.
        """
        check_target(path, overwrite=overwrite)
        store.write(Path(path), to_contents(self.words, self.codes, self.coder, self.subwords))


def _single(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """The single row of a matrix."""
    return rows.reshape(rows.shape[1])


def _as_list(keys: Key | Iterable[Key]) -> list[Any]:
    if isinstance(keys, str | int | np.integer):
        return [keys]
    if isinstance(keys, np.ndarray) and keys.ndim == 1:
        return [keys]
    return list(keys)
