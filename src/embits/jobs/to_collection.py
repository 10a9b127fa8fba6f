"""`encode_to_collection`: from a file of vectors into a collection."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embits.collection import Collection, load
from embits.collection.changes import working_folder
from embits.errors import ReadWarning
from embits.file.overwrite import is_embits_file
from embits.jobs.to_file import encode_to_file

if TYPE_CHECKING:
    from embits.readers.source import OnBad, Repeats, Words
    from embits.streaming.steps import StepProgress


def encode_to_collection(
    collection: Collection,
    vectors: str | os.PathLike[str],
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    repeats: Repeats | None = None,
    update: bool = False,
    progress: StepProgress | None = None,
) -> int:
    """Add a file of vectors of any size to a collection, in one change.

    Args:
        collection: The collection.
        vectors: The file to read: of vectors, whose words are the ids; or of codes that the same
            coder made. A file over 64 MiB is read in blocks.
        limit: Read only this many rows from the start.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        repeats: As for `encode_to_file`.
        update: Replace the rows whose ids are there already, as `Collection.upsert` does.
        progress: Called as progress(step, done, total).

    Returns:
        How many rows were added or replaced.

    Raises:
        ReadError: The vectors cannot be read. The collection is unchanged.
        InputError: As for `Collection.add`.
        OSError: A file could not be written. The collection is unchanged.
    """
    change = collection.upsert if update else collection.add
    if is_embits_file(vectors) or Path(vectors).is_dir():
        bits = load(vectors)
        if limit is not None and limit < len(bits):
            bits = bits.subset(np.arange(limit))
        change(bits)
        return len(bits)
    # Codes are written to a temporary file first: they may be larger than memory.
    with working_folder(collection.path) as folder:
        with _nothing_kept():
            bits = encode_to_file(
                collection.coder, vectors, folder / "codes", limit=limit, words=words,
                on_bad=on_bad, repeats=repeats, progress=progress,
            )  # fmt: skip
        change(bits)
        return len(bits)


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """A job that writes a file says that its progress is kept; that of a working folder is not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "progress is kept", ReadWarning)
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted; nothing was added") from None
