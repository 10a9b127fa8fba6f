"""Writing codes to Milvus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embits.arrays import Progress
from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.codes import to_export
from embits.integrations.descriptions import Description, check_unchanged
from embits.integrations.milvus.client import (
    check_name,
    is_server,
    opened,
    pymilvus,
    without_password,
)
from embits.integrations.milvus.collection import CodeCollection
from embits.integrations.tables import longest_word, row_blocks

MAX_BITS = 262_144  # of a binary vector
MAX_WORD_BYTES = 65_535  # of a VARCHAR
MAX_LISTS = 65_536
_BLOCK_ROWS = 1000  # the time that pymilvus takes grows with the square
_BLOCK_BYTES = 8 << 20  # a server takes messages of 64 MB


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    collection: str = "embits",
    index: str = "flat",
    nlist: int = 1024,
) -> Facts:
    """Write codes to a collection.

    A collection that an earlier export wrote is dropped first, and written anew. Any other is
    refused, and so is one with fields or rows that were added or changed.

    Args:
        bits: What to write.
        target: The address of a server, http://host:19530, or a file of Milvus Lite (`.db`).
        progress: Called with (done, total) as rows are inserted.
        collection: The collection's name: letters, digits and `_`.
        index: "flat" (BIN_FLAT, exact) or "ivf_flat" (BIN_IVF_FLAT, approximate; servers only).
        nlist: The lists of "ivf_flat".

    Returns:
        The collection and the kind of its index.

    Raises:
        InputError: An option is wrong, an id is too long, or the collection is not ours.
        DatabaseError: The server cannot be reached or reports an error.
        MissingExtraError: pymilvus is not installed.
    """
    bits, name = to_export(bits), check_name(collection)
    kind = _index_kind(index, nlist, target)
    _check_limits(bits)
    address = without_password(target)
    new_file = not is_server(target) and not Path(target).exists()
    try:
        with opened(target) as client:
            if client.has_collection(name):
                _check_replaceable(CodeCollection(client, name))
                client.drop_collection(name)
            try:
                _write(client, name, bits, kind, nlist, progress)
            except BaseException:
                client.drop_collection(name)
                raise
    except BaseException:
        if new_file:  # Milvus Lite has made it
            Path(target).unlink(missing_ok=True)
        raise
    return {"target": address, "collection": name, "index": kind}


def _write(
    client: Any, name: str, bits: BinaryVectors, kind: str, nlist: int, progress: Progress | None
) -> None:
    named = isinstance(bits.words, Vocabulary)
    types = pymilvus().DataType
    schema = client.create_schema(
        auto_id=False,
        enable_dynamic_field=False,
        description=Description.of(bits, kind).to_json(),
    )
    schema.add_field("id", types.INT64, is_primary=True)
    if named:
        schema.add_field("word", types.VARCHAR, max_length=MAX_WORD_BYTES)
    schema.add_field("code", types.BINARY_VECTOR, dim=8 * bits.codes.shape[1])
    index = client.prepare_index_params()
    params = {"nlist": nlist} if kind == "BIN_IVF_FLAT" else {}
    index.add_index("code", index_type=kind, metric_type="HAMMING", params=params)
    # Strong: a search sees every row that was inserted before it.
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")
    for rows in row_blocks(bits, _BLOCK_ROWS, _BLOCK_BYTES):
        codes = bits.codes[rows]
        block = [
            {"id": row, "code": codes[at].tobytes()}
            for at, row in enumerate(range(rows.start, rows.stop))
        ]
        if named:
            for each, word in zip(block, bits.words[rows], strict=True):
                each["word"] = word
        client.insert(name, block)
        if progress is not None:
            progress(rows.stop, len(bits))


def _check_replaceable(old: CodeCollection) -> None:
    """Check that a collection has only what `export` wrote.

    Raises:
        InputError: Fields or rows were added or changed.
    """
    ours = {*old.columns, "code"}
    for field in old.fields:
        if field not in ours:
            raise InputError(
                f"{old.place} has the field {field!r} that embits did not make; "
                "choose another collection"
            )
    check_unchanged(old.description, old.rows(), old.place)


def _index_kind(index: Any, nlist: Any, target: str) -> str:
    if index not in ("flat", "ivf_flat"):
        raise InputError(f"index is {index!r}, expected 'flat' or 'ivf_flat'")
    if index == "ivf_flat" and not is_server(target):
        raise InputError("Milvus Lite has no index of kind 'ivf_flat': use index=flat, or a server")
    if type(nlist) is not int or not 1 <= nlist <= MAX_LISTS:
        raise InputError(f"nlist is {nlist!r}, expected 1 to {MAX_LISTS:,}")
    return f"BIN_{index.upper()}"


def _check_limits(bits: BinaryVectors) -> None:
    if bits.n_bits > MAX_BITS:
        raise InputError(f"Milvus holds at most {MAX_BITS:,} bits, the codes have {bits.n_bits:,}")
    row, size = longest_word(bits)
    if size > MAX_WORD_BYTES:
        raise InputError(
            f"the id of row {row} has {size:,} bytes; Milvus holds at most {MAX_WORD_BYTES:,}"
        )
