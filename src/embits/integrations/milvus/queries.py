"""Queries to a collection that `milvus.export` wrote."""

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
from embits.integrations.milvus.client import check_name, is_server, opened
from embits.integrations.milvus.collection import CodeCollection
from embits.integrations.tables import binary_vectors, in_tie_order, nearest_neighbors

MAX_K = 16_384  # Milvus' limit
RETRIES = 3  # pymilvus' own 75 take minutes, also for a filter that cannot be parsed


def nearest(
    source: str | os.PathLike[str] | Any,
    query: Query,
    k: int = 10,
    *,
    collection: str = "embits",
    where: str | None = None,
    coder: Coder | None = None,
    nprobe: int = 16,
) -> list[Neighbor]:
    """Find the k nearest rows by Hamming distance, ties in row order.

    Args:
        source: The address or file, or a client from `connect`, which is faster for many queries.
        query: A word or a row number, which is left out of the result; a packed code (uint8); or
            a float vector, with the `coder` that made the codes.
        k: The number of neighbors, at most 16,383; fewer come back if there are fewer rows.
        collection: The collection that was exported to.
        where: A filter expression of Milvus on `id` and `word`. It is run as it is.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
        nprobe: The lists of an index of kind BIN_IVF_FLAT that are searched; BIN_FLAT has none.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the collection.
        InputError: There is no such collection or row, `k` is too large, the query does not have
            the codes' width, or the coder is not the one that made them.
        DatabaseError: Milvus reports an error, such as one in `where`.
    """
    if type(nprobe) is not int or nprobe < 1:
        raise InputError(f"nprobe is {nprobe!r}, expected 1 or more")
    if isinstance(k, int | np.integer) and k >= MAX_K:
        raise InputError(f"k is {k:,}, expected less than {MAX_K:,}: Milvus returns no more rows")
    with _collection(source, collection) as codes:
        params = {"nprobe": nprobe} if codes.description.index == "BIN_IVF_FLAT" else {}

        def search(code: NDArray[np.uint8], size: int) -> list[Neighbor]:
            found = codes.client.search(
                codes.name,
                data=[code.tobytes()],
                limit=size,
                filter=where or "",
                output_fields=codes.columns,
                search_params={"metric_type": "HAMMING", "params": params},
                retry_times=RETRIES,
            )[0]
            return [_neighbor(each) for each in found]

        return nearest_neighbors(
            codes,
            query,
            k,
            coder,
            lambda code, k: in_tie_order(lambda size: search(code, size), k, MAX_K),
        )


def read(
    source: str | os.PathLike[str] | Any, coder: Coder, *, collection: str = "embits"
) -> BinaryVectors:
    """Read a whole collection back.

    Args:
        source: The address or file, or a client from `connect`.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        collection: The collection that was exported to.

    Raises:
        InputError: There is no such collection, `export` did not write it, or another coder made
            its codes.
        FormatError: The rows do not match their description.
        DatabaseError: Milvus reports an error.
    """
    with _collection(source, collection) as codes:
        return binary_vectors(codes.rows(), codes, coder)


def _neighbor(found: Any) -> Neighbor:
    row = int(found["id"])
    return Neighbor(found["entity"].get("word", str(row)), int(found["distance"]), row)


@contextlib.contextmanager
def _collection(source: Any, name: str) -> Iterator[CodeCollection]:
    check_name(name)
    if isinstance(source, str | os.PathLike) and not is_server(source):
        with Path(source).open("rb"):  # Milvus Lite would make a new file
            pass
    with opened(source) as client:
        if not client.has_collection(name):
            raise InputError(
                f"there is no collection {name}; `embits export --to milvus` writes one"
            )
        yield CodeCollection(client, name)
