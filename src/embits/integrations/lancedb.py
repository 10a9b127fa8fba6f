"""Codes in LanceDB: a table in a local folder or an object store, searched by Hamming distance.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and `code`, a list
of bytes, first bit highest. The metadata of the table's schema describes the codes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryVectors
from embits.checks import choice
from embits.coders import Coder
from embits.errors import InputError
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Description, Neighbor, Place, Query

__all__ = ["connect", "export", "nearest", "read"]

PARTITIONS = 100  # of the index that a search reads, and more until it has k rows
_BLOCK_ROWS = 1 << 16
_ERRORS = (RuntimeError, ValueError)  # LanceDB's errors are built-in ones
_check_name = partial(
    tables.check_name, r"[\w-][\w.-]*", "letters, digits, '_', '-' and '.'", "the table"
)


def export(
    bits: BinaryVectors, target: str, *, progress: Progress | None = None, table: str = "embits",
    index: str = "none", overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a table: see `integrations.export`. Readers see the old version or the new.

    Args:
        target: The database: a folder, or an address such as s3://bucket/folder.
        table: The table's name: letters, digits, `_`, `-` and `.`.
        index: "none", which searches every row, or "ivf_flat" of √n partitions, approximate.
    """
    bits, name = tables.to_export(bits), _check_name(table)
    if choice("index", index, ["none", "ivf_flat"]) == "ivf_flat" and not len(bits):
        raise InputError("an index of kind 'ivf_flat' needs codes to train its partitions on")
    with tables.one_line_errors(target, *_ERRORS):
        database = connect(target)
        old = _open_table(database, name)
        if old is not None:
            tables.check_ours(f"the table {name}", _description(old), overwrite)
        rows = _arrow_table(bits, index, progress)
        with tables.nothing_new_if_it_fails(Path(target, f"{name}.lance")):
            new = database.create_table(name, rows, mode="overwrite")
            if index == "ivf_flat":
                kind = package("lancedb.index", "LanceDB", "lancedb").IvfFlat
                partitions = round(len(bits) ** 0.5)
                new.create_index("code", config=kind("hamming", num_partitions=partitions))
    return {"table": name, "index": index}


def connect(target: str | os.PathLike[str]) -> Any:
    """Open a database: a folder, which is made if there is none, or an address.

    Raises InputError if the folder's parent does not exist or the target is a file, and
    DatabaseError if the database cannot be opened.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")  # it would log a warning for every new table
    engine, path = package("lancedb", "LanceDB", "lancedb"), Path(target)
    if "://" not in str(target) and (path.is_file() or not path.resolve().parent.is_dir()):
        found = "is a file" if path.is_file() else "is in a folder that does not exist"
        raise InputError(f"{path} {found}, expected a folder for the database")
    with tables.one_line_errors(target, *_ERRORS):
        return engine.connect(str(target))


def nearest(
    source: Place, query: Query, k: int = 10, *, table: str = "embits", where: str | None = None,
    coder: Coder | None = None, exact: bool = False,
) -> list[Neighbor]:  # fmt: skip
    """Find the k nearest rows by Hamming distance, ties in row order.

    Args:
        source: The folder or address, or a connection from `connect`.
        query: See `table.Table.nearest`, also for `k`, `coder` and the errors.
        table: The table that was exported to.
        where: A condition in LanceDB's SQL, run unchanged; rows are filtered before the search.
        exact: Compare with every row instead of using the index.
    """
    with _opened(source, table) as codes:
        by_index = not exact and codes.description.index != "none"

        def search(code: Codes, size: int) -> list[Neighbor]:
            asked = codes.table.search(code, vector_column_name="code").distance_type("hamming")
            if by_index:  # 0: all partitions, where the first ones have too few rows
                asked = asked.minimum_nprobes(PARTITIONS).maximum_nprobes(0)
            else:
                asked = asked.bypass_vector_index()
            asked = asked if where is None else asked.where(where, prefilter=True)
            found = asked.select([*codes.fields, "_distance"]).limit(size).to_list()
            return [codes.neighbor(each, each["_distance"]) for each in found]

        return codes.nearest(query, k, coder, search, most=max(1, codes.table.count_rows()))


def read(source: Place, coder: Coder, *, table: str = "embits") -> BinaryVectors:
    """Read a whole table back as BinaryVectors: see `table.Table.read`."""
    with _opened(source, table) as codes:
        return codes.read(coder)


class _Codes(tables.Table):
    def __init__(self, table: Any, name: str) -> None:
        super().__init__(f"the table {name}", _description(table))
        self.table = table

    def find(self, word: str) -> int | None:
        quoted = word.replace("'", "''")
        found = self.table.search().where(f"word = '{quoted}'").select(["id"]).limit(1).to_list()
        return found[0]["id"] if found else None

    def code(self, row: int) -> Codes | None:
        found = self.table.search().where(f"id = {row}").select(["code"]).limit(1).to_arrow()
        return self._codes(found)[0] if len(found) else None

    def rows(self) -> tables.Rows:
        table = self.table.to_arrow()
        words = table["word"].to_pylist() if self.description.words else None
        return table["id"].to_numpy(), self._codes(table), words

    def _codes(self, table: Any) -> Codes:
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
            raise InputError(f"there is no table {table}; export to lancedb writes one")
        yield _Codes(found, table)


def _open_table(database: Any, name: str) -> Any:
    try:
        return database.open_table(name)
    except (ValueError, FileNotFoundError) as error:
        if "not found" not in str(error):
            raise
        return None


def _description(table: Any) -> Description | None:
    return Description.parse((table.schema.metadata or {}).get(b"embits"))


def _arrow_table(bits: BinaryVectors, index: str, progress: Progress | None) -> Any:
    pa = package("pyarrow", "LanceDB", "lancedb")
    width, description = bits.codes.shape[1], Description.of(bits, index)
    fields = [pa.field("id", pa.int64(), nullable=False)]
    if description.words:
        fields.append(pa.field("word", pa.string(), nullable=False))
    fields.append(pa.field("code", pa.list_(pa.uint8(), width), nullable=False))
    schema = pa.schema(fields, metadata={"embits": description.to_json()})
    batches = []
    for rows, codes, words in tables.row_blocks(bits, _BLOCK_ROWS, progress):
        named = [] if words is None else [pa.array(words, pa.string())]
        packed = pa.FixedSizeListArray.from_arrays(np.ascontiguousarray(codes).ravel(), width)
        batches.append(pa.record_batch([pa.array(rows), *named, packed], schema=schema))
    return pa.Table.from_batches(batches, schema)
