"""A job over the spans of a collection: windows of queries, each searched in all spans."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import ray
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.errors import FormatError
from embits.integrations.ray.answers import (
    Nearest,
    WithinDistance,
    WithinScore,
    answer,
    names_of,
    rows_of,
)
from embits.integrations.ray.failures import plain_errors
from embits.integrations.ray.merging import Ragged, TopK
from embits.integrations.ray.queries import Queries, QueryBlock, prepare
from embits.integrations.ray.spans import Span, SpreadCollection
from embits.integrations.ray.steps import SharedCoder
from embits.integrations.ray.tasks import n_processors, run_tasks
from embits.search.filters import Filters, Selection, check_state, found_rows, parse_filters

MAX_BLOCKS = 8  # of a window; a Parquet piece is read once for all of them

Merged: TypeAlias = TopK | Ragged
Window: TypeAlias = list[tuple[QueryBlock, Merged]]


class SpreadJob:
    """The spans of a collection, and what is asked of the workers."""

    def __init__(
        self, address: str | os.PathLike[str], workers: int | None, progress: Progress | None
    ) -> None:
        self.collection = SpreadCollection(address)
        self.workers = workers
        self._progress = progress
        self.spans: list[Span] = self.collection.spans(n_processors(workers))
        self.coder = SharedCoder(self.collection.coder)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the errors of workers as those of one machine."""
        try:
            with plain_errors():
                yield
        except FormatError as error:
            raise self.collection.explain(error) from None

    def run(self, function: Callable[..., Any], calls: Any) -> Iterator[Any]:
        """Run tasks; gives their results as they finish."""
        with contextlib.closing(run_tasks(function, calls, self.workers)) as results:
            yield from results

    def report(self, done: int, total: int) -> None:
        """Show the progress."""
        if self._progress is not None:
            self._progress(done, total)

    def filters(self, queries: Queries, where: Any, exclude: Any) -> Filters:
        """Parse filters of the whole collection; workers look up ids.

        Raises:
            InputError: A filter does not fit, or was selected before the collection changed.
        """
        check_state(self.collection.manifest, where=where, exclude=exclude)
        return parse_filters(len(self.collection), (queries.n,), where, exclude, self._find)

    def _find(self, name: str, ids: list[str]) -> NDArray[np.int64]:
        shared = ray.put(ids)
        rows = np.full(len(ids), -1, np.int64)
        calls = ((span, self.coder, shared) for span in self.spans)
        for found in self.run(rows_of, calls):
            rows = np.maximum(rows, found)
        return found_rows(name, ids, rows)

    def windows(
        self,
        queries: Queries,
        metric: str,
        question: Nearest | WithinDistance | WithinScore,
        filters: Filters,
        merger: Callable[[int], Merged],
    ) -> Iterator[Window]:
        """The merged results of blocks of queries, in order, some blocks at a time."""
        blocks = queries.blocks()
        total = max(queries.n * len(self.collection), 1)
        done = 0
        while window := list(islice(blocks, MAX_BLOCKS)):
            task = ray.remote(num_cpus=1, max_retries=-1)(prepare)
            prepared = [task.remote(self.coder, block.vectors, metric) for block in window]
            merged = [merger(len(block.vectors)) for block in window]
            calls = (
                (number, question, span, self.coder, prepared[number], where)
                for span in self.spans
                for number, where in self._parts(span, window, filters)
            )
            for number, rows, found in self.run(answer, calls):
                merged[number].add(found)
                done += rows * len(window[number].vectors)
                self.report(min(done, total), total)
            for each in merged:
                each.finish()
            yield list(zip(window, merged, strict=True))
        self.report(total, total)

    def _parts(
        self, span: Span, window: list[QueryBlock], filters: Filters
    ) -> Iterator[tuple[int, Any]]:
        """The blocks to search in a span, and their filters of its rows."""
        if isinstance(filters, list):
            for number, block in enumerate(window):
                some = filters[block.first : block.stop]
                yield number, [each.between(span.first, span.stop) for each in some]
            return
        part: Selection | None = None
        if filters is not None:
            part = filters.between(span.first, span.stop)
            if not len(part):
                return
        shared = None if part is None else ray.put(part)
        yield from ((number, shared) for number in range(len(window)))

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of rows of the collection, which may repeat."""
        different, places = np.unique(rows, return_inverse=True)
        numbered = self.collection.manifest.ids == "numbers"
        names = np.empty(len(different), np.int64 if numbered else object)
        cuts = np.searchsorted(different, [span.first for span in self.spans] + [2**62])
        calls = (
            (np.arange(start, stop), span, self.coder, different[start:stop])
            for span, start, stop in zip(self.spans, cuts[:-1], cuts[1:], strict=True)
            if stop > start
        )
        for where, found in self.run(names_of, calls):
            names[where] = found
        return names[places]
