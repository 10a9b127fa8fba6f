"""Open a file of codes, or the folder of a collection."""

from __future__ import annotations

import os
from pathlib import Path

from embits.binary_vectors import BinaryVectors
from embits.file.contents import open_parts


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
    return BinaryVectors(*open_parts(Path(path), verify=verify))
