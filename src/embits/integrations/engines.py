"""Codes for Elasticsearch, OpenSearch and Vespa: a file of JSON lines to feed, and the mapping.

All three pack bits as embits does, first bit highest, and read bytes as signed numbers. Bits are
counted in whole bytes: other widths are padded with zeros, which changes no distance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts
from embits.integrations.table import longest_id, to_export

__all__ = ["export_elasticsearch", "export_opensearch", "export_vespa"]

MAX_ID_BYTES = 512  # of `_id` in Elasticsearch and OpenSearch
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def export_elasticsearch(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    field: str = "code",
    overwrite: bool = False,
) -> Facts:
    """Write the body of `_bulk` requests for a `dense_vector` of element type `bit`.

    Args:
        field: The name of the field of codes.

    Raises:
        InputError: A code has more than 32,768 bits, or an id more than 512 bytes.
    """
    vector = {"type": "dense_vector", "element_type": "bit", "dims": 8 * bits.codes.shape[1]}
    mapping = {"mappings": {"properties": {_named("field", field): vector}}}
    return _bulk(bits, target, field, mapping, 32_768, progress, overwrite)


def export_opensearch(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    field: str = "code",
    overwrite: bool = False,
) -> Facts:
    """Write the body of `_bulk` requests for a `knn_vector` of data type `binary`.

    Args:
        field: The name of the field of codes.

    Raises:
        InputError: A code has more than 16,000 bits, or an id more than 512 bytes.
    """
    vector = {
        "type": "knn_vector", "data_type": "binary", "dimension": 8 * bits.codes.shape[1],
        "method": {"name": "hnsw", "engine": "faiss", "space_type": "hamming"},
    }  # fmt: skip
    mapping = {
        "settings": {"index": {"knn": True}},
        "mappings": {"properties": {_named("field", field): vector}},
    }
    return _bulk(bits, target, field, mapping, 16_000, progress, overwrite)


def export_vespa(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    field: str = "code",
    schema: str = "embits",
    overwrite: bool = False,
) -> Facts:
    """Write the puts of `vespa feed` for a field `tensor<int8>`, whose values are hexadecimal.

    Args:
        field: The name of the field of codes.
        schema: The name of the schema, which is also the namespace of the documents.
    """
    tensor = f"tensor<int8>(x[{bits.codes.shape[1]}])"
    mapping = f"""schema {_named("schema", schema)} {{
    document {schema} {{
        field {_named("field", field)} type {tensor} {{
            indexing: attribute | index
            attribute {{
                distance-metric: hamming
            }}
        }}
    }}
    rank-profile hamming {{
        inputs {{
            query(q) {tensor}
        }}
        first-phase {{
            expression: -distance(field, {field})
        }}
    }}
}}"""

    def put(name: str, code: Any) -> str:
        fields = {field: {"values": code.tobytes().hex()}}
        return json.dumps({"put": f"id:{schema}:{schema}::{name}", "fields": fields})

    return _lines(bits, target, put, mapping, progress, overwrite)


def _named(what: str, name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"{what} is {name!r}, expected letters, digits and _, not a digit first")
    return name


def _bulk(
    bits: BinaryVectors, target: str, field: str, mapping: Any, most: int,
    progress: Progress | None, overwrite: bool,
) -> Facts:  # fmt: skip
    """Two lines a row: the action with the id, and the document."""
    if bits.n_bits > most:
        raise InputError(
            f"codes of {bits.n_bits:,} bits, expected at most {most:,} for this engine"
        )
    row, size = longest_id(bits)
    if size > MAX_ID_BYTES:
        expected = f"ids of at most {MAX_ID_BYTES} bytes"
        raise InputError(f"the id of row {row} has {size:,} bytes, expected {expected}")

    def index(name: str, code: Any) -> str:
        document = {field: code.view(np.int8).tolist()}
        return json.dumps({"index": {"_id": name}}) + "\n" + json.dumps(document)

    return _lines(bits, target, index, mapping, progress, overwrite)


def _lines(
    bits: BinaryVectors, target: str, line: Callable[[str, Any], str], mapping: Any,
    progress: Progress | None, overwrite: bool,
) -> Facts:  # fmt: skip
    """Write what `line` makes of each id and code."""
    bits, path = to_export(bits), Path(target)
    check_target(path, overwrite=overwrite)
    ids = iter(bits.words)
    with atomic_write(path) as file:
        for rows in blocks(len(bits)):
            codes = np.ascontiguousarray(bits.codes[rows])
            names = islice(ids, len(codes))
            file.writelines(
                f"{line(str(name), code)}\n".encode()
                for name, code in zip(names, codes, strict=True)
            )
            if progress is not None:
                progress(rows.stop, len(bits))
    return {"bytes": path.stat().st_size, "mapping": mapping}
