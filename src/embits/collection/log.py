"""The log of a collection: rows that were added a few at a time, before they become a piece.

A line is a change: a checksum, the rows as JSON, and their columns. Lines are synced one by one, so
a loss of power may leave an incomplete one at the end, which is no part of the log.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embits.arrays import check_padding
from embits.checks import read_small
from embits.coders import Coder
from embits.collection.manifest import Manifest
from embits.columns import ColumnTable, arrow, arrow_type
from embits.errors import FormatError, InputError
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.segment import FLOATS, LENGTHS, Floats, Lengths, Segment

MAX_ADDED, MAX_ROWS, MAX_BYTES = 16, 256, 1 << 20  # rows of a change; of a log, and its bytes
_BAD_LINE = AttributeError, InputError, LookupError, RecursionError, TypeError, ValueError


class Log(NamedTuple):
    """A log that was read: its lines, their JSON, and all of their rows."""

    content: bytes
    changes: tuple[Any, ...]
    rows: Segment


def log_line(path: Path, number: int, rows: Segment, kinds: Mapping[str, str]) -> bytes:
    """Line `number` of a log, counted from 0."""
    change: dict[str, Any] = {"codes": _text(rows.codes)}
    if not isinstance(rows.ids, RowNumbers):
        change["ids"] = list(rows.ids)
    if LENGTHS in rows.columns:
        change[LENGTHS] = rows.columns[LENGTHS].floats.tolist()
    if FLOATS in rows.columns:
        change[FLOATS] = _text(rows.columns[FLOATS].records[:])
    table = rows.table or ColumnTable(None, len(rows))
    values = {
        name: [*chain(*map(_values, table.chunks(name, kind)))] for name, kind in kinds.items()
    }
    parts = json.dumps(change).encode(), json.dumps(values).encode()
    return b"\t".join([_digest(path, number, *parts), *parts]) + b"\n"


def open_log(folder: Path, manifest: Manifest, coder: Coder, before: Log | None) -> Log | None:
    """Read the log, if there is one; the lines that were read `before` are not parsed again."""
    if not manifest.log:
        return None
    path = folder / manifest.log
    content = read_small(path, MAX_BYTES)
    known = before if before and content.startswith(before.content) else None
    old, start = (known.changes, len(known.content)) if known else ((), 0)
    try:
        lines = content[start:].split(b"\n")
        new = [_change(path, len(old) + place, line) for place, line in enumerate(lines[:-1])]
        n = [*new, None].index(None)
        changes, rest = (*old, *new[:n]), b"\n".join(lines[n:])
        # Of an incomplete line, the end is missing, or the first bytes or a sector are zeros.
        has_end = rest.endswith(b"\n") or (
            rest[-1:] > b"\0" and _change(path, len(old) + n, rest[:-1])
        )
        if any(new[n:]) or (has_end and rest[0] and bytes(512) not in rest):
            raise ValueError(f"line {len(changes) + 1} does not match its checksum")
        if known and not n:
            return known
        rows = _rows(changes, manifest, coder)
    except _BAD_LINE as error:
        raise FormatError(f"{path}: damaged: {error!s:.200}") from None
    return Log(content[: len(content) - len(rest)], changes, rows)


def _rows(changes: Any, manifest: Manifest, coder: Coder) -> Segment:
    codes = _matrix(changes, "codes", coder.n_bytes_)
    check_padding(codes, coder.n_bits_)
    ids: Any = RowNumbers(len(codes), manifest.next_number)
    if manifest.ids == "given":
        ids = Vocabulary.from_words(chain(*(change["ids"] for change in changes)))
    beside: dict[str, Any] = {}
    if LENGTHS in changes[0]:
        beside[LENGTHS] = Lengths.of([*chain(*(change[LENGTHS] for change in changes))])
    if manifest.keep:
        width = Floats.of(np.empty((0, coder.n_features_in_)), manifest.keep).records.shape[1]
        beside[FLOATS] = Floats(_matrix(changes, FLOATS, width), manifest.keep)
    arrays = {
        name: arrow().array(
            [*chain(*(each["columns"][name] for each in changes))], arrow_type(kind)
        )
        for name, kind in manifest.columns.items()
    }
    if any(len(each) != len(codes) for each in (ids, *beside.values(), *arrays.values())):
        raise ValueError("a row has no id, length, vector or value")
    return Segment(ids, codes, beside, table=ColumnTable.of(arrays, len(codes)))


def append_line(path: Path, log: Log, line: bytes, check: Callable[[], None]) -> None:
    """Add a line to a log and wait for the disk. An error leaves the log as it was."""
    end = len(log.content)
    with path.open("r+b", buffering=0) as file:
        check()
        try:
            file.truncate(end)  # an incomplete line
            file.seek(end)
            file.write(line)
            os.fsync(file.fileno())
        except BaseException as error:  # Ctrl-C too
            with suppress(OSError):
                file.truncate(end)
                os.fsync(file.fileno())
            if isinstance(error, OSError):
                error.filename = str(path)
            raise


def _values(array: Any) -> list[Any]:
    """Values for JSON: dates and times as numbers."""
    pa, is_list = arrow(), arrow().types.is_large_list(array.type)
    inner = array.type.value_type if is_list else array.type
    if pa.types.is_temporal(inner):
        number = pa.int32() if pa.types.is_date(inner) else pa.int64()
        array = array.cast(pa.large_list(number) if is_list else number)
    values: list[Any] = array.to_pylist()
    return values


def _change(path: Path, number: int, line: bytes) -> Mapping[str, Any] | None:
    """What a line says; None if it does not match its checksum."""
    digest, *parts = line.split(b"\t")
    if digest != _digest(path, number, *parts):
        return None
    change, columns = map(json.loads, parts)
    matrices = {name: b64decode(change[name]) for name in ("codes", FLOATS) if name in change}
    return {**change, **matrices, "columns": columns}


def _digest(path: Path, number: int, *parts: bytes) -> bytes:
    text = b"\t".join([path.name.encode(), b"%d" % number, *parts])
    return hashlib.sha256(text).hexdigest().encode()


def _text(array: Any) -> str:
    return b64encode(np.asarray(array).tobytes()).decode()


def _matrix(changes: Any, name: str, width: int) -> Any:
    content = b"".join([change[name] for change in changes])
    return np.frombuffer(content, np.uint8).reshape(-1, width)
