"""Codes for Elasticsearch, OpenSearch and Vespa: a file of JSON lines to feed, and the mapping.

All three pack bits as embits does, first bit highest, and read bytes as signed numbers. Bits are
counted in whole bytes: other widths are padded with zeros, which changes no distance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

import numpy as np

from embits.arrays import Progress
from embits.binary_vectors import BinaryRows
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.integrations import Facts
from embits.integrations.table import check_limits, check_name, row_blocks, to_export

__all__ = ["export_elasticsearch", "export_opensearch", "export_vespa"]

Line: TypeAlias = Callable[[str, Any], str]  # what is written of the id and code of a row

MAX_ID_BYTES = 512  # of `_id` in Elasticsearch and OpenSearch
_named = partial(check_name, r"[A-Za-z_]\w*", "letters, digits and _, not a digit first")


def export_elasticsearch(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, field: str = "code",
    overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write the body of `_bulk` requests for a `dense_vector` of element type `bit`: `field`.

    A code has at most 32,768 bits, and an id 512 bytes.
    """
    vector = {"type": "dense_vector", "element_type": "bit", "dims": 8 * bits.codes.shape[1]}
    mapping = {"mappings": {"properties": {_named("field", field): vector}}}
    return _lines(bits, target, progress, overwrite, _document(bits, field, 32_768), mapping)


def export_opensearch(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, field: str = "code",
    overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write the body of `_bulk` requests for a `knn_vector` of data type `binary`: `field`.

    A code has at most 16,000 bits, and an id 512 bytes.
    """
    vector = {
        "type": "knn_vector", "data_type": "binary", "dimension": 8 * bits.codes.shape[1],
        "method": {"name": "hnsw", "engine": "faiss", "space_type": "hamming"},
    }  # fmt: skip
    mapping = {
        "settings": {"index": {"knn": True}},
        "mappings": {"properties": {_named("field", field): vector}},
    }
    return _lines(bits, target, progress, overwrite, _document(bits, field, 16_000), mapping)


def export_vespa(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, field: str = "code",
    schema: str = "embits", overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write the puts of `vespa feed` for a `field` of `tensor<int8>`, whose values are hexadecimal.

    `schema` is the name of the schema, and the namespace of the documents.
    """
    tensor = f"tensor<int8>(x[{bits.codes.shape[1]}])"
    names = {"schema": _named("schema", schema), "field": _named("field", field), "tensor": tensor}
    template = Template((files(__package__) / "vespa.sd").read_text())
    mapping = template.substitute(names).removesuffix("\n")

    def put(name: str, code: Any) -> str:
        fields = {field: {"values": code.tobytes().hex()}}
        return json.dumps({"put": f"id:{schema}:{schema}::{name}", "fields": fields})

    return _lines(bits, target, progress, overwrite, put, mapping)


def _document(bits: BinaryRows, field: str, most: int) -> Line:
    """Makes two lines of a row: the action with the id, and the document."""
    check_limits(bits, "this engine", most, MAX_ID_BYTES)

    def index(name: str, code: Any) -> str:
        document = {field: code.view(np.int8).tolist()}
        return json.dumps({"index": {"_id": name}}) + "\n" + json.dumps(document)

    return index


def _lines(
    bits: BinaryRows,
    target: str,
    progress: Progress | None,
    overwrite: bool,
    line: Line,
    mapping: Any,
) -> Facts:
    bits, path = to_export(bits), Path(target)
    check_target(path, overwrite=overwrite)
    with atomic_write(path) as file:
        for rows, codes, ids in row_blocks(bits, progress):
            names = map(str, rows if ids is None else ids)
            lines = map(line, names, codes)
            file.writelines(f"{each}\n".encode() for each in lines)
    return {"bytes": path.stat().st_size, "mapping": mapping}
