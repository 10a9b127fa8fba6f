"""A file of vectors to be read, and whether it is read in blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embits.arrays import Progress
from embits.coders import Coder
from embits.errors import InputError
from embits.readers import open_blocks, read_vectors
from embits.readers.blocks import Blocks
from embits.readers.magic import MAX_BYTES, is_compressed
from embits.readers.source import OnBad, Repeats, Words
from embits.streaming.identity import file_identity, words_identity
from embits.vectors import WordVectors

STREAM_FROM = 64 << 20  # bytes of a file; a smaller one is read whole, for the same result
STREAM_PACKED_FROM = 16 << 20
SHUFFLED = 8  # times larger, if the fit shuffles rows: it needs them in memory to be fast


@dataclass(frozen=True)
class Input:
    """A file of vectors and how to read it: the arguments of `read_vectors`."""

    path: Path
    limit: int | None = None
    words: Words | None = None
    on_bad: OnBad = "raise"
    repeats: Repeats | None = None

    def identity(self) -> dict[str, Any]:
        """What makes it the same input as one before."""
        words = words_identity(self.words)
        return file_identity(self.path) | {
            "limit": self.limit, "on_bad": self.on_bad, "words": words, "repeats": self.repeats,
        }  # fmt: skip

    def paths(self) -> list[Path]:
        """The files that are read."""
        is_file = isinstance(self.words, str | os.PathLike)
        return [self.path, *([Path(self.words)] if is_file else [])]  # type: ignore[arg-type]

    def open_blocks(self, progress: Progress, fits: Coder | None = None) -> Blocks | None:
        """The file to be read in blocks; None where it is small, or its format is read whole.

        Args:
            progress: Called with (done, total) as the file is read.
            fits: The coder that is to be fitted on it, if one is.
        """
        if not self._is_large(SHUFFLED if fits is not None and fits.shuffles_rows else 1):
            return None
        return open_blocks(self.path, self.limit, self.words, self.on_bad, progress, self.repeats)

    def read(self, progress: Progress | None = None) -> WordVectors:
        """The file, read whole."""
        return read_vectors(self.path, self.limit, self.words, self.on_bad, progress, self.repeats)

    def check_dims(self, dims: int, coder: Coder, name: str) -> None:
        """Refuse vectors of other dimensions than a coder takes."""
        if dims != coder.n_features_in_:
            raise InputError(
                f"{self.path}: vectors of {dims} dimensions, but {name} takes "
                f"{coder.n_features_in_}"
            )

    def _is_large(self, times: int) -> bool:
        try:
            with self.path.open("rb") as file:
                is_packed = is_compressed(file.read(MAX_BYTES))
                size = os.fstat(file.fileno()).st_size
        except OSError:
            return False  # the reader raises the error
        return size > times * (STREAM_PACKED_FROM if is_packed else STREAM_FROM)
