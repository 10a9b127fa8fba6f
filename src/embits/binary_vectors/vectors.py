"""BinaryVectors, and the file that holds them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from embits.binary_vectors.words import WordQueries
from embits.errors import SizeWarning
from embits.file import store
from embits.file.contents import ByteCounts, byte_counts, open_parts, to_contents
from embits.file.overwrite import check_target
from embits.pretrained import Pretrained


def load(path: str | os.PathLike[str], verify: bool = False) -> BinaryVectors:
    """Open a file that `BinaryVectors.save` wrote: mapped, not read.

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
        store.write(Path(path), to_contents(self.words, self.codes, self.coder, self.subwords))
        if self.subwords is not None and 2 * self.nbytes.subwords > self.nbytes.total:
            warnings.warn(
                f"{path}: subwords take {self.nbytes.subwords / self.nbytes.total:.0%} of the "
                "file; without them (bits.subwords = None, or --no-subwords on the command line), "
                "unknown words have no codes",
                SizeWarning,
                stacklevel=2,
            )
