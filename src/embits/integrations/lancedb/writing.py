"""Writing codes to LanceDB."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.descriptions import Description, check_unchanged
from embits.integrations.lancedb.database import (
    KEY,
    MAX_PARTITIONS,
    check_name,
    connect,
    lancedb,
    one_line_errors,
    open_table,
)
from embits.integrations.tables import row_blocks

_INDEX = "code_idx"  # LanceDB's own name for an index of the column `code`
_BLOCK_ROWS = 1 << 16


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    table: str = "embits",
    index: str = "none",
    num_partitions: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Facts:
    """Write codes to a table. Readers see the old version of the table or the new one.

    A table that an earlier export wrote is replaced. Any other is refused, and so is one with
    columns, indexes or rows that were added or changed.

    Args:
        bits: What to write.
        target: The database: a folder, or an address such as s3://bucket/folder.
        progress: Called with (done, total) as rows are written.
        table: The table's name: letters, digits, `_`, `-` and `.`.
        index: "none", which searches every row, or "ivf_flat", which is approximate.
        num_partitions: The partitions of the index; None is √n.
        storage_options: LanceDB's settings of the object store, such as "region" and "endpoint";
            those that are not given come from the environment.

    Returns:
        The table and the kind of its index.

    Raises:
        InputError: An option is wrong, or the table is not ours.
        DatabaseError: LanceDB or the object store reports an error.
        MissingExtraError: LanceDB is not installed.
    """
    bits = to_export(bits)
    check_name(table)
    _check_index(index, num_partitions, len(bits))
    with one_line_errors(target):
        database = connect(target, storage_options)
        _check_replaceable(database, table)
        new = _write(database, target, table, bits, Description.of(bits, index), progress)
        if index == "ivf_flat":
            lists = num_partitions or max(1, round(len(bits) ** 0.5))
            kind = lancedb().index.IvfFlat(distance_type="hamming", num_partitions=lists)
            new.create_index("code", config=kind)
    return {"table": table, "index": index}


def _write(
    database: Any,
    target: str,
    table: str,
    bits: BinaryVectors,
    description: Description,
    progress: Progress | None,
) -> Any:
    schema = _schema(bits, description)
    if not len(bits):
        return database.create_table(table, schema=schema, mode="overwrite")
    folder = None if "://" in target else Path(target, f"{table}.lance")
    new = folder is not None and not folder.exists()
    errors: list[BaseException] = []  # Arrow would hide an error of the iterator in one of its own
    blocks = _blocks(bits, schema, progress, errors)
    try:
        return database.create_table(table, blocks, schema=schema, mode="overwrite")
    except BaseException:
        if folder is not None and new:  # rows that belong to no version of a table
            shutil.rmtree(folder, ignore_errors=True)
        if errors:
            raise errors[0] from None
        raise


def _check_replaceable(database: Any, name: str) -> None:
    old = open_table(database, name)
    if old is None:
        return
    ours = {*old.columns, "code"}
    added = [("column", each) for each in old.table.schema.names if each not in ours]
    known = {_INDEX} if old.description.index != "none" else set()
    added += [("index", each.name) for each in old.table.list_indices() if each.name not in known]
    for kind, each in added:
        raise InputError(
            f"{old.place} has the {kind} {each!r} that embits did not make; choose another table, "
            f"or drop that {kind} first"
        )
    check_unchanged(old.description, old.rows(), old.place)


def _schema(bits: BinaryVectors, description: Description) -> Any:
    import pyarrow as pa

    fields = [pa.field("id", pa.int64(), nullable=False)]
    if isinstance(bits.words, Vocabulary):
        fields.append(pa.field("word", pa.string(), nullable=False))
    fields.append(pa.field("code", pa.list_(pa.uint8(), bits.codes.shape[1]), nullable=False))
    return pa.schema(fields, metadata={KEY: description.to_json()})


def _blocks(
    bits: BinaryVectors, schema: Any, progress: Progress | None, errors: list[BaseException]
) -> Iterator[Any]:
    try:
        for rows in row_blocks(bits, _BLOCK_ROWS):
            yield _block(bits, rows, schema)
            if progress is not None:
                progress(rows.stop, len(bits))
    except BaseException as error:
        errors.append(error)
        raise


def _block(bits: BinaryVectors, rows: slice, schema: Any) -> Any:
    import pyarrow as pa

    columns = [pa.array(np.arange(rows.start, rows.stop))]
    if "word" in schema.names:
        columns.append(pa.array(bits.words[rows], pa.string()))
    flat = pa.array(np.ascontiguousarray(bits.codes[rows]).ravel())
    columns.append(pa.FixedSizeListArray.from_arrays(flat, bits.codes.shape[1]))
    return pa.record_batch(columns, schema=schema)


def _check_index(index: Any, num_partitions: Any, n: int) -> None:
    if index not in ("none", "ivf_flat"):
        raise InputError(f"index is {index!r}, expected 'none' or 'ivf_flat'")
    if index == "ivf_flat" and n == 0:
        raise InputError("an index of kind 'ivf_flat' needs codes to train its partitions on")
    most = min(n, MAX_PARTITIONS)
    if num_partitions is not None and not (
        type(num_partitions) is int and index != "none" and 1 <= num_partitions <= most
    ):
        raise InputError(
            f"num_partitions is {num_partitions!r}, expected 1 to {most:,}, with index=ivf_flat"
        )
