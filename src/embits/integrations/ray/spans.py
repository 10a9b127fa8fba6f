"""A collection, divided into spans of rows that workers open and search."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.coders import Coder
from embits.collection.manifest import Manifest
from embits.collection.parquet import coder_at, manifest_at, parquet_rows
from embits.collection.pieces import (
    OpenPiece,
    joined_codes,
    joined_columns,
    joined_words,
    open_one,
)
from embits.errors import FormatError, InputError
from embits.file.parquet_codes import is_address
from embits.ids.vocabulary import PieceWords
from embits.integrations.ray.tasks import n_processors, plain_errors, run_tasks, shared
from embits.rows import LENGTHS, Lengths
from embits.search.pieces import CodePieces

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 22  # of a span; a Parquet piece is never divided
SPANS_PER_CPU = 4  # within these limits; workers then finish at about the same time


class Span(NamedTuple):
    """The rows `first` to `stop - 1` of a collection; `job` is what `Spread` shares of it."""

    job: ray.ObjectRef
    first: int
    stop: int


class OpenSpan(NamedTuple):
    """A span that is mapped, or read from Parquet."""

    codes: CodePieces
    ids: PieceWords  # of all rows of its pieces
    skipped: int  # rows of its pieces before the span
    lengths: Lengths | None

    def row_lengths(self, least: float | None) -> tuple[Any, Any]:
        """The lengths of its rows, and of all stored ones, from `least` on; None ignores them."""
        if self.lengths is None or least is None:
            return None, None
        found = self.lengths.floats
        found = np.where(found > 0, np.maximum(found, np.float32(least)), found)
        stored = np.zeros(self.codes.rows.n_stored, np.float32)
        stored[self.codes.rows.stored(np.arange(len(found)))] = found
        return found, stored


@lru_cache(maxsize=2)  # spans that a worker keeps open
def open_span(span: Span) -> OpenSpan:
    """Open a span in a worker; FormatError if a file is missing or damaged."""
    return _opened(span, *shared(span.job))


def _opened(span: Span, folder: str, manifest: Manifest, coder: Coder) -> OpenSpan:
    starts = piece_starts(manifest)
    first, last = np.searchsorted(starts, [span.first, span.stop - 1], side="right") - 1
    entries = [entry for entry in manifest.pieces[first : last + 1] if entry.live]
    if is_address(folder):
        none = np.empty(0, np.int64)
        pieces = [OpenPiece(each, parquet_rows(folder, each, coder), none) for each in entries]
    else:
        pieces = [open_one(Path(folder), each, coder) for each in entries]
    codes, ids = joined_codes(pieces), joined_words(pieces, numbered=manifest.ids == "numbers")
    skipped = span.first - int(starts[first])
    ends = np.array([skipped, skipped + span.stop - span.first - 1])
    start, last_row = codes.rows.stored(ends).tolist()
    stop, firsts = last_row + 1, codes.starts[:-1].tolist()
    arrays = [a[max(start - s, 0) : stop - s] for a, s in zip(codes.arrays, firsts, strict=True)]
    lengths = joined_columns(pieces).get(LENGTHS)
    if lengths is not None:
        lengths = lengths[skipped : skipped + span.stop - span.first]
    part = CodePieces(arrays, codes.rows.removed_in(start, stop))
    return OpenSpan(part, ids, skipped, lengths)


def piece_starts(manifest: Manifest) -> NDArray[np.int64]:
    """The first row of each piece, and the number of rows."""
    return np.cumsum([0, *(piece.live for piece in manifest.pieces)])


class Spread:
    """A collection as it was when the job started, and what is asked of the workers."""

    def __init__(
        self,
        address: str | os.PathLike[str],
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        text = os.fspath(address)
        self.address = text if is_address(text) else str(Path(text).resolve())
        self.manifest, self.coder = manifest_at(self.address), coder_at(self.address)
        if is_address(text) and any(p.header or p.removed for p in self.manifest.pieces):
            raise InputError(f"{text}: copy the collection to a disk that all workers share")
        self._parts = self.address, self.manifest, self.coder
        self.workers, self.report = workers, progress or (lambda done, total: None)
        self.n_cpus = n_processors(workers)
        self.spans = self.divided(self.n_cpus)

    def __len__(self) -> int:
        return self.manifest.rows

    def divided(self, n_cpus: int) -> list[Span]:
        """The rows in spans of about equal size, in row order."""
        wanted = min(MAX_ROWS, max(MIN_ROWS, -(-len(self) // (SPANS_PER_CPU * n_cpus))))
        cuts = np.linspace(0, len(self), -(-len(self) // wanted) + 1).astype(np.int64)
        starts = piece_starts(self.manifest)
        owners = np.searchsorted(starts, cuts, side="right") - 1
        is_mapped = np.array([*(piece.header is not None for piece in self.manifest.pieces), True])
        cuts = np.unique(np.where(is_mapped[owners], cuts, starts[owners])).tolist()
        job = ray.put(self._parts)
        return [Span(job, *ends) for ends in pairwise(cuts)]

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the errors of workers as those of one machine."""
        try:
            with plain_errors():
                yield
        except FormatError:
            if manifest_at(self.address) == self.manifest:
                raise
            changed = f"{self.address} was changed while the job ran: run it again"
            raise InputError(changed) from None

    def least_length(self) -> float:
        """The length that shorter vectors get when one machine joins the lengths of all pieces."""
        calls = ((span,) for span in self.spans)
        return max((least for _, least in run_tasks(_least_length, calls, self.workers)), default=0)

    def rows_of_ids(self, ids: list[str]) -> NDArray[np.int64]:
        """The rows of ids; -1 for ids that are not there. Workers look them up."""
        rows, listed = np.full(len(ids), -1, np.int64), ray.put(ids)
        calls = ((span, listed) for span in self.spans)
        for _, found in run_tasks(_rows_of, calls, self.workers):
            rows = np.maximum(rows, found)
        return rows

    def names(self, rows: NDArray[np.int64], by_workers: bool = False) -> NDArray[Any]:
        """The ids of rows, which may repeat; read in this process, or by workers."""
        different, places = np.unique(rows, return_inverse=True)
        parts = np.split(different, np.searchsorted(different, [s.first for s in self.spans[1:]]))
        calls = [(s, part) for s, part in zip(self.spans, parts, strict=False) if len(part)]
        if by_workers:
            found = dict(run_tasks(_ids_of, calls, self.workers))
        else:  # also after the cluster was stopped
            opened = ((_opened(span, *self._parts), span, part) for span, part in calls)
            found = {number: _ids_in(*each) for number, each in enumerate(opened)}
        none = np.empty(0, np.int64 if self.manifest.ids == "numbers" else object)
        return np.concatenate([none, *(found[number] for number in range(len(calls)))])[places]


def _least_length(span: Span) -> float:
    lengths = open_span(span).lengths
    if lengths is None:
        raise InputError("the rows have no lengths: encode them with lengths=True (--lengths)")
    return 2.0**lengths.base if lengths.steps.any() else 0.0


def _rows_of(span: Span, ids: list[str]) -> NDArray[np.int64]:
    """The rows of ids that are in a span; -1 for others. Runs in a worker."""
    opened = open_span(span)
    rows = opened.ids.find_many(ids) - opened.skipped
    return np.where((rows >= 0) & (rows < len(opened.codes)), rows + span.first, -1)


def _ids_of(span: Span, rows: NDArray[np.int64]) -> NDArray[Any]:
    """The ids of rows of a span. Runs in a worker."""
    return _ids_in(open_span(span), span, rows)


def _ids_in(opened: OpenSpan, span: Span, rows: NDArray[np.int64]) -> NDArray[Any]:
    return opened.ids.names(rows - span.first + opened.skipped)
