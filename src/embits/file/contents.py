"""What a file is made of: rows, coder and subwords, to and from plain tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, check_padding
from embits.coders import METHODS, Coder, is_registered
from embits.errors import FormatError, InputError
from embits.file import store
from embits.file.store import COLUMN, Contents, RowsInBlocks, open_file, with_prefix, write
from embits.ids.keys import RowNumbers
from embits.ids.packed import open_words, pack, packed_sizes
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.search.cells import Cells
from embits.segment import FLOATS, KEEPS, LENGTHS, Floats, Lengths, Segment
from embits.snapshot import Snapshot

_LENGTHS_BYTES = 8  # of `subwords.lengths`

Parts: TypeAlias = tuple[Segment, Coder, Subwords | None]


class ByteCounts(NamedTuple):
    """Where the bytes of a file are; the header, of about 2 KB, is not counted."""

    codes: int
    words: int  # or ids
    order: int  # the rows of the words in their order, by which they are looked up
    coder: int  # what it has learned
    subwords: int  # the n-grams of fastText, for unknown words
    lengths: int = 0  # of the vectors
    cells: int = 0  # with the row of each code
    floats: int = 0  # the vectors themselves, if they are kept
    columns: int = 0  # of a collection

    @property
    def total(self) -> int:
        return sum(self)


def byte_counts(rows: Snapshot) -> ByteCounts:
    """Bytes of a file of these rows. Those of a collection are counted where they are."""
    ids, values, subwords = rows.ids, rows.values, rows.subwords
    text, order = packed_sizes(ids) if isinstance(ids, Vocabulary) else ids.byte_sizes
    cells = [segment.cells.tensors for segment in rows.segments if segment.cells is not None]
    return ByteCounts(
        codes=rows.codes.width * len(rows),
        words=text,
        order=order,
        coder=sum(array.nbytes for array in rows.coder.state().values()),
        subwords=0 if subwords is None else subwords.nbytes + _LENGTHS_BYTES,
        lengths=len(rows) if LENGTHS in values else 0,
        cells=sum(array.nbytes for tensors in cells for array in tensors.values()),
        floats=math.prod(values[FLOATS].records.shape) if FLOATS in values else 0,
        columns=rows.columns.nbytes if rows.kinds else 0,
    )


def to_contents(
    rows: Segment, coder: Coder, subwords: Subwords | None = None, *, with_coder: bool = True
) -> Contents:
    """The tensors and facts that a file holds."""
    if not is_registered(coder):
        name = type(coder).__name__
        raise InputError(f"{name} is not registered: call embits.register_coder({name}) first")
    check_padding(rows.codes, coder.n_bits_)
    state = coder.state() if with_coder else {}
    tensors: dict[str, Any] = {f"{store.CODER}{name}": array for name, array in state.items()}
    tensors |= {} if rows.cells is None else rows.cells.tensors
    tensors |= pack(rows.ids) if isinstance(rows.ids, Vocabulary) else {}
    parts = {} if subwords is None else subwords.to_tensors()
    tensors |= {f"subwords.{name}": array for name, array in parts.items()}
    lengths, floats = rows.columns.get(LENGTHS), rows.columns.get(FLOATS)
    if lengths is not None:
        tensors[LENGTHS] = lengths.steps
    if floats is not None:
        dtype = np.dtype("<f2" if floats.keep == KEEPS[0] else np.uint8)
        tensors[FLOATS] = RowsInBlocks(floats.records, dtype)
    for name, column in rows.columns.items():
        if name in (LENGTHS, FLOATS):
            continue
        is_array = isinstance(column, np.ndarray) and column.ndim == 1
        if not is_array or not store.is_stored(column.dtype):
            hint = 'leave columns out by bits.slim(without=["columns"])'
            raise InputError(f"only collections hold the values of column {name!r}: {hint}")
        tensors[f"{COLUMN}{name}"] = column
    lacks = {"coder": coder.is_left_out, "subwords": rows.ids.lacks_subwords and subwords is None}
    left_out = tuple(name for name, is_lacking in lacks.items() if is_lacking)
    about = coder.n_bits_, coder.n_features_in_, coder.method, coder.get_params()
    base = None if lengths is None else lengths.base
    # Readers of version 2 ignore columns and whitening, and call 8-bit numbers of a coder damaged.
    is_new = bool(rows.columns) or "whitening" in state
    is_new |= any(array.dtype == np.int8 for array in state.values())
    version = store.VERSION_WITH_MORE if is_new else store.VERSION
    if rows.cells is not None:  # which they would take for codes in row order
        version = store.VERSION_WITH_CELLS
    return Contents(
        rows.codes, *about, tensors, version=version, left_out=left_out, lengths_base=base
    )


def open_parts(path: Path, *, verify: bool = False, mapped: bool = True) -> Parts:
    """Open a file: its rows, coder and subwords. The options are those of `open_file`."""
    with _opened(path, verify, mapped) as contents:
        method, subwords = contents.method, with_prefix("subwords.", contents.tensors)
        if method not in METHODS:
            hint = "import the module that registers it (embits.register_coder), then load the file"
            found = f"its coder has the method {shortened(method)}, which is not registered here"
            raise FormatError(f"{found}: {hint}")
        state = with_prefix(store.CODER, contents.tensors)
        is_left_out = "coder" in contents.left_out and not state
        known = contents.dims, contents.n_bits
        try:
            rows, kind = _rows(contents, verify), METHODS[method]
            rows.ids.lacks_subwords = "subwords" in contents.left_out
            if is_left_out:
                coder = kind.left_out(contents.params, *known)
            else:
                coder = kind.from_state(contents.params, state, *known)
                if verify:
                    coder.check_learned()
            return rows, coder, Subwords.from_tensors(subwords, known[0]) if subwords else None
        except (InputError, TypeError) as error:
            none = "it has no coder: it is a piece of a collection; open the folder"
            raise FormatError(f"damaged: {error!s:.300}" if state else none) from None


def verify_unless_replaced(path: Path, opened: os.stat_result) -> None:
    """Check every byte of a mapped file, unless another is there now than was `opened`, or none."""
    with suppress(FileNotFoundError):
        if os.path.samestat(path.stat(), opened):
            open_parts(path, verify=True)


def write_piece(path: Path, rows: Segment, coder: Coder, like: Path) -> None:
    """Write a piece of a collection, with the permissions of `like`: rows, without their coder."""
    write(path, to_contents(rows, coder, with_coder=False), like=like)


def open_piece(path: Path, coder: Coder, *, verify: bool = False, mapped: bool = True) -> Segment:
    with _opened(path, verify, mapped) as contents:
        found = contents.method, contents.n_bits, contents.dims
        expected = coder.method, coder.n_bits_, coder.n_features_in_
        if found != expected:
            codes, other = (
                f"of {shortened(method)}, {n_bits} bits from {dims} dimensions"
                for method, n_bits, dims in (found, expected)
            )
            raise FormatError(f"codes {codes}, not {other}")
        return _rows(contents, verify)


def write_coder(path: Path, coder: Coder) -> None:
    """Write a file that holds a coder and no codes."""
    codes = np.empty((0, coder.n_bytes_), np.uint8)
    write(path, to_contents(Segment(RowNumbers(0), codes), coder), like=path)


def read_coder(path: Path, *, verify: bool = False, mapped: bool = True) -> Coder:
    """The coder of a file, with or without codes; see `open_parts`."""
    return open_parts(path, verify=verify, mapped=mapped)[1]


@contextmanager
def _opened(path: Path, verify: bool, mapped: bool) -> Iterator[Contents]:
    """What a file holds; errors that are raised meanwhile name it."""
    contents = open_file(path, verify=verify, mapped=mapped)
    try:
        if contents.text is not None:
            raise FormatError("it is a text encoder: open it with embits.TextEncoder.load")
        yield contents
    except FormatError as error:
        error.path = str(path)
        raise


def _rows(contents: Contents, verify: bool) -> Segment:
    tensors, n = contents.tensors, len(contents.codes)
    ids = open_words(tensors, n) if contents.version > 1 else _words_of_version_1(tensors)
    if ids is not None and len(ids) != n:
        raise FormatError(f"damaged: {len(ids)} ids for {n} codes")
    if ids is not None and verify:
        ids.verify()
    columns: dict[str, Any] = with_prefix(COLUMN, tensors)
    for name, column in columns.items():
        if column.shape != (n,):
            raise FormatError(f"damaged: the column {name!r} has shape {column.shape} for {n} rows")
    if contents.lengths_base is not None:
        columns[LENGTHS] = Lengths(tensors[LENGTHS], contents.lengths_base)
    if FLOATS in tensors:
        kept = tensors[FLOATS]
        keep, width = (KEEPS[0], 0) if kept.dtype == np.float16 else (KEEPS[1], 4)
        if kept.shape != (n, contents.dims + width) or kept.dtype not in (np.float16, np.uint8):
            raise FormatError(f"damaged: floats are {kept.dtype} of shape {kept.shape}")
        columns[FLOATS] = Floats(kept.view(np.uint8), keep)
        for rows in blocks(n) if verify and width else ():
            if not np.isfinite(np.ascontiguousarray(kept[rows, :4]).view("<f4")).all():
                raise FormatError("damaged: the scales of floats hold NaN or infinity")
    cells = None
    parts = with_prefix(store.CELLS, tensors)
    if bool(parts) != (contents.version == store.VERSION_WITH_CELLS):
        raise FormatError(f"damaged: cells in format version {contents.version}, or none in 4")
    if parts:
        cells = Cells.opened(parts, n, contents.n_bits)
        if verify:
            cells.verify(contents.codes)
    return Segment(RowNumbers(n) if ids is None else ids, contents.codes, columns, cells)


def _words_of_version_1(tensors: Mapping[str, NDArray[Any]]) -> Vocabulary | None:
    arrays = [tensors[name] for name in ("words", "word_ends", "word_order") if name in tensors]
    if not arrays:
        return None
    if len(arrays) < 3 or min(array.dtype.itemsize for array in arrays[1:]) < 4:
        raise FormatError("damaged: words, word_ends or word_order is missing or of a wrong type")
    words = Vocabulary(*arrays)
    words.is_stored = True
    return words
