"""Queries to a table that `lancedb.export` wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import InputError
from embits.integrations.databases import Neighbor, Query
from embits.integrations.lancedb.database import (
    MAX_PARTITIONS,
    CodeTable,
    check_name,
    connect,
    one_line_errors,
    open_table,
)
from embits.integrations.tables import binary_vectors, in_tie_order, nearest_neighbors


def nearest(
    source: str | os.PathLike[str] | Any,
    query: Query,
    k: int = 10,
    *,
    table: str = "embits",
    where: str | None = None,
    coder: Coder | None = None,
    exact: bool = False,
    nprobes: int = 100,
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance, ties in row order.

    Args:
        source: The folder or address, or a connection from `connect`.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors; fewer come back if there are fewer rows.
        table: The table that was exported to.
        where: A condition in LanceDB's SQL on `id` and `word`; rows are filtered before the
            search. It is run as it is.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
        exact: Compare with every row instead of using the index.
        nprobes: The partitions of the index that are searched; with a filter, more are searched
            until k rows are found.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the table.
        InputError: There is no such table or row, the query does not have the codes' width, or
            the coder is not the one that made them.
        DatabaseError: LanceDB reports an error, such as one in `where`.
    """
    if type(nprobes) is not int or not 1 <= nprobes <= MAX_PARTITIONS:
        raise InputError(f"nprobes is {nprobes!r}, expected 1 to {MAX_PARTITIONS:,}")
    with _opened(source, table) as codes:
        by_index = not exact and codes.description.index != "none"

        def search(code: NDArray[np.uint8], size: int) -> list[Neighbor]:
            asked = codes.table.search(code, vector_column_name="code").distance_type("hamming")
            if by_index and where is None:
                asked = asked.nprobes(nprobes)
            elif by_index:  # 0: all partitions, where the first ones have too few rows
                asked = asked.minimum_nprobes(nprobes).maximum_nprobes(0)
            else:
                asked = asked.bypass_vector_index()
            asked = asked if where is None else asked.where(where, prefilter=True)
            found = asked.select([*codes.columns, "_distance"]).limit(size).to_arrow()
            return _neighbors(found)

        most = max(1, codes.table.count_rows())
        return nearest_neighbors(
            codes, query, k, coder, lambda code, k: in_tie_order(lambda s: search(code, s), k, most)
        )


def read(
    source: str | os.PathLike[str] | Any, coder: Coder, *, table: str = "embits"
) -> BinaryVectors:
    """Read a whole table back.

    Args:
        source: The folder or address, or a connection from `connect`.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        table: The table that was exported to.

    Raises:
        InputError: There is no such table, `export` did not write it, or another coder made its
            codes.
        FormatError: The rows do not match their description.
        DatabaseError: LanceDB reports an error.
    """
    with _opened(source, table) as codes:
        return binary_vectors(codes.rows(), codes, coder)


def _neighbors(found: Any) -> list[Neighbor]:
    rows = found["id"].to_pylist()
    words = found["word"].to_pylist() if "word" in found.column_names else list(map(str, rows))
    distances = found["_distance"].to_pylist()
    return [
        Neighbor(word, int(distance), row)
        for word, distance, row in zip(words, distances, rows, strict=True)
    ]


@contextlib.contextmanager
def _opened(source: Any, table: str) -> Iterator[CodeTable]:
    check_name(table)
    by_name = isinstance(source, str | os.PathLike)
    with one_line_errors(source if by_name else "LanceDB"):
        if by_name and "://" not in str(source) and not Path(source).is_dir():
            raise InputError(f"there is no database {source}")
        found = open_table(connect(source) if by_name else source, table)
        if found is None:
            raise InputError(f"there is no table {table}; `embits export --to lancedb` writes one")
        yield found
