"""Texts with metadata in a collection, as frameworks for documents keep them.

The column `text` has the text of a row, and `metadata` its metadata as JSON. Values that can be
filtered have columns as well, named after kind and key, as `int:year` and `strings:tags`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryRows
from embits.collection import open_collection
from embits.collection.manifest import MANIFEST
from embits.columns import Condition
from embits.errors import InputError
from embits.vectors import normalize_ids

# Types of values, and the kinds of columns that may have equal ones.
_KINDS = {bool: ("bool",), int: ("int", "float"), float: ("float", "int"), str: ("string",)}
_OPS = {op: op for op in ("in", ">", ">=", "<", "<=", "all", "is_empty")}
_OPS |= {"==": "=", "contains": "=", "any": "in"}
_LARGE = 10**308


class Documents:
    """A collection of texts with metadata; `options` are those of `open_collection`."""

    def __init__(self, path: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
        start = {} if (Path(path) / MANIFEST).is_file() or "coder" in options else {"n_bits": 256}
        self.collection = open_collection(path, **{"timeout": 10, **start, **options})

    def bits(self) -> BinaryRows:
        """The latest state; another process may have changed it."""
        self.collection.refresh()
        return self.collection.snapshot()

    def put(
        self, ids: Sequence[str], texts: Any, X: Any, metadatas: Any, stored: Any = None
    ) -> None:
        """Add texts, or replace those whose ids exist; `stored` takes the place of the metadata."""
        columns = {"text": texts, "metadata": list(map(_json, stored or metadatas))}
        for row, metadata in enumerate(metadatas):
            for key, value in metadata.items():
                for kind, part in _parts(value).items():
                    columns.setdefault(f"{kind}:{key}", [None] * len(texts))[row] = part
        if texts:
            self.collection.upsert(np.array(X, np.float32), ids, columns=columns)

    def nearest(
        self, vector: Any, k: int, rows: Callable[..., Any] | None, options: Mapping[str, Any]
    ) -> tuple[BinaryRows, list[int], list[float]]:
        """The state that is searched, the rows of the k nearest texts, and their cosines."""
        bits = self.bits()
        if not len(bits):
            return bits, [], []
        # `rows` gives a mask, or row numbers.
        where = bits.select(rows=np.arange(len(bits))[rows(bits)]) if rows else None
        rescore = max(40, 4 * k) if self.collection.manifest.keep else None
        options = {"rescore": rescore, "where": where, **options}
        found = bits.search(np.array(vector, np.float32), k, **options)
        return bits, found.rows.tolist(), found[0].tolist()


def combine(flags: Sequence[Any], how: str, n: int) -> NDArray[np.bool_]:
    """Whether each of n rows passes all filters ("and"), one ("or") or none ("not")."""
    parts = np.array(flags, bool).reshape(-1, n)
    return np.asarray(parts.all(axis=0) if how == "and" else parts.any(axis=0) ^ (how == "not"))


def existing_rows(bits: BinaryRows, ids: Sequence[str] | None) -> NDArray[np.int64]:
    """The rows of ids, in their order and without unknown ones; None is all rows."""
    found = np.arange(len(bits)) if ids is None else bits.words.find_many(normalize_ids(ids))
    return found[found >= 0]


def texts_of(bits: BinaryRows, rows: Any) -> Iterator[tuple[str, str, Any]]:
    """The id, the text and the metadata of each row."""
    if len(rows):
        found = bits.get(rows=rows, columns=["text", "metadata"])
        data = map(json.loads, found["metadata"])
        yield from zip(bits.ids(rows).tolist(), found["text"], data, strict=True)


def _json(metadata: Mapping[str, Any]) -> str:
    try:
        text, why = json.dumps(metadata, ensure_ascii=False), "JSON would change it"
        if json.loads(text) == metadata:
            return text
    except (TypeError, ValueError) as error:
        why = str(error)
    raise InputError(f"metadata {metadata!r:.80} cannot be stored: {why}")


def _parts(value: Any) -> dict[str, Any]:
    """What columns hold of a value, by kind; of other kinds, only whether there is one."""
    parts: dict[str, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        kind = _KINDS[type(each)][0] if type(each) in _KINDS else ""
        if kind == "int" and not -(2**63) <= each < 2**63:
            kind, each = "float", float(max(-_LARGE, min(each, _LARGE)))
        if kind and isinstance(value, list):
            parts.setdefault(f"{kind}s", []).append(each)
        elif kind:
            parts[kind] = each
    return parts or ({} if value is None else {"other": bool(value)})


def matches(bits: BinaryRows, key: str, op: str, value: Any) -> NDArray[np.bool_]:
    """Whether each row fulfils a condition on a key; a missing value equals nothing.

    The operators are ==, !=, >, >=, <, <=, in, nin; contains, any and all for lists; is_empty.
    """
    if op in ("!=", "nin"):
        return ~matches(bits, key, "==" if op == "!=" else "in", value)
    is_listed = op in ("in", "any", "all")
    is_missing = op == "is_empty" or (op == "==" and value is None)
    values = list(value) if (has_many := isinstance(value, list | tuple | set)) else [value]
    if op not in _OPS:
        raise InputError(f"filter on {key!r}: there is no operator {op!r} here")
    if is_listed != has_many or not (is_missing or {*map(type, values)} <= _KINDS.keys()):
        what = "a list of plain values" if is_listed else "a plain value"
        raise InputError(f"filter on {key!r}: {op} takes {what}, found {value!r:.40}")
    if op == "all":
        each = [matches(bits, key, "contains", one) for one in values]
        return combine(each, "and", len(bits))
    wheres, plural = [], "s" if op in ("contains", "any") else ""
    for name in (name for name in bits.current.columns.kinds if name.partition(":")[2] == key):
        kind = name.partition(":")[0]
        mine = [v for v in values if kind in [k + plural for k in _KINDS.get(type(v), ())]]
        if is_missing:
            full = {"string": ("!=", ""), "other": ("=", True)} if op == "is_empty" else {}
            wheres.append(Condition(name, *full.get(kind, ("!=", None))))
        elif mine:
            wheres.append(Condition(name, _OPS[op], mine if is_listed else mine[0]))
    flags = [bits.select([each]).flags(0, len(bits)) for each in wheres]
    return combine(flags, "not" if is_missing else "or", len(bits))
