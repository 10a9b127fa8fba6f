"""Run tasks on several files; what the tasks share is read and computed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.checks import whole
from embits.errors import EmbitsError, InputError
from embits.evaluation.data import DataFolder
from embits.evaluation.results import Entry
from embits.evaluation.spaces import MISSING, BitSpace, FloatSpace, Lookup, same_words
from embits.evaluation.statistics import Samples, intervals
from embits.evaluation.tasks import DEFAULT_TASKS, TASKS
from embits.evaluation.tasks.base import FitCoder, RowSplit, Subject
from embits.ids.keys import RowNumbers
from embits.vectors import WordVectors

ALL_ROWS = np.iinfo(np.int64).max
"""As a number of rows to fit on: all of them."""
_MIN_ROWS = 8  # fewer are not divided


class Evaluator:
    """Scores binary vectors, and the float vectors they were made from, on a set of tasks.

    Args:
        data: The folder of data sets, or its path. None takes the environment variable
            EMBITS_DATA if a task needs data sets.
        raw: The float vectors. They are scored as well, and neighbors and reconstruction are
            measured against them; None skips those two.
        tasks: Which of `TASKS`.
        raw_file: The file of `raw`, to measure its loading time.
        say: Called with the name of each step when it starts.
        fit_rows: Rows to fit a new coder on, to measure neighbors and reconstruction on the
            others. None is half of the rows of files without words, and measures the codes of
            other files as they are.
        n_resamples: Bootstrap replicates of each score; with any, entries have the 95 % intervals
            of their scores under "intervals".
        by_pairs: Weigh the sets of the Fisher mean by their numbers of pairs, not equally.

    Attributes:
        samples: The replicates of the last entry.

    Raises:
        InputError: A task is unknown, there is no folder of data sets, or all tasks need `raw` and
            it is None.
    """

    def __init__(
        self,
        data: DataFolder | str | os.PathLike[str] | None,
        raw: WordVectors | None = None,
        tasks: Iterable[str] = DEFAULT_TASKS,
        raw_file: Path | None = None,
        say: Callable[[str], None] | None = None,
        fit_rows: int | None = None,
        *,
        n_resamples: int = 0,
        by_pairs: bool = False,
    ) -> None:
        self.tasks = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        if set(self.tasks) - set(TASKS) or not self.tasks:
            raise InputError(f"tasks are {list(self.tasks)}, expected some of {', '.join(TASKS)}")
        self._tasks = [task for name, task in TASKS.items() if name in self.tasks]
        if raw is None and all(task.needs_raw for task in self._tasks):
            raise InputError(f"{' and '.join(self.tasks)}: the raw vectors are needed (--raw)")
        if not isinstance(raw, WordVectors | None):
            raise InputError(f"raw is a {type(raw).__name__}, expected WordVectors")
        reads_data = any(task.reads_data for task in self._tasks)
        if isinstance(data, str | os.PathLike) or (data is None and reads_data):
            data = DataFolder.at(data)
        elif not isinstance(data, DataFolder | None):
            raise InputError(f"data is a {type(data).__name__}, expected a DataFolder or a path")
        self.data = data
        self.raw = None if raw is None else FloatSpace.of(raw)
        self.raw_file = raw_file
        self.samples = Samples(n_resamples)
        self._say = say or (lambda step: None)
        self._fit_rows = fit_rows
        self._aligned = self.raw
        self._notes: dict[str, None] = {}
        self._note = self._notes.setdefault
        self._subject = partial(
            Subject, tasks=self._tasks, data=self.data, has_raw=raw is not None, by_pairs=by_pairs,
            say=self._say, note=self._note, kept={},
        )  # fmt: skip

    @property
    def notes(self) -> list[str]:
        """One line for each score that could not be measured, with the reason."""
        return [*(self.data.problems if self.data else ()), *self._notes]

    def evaluate_raw(self, *, all_sets: bool = False) -> dict[str, Any]:
        """The entry of the float vectors; `all_sets` scores retrieval sets of any dimensions."""
        if self.raw is None:
            raise InputError("no raw vectors were given, so they cannot be scored")
        self.samples = Samples(self.samples.n_resamples)
        dims = None if all_sets else self.raw.dims
        subject = self._subject(self.raw, self.samples, file=self.raw_file, dims=dims)
        return self._entry("raw", subject)

    def evaluate_bits(
        self,
        bits: BinaryVectors,
        file: Path | None = None,
        fit: FitCoder | None = None,
        split: RowSplit | None = None,
    ) -> dict[str, Any]:
        """The entry of one file of codes.

        Args:
            bits: The codes.
            file: Their file, to measure its loading time.
            fit: Fits a coder on the corpus of a retrieval set; None takes the coder of `bits`, and
                leaves out sets of other dimensions.
            split: The rows that the coder of `bits` was fitted on, and the others, which are
                measured. None fits a new coder if `fit_rows` says so.
        """
        bits = bits.merged()
        has_words_of_raw = self.raw is not None and same_words(self.raw.words, bits.words)
        space = BitSpace(bits, self.raw.lookup if self.raw and has_words_of_raw else None)
        self.samples = Samples(self.samples.n_resamples)
        raw, measured = self._raw_of(space, file), bits
        if raw is not None and split is None and any(task.needs_raw for task in self._tasks):
            measured, split = self._refitted(bits, raw)
        subject = self._subject(
            space, self.samples, file=file, bits=measured, raw=raw, split=split, fit=fit,
            dims=bits.dims if fit is None else None,
        )  # fmt: skip
        return self._entry(bits.coder.method, subject)

    def _entry(self, method: str, subject: Subject) -> Entry:
        entry: Entry = {
            "file": None if subject.file is None else str(subject.file),
            "method": method,
            "bits": subject.space.n_bits,
            "words": len(subject.space),
        }
        for task in self._tasks:
            self._say(task.name)
            found = task.run(subject)
            entry |= {} if found is None else {task.name: found}
        drawn = intervals(self.samples.replicates)
        return entry | ({"intervals": drawn} if drawn else {})

    def _raw_of(self, space: BitSpace, file: Path | None) -> FloatSpace | None:
        """The raw vectors with the rows of a file; None, and a note, if there are none."""
        names = " and ".join(task.name for task in self._tasks if task.needs_raw)
        if self.raw is None:
            return self._note(f"{names} need the raw vectors: give --raw") if names else None
        reason = ""
        if self.raw.dims != space.bits.dims:
            reason = f"raw vectors of {self.raw.dims} dimensions, expected {space.bits.dims}"
        elif self._aligned is None or not same_words(self._aligned.words, space.words):
            rows = Lookup(self.raw.words, case_insensitive=False).rows(space.words)
            if n_missing := int((rows == MISSING).sum()):
                word = space.words[int(rows.argmin())]
                reason = f"{n_missing:,} of its words have no raw vector, such as {word!r}"
            else:
                self._aligned = FloatSpace(space.words, self.raw.matrix[rows], space.lookup)
        if reason:
            skipped = f"{names} are skipped" if names else "the column raw is of other vectors"
            return self._note(f"{file or 'a file'}: {skipped}: {reason}")
        return self._aligned

    def _refitted(
        self, bits: BinaryVectors, raw: FloatSpace
    ) -> tuple[BinaryVectors, RowSplit | None]:
        """Codes of a new coder with the same parameters that is fitted on a part of the rows."""
        has_words = not isinstance(bits.words, RowNumbers)
        split = split_rows(len(raw), self._fit_rows, has_words=has_words)
        if split is None:
            return bits, None
        self._say(f"fitting on {len(split.fitted):,} rows")
        try:
            coder = type(bits.coder)(**bits.coder.get_params()).fit(raw.matrix[split.fitted])
        except EmbitsError as error:
            self._note(f"no rows outside the fit are measured: {error}")
            return bits, None
        return BinaryVectors(None, coder.encode(raw.matrix), coder), split


def split_rows(n: int, fit_rows: int | None, *, has_words: bool) -> RowSplit | None:
    """Divide n rows at random into rows to fit on and others; None if all rows are fitted on.

    `fit_rows` of None is half of the rows, or all of word vectors: a vocabulary is known in
    advance, and it is coded as a whole.
    """
    if fit_rows is None:
        fit_rows = ALL_ROWS if has_words or n < _MIN_ROWS else n // 2
    if whole("fit_rows", fit_rows, 1) >= n:
        return None
    # One seed: the same rows for all methods and seeds of a comparison.
    order = np.random.default_rng(0).permutation(n)
    return RowSplit(np.sort(order[:fit_rows]), np.sort(order[fit_rows:]))
