"""What a file is made of: rows, coder and subwords, to and from plain tensors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import check_padding
from embits.coders import METHODS, Coder, is_registered
from embits.errors import FormatError, InputError
from embits.file.store import COLUMN, Contents, is_stored, open_file, write
from embits.ids.keys import RowNumbers
from embits.ids.packed import open_words, pack, packed_sizes
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.rows import LENGTHS, Lengths, Rows

_LENGTHS_BYTES = 8  # of `subwords.lengths`

Parts: TypeAlias = tuple[Rows, Coder, Subwords | None]


class ByteCounts(NamedTuple):
    """Where the bytes of a file are; the header, of about 2 KB, is not counted.

    Attributes:
        codes: The packed codes.
        words: The words or ids.
        order: The rows of the words in their order, by which they are looked up.
        coder: What the coder has learned.
        subwords: The n-grams of fastText, for unknown words.
        lengths: The lengths of the vectors.
    """

    codes: int
    words: int
    order: int
    coder: int
    subwords: int
    lengths: int = 0

    @property
    def total(self) -> int:
        """All of them together."""
        return sum(self)


def byte_counts(rows: Rows, coder: Coder, subwords: Subwords | None) -> ByteCounts:
    """Bytes of each part in a file."""
    text, order = packed_sizes(rows.ids) if isinstance(rows.ids, Vocabulary) else (0, 0)
    return ByteCounts(
        codes=rows.codes.nbytes,
        words=text,
        order=order,
        coder=sum(array.nbytes for array in coder.state().values()),
        subwords=0 if subwords is None else subwords.nbytes + _LENGTHS_BYTES,
        lengths=len(rows) if LENGTHS in rows.columns else 0,
    )


def to_contents(rows: Rows, coder: Coder, subwords: Subwords | None = None) -> Contents:
    """The tensors and facts that a file holds."""
    if not is_registered(coder):
        name = type(coder).__name__
        raise InputError(
            f"{name} is not registered, so a file with it could not be loaded: call "
            f"embits.register_coder({name}) first"
        )
    codes = np.asarray(rows.codes)
    check_padding(codes, coder.n_bits_)
    tensors = {f"coder.{name}": array for name, array in coder.state().items()}
    if isinstance(rows.ids, Vocabulary):
        tensors |= pack(rows.ids)
    if subwords is not None:
        tensors |= {f"subwords.{name}": a for name, a in subwords.to_tensors().items()}
    lengths = rows.columns.get(LENGTHS)
    for name, column in rows.columns.items():
        tensors |= {LENGTHS: column.steps} if name == LENGTHS else _column(name, column)
    lacks = {"coder": coder.is_left_out, "subwords": rows.ids.lacks_subwords and subwords is None}
    return Contents(
        codes=codes,
        n_bits=coder.n_bits_,
        dims=coder.n_features_in_,
        method=coder.method,
        params=coder.get_params(),
        tensors=tensors,
        left_out=tuple(name for name, is_lacking in lacks.items() if is_lacking),
        lengths_base=None if lengths is None else lengths.base,
    )


def open_parts(path: Path, *, verify: bool = False, mapped: bool = True) -> Parts:
    """Open a file: its rows, coder and subwords.

    Args:
        path: The file.
        verify: Read every byte and check it against the checksums first.
        mapped: Map the file; otherwise, read it into memory.
    """
    contents = open_file(path, verify=verify, mapped=mapped)
    try:
        parts = from_contents(contents)
        if verify and isinstance(parts[0].ids, Vocabulary):
            parts[0].ids.verify()
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    return parts


def verify_unless_replaced(path: Path, opened: os.stat_result) -> None:
    """Check every byte of a file that is mapped.

    Args:
        path: The file.
        opened: What `stat` said of it when it was opened. If another file is there now, or none,
            the mapped one cannot be checked.
    """
    with suppress(FileNotFoundError):
        if os.path.samestat(path.stat(), opened):
            open_parts(path, verify=True)


def write_piece(path: Path, rows: Rows, coder: Coder) -> None:
    """Write a piece of a collection: rows, without the coder that the pieces share."""
    contents = to_contents(rows, coder)
    contents = replace(contents, tensors=_without("coder.", contents.tensors))
    write(path, contents, through_links=False)


def open_piece(path: Path, coder: Coder, *, verify: bool = False, mapped: bool = True) -> Rows:
    """Open a piece of a collection."""
    contents = open_file(path, verify=verify, mapped=mapped)
    found = contents.method, contents.n_bits, contents.dims
    expected = coder.method, coder.n_bits_, coder.n_features_in_
    if found != expected:
        raise FormatError(f"{path}: codes of {_described(*found)}, not of {_described(*expected)}")
    try:
        rows = _rows(contents)
        if verify and isinstance(rows.ids, Vocabulary):
            rows.ids.verify()
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    return rows


def _described(method: str, n_bits: int, dims: int) -> str:
    return f"{shortened(method)}, {n_bits} bits from {dims} dimensions"


def write_coder(path: Path, coder: Coder) -> None:
    """Write a file that holds a coder and no codes."""
    codes = np.empty((0, coder.n_bytes_), np.uint8)
    write(path, to_contents(Rows(RowNumbers(0), codes), coder), through_links=False)


def read_coder(path: Path, *, verify: bool = False, mapped: bool = True) -> Coder:
    """The coder of a file, with or without codes; see `open_parts`."""
    return open_parts(path, verify=verify, mapped=mapped)[1]


def from_contents(contents: Contents) -> Parts:
    """The objects behind an opened file; its tensors stay mapped."""
    subwords = _group("subwords.", contents.tensors)
    if contents.method not in METHODS:
        raise FormatError(
            f"its coder has the method {shortened(contents.method)}, which is not registered here: "
            "import the module that registers it (embits.register_coder), then load the file"
        )
    try:
        rows = _rows(contents)
        rows.ids.lacks_subwords = "subwords" in contents.left_out
        coder = _coder(contents)
        return rows, coder, Subwords.from_tensors(subwords, contents.dims) if subwords else None
    except (InputError, TypeError) as error:
        if not _group("coder.", contents.tensors):
            raise FormatError(
                "it has no coder: it is a piece of a collection; open the folder"
            ) from None
        raise FormatError(f"damaged: {error!s:.300}") from None


def _coder(contents: Contents) -> Coder:
    method, state = METHODS[contents.method], _group("coder.", contents.tensors)
    if "coder" in contents.left_out and not state:
        return method.left_out(contents.params, contents.dims, contents.n_bits)
    return method.from_state(contents.params, state, contents.dims, contents.n_bits)


def _rows(contents: Contents) -> Rows:
    ids, n = _words(contents), len(contents.codes)
    if len(ids) != n:
        raise FormatError(f"damaged: {len(ids)} ids for {n} codes")
    columns: dict[str, Any] = _group(COLUMN, contents.tensors)
    for name, column in columns.items():
        if column.shape != (n,):
            raise FormatError(f"damaged: the column {name!r} has shape {column.shape} for {n} rows")
    if contents.lengths_base is not None:
        columns[LENGTHS] = Lengths(contents.tensors[LENGTHS], contents.lengths_base)
    return Rows(ids, contents.codes, columns)


def _column(name: str, column: Any) -> dict[str, NDArray[Any]]:
    """The tensor of a column."""
    if not isinstance(column, np.ndarray) or column.ndim != 1 or not is_stored(column.dtype):
        kind = f"{getattr(column, 'dtype', type(column).__name__)}"
        raise InputError(
            f"the column {name!r} is of {kind}; files hold columns of unsigned integers and floats"
        )
    return {f"{COLUMN}{name}": column}


def _words(contents: Contents) -> Vocabulary | RowNumbers:
    n = len(contents.codes)
    if contents.version > 1:
        words = open_words(contents.tensors, n)
        return RowNumbers(n) if words is None else words
    return _words_of_version_1(contents)


def _words_of_version_1(contents: Contents) -> Vocabulary | RowNumbers:
    arrays = [contents.tensors.get(name) for name in ("words", "word_ends", "word_order")]
    if all(array is None for array in arrays):
        return RowNumbers(len(contents.codes))
    text, ends, order = arrays
    if text is None or ends is None or order is None:
        raise FormatError("damaged: one of words, word_ends and word_order is missing")
    words = Vocabulary(text, ends, order)
    words.is_stored = True
    return words


def _without(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: array for name, array in tensors.items() if not name.startswith(prefix)}


def _group(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }
