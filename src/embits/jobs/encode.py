"""`encode_to_file` and `encode_to_collection`: a file of vectors, encoded by a fitted coder."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Unpack

import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder, coder_checksum
from embits.collection import Collection, load, load_coder
from embits.collection.changes import working_folder
from embits.errors import InputError, ReadWarning
from embits.file.overwrite import check_target, is_embits_file
from embits.jobs.stream import Passes, StepProgress, Steps, checkpoint_beside, open_large
from embits.readers import new_source, read_source
from embits.readers.source import Reading
from embits.rows import LENGTHS
from embits.vectors import WordVectors


def encode_to_file(
    coder: Coder | BinaryVectors | str | os.PathLike[str],
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    lengths: bool = False,
    overwrite: bool = False,
    progress: StepProgress | None = None,
    **reading: Unpack[Reading],
) -> BinaryVectors:
    """Encode a file of vectors of any size with a fitted coder, into a file of bits.

    Args:
        coder: The coder, or what holds one: BinaryVectors, or the path of their file.
        vectors: The file to read.
        target: The file to write, atomically.
        lengths: As for `binarize`.
        overwrite: Replace any other existing file as well; never an input.
        progress: Called as progress(step, done, total).
        reading: As for `read_vectors`: `limit`, `words`, `on_bad`, `repeats`, `ids`, `column`,
            `encoding`.

    Returns:
        The file, opened: mapped, not read.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: They have other dimensions than the coder takes, or an argument is wrong.
        OSError: The file could not be written; progress is kept.
    """
    source = new_source(vectors, **reading)
    path, steps = Path(target), Steps(progress)
    if isinstance(coder, Coder | BinaryVectors):
        fitted = coder if isinstance(coder, Coder) else coder.coder
        fitted.check_fitted()
        name, inputs = "the coder", source.paths()
    else:
        fitted = load_coder(coder)
        name, inputs = f"the coder in {coder}", [*source.paths(), Path(coder)]
    check_target(path, inputs, overwrite, codes=True)
    opened = open_large(source, steps) or read_source(source, steps.start("reading"))
    dims, taken = opened.dims, fitted.n_features_in_
    if dims != taken:
        raise InputError(f"{source.path}: vectors of {dims} dimensions, but {name} takes {taken}")
    if isinstance(opened, WordVectors):
        binary = BinaryVectors.encoded(opened, fitted, lengths=lengths)
        binary.save(path, overwrite=overwrite)
        return binary
    params = repr(sorted(fitted.get_params().items()))
    identity = [fitted.method, params, coder_checksum(fitted)]
    job = {"verb": "encode", "coder": identity, "lengths": lengths}
    with checkpoint_beside(path, source, job) as checkpoint:
        Passes(checkpoint, opened, steps).write(path, fitted, lengths)
    return load(path)


def encode_to_collection(
    collection: Collection,
    vectors: str | os.PathLike[str],
    *,
    lengths: bool = False,
    update: bool = False,
    progress: StepProgress | None = None,
    **reading: Unpack[Reading],
) -> int:
    """Add a file of vectors of any size to a collection, in one change.

    Args:
        collection: The collection.
        vectors: The file to read: of vectors, whose words are the ids; or of codes that the same
            coder made. A file over 64 MiB is read in blocks.
        lengths: Store the lengths of the vectors, if these are the first rows; later rows follow
            the first.
        update: Replace the rows whose ids already exist, as `Collection.upsert` does.
        progress: Called as progress(step, done, total).
        reading: As for `encode_to_file`.

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
        if (limit := reading.get("limit")) is not None and limit < len(bits):
            bits = bits.subset(rows=np.arange(limit))
        change(bits)
        return len(bits)
    if len(collection):
        lengths = LENGTHS in collection.snapshot().columns
    # Codes are written to a temporary file first: they may be larger than memory.
    with working_folder(collection.path) as folder:
        with warnings.catch_warnings():  # that its progress is kept: a working folder is not
            warnings.filterwarnings("ignore", "progress is kept", ReadWarning)
            try:
                bits = encode_to_file(
                    collection.coder, vectors, folder / "codes",
                    lengths=lengths, progress=progress, **reading,
                )  # fmt: skip
            except KeyboardInterrupt:
                raise KeyboardInterrupt("interrupted; nothing was added") from None
        change(bits)
        return len(bits)
