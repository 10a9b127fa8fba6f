"""BinaryVectors, and the file that holds them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from embits.binary_vectors import slimming
from embits.binary_vectors.selecting import chosen_rows
from embits.binary_vectors.words import WordQueries
from embits.errors import SizeWarning
from embits.file import store
from embits.file.contents import ByteCounts, byte_counts, to_contents
from embits.file.overwrite import check_target
from embits.ids.keys import RowNumbers
from embits.ids.pieces import PieceWords
from embits.ids.vocabulary import Vocabulary
from embits.pretrained import Pretrained
from embits.vectors import as_words


class BinaryVectors(WordQueries, Pretrained):
    """Packed codes, the ids of their rows, and the coder that made them.

    Made by `embits.binarize` or `embits.load`. Any number of threads may search one object.

    Args:
        words: The ids of the rows, each once: strings or whole numbers, which are kept as their
            digits; for word vectors, the words. None uses row numbers.
        codes: Packed codes, uint8 (n, ceil(n_bits / 8)), first bit highest; may be mapped.
        coder: The fitted coder.
        subwords: What makes codes of unknown words, if the fastText model had it.

    Attributes:
        words: The ids in row order.
        codes: As given.
        coder: As given.
        subwords: As given.

    Raises:
        InputError: The ids are not as many as the codes, or one appears twice; or the codes are
            not those of the coder.

    Example:
        >>> import numpy as np, embits
        >>> X = np.eye(3)
        >>> coder = embits.RandomHyperplanes(n_bits=32).fit(X)
        >>> bits = embits.BinaryVectors(["doc-1", "doc-2", "doc-3"], coder.encode(X), coder)
        >>> bits.ids(bits.search("doc-2", k=1).rows).tolist()
        ['doc-2']
    """

    _verify: Callable[[], None] | None = None  # of a mapped file, until every byte was checked

    def check_undamaged(self) -> None:
        """Check a mapped file before its rows are copied: a copy's own checksums hide damage.

        Raises:
            FormatError: It is damaged.
        """
        verify = self._verify  # another thread may end its check meanwhile
        if verify is not None:
            verify()
            self._verify = None

    @property
    def nbytes(self) -> ByteCounts:
        """Bytes of the codes, words, order of the words, coder and subwords in a file.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(100), n_bits=64, method="lsh")
            >>> bits.nbytes.codes, bits.nbytes.words
            (800, 0)
        """
        return byte_counts(self.words, self.codes, self.coder, self.subwords)

    def merged(self) -> BinaryVectors:
        """The same rows with all codes in one array, and all ids in one vocabulary.

        A file is returned as it is. The pieces of a collection are copied into memory.

        Raises:
            FormatError: The file or a piece is damaged.
        """
        self.check_undamaged()
        words: Any = self.words
        words = words.merged() if isinstance(words, PieceWords) else words
        if words is self.words and isinstance(self.codes, np.ndarray):
            return self
        if isinstance(words, RowNumbers) and words.first:  # a file numbers its rows from 0
            words = Vocabulary.from_words(words)
        return BinaryVectors(words, np.asarray(self.codes), self.coder, self.subwords)

    def subset(self, rows: Any) -> BinaryVectors:
        """Some of the rows, copied into memory.

        Args:
            rows: Row numbers or ids, each once, in the order to be kept; or a mask of n flags.

        Returns:
            Rows with their ids. Rows without ids keep their numbers as ids.

        Raises:
            UnknownWordError: There is no such id.
            InputError: There is no such row, a row is given twice, or the mask is not of n flags.
            FormatError: The file is damaged.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> list(bits.subset(["c", "a"]).words), list(bits.subset([1]).words)
            (['c', 'a'], ['b'])
        """
        self.check_undamaged()
        chosen = chosen_rows(self.words, rows)
        ids = as_words(self.words.names(chosen))
        return BinaryVectors(ids, self.codes[chosen], self.coder, self.subwords)

    def slim(
        self, without: Iterable[str] = ("coder", "subwords"), *, half_decoder: bool = False
    ) -> BinaryVectors:
        """Leave out what a device does not need, for a smaller file.

        Asking for what was left out raises InputError or UnknownWordError.

        Args:
            without: "coder": no encoding, decoding, float queries and metric="decoded".
                "subwords": no codes of unknown words. "order": the rows are sorted by their words,
                so that their order need not be stored; row numbers change.
            half_decoder: Keep the decoder in 16 bits.

        Raises:
            InputError: There is no such part, or no decoder to keep.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> slim = bits.slim(without=["coder", "order"])
            >>> slim.nbytes.coder, slim.nbytes.order, slim.similarity("king", "king")
            (0, 0, 1.0)
        """
        parts = slimming.check_parts(without)
        bits = self.merged()
        words, codes, coder, subwords = bits.words, bits.codes, bits.coder, bits.subwords
        if half_decoder:
            coder = slimming.with_half_decoder(coder)
        if "coder" in parts:
            coder = slimming.without_coder(coder)
        if "order" in parts:
            words, codes = slimming.sorted_rows(words, codes)
        if subwords is not None and "subwords" in parts:
            words, subwords = slimming.marked(words), None
        return BinaryVectors(words, codes, coder, subwords)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically.

        Args:
            path: The file. A file of codes is replaced.
            overwrite: Replace any other existing file as well.

        Raises:
            InputError: There is another file at `path`; or the coder is not registered, so that the
                file could not be loaded.
            OSError: The file could not be written; a file that was there is unchanged.

        Warns:
            SizeWarning: Subwords are more than half of the file.
        """
        check_target(path, overwrite=overwrite, codes=True)
        bits = self.merged()
        store.write(Path(path), to_contents(bits.words, bits.codes, bits.coder, bits.subwords))
        counts = self.nbytes if self.subwords is not None else None
        if counts is not None and 2 * counts.subwords > counts.total:
            warnings.warn(
                f"{path}: subwords take {counts.subwords / counts.total:.0%} of the "
                "file; without them (bits.subwords = None, or --no-subwords on the command line), "
                "unknown words have no codes",
                SizeWarning,
                stacklevel=2,
            )
