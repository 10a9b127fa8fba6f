"""A collection, divided into spans of rows that workers open and search."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
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
from embits.integrations.ray.tasks import gathered, n_processors, plain_errors, shared
from embits.rows import LENGTHS

MIN_ROWS, MAX_ROWS = 1 << 16, 1 << 22  # of a span; a Parquet piece is never divided
SPANS_PER_CPU = 4  # within these limits; workers then finish at about the same time


class Span(NamedTuple):
    """The rows `first` to `stop - 1` of a collection; `job` is what `Spread` shares of it."""

    job: ray.ObjectRef
    first: int
    stop: int


class OpenSpan:
    """A span that is mapped, or read from Parquet; FormatError if a file is missing or damaged."""

    def __init__(self, span: Span, folder: str, manifest: Manifest, coder: Coder) -> None:
        starts = piece_starts(manifest)
        first, last = np.searchsorted(starts, [span.first, span.stop - 1], side="right") - 1
        entries = [entry for entry in manifest.pieces[first : last + 1] if entry.live]
        if is_address(folder):
            none = np.empty(0, np.int64)
            pieces = [OpenPiece(each, parquet_rows(folder, each, coder), none) for each in entries]
        else:
            pieces = [open_one(Path(folder), each, coder) for each in entries]
        self.first, self._skipped = span.first, span.first - int(starts[first])
        self._rows = slice(self._skipped, self._skipped + span.stop - span.first)
        self._pieces = pieces
        self._ids = joined_words(pieces, numbered=manifest.ids == "numbers")

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Packed codes; a copy if rows are removed or the span is of several pieces."""
        return joined_codes(self._pieces)[self._rows]

    def lengths(self, least: float) -> NDArray[np.float32]:
        """The lengths of the vectors, those that are not 0 from `least` on."""
        lengths = joined_columns(self._pieces)[LENGTHS][self._rows].floats
        return np.where(lengths > 0, np.maximum(lengths, np.float32(least)), lengths)

    def least_length(self) -> float:
        """The shortest length that can be stored beside the longest one."""
        lengths = joined_columns(self._pieces).get(LENGTHS)
        if lengths is None:
            raise InputError("the rows have no lengths: encode them with lengths=True (--lengths)")
        return 2.0**lengths.base if lengths[self._rows].steps.any() else 0.0

    def find(self, ids: list[str]) -> NDArray[np.int64]:
        """The rows of ids; -1 for ids that are not in this span."""
        rows = self._ids.find_many(ids)
        is_here = (rows >= self._rows.start) & (rows < self._rows.stop)
        return np.where(is_here, rows - self._skipped + self.first, -1)

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows."""
        return self._ids.names(rows - self.first + self._skipped)


@lru_cache(maxsize=2)  # spans that a worker keeps open
def open_span(span: Span) -> OpenSpan:
    """Open a span in a worker."""
    return OpenSpan(span, *shared(span.job))


def in_span(span: Span, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with a span that is open. Runs in a worker."""
    return function(open_span(span), *arguments)


def piece_starts(manifest: Manifest) -> NDArray[np.int64]:
    """The first row of each piece, and the number of rows."""
    return np.cumsum([0, *(piece.live for piece in manifest.pieces)])


class Spread:
    """A collection as it was when the job started, and what is asked of the workers."""

    def __init__(
        self, address: str | os.PathLike[str], workers: int | None, progress: Progress | None
    ) -> None:
        text = os.fspath(address)
        self.address = text if is_address(text) else str(Path(text).resolve())
        self.manifest, self.coder = manifest_at(self.address), coder_at(self.address)
        if is_address(text) and any(p.header or p.removed for p in self.manifest.pieces):
            raise InputError(f"{text}: copy the collection to a disk that all workers share")
        self._parts = self.address, self.manifest, self.coder
        self.workers, self.report = workers, progress or (lambda done, total: None)
        self.spans = self.divided(n_processors(workers))

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

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What a function returns for each open span; called by workers."""
        calls = ((span, function, *arguments) for span in self.spans)
        return gathered(in_span, calls, self.workers)

    def names(self, rows: NDArray[np.int64], by_workers: bool = False) -> NDArray[Any]:
        """The ids of rows, which may repeat; read in this process, or by workers."""
        different, places = np.unique(rows, return_inverse=True)
        parts = np.split(different, np.searchsorted(different, [s.first for s in self.spans[1:]]))
        asked = [each for each in zip(self.spans, parts, strict=False) if len(each[1])]
        if by_workers:
            calls = ((span, OpenSpan.names, part) for span, part in asked)
            found = gathered(in_span, calls, self.workers)
        else:  # also after the cluster was stopped
            found = [OpenSpan(span, *self._parts).names(part) for span, part in asked]
        none = np.empty(0, np.int64 if self.manifest.ids == "numbers" else object)
        return np.concatenate([none, *found])[places]
