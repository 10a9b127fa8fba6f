"""A collection, divided into spans of rows that workers open and search."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder
from embits.collection.manifest import Manifest, Piece
from embits.collection.parquet import coder_at, manifest_at, parquet_rows
from embits.collection.pieces import (
    MissingPieceError,
    OpenPiece,
    joined_codes,
    joined_words,
    open_one,
)
from embits.errors import FormatError, InputError
from embits.file.parquet_codes import is_address
from embits.ids.pieces import PieceWords
from embits.integrations.ray.steps import SharedCoder
from embits.search.pieces import CodePieces

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 22  # of a span; a Parquet piece is never divided
SPANS_PER_CPU = 4  # within these limits; workers then finish at about the same time
_MAX_OPEN = 2  # spans that a worker keeps open


@dataclass(frozen=True)
class Span:
    """Rows of a collection that follow each other: whole pieces, or a part of one.

    Attributes:
        job: A token of the job. A worker that serves several jobs opens the files for each.
        folder: The path or address of the collection.
        numbered: The ids of the rows are numbers.
        pieces: What the manifest says of the pieces.
        skipped: Rows of the piece before the span; removed rows do not count here.
        first: The row of the collection with which the span starts.
        rows: How many rows it has.
    """

    job: str
    folder: str
    numbered: bool
    pieces: tuple[Piece, ...]
    skipped: int
    first: int
    rows: int

    @property
    def stop(self) -> int:
        """The row of the collection after the last one of the span."""
        return self.first + self.rows


class OpenSpan(NamedTuple):
    """A span that is mapped, or read from Parquet.

    Attributes:
        codes: The codes of its rows.
        words: The ids of the rows of its pieces.
        skipped: As in `Span`.
    """

    codes: CodePieces
    words: PieceWords
    skipped: int

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows, counted from the first one of the span."""
        return self.words.names(rows + self.skipped)

    def find(self, ids: list[str]) -> NDArray[np.int64]:
        """The rows of ids, counted from the first one of the span; -1 if they are not in it."""
        rows = self.words.find_many(ids) - self.skipped
        return np.where((rows >= 0) & (rows < len(self.codes)), rows, -1)


class SpreadCollection:
    """A collection as it was when the job started.

    Raises:
        FormatError: It is not a collection, or is damaged.
        InputError: It is in an object store and has pieces that are not Parquet.
    """

    def __init__(self, address: str | os.PathLike[str]) -> None:
        text = os.fspath(address)
        self.address = text if is_address(text) else str(Path(text).resolve())
        self.manifest: Manifest = manifest_at(self.address)
        self.coder: Coder = coder_at(self.address)
        if is_address(text) and any(p.header or p.removed for p in self.manifest.pieces):
            raise InputError(f"{text}: copy the collection to a disk that all workers share")

    def __len__(self) -> int:
        return self.manifest.rows

    def spans(self, n_cpus: int) -> list[Span]:
        """Divide the rows into spans of about equal size, in row order."""
        wanted = min(MAX_ROWS, max(MIN_ROWS, -(-len(self) // (SPANS_PER_CPU * n_cpus))))
        known = uuid4().hex, self.address, self.manifest.ids == "numbers"
        spans, first = [], 0
        for pieces, skipped, rows in _divided(self.manifest.pieces, wanted):
            spans.append(Span(*known, pieces, skipped, first, rows))
            first += rows
        return spans

    def explain(self, error: FormatError) -> Exception:
        """The error of a worker, or that the collection was changed while the job ran."""
        if manifest_at(self.address) == self.manifest:
            return error
        return InputError(f"{self.address} was changed while the job ran: run it again")


def _divided(
    pieces: tuple[Piece, ...], wanted: int
) -> Iterator[tuple[tuple[Piece, ...], int, int]]:
    """Small pieces together, and parts of large ones: pieces, skipped rows and rows."""
    small: list[Piece] = []
    for piece in (piece for piece in pieces if piece.live):
        together = sum(each.live for each in small)
        if small and together + piece.live > wanted:
            yield tuple(small), 0, together
            small = []
        if piece.live <= wanted or piece.header is None:
            small.append(piece)
            continue
        for part in np.array_split(np.arange(piece.live), -(-piece.live // wanted)):
            yield (piece,), int(part[0]), len(part)
    if small:
        yield tuple(small), 0, sum(each.live for each in small)


def open_span(span: Span, coder: SharedCoder) -> OpenSpan:
    """Open a span in a worker, which keeps the last ones open.

    Raises:
        FormatError: A file is missing or damaged.
    """
    if span not in _open:
        while len(_open) >= _MAX_OPEN:
            del _open[next(iter(_open))]
        _open[span] = _opened(span, coder.get())
    return _open[span]


_open: dict[Span, OpenSpan] = {}


def _opened(span: Span, coder: Coder) -> OpenSpan:
    try:
        pieces = [_open_piece(span.folder, piece, coder) for piece in span.pieces]
    except MissingPieceError as error:
        raise FormatError(str(error)) from None  # Ray's errors are of the types in embits.errors
    codes, words = joined_codes(pieces), joined_words(pieces, numbered=span.numbered)
    if span.rows == len(codes):
        return OpenSpan(codes, words, 0)
    ends = codes.rows.stored(np.array([span.skipped, span.skipped + span.rows - 1]))
    start, stop = int(ends[0]), int(ends[1]) + 1
    part = CodePieces([codes.arrays[0][start:stop]], codes.rows.removed_in(start, stop))
    return OpenSpan(part, words, span.skipped)


def _open_piece(folder: str, piece: Piece, coder: Coder) -> OpenPiece:
    if is_address(folder):
        rows = parquet_rows(folder, piece, coder)
        return OpenPiece(piece, rows, np.empty(0, np.int64))
    return open_one(Path(folder), piece, coder)
