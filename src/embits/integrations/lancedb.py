"""Codes in LanceDB: a table in a local folder or an object store, searched by Hamming distance.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and `code`, a list
of bytes of a fixed size in the order of embits, first bit highest. The metadata of the table's
schema describes the codes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryVectors
from embits.checks import choice, whole
from embits.coders import Coder
from embits.errors import InputError, MissingExtraError
from embits.integrations import Facts
from embits.integrations import table as tables
from embits.integrations.table import Description, Neighbor, Query

__all__ = ["connect", "export", "nearest", "read"]

MAX_PARTITIONS = 1 << 16
_BLOCK_ROWS = 1 << 16
_ERRORS = (RuntimeError, ValueError)  # LanceDB's errors are built-in ones


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    table: str = "embits",
    index: str = "none",
    num_partitions: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Facts:
    """Write codes to a table. Readers see the old version of the table or the new one.

    Args:
        bits: What to write.
        target: The database: a folder, or an address such as s3://bucket/folder.
        progress: Called with (done, total) as rows are written.
        table: The table's name: letters, digits, `_`, `-` and `.`.
        index: "none", which searches every row, or "ivf_flat", which is approximate.
        num_partitions: The partitions of the index; None is √n.
        storage_options: LanceDB's settings of the object store, such as "region" and "endpoint";
            those that are not given come from the environment.
        overwrite: Replace a table that embits wrote.

    Returns:
        The table and the kind of its index.

    Raises:
        InputError: An option is wrong, or the table may not be replaced.
        DatabaseError: LanceDB or the object store reports an error.
        MissingExtraError: LanceDB is not installed.
    """
    bits = tables.to_export(bits)
    _check_name(table)
    partitions = max(1, round(len(bits) ** 0.5))
    if choice("index", index, ["none", "ivf_flat"]) == "ivf_flat" and not len(bits):
        raise InputError("an index of kind 'ivf_flat' needs codes to train its partitions on")
    if num_partitions is not None:
        most = min(len(bits), MAX_PARTITIONS) if index != "none" else 0
        partitions = whole("num_partitions", num_partitions, 1, most)
    with tables.one_line_errors(target, *_ERRORS):
        database = connect(target, storage_options)
        old = _open_table(database, table)
        if old is not None:
            tables.check_replaceable(f"the table {table}", _description(old), overwrite)
        new = _write(database, target, table, bits, index, progress)
        if index == "ivf_flat":
            kind = _lancedb().index.IvfFlat(distance_type="hamming", num_partitions=partitions)
            new.create_index("code", config=kind)
    return {"table": table, "index": index}


def connect(
    target: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> Any:
    """Open a database: a folder, which is made if there is none, or an address.

    Raises:
        InputError: The folder's parent does not exist, or the target is a file.
        DatabaseError: The database cannot be opened.
        MissingExtraError: LanceDB is not installed.
    """
    package, path = _lancedb(), Path(target)
    if "://" not in str(target) and (path.is_file() or not path.resolve().parent.is_dir()):
        found = "is a file" if path.is_file() else "is in a folder that does not exist"
        raise InputError(f"{path} {found}, expected a folder for the database")
    with tables.one_line_errors(target, *_ERRORS):
        return package.connect(str(target), storage_options=dict(storage_options or {}))


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
        query: A word or row number, which is left out; a packed code (uint8); or a float vector.
        k: The number of neighbors; fewer come back if there are fewer rows.
        table: The table that was exported to.
        where: A condition in LanceDB's SQL, run unchanged; rows are filtered before the search.
        coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
        exact: Compare with every row instead of using the index.
        nprobes: The partitions of the index that are searched; with a filter, more are searched
            until k rows are found.

    Returns:
        Neighbors (word, distance, row), nearest first. Without words, `word` is the row number.

    Raises:
        UnknownWordError: The word is not in the table.
        InputError: There is no such table or row, or the query or the coder does not fit the codes.
        DatabaseError: LanceDB reports an error, such as one in `where`.
    """
    whole("nprobes", nprobes, 1, MAX_PARTITIONS)
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
            found = asked.select([*codes.columns, "_distance"]).limit(size).to_list()
            return [
                Neighbor(each.get("word", str(each["id"])), int(each["_distance"]), each["id"])
                for each in found
            ]

        return codes.nearest(query, k, coder, search, most=max(1, codes.table.count_rows()))


def read(
    source: str | os.PathLike[str] | Any, coder: Coder, *, table: str = "embits"
) -> BinaryVectors:
    """Read a whole table back.

    Args:
        source: The folder or address, or a connection from `connect`.
        coder: The coder that made the codes: `embits.load(file).coder` of the exported file.
        table: The table that was exported to.

    Raises:
        InputError: `export` did not write such a table, or another coder made its codes.
        FormatError: The rows do not match their description.
        DatabaseError: LanceDB reports an error.
    """
    with _opened(source, table) as codes:
        return codes.read(coder)


class _Codes(tables.Table):
    """A table that `export` wrote."""

    def __init__(self, table: Any, name: str) -> None:
        super().__init__(f"the table {name}", _description(table))
        self.table = table
        self.columns = ["id", "word"] if self.description.words else ["id"]

    def find(self, words: list[str]) -> dict[str, int]:
        wanted = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
        if not wanted:
            return {}
        found = self.table.search().where(f"word in ({wanted})").select(self.columns).to_list()
        return {each["word"]: each["id"] for each in found}

    def code(self, row: int) -> NDArray[np.uint8] | None:
        found = self.table.search().where(f"id = {row}").select(["code"]).limit(1).to_arrow()
        return self._codes(found)[0] if len(found) else None

    def rows(self) -> tables.Rows:
        table = self.table.to_arrow()
        words = table["word"].to_pylist() if self.description.words else None
        return tables.Rows(table["id"].to_numpy(), self._codes(table), words)

    def _codes(self, table: Any) -> NDArray[np.uint8]:
        chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in table["code"].chunks]
        flat = np.concatenate([np.empty(0, np.uint8), *chunks])
        return flat.reshape(-1, packed_width(self.description.bits))


@contextlib.contextmanager
def _opened(source: Any, table: str) -> Iterator[_Codes]:
    _check_name(table)
    by_name = isinstance(source, str | os.PathLike)
    with tables.one_line_errors(source if by_name else "LanceDB", *_ERRORS):
        if by_name and "://" not in str(source) and not Path(source).is_dir():
            raise InputError(f"there is no database {source}")
        found = _open_table(connect(source) if by_name else source, table)
        if found is None:
            raise InputError(f"there is no table {table}; `embits export --to lancedb` writes one")
        yield _Codes(found, table)


def _open_table(database: Any, name: str) -> Any:
    """Return a table, or None if there is none of this name."""
    try:
        return database.open_table(name)
    except (ValueError, FileNotFoundError) as error:
        if "not found" not in str(error):
            raise
        return None


def _description(table: Any) -> Description | None:
    return Description.parse((table.schema.metadata or {}).get(b"embits"))


def _check_name(table: Any) -> None:
    if not isinstance(table, str) or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", table):
        raise InputError(f"the table is {table!r}, expected letters, digits, '_', '-' and '.'")


def _write(
    database: Any, target: str, table: str, bits: BinaryVectors, index: str, progress: Any
) -> Any:
    import pyarrow as pa

    width, description = bits.codes.shape[1], Description.of(bits, index)
    fields = [pa.field("id", pa.int64(), nullable=False)]
    if description.words:
        fields.append(pa.field("word", pa.string(), nullable=False))
    fields.append(pa.field("code", pa.list_(pa.uint8(), width), nullable=False))
    schema = pa.schema(fields, metadata={"embits": description.to_json()})
    failed: list[BaseException] = []  # Arrow would hide an error of the iterator in one of its own

    def blocks() -> Iterator[Any]:
        try:
            for rows, codes, words in tables.row_blocks(bits, _BLOCK_ROWS, progress):
                named = [] if words is None else [pa.array(words, pa.string())]
                flat = pa.array(np.ascontiguousarray(codes).ravel())
                packed = pa.FixedSizeListArray.from_arrays(flat, width)
                numbers = pa.array(np.arange(rows.start, rows.stop))
                yield pa.record_batch([numbers, *named, packed], schema=schema)
        except BaseException as error:
            failed.append(error)
            raise

    with tables.nothing_new_if_it_fails(Path(target, f"{table}.lance")):
        try:
            data = blocks() if len(bits) else None
            return database.create_table(table, data, schema=schema, mode="overwrite")
        except BaseException:
            if failed:
                raise failed[0] from None
            raise


def _lancedb() -> Any:
    # LanceDB logs a warning for every new table.
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb
        import lancedb.index
    except ImportError:
        raise MissingExtraError("LanceDB", "lancedb") from None
    return lancedb
