"""Codes in LanceDB: a table in a local folder or an object store, searched by Hamming distance.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and `code`, a list
of bytes, first bit highest. The metadata of the table's schema describes the codes. `nearest` takes
the name of the `table`, and `exact=True` to compare with every row instead of using the index.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from embits.arrays import Progress
from embits.binary_vectors import BinaryRows
from embits.checks import choice
from embits.columns import arrow
from embits.errors import InputError
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Rows

__all__ = ["connect", "export", "nearest", "read"]

PARTITIONS = 100  # of the index that a search reads, and more until it has k rows
_ERRORS = (RuntimeError, ValueError)  # LanceDB's errors are built-in ones


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, table: str = "embits",
    index: str = "none", overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a table: see `integrations.export`. Readers see the old version or the new.

    `target` is a folder, or an address such as s3://bucket/folder. The name of the `table` has
    letters, digits, `_`, `-` and `.`. The `index` is "none", which searches every row, or
    "ivf_flat" of √n partitions, approximate.
    """
    bits = tables.to_export(bits)
    if choice("index", index, ["none", "ivf_flat"]) == "ivf_flat" and not len(bits):
        raise InputError("an index of kind 'ivf_flat' needs codes to train its partitions on")
    with tables.opened(target, connect, "", *_ERRORS) as database:
        old = _open_table(database, table)
        tables.check_ours(f"the table {table}", _metadata(old), overwrite)
        rows = arrow().concat_tables(tables.arrow_tables(bits, _columns, progress, index))
        with tables.nothing_new_if_it_fails(Path(target, f"{table}.lance")):
            new = database.create_table(table, rows, mode="overwrite")
            if index == "ivf_flat":
                kind = package("lancedb.index", "LanceDB", "lancedb").IvfFlat
                partitions = round(len(bits) ** 0.5)
                new.create_index("code", config=kind("hamming", num_partitions=partitions))
    return {"table": table, "index": index}


def connect(target: str | os.PathLike[str]) -> Any:
    """Open a database: a folder, which is made if there is none, or an address.

    Raises InputError if the folder's parent does not exist or the target is a file, and
    DatabaseError if the database cannot be opened.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")  # it would log a warning for every new table
    engine, path = package("lancedb", "LanceDB", "lancedb"), Path(target)
    if "://" not in str(target) and (path.is_file() or not path.resolve().parent.is_dir()):
        reason = "is a file" if path.is_file() else "is in a folder that does not exist"
        raise InputError(f"{path} {reason}, expected a folder for the database")
    with tables.one_line_errors(target, *_ERRORS):
        return engine.connect(str(target))


class _Codes(tables.Table):
    unordered = math.inf

    def __init__(self, database: Any, name: str, exact: bool) -> None:
        self.table, self.exact = _open_table(database, name), exact
        super().__init__(f"the table {name}", _metadata(self.table))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, table: str = "embits", exact: bool = False) -> Iterator[_Codes]:
        is_path = isinstance(source, str | os.PathLike) and "://" not in str(source)
        if is_path and not Path(source).is_dir():
            raise InputError(f"there is no database {source}")
        with tables.opened(source, connect, "LanceDB", *_ERRORS) as database:
            yield cls(database, table, exact)

    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        query = self.table.search().select([*self.fields, "code"])
        if field is not None:
            text = f"'{value.replace(chr(39), 2 * chr(39))}'" if isinstance(value, str) else value
            query = query.where(f"{field} = {text}").limit(1)
        return tables.arrow_rows(query.to_arrow().sort_by("id"), self.description.bits)

    def search(self, code: Codes, k: int, where: str | None, params: Sequence[Any]) -> Any:
        query = self.table.search(code, vector_column_name="code").distance_type("hamming")
        if self.exact or self.description.index == "none":
            query = query.bypass_vector_index()
        else:  # 0: all partitions, where the first ones have too few rows
            query = query.minimum_nprobes(PARTITIONS).maximum_nprobes(0)
        query = query if where is None else query.where(where, prefilter=True)
        fields = [*self.fields, "_distance"]
        rows = query.select(fields).limit(k).to_list()
        return [[row[field] for field in fields] for row in rows]


nearest, read = _Codes.nearest, _Codes.read


def _open_table(database: Any, name: str) -> Any:
    """The table of a name, or None if there is none."""
    expected = "letters, digits, '_', '-' and '.'"
    try:
        return database.open_table(tables.check_name(r"[\w-][\w.-]*", expected, "the table", name))
    except (ValueError, FileNotFoundError) as error:
        if "not found" not in str(error):
            raise
        return None


def _metadata(table: Any) -> bytes | None:
    return None if table is None else (table.schema.metadata or {}).get(b"embits", b"")


def _columns(codes: Codes) -> dict[str, Any]:
    lists = arrow().FixedSizeListArray.from_arrays(codes.ravel(), codes.shape[1])
    return {"code": lists}
