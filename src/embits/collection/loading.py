"""Open a file of codes, or the folder of a collection."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.file.contents import open_parts, read_coder, verify_unless_replaced


def load(path: str | os.PathLike[str], verify: bool = False) -> BinaryVectors:
    """Open a file that `BinaryVectors.save` wrote, or a collection: mapped, not read.

    Args:
        path: The file; the folder of a collection, such as a job on Ray writes; or the address of
            such a folder (s3://bucket/codes), which is read into memory.
        verify: Read every byte and check it against the checksums first.

    Returns:
        For a collection, a `Collection`.

    Raises:
        FormatError: It is not such a file or folder, or it is damaged.
        MissingExtraError: The folder has Parquet files, and pyarrow is not installed.
        FileNotFoundError: It is not there.
        OSError: It cannot be opened.
    """
    if isinstance(path, str) and "://" in path:
        from embits.collection.parquet import open_address  # only here: a file needs no Parquet

        return open_address(path)
    if Path(path).is_dir():
        # A file needs none of these, and they take longer to import than a file to open.
        from embits.collection.collection import Collection
        from embits.collection.snapshot import open_snapshot

        return Collection(Path(path), open_snapshot(Path(path), verify=verify))
    file = Path(path)
    bits = BinaryVectors(*open_parts(file, verify=verify))
    if not verify:
        bits._verify = partial(verify_unless_replaced, file.absolute(), file.stat())
    return bits


def load_coder(path: str | os.PathLike[str]) -> Coder:
    """The coder of a file or collection, checked: what it encodes would hide damage of it.

    Raises:
        FormatError, OSError: As for `load`.
    """
    if isinstance(path, str) and "://" in path:
        return load(path).coder
    if not Path(path).is_dir():
        return read_coder(Path(path), verify=True)
    from embits.collection.manifest import read_manifest
    from embits.collection.pieces import open_coder

    return open_coder(Path(path), read_manifest(Path(path)), verify=True)
