"""Codes in folders of Parquet files, as `embits.integrations.ray.encode` writes them.

`embits.load` opens such a folder. The functions here also choose the column of ids, and read
the other columns.
"""

from __future__ import annotations

import os

from embits.binary_vectors import BinaryVectors
from embits.collection.parquet import read_all as read_column
from embits.collection.parquet import read_folder
from embits.file.parquet_codes import CODE

__all__ = ["read_codes", "read_column"]


def read_codes(
    folder: str | os.PathLike[str], ids: str | None = None, column: str = CODE
) -> BinaryVectors:
    """Read the codes of a folder into memory.

    Args:
        folder: What `embits.integrations.ray.encode` or `embits encode --ray` wrote: a folder,
            or its address in an object store.
        ids: The column of the rows' ids, strings or whole numbers that do not repeat; None
            numbers the rows.
        column: The column of codes.

    Returns:
        BinaryVectors in memory, in the row order of the input.

    Raises:
        FormatError: The folder is unfinished, or its pieces do not match the manifest.
        ReadError: There is no such column.
        InputError: An id repeats.
        MissingExtraError: pyarrow is not installed.
    """
    return read_folder(folder, ids, column)
